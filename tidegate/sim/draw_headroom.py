"""What a drawn world keeps free for jobs that have not come."""

from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.headroom import Headroom
from tidegate.core.model.slurm import Shape


def with_headroom(chance: Random, cluster: Cluster) -> Cluster:
    """Now and then room for jobs of one size or two, which some type of the pool holds."""
    pools = [
        replace(pool, headroom=_drawn(chance, pool)) if chance.random() < 0.06 else pool
        for pool in cluster.pools
    ]
    return replace(cluster, pools=tuple(pools))


def _drawn(chance: Random, pool: Pool) -> tuple[Headroom, ...]:
    return tuple(_one(chance, pool) for _ in range(chance.choice((1, 1, 2))))


def _one(chance: Random, pool: Pool) -> Headroom:
    of = chance.choice(pool.instance_types)
    gpus = chance.choice((1, of.gpus)) if of.gpus else 0
    shape = Shape(gpus=gpus, cpus=chance.choice((1, of.cpus // max(of.gpus, 1))))
    return Headroom(shape, nodes=chance.choice((1, 1, 2)), jobs=chance.choice((1, 2)))
