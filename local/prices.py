"""What instances cost in the local cloud: EC2's spot prices, and the Price List service.

moto says the same odd spot price of everything and has no Price List. Shapes as AWS's: of the
Price List products that are JSON texts within JSON, several of a type told apart by `Filters`.
Source: the API references of DescribeSpotPriceHistory and GetProducts.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses import EC2Response

from local.iam.answers import Answer
from tidegate.wire.catalogue import load_list_prices
from tidegate.wire.prices import SPOT_SHARE

PRODUCT = "Linux/UNIX"
# Source: EC2 user guide, "Capacity Blocks for ML", supported instance types.
SOLD_IN_BLOCKS = ("p4d.", "p4de.", "p5", "p6", "trn")

# A price from before the one of now, which a history that begins now does not have.
CHANGED_AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class LocalPrices:
    """`spot`, `on_demand`: texts that EC2 and the Price List say instead of the usual ones, by
    (instance type, zone) and by instance type; "": none. `currency`: of the Price List.
    `products_of`: texts that stand in a type's products.
    """

    spot: dict[tuple[str, str], str] = field(default_factory=dict)
    on_demand: dict[str, str] = field(default_factory=dict)
    currency: str = "USD"
    products_of: dict[str, str] = field(default_factory=dict)

    def spot_history(self, instance_types: list[str], zones: tuple[str, ...]) -> Iterator[Any]:
        for instance_type in instance_types:
            listed = load_list_prices().get(instance_type)
            for zone in zones:
                usual = f"{listed * SPOT_SHARE:.6f}" if listed else ""
                if usd := self.spot.get((instance_type, zone), usual):
                    yield {
                        "InstanceType": instance_type,
                        "ProductDescription": PRODUCT,
                        "SpotPrice": usd,
                        "AvailabilityZone": zone,
                        "Timestamp": CHANGED_AT,
                    }

    def products(self, asked: Mapping[str, str]) -> Iterator[str]:
        """Of one instance type, and of Linux without licences alone."""
        name = asked.get("instanceType", "")
        if name in self.products_of:
            yield self.products_of[name]
            return
        listed = load_list_prices().get(name)
        usd = self.on_demand.get(name, f"{listed:.10f}" if listed else "")
        is_linux = asked.get("operatingSystem") == "Linux" and asked.get("preInstalledSw") == "NA"
        if usd and is_linux and asked.get("tenancy") == "Shared":
            # Capacity reservations of the same type are products of their own, and so are Capacity
            # Blocks, of types that are sold in them: both without a price by the hour. Sources:
            # hashicorp/terraform-provider-aws#12122; aws-samples/aws-eda-slurm-cluster#200;
            # Karpenter, pkg/providers/pricing (marketoption).
            yield _product(name, usd, self.currency)
            if asked.get("capacitystatus") != "Used":
                yield _product(name, "0.0000000000", self.currency)
            if asked.get("marketoption") != "OnDemand" and name.startswith(SOLD_IN_BLOCKS):
                yield _product(name, "0.0000000000", self.currency)


def install_prices(model: LocalPrices, zones: tuple[str, ...]) -> None:
    """EC2's answers; for every server and mock of this process."""
    responder: Any = EC2Response

    def describe_spot_price_history(self: Any) -> ActionResult:
        asked = self._get_param("InstanceTypes", [])
        return ActionResult({"SpotPriceHistory": list(model.spot_history(asked, zones))})

    responder.describe_spot_price_history = describe_spot_price_history


def get_products(model: LocalPrices, body: bytes) -> Answer:
    """The Price List's answer to a call that may be made."""
    filters = json.loads(body).get("Filters", [])
    asked = {each["Field"]: each["Value"] for each in filters if each["Type"] == "TERM_MATCH"}
    answer = {"FormatVersion": "aws_v1", "PriceList": list(model.products(asked))}
    kind = ("Content-Type", "application/x-amz-json-1.1")
    return Answer("200 OK", json.dumps(answer).encode(), (kind,))


def _product(name: str, amount: str, currency: str) -> str:
    dimension = {"unit": "Hrs", "beginRange": "0", "pricePerUnit": {currency: amount}}
    return json.dumps(
        {
            "product": {"productFamily": "Compute Instance", "attributes": {"instanceType": name}},
            "serviceCode": "AmazonEC2",
            "terms": {"OnDemand": {"SKU.T": {"priceDimensions": {"SKU.T.D": dimension}}}},
        }
    )
