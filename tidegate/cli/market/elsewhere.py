"""A cluster as it would be in another region, at the prices there."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from tidegate.cli.market.told import Told
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.savings_plans import PlanKind, SavingsPlan
from tidegate.core.offers.market import DIGITS
from tidegate.sim.replay.steps import Steps

NONE_OF_IT = Steps(((0.0, 0.0),))


@frozen
class Moved:
    """`absent`: offerings that EC2 does not have there, as a replay's capacity says it."""

    cluster: Cluster
    absent: Mapping[Offering, Steps]
    unsold: tuple[str, ...]
    not_possible: tuple[str, ...]


def moved(cluster: Cluster, told: Told, beside: Mapping[tuple[str, Market], float]) -> Moved:
    """The cluster with its pools in the zones of `told`, as many as each has, without what is paid
    for in advance. `beside`: what a node's disk and address cost, by type and market.
    """
    pools, prices, absent, why = list[Pool](), dict[Offering, float](), set[Offering](), list[str]()
    unsold = sorted(
        {one.name for pool in cluster.pools for one in pool.instance_types}
        - {name for name in told.on_demand if told.zones.get(name)}
    )
    for pool in cluster.pools:
        there = _there(pool, told, unsold)
        if there is None:
            why.append(f"pool {pool.name} is not possible: nothing of it is sold there")
            continue
        if prepaid := [each for each in pool.markets if each.is_prepaid]:
            names = " and ".join(map(str, prepaid))
            why.append(f"pool {pool.name}: what is {names} is paid for in the own region alone")
        pools.append(there)
        for _, offering in there.offerings():
            usd, is_there = _usd(offering, told)
            extra = beside.get((offering.instance_type, offering.market), 0.0)
            prices[offering] = round(usd * (1 - cluster.discount) + extra, DIGITS)
            if not is_there:
                absent.add(offering)
    names_left = {each.name for each in pools}
    partitions = tuple(
        replace(each, pools=tuple(name for name in each.pools if name in names_left))
        for each in cluster.partitions
    )
    made = replace(
        cluster,
        pools=tuple(pools),
        partitions=partitions,
        prices=prices,
        reservations=(),
        reservation_groups=(),
        savings_plans=tuple(_plans(cluster, told)),
        hazards=dict(_hazards(cluster, pools)),
        estimates={},
        quoted=frozenset(),
    )
    return Moved(made, dict.fromkeys(absent, NONE_OF_IT), tuple(unsold), tuple(why))


def _plans(cluster: Cluster, told: Told) -> Iterator[SavingsPlan]:
    """Those for compute, which cover every region: what they take off the list there. A rate that
    is said is the own region's.
    """
    for plan in cluster.savings_plans:
        rates = {name: rate for name, rate in plan.rates.items() if rate.discount is not None}
        if plan.kind is PlanKind.COMPUTE and rates:
            yield replace(plan, rates=rates).at(told.on_demand, cluster.discount)


def _there(pool: Pool, told: Told, unsold: list[str]) -> Pool | None:
    """None: nothing of the pool is sold there. What it has in advance it buys on demand."""
    types = tuple(each for each in pool.instance_types if each.name not in unsold)
    if not types:
        return None
    paid = tuple(each for each in pool.markets if not each.is_prepaid)
    offered = Counter(zone for each in types for zone in told.zones[each.name])
    zones = sorted(offered, key=lambda zone: (-offered[zone], _cheapest(zone, told), zone))
    return replace(
        pool,
        instance_types=types,
        zones=tuple(sorted(zones[: len(pool.zones)])),
        markets=paid or (Market.ON_DEMAND,),
    )


def _cheapest(zone: str, told: Told) -> float:
    return min((each.usd_per_hour for each in told.spot if each.zone == zone), default=1e9)


def _usd(offering: Offering, told: Told) -> tuple[float, bool]:
    """USD per hour, and whether EC2 sells it there."""
    name, listed = offering.instance_type, told.on_demand[offering.instance_type]
    is_there = offering.zone in told.zones[name]
    if offering.market is not Market.SPOT:
        return listed, is_there
    quotes = (e for e in told.spot if (e.instance_type, e.zone) == (name, offering.zone))
    found = next((each.usd_per_hour for each in quotes), None)
    # Files of a replay's market say their prices later.
    return (listed, is_there and bool(told.files)) if found is None else (found, is_there)


def _hazards(cluster: Cluster, pools: list[Pool]) -> Iterator[tuple[Offering, float]]:
    """A type's own, as the cluster file has them: of every zone the same."""
    by_type = {each.instance_type: per_hour for each, per_hour in cluster.hazards.items()}
    for pool in pools:
        for each, offering in pool.offerings():
            if offering.market is Market.SPOT and each.name in by_type:
                yield offering, by_type[each.name]
