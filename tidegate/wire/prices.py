"""What an instance costs by the cluster file, or by AWS's list until the market was read."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated

from pydantic import Field

from tidegate.core.model.cluster import Cluster, Estimate, Pool, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.wire import names
from tidegate.wire.beside import DIGITS, Beside
from tidegate.wire.catalogue import LIST_PRICE_REGION, load_catalogue, load_list_prices
from tidegate.wire.pool_models import PaidMarket
from tidegate.wire.root_volume import RootVolume

# Spot by on-demand price where nobody says: in AWS's Spot Advisor of July 2025 nine of ten GPU
# types saved at least 54 %.
SPOT_SHARE = 0.5

# Of bare metal that the list does not have, by the price of its virtual twin: AWS asks as much, or
# up to a tenth more (its prices of January 2026 in us-east-1, of all types but one).
BARE_METAL_SHARE = 1.1

# What asks AWS for the prices of a market.
ASKED_BY: Mapping[Market, str] = {
    Market.SPOT: "ec2:DescribeSpotPriceHistory",
    Market.ON_DEMAND: "pricing:GetProducts",
}

# Their price lists cannot be asked for with their credentials, or are in another currency.
# Source: AWS General Reference, "AWS Billing and Cost Management endpoints and quotas".
UNLISTED = ("us-gov-", "cn-", "us-iso", "eusc-")

# Ten times what the dearest type costs.
PriceUsd = Annotated[float, Field(gt=0, le=2000)]
PriceModel = dict[PaidMarket, PriceUsd]
OwnPrices = Annotated[
    dict[names.InstanceTypeName, PriceModel],
    Field(
        description="prices that hold whatever the market says, such as negotiated ones, by "
        "instance type and capacity type; what is left out is what EC2 asks now, and until that "
        f"was read AWS's list price in {LIST_PRICE_REGION}, for spot half of it; a node's disk "
        "and public address are added"
    ),
]
Discount = Annotated[
    float,
    Field(
        ge=0,
        le=90,
        description="what a contract with AWS (a private pricing agreement, once EDP) takes off "
        "what EC2 asks, on demand and spot alike; `prices_usd_per_hour` is taken as it stands",
    ),
]


def price_usd_per_hour(
    prices: PriceModel, instance_type: str, market: Market, region: str | None
) -> float | None:
    """What the file or AWS's list in us-east-1 says; None: nobody knows.

    Spot without a price is taken to cost a share of the on-demand price.
    """
    if market in prices:
        return prices[market]
    listed = None if _is_in_china(region) else _listed(instance_type)
    on_demand = prices.get(Market.ON_DEMAND, listed)
    if on_demand is None or market is Market.ON_DEMAND:
        return on_demand
    return on_demand * SPOT_SHARE


@cache
def _listed(instance_type: str) -> float | None:
    listed, row = load_list_prices().get(instance_type), load_catalogue().get(instance_type)
    if listed is not None or row is None:
        return listed
    twin = load_list_prices().get(row.virtual_twin)
    return twin and round(twin * BARE_METAL_SHARE, DIGITS)


@frozen
class OnDemandPrice:
    """What an instance costs on demand without its disk, by the list and less what a contract takes
    off it. `is_own`: the file says it, or the list is the region's and has it; what AWS asks else
    only the market will say.
    """

    listed_usd: float
    paid_usd: float
    is_own: bool


def on_demand_price(
    prices: PriceModel, instance_type: str, region: str | None, discount: float
) -> OnDemandPrice | None:
    """None: nobody knows."""
    listed = price_usd_per_hour(prices, instance_type, Market.ON_DEMAND, region)
    if listed is None:
        return None
    is_said = Market.ON_DEMAND in prices
    paid = listed if is_said else listed * (1 - discount)
    is_listed = region == LIST_PRICE_REGION and instance_type in load_list_prices()
    return OnDemandPrice(listed, paid, is_said or is_listed)


@frozen
class Priced:
    """`estimates`: of offerings whose price the file leaves to the market."""

    prices: Mapping[Offering, float]
    estimates: Mapping[Offering, Estimate]


@frozen(kw_only=True)
class PriceList:
    """The prices of a cluster file. `discount`: the part that a contract takes off AWS's."""

    known: Mapping[str, PriceModel]
    region: str | None
    beside: Beside
    discount: float = 0.0

    def priced(
        self,
        pools: Sequence[tuple[Pool, RootVolume]],
        reservations: Sequence[Reservation],
        *,
        has_groups: bool = False,
    ) -> Priced:
        """Of every offering of these pools, each with its root volume.

        A price of the file holds in every zone. Prepaid offerings exist where a reservation is, and
        cost nothing more. What is in an open one costs what on demand costs once that has ended,
        also where no pool buys on demand. With `has_groups` any place that is reserved may come.
        """
        reserved = {each.offering for each in reservations}
        prices: dict[Offering, float] = {}
        estimates: dict[Offering, Estimate] = {}
        for offering, root in _offerings(pools):
            paid = offering
            if offering in reserved:
                prices[offering] = 0.0
                paid = replace(offering, market=Market.ON_DEMAND)
            elif has_groups and offering.market is Market.RESERVED:
                paid = replace(offering, market=Market.ON_DEMAND)
            elif offering.market.is_prepaid:
                continue
            usd = self._paid_per_hour(paid.instance_type, paid.market)
            if usd is None or offering.market is Market.CAPACITY_BLOCK:
                assert offering.market.is_prepaid, "rules.py refuses a file with open prices"
                continue
            beside_usd = self.beside.usd_per_hour(root, paid.zone)
            # Of pools that share it, the largest disk counts.
            prices[paid] = max(prices.get(paid, 0.0), round(usd + beside_usd, DIGITS))
            if estimate := self._estimate(paid, round(prices[paid] - usd, DIGITS)):
                estimates[paid] = estimate
        return Priced(prices, estimates)

    def on_demand(self, instance_type: str) -> OnDemandPrice | None:
        known = self.known.get(instance_type, {})
        return on_demand_price(known, instance_type, self.region, self.discount)

    def _paid_per_hour(self, instance_type: str, market: Market) -> float | None:
        if market is Market.ON_DEMAND:
            on_demand = self.on_demand(instance_type)
            return on_demand.paid_usd if on_demand else None
        usd, said = self._usd_per_hour(instance_type, market), self.known.get(instance_type, {})
        # Where the file has a price on demand, spot is taken to be a share of that one.
        is_said = market in said or Market.ON_DEMAND in said
        return usd if usd is None or is_said else usd * (1 - self.discount)

    def _usd_per_hour(self, instance_type: str, market: Market) -> float | None:
        known = self.known.get(instance_type, {})
        return price_usd_per_hour(known, instance_type, market, self.region)

    def _estimate(self, paid: Offering, beside_usd: float) -> Estimate | None:
        """None: the file says the price, or nobody could tell whether another one can be meant."""
        on_demand = self._usd_per_hour(paid.instance_type, Market.ON_DEMAND)
        is_said = paid.market in self.known.get(paid.instance_type, {})
        if is_said or on_demand is None or _is_in_china(self.region):
            return None
        return Estimate(on_demand, beside_usd)


