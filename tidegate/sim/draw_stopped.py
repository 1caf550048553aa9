"""Drawn worlds in which nodes are stopped as they leave, and started again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from random import Random

from tidegate.core.fleet.worth import HOUR_S, start_saves_usd
from tidegate.core.model.budgets import DEFAULT_DISRUPTION
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.ec2 import Market
from tidegate.core.model.waiting import Waiting
from tidegate.sim.options import Arrival

SHARE = 0.12
AUTO_SHARE = 0.4
GROUP_SHARE = 0.15
GANG_SHARE = 0.5
GANG_NODES_MAX = 3
FAULTS_KEPT = 0.3
AUTO_KEPT_S = (600.0, 1500.0)
AUTO_USD_PER_JOB_HOUR = 5.0
# Where pools try spot first, what they had on demand is started for who would get that.
SPOT_SHARE = 0.3
SPOT_OF_ON_DEMAND = 0.4
SPOT_USD_PER_JOB_HOUR = 100.0
# A stopped node is not started for some minutes, and a job must come for it after that.
SAFETY_S = 2000.0
AGAIN_S = (600.0, 1200.0)
GANG_AGAIN_S = (900.0, 1700.0)
DIGEST_STALE_S = 150.0
DISK_USD_PER_HOUR = 0.011


def with_stopped(chance: Random, cluster: Cluster, on_demand_usd: Mapping[str, float]) -> Cluster:
    """Most pools buy on demand; they keep a node or a few, and let them go soon."""
    if chance.random() < 0.7:
        cluster = _on_demand(cluster, on_demand_usd)
    pools = tuple(
        replace(
            pool,
            stopped_nodes=chance.choice((0, 1, 2, 5, 5)),
            stopped_usd_per_hour=DISK_USD_PER_HOUR,
            idle_s=min(pool.idle_s, chance.choice((10.0, 60.0))),
        )
        if Market.ON_DEMAND in pool.markets
        else pool
        for pool in cluster.pools
    )
    timings = replace(cluster.timings, digest_stale_s=DIGEST_STALE_S)
    return replace(cluster, pools=pools, timings=timings)


def with_kept(seed: int, cluster: Cluster) -> Cluster:
    """How many they keep, and for how long."""
    return _with_gangs(seed, _with_auto(seed, _with_spot(seed, cluster)))


def _is_beside_spot(seed: int) -> bool:
    return Random(f"{seed}:stopped beside spot").random() < SPOT_SHARE


def _with_spot(seed: int, cluster: Cluster) -> Cluster:
    """Pools that keep nodes and buy on demand alone sell spot as well, which is cheaper."""
    if not _is_beside_spot(seed):
        return cluster
    pools, prices = list[Pool](), dict(cluster.prices)
    for pool in cluster.pools:
        is_wider = pool.stopped_nodes > 0 and pool.markets == (Market.ON_DEMAND,)
        for _, on in pool.offerings() if is_wider else ():
            spot = replace(on, market=Market.SPOT)
            prices[spot] = round(SPOT_OF_ON_DEMAND * prices[on], 3)
        both = (Market.SPOT, Market.ON_DEMAND)
        pools.append(replace(pool, markets=both) if is_wider else pool)
    if tuple(pools) == cluster.pools:
        return cluster
    waiting = cluster.waiting if cluster.waiting.most_usd else Waiting(SPOT_USD_PER_JOB_HOUR)
    return replace(cluster, pools=tuple(pools), prices=prices, waiting=waiting)


def _with_auto(seed: int, cluster: Cluster) -> Cluster:
    """Some keep them by the price of waiting, for minutes: longer than until they may start."""
    chance = Random(f"{seed}:stopped auto")
    is_auto, kept_s = chance.random() < AUTO_SHARE, chance.choice(AUTO_KEPT_S)
    is_priced = chance.random() < 0.8
    if not is_auto or not any(pool.stopped_nodes for pool in cluster.pools):
        return cluster
    if is_priced and not cluster.waiting.most_usd:
        cluster = replace(cluster, waiting=Waiting(AUTO_USD_PER_JOB_HOUR))

    def priced(pool: Pool) -> Pool:
        saves_usd = start_saves_usd(cluster, pool)
        usd_per_hour = saves_usd / kept_s * HOUR_S or DISK_USD_PER_HOUR
        return replace(pool, is_stopped_auto=True, stopped_usd_per_hour=usd_per_hour)

    pools = (priced(each) if each.stopped_nodes else each for each in cluster.pools)
    return replace(cluster, pools=tuple(pools))


def _with_gangs(seed: int, cluster: Cluster) -> Cluster:
    """Where a gang comes again pools keep enough for it. Gangs of some pools are close together,
    and start no stopped node.
    """
    chance, is_again = Random(f"{seed}:placement groups"), _has_gang(seed)

    def of(pool: Pool) -> Pool:
        is_grouped = pool.stopped_nodes > 0 and chance.random() < GROUP_SHARE
        made = replace(pool, placement_group=is_grouped)
        if not is_again or not pool.stopped_nodes:
            return made
        return replace(made, stopped_nodes=GANG_NODES_MAX + 1, disruption=DEFAULT_DISRUPTION)

    return replace(cluster, pools=tuple(of(each) for each in cluster.pools))


def fewer(seed: int, faults: Collection[str]) -> frozenset[str]:
    """Where a gang comes again its nodes should live to stand stopped, mostly."""
    chance = Random(f"{seed}:stopped gang's faults")
    kept = (each for each in sorted(faults) if chance.random() < FAULTS_KEPT)
    return frozenset(kept if _has_gang(seed) else faults)


def _has_gang(seed: int) -> bool:
    return Random(f"{seed}:stopped gang").random() < GANG_SHARE


def _with_gang(seed: int, arrivals: Sequence[Arrival], cluster: Cluster) -> Sequence[Arrival]:
    """Somewhere the first job is a short gang."""
    nodes_max = min(GANG_NODES_MAX, *(pool.max_job_nodes for pool in cluster.pools))
    if not _has_gang(seed) or nodes_max < 2 or not arrivals:
        return arrivals
    chance, first = Random(f"{seed}:stopped gang of"), arrivals[0]
    submit = replace(
        first.submit,
        nodes=chance.randint(2, nodes_max),
        duration_s=round(chance.uniform(20.0, 120.0)),
        array=0,
        is_held=False,
        licences=0,
    )
    return (replace(first, submit=submit, cancel_after_s=None), *arrivals[1:])


def _on_demand(cluster: Cluster, on_demand_usd: Mapping[str, float]) -> Cluster:
    pools = tuple(replace(pool, markets=(Market.ON_DEMAND,)) for pool in cluster.pools)
    prices = {on: on_demand_usd[on.instance_type] for pool in pools for _, on in pool.offerings()}
    return replace(cluster, pools=pools, prices={**cluster.prices, **prices})


def with_later(seed: int, arrivals: Sequence[Arrival], cluster: Cluster) -> tuple[Arrival, ...]:
    """Where nodes are stopped the same jobs come again when these may be started."""
    if not any(pool.stopped_nodes for pool in cluster.pools):
        return tuple(arrivals)
    arrivals = _with_gang(seed, arrivals, cluster)
    count, firsts = len(arrivals), arrivals
    if _is_beside_spot(seed):
        firsts = [_on_demand_only(each) for each in arrivals]
    later = [
        replace(each, number=each.number + wave * count, at_s=each.at_s + after_s)
        for wave, after_s in enumerate(GANG_AGAIN_S if _has_gang(seed) else AGAIN_S, start=1)
        for each in arrivals
    ]
    return (*firsts, *later)


def _on_demand_only(arrival: Arrival) -> Arrival:
    submit = arrival.submit
    constraint = submit.constraint or Market.ON_DEMAND.feature
    return replace(arrival, submit=replace(submit, constraint=constraint))
