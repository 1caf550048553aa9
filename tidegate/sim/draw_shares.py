"""Drawn worlds in which jobs share GPUs by shards or by MPS."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.devices import MPS, SHARD
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.slurm import Shape
from tidegate.sim.layouts import with_layouts
from tidegate.sim.options import Arrival
from tidegate.sim.slurm_parts import Submit

HOW_OFTEN = 0.15
SHARDS_PER_GPU = (2, 4, 4, 7)
MPS_PER_GPU = 100


def with_parts(
    seed: int, cluster: Cluster, arrivals: Sequence[Arrival]
) -> tuple[Cluster, tuple[Arrival, ...]]:
    """GPUs of some worlds are cut, and of some others shared."""
    cluster, asked = with_layouts(Random(f"{seed}:layouts"), cluster, arrivals)
    return with_shares(Random(f"{seed}:shares"), cluster, asked)


def with_shares(
    chance: Random, cluster: Cluster, arrivals: Sequence[Arrival]
) -> tuple[Cluster, tuple[Arrival, ...]]:
    """Now and then the GPUs of all types, or of one, are shared, and most of the jobs with GPUs ask
    for parts of one, some of them several at once.

    Not where GPUs are cut: before 24.11 a cluster file may not have both.
    """
    types = {each.name: each for pool in cluster.pools for each in pool.instance_types if each.gpus}
    is_cut = any(each.profiles for each in types.values())
    if chance.random() >= HOW_OFTEN or not types or is_cut:
        return cluster, tuple(arrivals)
    named = sorted(types) if chance.random() < 0.6 else [chance.choice(sorted(types))]
    gres = chance.choice((SHARD, MPS))
    per_gpu = chance.choice(SHARDS_PER_GPU) if gres == SHARD else MPS_PER_GPU
    shared = {n: replace(types[n], shards_per_gpu=per_gpu, shared_gres=gres) for n in named}
    pools = tuple(
        replace(
            pool, instance_types=tuple(shared.get(each.name, each) for each in pool.instance_types)
        )
        for pool in cluster.pools
    )
    asked = tuple(_asking(chance, each, list(shared.values())) for each in arrivals)
    return replace(cluster, pools=pools), asked


def _asking(chance: Random, arrival: Arrival, types: Sequence[InstanceType]) -> Arrival:
    """The same job with shards in the place of its GPUs, or as it was; so too its components."""
    submit, *beside = (
        _part(chance, each, chance.choice(types))
        for each in (arrival.submit, *arrival.submit.beside)
    )
    is_alone = submit.nodes == 1 and not (beside or submit.array or submit.after)
    array = chance.choice((0, 0, 3, 6)) if is_alone and submit.shape.gres != "gpu" else 0
    submit = replace(submit, beside=tuple(beside), array=array or submit.array)
    return replace(arrival, submit=submit)


def _part(chance: Random, submit: Submit, of: InstanceType) -> Submit:
    """A part of a GPU, seldom more than there is of one, which waits for ever."""
    one, shape = of.shards_per_gpu, submit.shape
    parts = (1, 1, one // 4, one // 2, one // 2, one - 1, one)
    shards = one + 1 if chance.random() < 0.04 else max(chance.choice(parts), 1)
    gpu_type = of.gpu_type if chance.random() < 0.3 else ""
    cpus = chance.choice((1, 1, 2, max(of.vcpus // 4, 1)))
    if not shape.gpus or chance.random() >= 0.7:
        return submit
    is_alone = shape.is_exclusive or chance.random() < 0.08
    part = Shape(shards, gpu_type, cpus, 1_000, is_alone, gres=of.shared_gres)
    return replace(submit, shape=part)
