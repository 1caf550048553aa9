"""Drawn worlds in which the GPUs of a type are cut for jobs (MIG)."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tidegate.core.demand.fit import lacks
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.mig import Profile, profile
from tidegate.sim.options import Arrival

HOW_OFTEN = 0.2
KNOWN = {"1g.5gb": 7, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1}


def with_layouts(
    chance: Random, cluster: Cluster, arrivals: Sequence[Arrival]
) -> tuple[Cluster, tuple[Arrival, ...]]:
    """Now and then one type of the cluster is cut, and many of its jobs ask for parts of a GPU.

    Those that ask for a whole one of that type may never run any more.
    """
    types = {each.name: each for pool in cluster.pools for each in pool.instance_types if each.gpus}
    if not types or chance.random() >= HOW_OFTEN:
        return cluster, tuple(arrivals)
    whole = types[chance.choice(sorted(types))]
    profiles = _profiles(whole, chance.sample(sorted(KNOWN), chance.randint(1, len(KNOWN))))
    cut = replace(whole, profiles=profiles)
    pools = tuple(_with_cut(pool, cut) for pool in cluster.pools)
    asked = tuple(_asking(chance, each, profiles) for each in arrivals)
    return replace(cluster, pools=pools), asked


def _with_cut(pool: Pool, cut: InstanceType) -> Pool:
    """Without what a cluster file may not have beside it: headroom that no type holds any more."""
    types = tuple(cut if each.name == cut.name else each for each in pool.instance_types)
    return replace(
        pool,
        instance_types=types,
        is_min_types_strict=False,
        headroom=tuple(h for h in pool.headroom if any(not lacks(h.shape, of) for of in types)),
    )


def _profiles(of: InstanceType, names: Sequence[str]) -> tuple[Profile, ...]:
    found = (
        profile(name, f"{of.gpu_type}_{name}", most=KNOWN[name], slices=7) for name in sorted(names)
    )
    return tuple(each for each in found if each)


def _asking(chance: Random, arrival: Arrival, profiles: Sequence[Profile]) -> Arrival:
    """The same job, or one for a part of a GPU."""
    of, count, is_part = chance.choice(profiles), chance.choice((1, 1, 2)), chance.random() < 0.6
    shape = arrival.submit.shape
    if not (shape.gpus and is_part):
        return arrival
    part = replace(shape, gpus=count, gpu_type=of.gpu_type, cpus=1, memory_mib=1_000)
    return replace(arrival, submit=replace(arrival.submit, shape=part))
