"""Drawn worlds in which nodes are stopped as they leave, and started again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from tidegate.core.fleet.worth import HOUR_S, start_saves_usd
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.ec2 import Market
from tidegate.core.model.waiting import Waiting
from tidegate.sim.options import Arrival

SHARE = 0.12
AUTO_SHARE = 0.4
AUTO_KEPT_S = (600.0, 1500.0)
AUTO_USD_PER_JOB_HOUR = 5.0
# A stopped node is not started for some minutes, and a job must come for it after that.
SAFETY_S = 2000.0
AGAIN_S = (600.0, 1200.0)
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


def with_auto(seed: int, cluster: Cluster) -> Cluster:
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


def _on_demand(cluster: Cluster, on_demand_usd: Mapping[str, float]) -> Cluster:
    pools = tuple(replace(pool, markets=(Market.ON_DEMAND,)) for pool in cluster.pools)
    prices = {on: on_demand_usd[on.instance_type] for pool in pools for _, on in pool.offerings()}
    return replace(cluster, pools=pools, prices={**cluster.prices, **prices})


def with_later(arrivals: Sequence[Arrival], cluster: Cluster) -> tuple[Arrival, ...]:
    """Where nodes are stopped the same jobs come again when these may be started."""
    if not any(pool.stopped_nodes for pool in cluster.pools):
        return tuple(arrivals)
    count = len(arrivals)
    later = [
        replace(each, number=each.number + wave * count, at_s=each.at_s + after_s)
        for wave, after_s in enumerate(AGAIN_S, start=1)
        for each in arrivals
    ]
    return (*arrivals, *later)
