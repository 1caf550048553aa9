"""What is known of the market of the instance types that a queue could use."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from tidegate.adapters.account import Account
from tidegate.adapters.prices import AwsPrices
from tidegate.adapters.spot_scores import placement_score
from tidegate.cli.quotas import Quotas, quota_name
from tidegate.core.demand.demand import Need
from tidegate.core.demand.fit import lacks, satisfies
from tidegate.core.model.capacity import Score
from tidegate.core.model.capacity_advice import TypeMarket
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.errors import TidegateError
from tidegate.core.model.frozen import frozen
from tidegate.core.model.snapshot import Snapshot
from tidegate.sim.replay.market import ADVISOR, ADVISOR_CLASSES, advised, conditions

BOUGHT = (Market.SPOT, Market.ON_DEMAND)


@frozen
class Usable:
    """An instance type with GPUs of a pool, and the needs of jobs that wait and could use it."""

    pool: Pool
    instance_type: InstanceType
    needs: tuple[Need, ...]


def usable(cluster: Cluster, needs: Iterable[Need]) -> list[Usable]:
    """By pool and type, in the order of the cluster file, whatever a pool buys today."""
    needs = [need for need in needs if need.shape.gpus]
    found = []
    for pool in cluster.pools:
        mine = [need for need in needs if pool.name in need.pools]
        for each in pool.instance_types:
            fitting = tuple(need for need in mine if each.gpus and _holds(pool, each, need))
            if fitting:
                found.append(Usable(pool, each, fitting))
    return found


def _holds(pool: Pool, instance_type: InstanceType, need: Need) -> bool:
    markets = {*pool.markets, Market.CAPACITY_BLOCK}
    return not lacks(need.shape, instance_type) and any(
        satisfies(need.constraint, pool.features(instance_type.name, market)) for market in markets
    )


@dataclass
class Questions:
    """Asks AWS about the types, each question once. `unknown`: what got no answer, and why."""

    clients: Callable[[str], object]
    region: str
    prices: AwsPrices
    unknown: list[str] = field(default_factory=list)

    def priced(self, cluster: Cluster, types: Iterable[str]) -> Cluster:
        """The cluster with EC2's prices of now where it has none, for every pool's zones."""
        types = sorted(set(types))
        known: dict[Offering, float] = {}
        zones = sorted({zone for pool in cluster.pools for zone in pool.zones})
        for quote in self._asked("spot prices", lambda: self.prices.spot(types)):
            known[Offering(quote.instance_type, quote.zone, Market.SPOT)] = quote.usd_per_hour
        for quote in self._asked("list prices", lambda: self.prices.on_demand(types) or ()):
            for zone in zones:
                offering = Offering(quote.instance_type, zone, Market.ON_DEMAND)
                known[offering] = quote.usd_per_hour
        paid = 1 - cluster.discount
        believed = {offering: usd * paid for offering, usd in known.items() if usd > 0}
        return replace(cluster, prices={**believed, **cluster.prices})

    def _asked[Told](self, what: str, ask: Callable[[], Iterable[Told]]) -> list[Told]:
        try:
            return list(ask())
        except TidegateError as error:
            self.unknown.append(f"{what}: {error}")
            return []

    def quotas(self) -> Quotas:
        try:
            return Account(self.clients).quotas()
        except TidegateError as error:
            self.unknown.append(f"the account's quotas: {error}")
            return {}

    def score(self, pool: Pool, count: int) -> Score:
        if Market.SPOT not in pool.markets:
            return Score(None, f"pool {pool.name} buys none on spot")
        types = [each.name for each in pool.instance_types]
        client = self.clients("ec2")
        return placement_score(client, self.region, types, count, pool=pool.name)


def with_hazards(cluster: Cluster, region: str, data: str) -> tuple[Cluster, Mapping[str, str]]:
    """The cluster with Spot Advisor's interruptions, and its class of each instance type.

    Errors: BadMarket.
    """
    classes = {name: ADVISOR_CLASSES[of] for name, of in advised(region, data).items()}
    return conditions(cluster, region, {ADVISOR: data}).cluster, classes


def market_of(
    one: Usable, snapshot: Snapshot, cluster: Cluster, quotas: Quotas, score: Score, said: str
) -> TypeMarket:
    """`score` of the pool, `said`: Spot Advisor's class of the type."""
    name, now_s = one.instance_type.name, snapshot.now_s
    cheapest: dict[Market, float | None] = {}
    for market in BOUGHT:
        offerings = (Offering(name, zone, market) for zone in one.pool.zones)
        known = [cluster.prices[each] for each in offerings if each in cluster.prices]
        cheapest[market] = min(known, default=None)
    refused = [
        f"{each.offering} ({each.code})"
        for each in snapshot.resting
        if each.until_s > now_s and each.stops(one.pool.name) and one.pool.may_have(each.offering)
        if each.offering.instance_type == name
    ]
    nodes = {market: _quota_nodes(one.instance_type, market, quotas) for market in BOUGHT}
    return TypeMarket(
        pool=one.pool.name,
        instance_type=name,
        jobs=sum(need.count for need in one.needs),
        spot_usd_per_hour=cheapest[Market.SPOT],
        on_demand_usd_per_hour=cheapest[Market.ON_DEMAND],
        spot_score=score,
        interrupted=said,
        refused=tuple(sorted(refused)),
        spot_quota_nodes=nodes[Market.SPOT],
        on_demand_quota_nodes=nodes[Market.ON_DEMAND],
    )


def _quota_nodes(instance_type: InstanceType, market: Market, quotas: Quotas) -> int | None:
    name = quota_name(instance_type.name, market, quotas)
    return int(quotas[name] // instance_type.vcpus) if name else None
