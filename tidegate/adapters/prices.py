"""What AWS asks for instances: EC2's spot prices and the list prices of the Price List service."""

from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, ValidationError

from tidegate.adapters.aws_errors import aws_call
from tidegate.core.model.frozen import frozen
from tidegate.core.model.market import Quote
from tidegate.ports import Clock
from tidegate.wire.finite import FINITE
from tidegate.wire.prices import has_price_list

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

# Source: EC2 API reference, DescribeSpotPriceHistory, `ProductDescriptions`. In accounts that had
# EC2-Classic the prices of a VPC have the longer name.
LINUX = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")

# One call for each type: so many side by side.
AT_ONCE = 8

# Linux without licences, without a reservation and not in a Capacity Block, on hardware that is
# shared. Source: attributes of AmazonEC2 in the Price List, as AWS's own price calculators and
# Karpenter (pkg/providers/pricing) filter them.
LISTED = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}


class _Part(BaseModel):
    """A part of a product, of which most is left out. Source: API reference, GetProducts."""

    model_config = FINITE


class _Dimension(_Part):
    """`amounts`: by currency."""

    unit: str = ""
    amounts: dict[str, str] = Field({}, alias="pricePerUnit")


class _Term(_Part):
    dimensions: dict[str, _Dimension] = Field({}, alias="priceDimensions")


class _Terms(_Part):
    on_demand: dict[str, _Term] = Field({}, alias="OnDemand")


class _Product(_Part):
    terms: _Terms = Field(default_factory=_Terms)


@frozen
class AwsPrices:
    """The prices of one region."""

    ec2: "EC2Client"
    pricing: Any
    region: str
    clock: Clock

    def spot(self, instance_types: Collection[str]) -> tuple[Quote, ...]:
        """A history that begins now has the price of now alone, for each type and zone."""
        pages = self.ec2.get_paginator("describe_spot_price_history").paginate(
            InstanceTypes=sorted(instance_types),  # type: ignore[arg-type]
            ProductDescriptions=LINUX,
            StartTime=datetime.fromtimestamp(self.clock.now_s(), UTC),
        )
        newest: dict[tuple[str, str], Any] = {}
        with aws_call():
            for page in pages:
                for each in page["SpotPriceHistory"]:
                    place = each["InstanceType"], each["AvailabilityZone"]
                    known = newest.get(place)
                    if known is None or each["Timestamp"] > known["Timestamp"]:
                        newest[place] = each
        return tuple(
            Quote(instance_type, _usd(each["SpotPrice"]), zone)
            for (instance_type, zone), each in sorted(newest.items())
        )

    def on_demand(self, instance_types: Collection[str]) -> tuple[Quote, ...] | None:
        if not has_price_list(self.region):
            return None
        with ThreadPoolExecutor(AT_ONCE) as pool, aws_call():
            found = pool.map(self._listed, sorted(instance_types))
            return tuple(each for each in found if each is not None)

    def _listed(self, instance_type: str) -> Quote | None:
        """Without a price in USD, or with several, nothing is known."""
        asked = {**LISTED, "regionCode": self.region, "instanceType": instance_type}
        answer = self.pricing.get_products(
            ServiceCode="AmazonEC2",
            Filters=[
                {"Type": "TERM_MATCH", "Field": field, "Value": value}
                for field, value in asked.items()
            ],
        )
        prices = {usd for text in answer["PriceList"] for usd in listed_usd(text, "Hrs")}
        return Quote(instance_type, prices.pop()) if len(prices) == 1 else None


def listed_usd(text: str, unit: str) -> Iterator[float]:
    """USD per unit (`Hrs`, `GB`) of a product, which is JSON in JSON."""
    try:
        product = _Product.model_validate_json(text)
    except ValidationError:
        return
    for term in product.terms.on_demand.values():
        for dimension in term.dimensions.values():
            if dimension.unit == unit and "USD" in dimension.amounts:
                yield _usd(dimension.amounts["USD"])


def _usd(text: str) -> float:
    """What is no number is no price, which nobody believes."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