def hazards(pools: Iterable[Pool], per_hour: Mapping[str, float]) -> dict[Offering, float]:
    """Interruptions per hour of the spot offerings of types that the file says."""
    return {
        offering: per_hour[each.name]
        for pool in pools
        for each, offering in pool.offerings()
        if offering.market is Market.SPOT and each.name in per_hour
    }


def has_price_list(region: str) -> bool:
    """Whether AWS's list prices can be asked for from within the region."""
    return not region.startswith(UNLISTED)


def price_rights(cluster: Cluster, region: str) -> tuple[str, ...]:
    """The actions by which a cluster of this region learns the prices that its file leaves open.

    The list is read wherever one is open: spot prices are judged by it.
    """
    markets = {offering.market for offering in cluster.estimates}
    if markets and has_price_list(region):
        markets.add(Market.ON_DEMAND)
    else:
        markets.discard(Market.ON_DEMAND)
    return tuple(sorted(ASKED_BY[each] for each in markets))


def _is_in_china(region: str | None) -> bool:
    """AWS bills there in another currency, and by another list."""
    return region is not None and region.startswith("cn-")


def _offerings(pools: Sequence[tuple[Pool, RootVolume]]) -> Iterator[tuple[Offering, RootVolume]]:
    for pool, root in pools:
        for _, offering in pool.offerings():
            yield offering, root
