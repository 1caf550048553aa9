"""Worlds in which jobs that run on demand may be moved to spot: it is short first, and comes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.ec2 import Market
from tidegate.sim.clock import START_S
from tidegate.sim.options import Arrival, Shortage, WorldOptions
from tidegate.sim.slurm_parts import Submit

SHARE = 0.08
# Long enough for a shortage, for spot to be trusted again, and for a move under faults.
SAFETY_S = 1500.0
# As long as machines boot in these worlds; pools that expect more trust spot only later.
BOOT_S = 60.0

SAYS = (
    "tidegate:ckpt=USR1@20 tidegate:progress=/shared/{user}/progress"
    " tidegate:heartbeat=/shared/{user}/heartbeat@900"
)


def with_spot(chance: Random, cluster: Cluster, on_demand_usd: Mapping[str, float]) -> Cluster:
    """The same cluster with both markets in each pool."""
    both = (Market.SPOT, Market.ON_DEMAND)
    pools = tuple(
        replace(pool, boot_s=BOOT_S, markets=tuple(dict.fromkeys((*pool.markets, *both))))
        for pool in cluster.pools
    )
    prices = {
        offering: on_demand_usd[kind.name]
        * (chance.uniform(0.25, 0.6) if offering.market is Market.SPOT else 1.0)
        for pool in pools
        for kind, offering in pool.offerings()
        if not offering.market.is_prepaid
    }
    return replace(cluster, pools=pools, prices={**prices, **cluster.prices})


def with_moves(chance: Random, drawn: WorldOptions) -> WorldOptions:
    """The same world with jobs that run for long enough; most say that they may be moved."""
    return replace(
        drawn,
        arrivals=tuple(_moving(chance, each) for each in drawn.arrivals),
        shortages=(*drawn.shortages, *_shortages(chance, drawn.cluster.pools)),
    )


def _moving(chance: Random, arrival: Arrival) -> Arrival:
    asked = arrival.submit
    if asked.beside or asked.node_name or chance.random() < 0.2:
        return arrival
    duration_s = round(chance.uniform(2500.0, 6000.0))
    limit_s = round(duration_s * chance.uniform(1.05, 1.5))
    spare_s = chance.choice((60.0, 500.0, 600.0, 700.0, 900.0))
    begins_s = START_S + arrival.at_s + asked.begin_after_s
    is_array = bool(asked.array) and chance.random() < 0.05
    words = [SAYS.format(user=asked.user)]
    words += ["tidegate:move"] if chance.random() < 0.8 else []
    words += [f"tidegate:deadline={begins_s + BOOT_S + limit_s + spare_s:.0f}"]
    submit: Submit = replace(
        asked,
        duration_s=duration_s,
        time_limit_s=limit_s,
        array=asked.array if is_array else 0,
        throttle=asked.throttle if is_array else 0,
        constraint=asked.constraint if chance.random() < 0.2 else "",
        comment=" ".join(words),
    )
    return replace(arrival, submit=submit)


def _shortages(chance: Random, pools: tuple[Pool, ...]) -> Iterator[Shortage]:
    until_s = chance.uniform(100.0, 500.0)
    spot = {
        offering
        for pool in pools
        for _, offering in pool.offerings()
        if offering.market is Market.SPOT
    }
    for each in sorted(spot):
        yield Shortage(each, 0.0, until_s, 0)
