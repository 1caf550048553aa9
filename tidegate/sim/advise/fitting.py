"""Which instance types a job of a history may get, and which it must not get by asking less."""

from collections.abc import Iterator
from dataclasses import replace

from tidegate.core.demand.fit import lacks, part_of_gpu
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.slurm import Job, Shape
from tidegate.sim.advise.classes import Proposal, Silent
from tidegate.sim.advise.parts import Part, parts_of_node
from tidegate.sim.replay.jobs import job_of
from tidegate.sim.replay.parts import whole_gpus
from tidegate.sim.replay.possible import meets
from tidegate.sim.replay.trace import TraceJob


def types(job: TraceJob, cluster: Cluster) -> list[tuple[float, InstanceType]]:
    """What may be bought for it, the cheapest first, with the USD per hour of the whole node."""
    asked = job_of(job, cluster)
    found: dict[str, tuple[float, InstanceType]] = {}
    for of, usd in _sold(asked, cluster):
        if not lacks(asked.shape, of) and (of.name not in found or usd < found[of.name][0]):
            found[of.name] = usd, of
    return sorted(found.values(), key=lambda each: (each[0], each[1].name))


def _sold(asked: Job, cluster: Cluster) -> Iterator[tuple[InstanceType, float]]:
    """What its partition's pools have that meets its constraint, whatever its size."""
    parts = (cluster.partition(name) for name in asked.partitions)
    names = {name for part in parts if part for name in part.pools}
    for pool in cluster.pools:
        for of, offering in pool.offerings() if pool.name in names else ():
            if meets(asked, pool.features(of.name, offering.market)):
                yield of, cluster.prices[offering]


def usd_of_cheapest(job: TraceJob, cluster: Cluster) -> float | None:
    """What an hour of a node costs that holds it, of parts the part of it; None: nothing does."""
    shape = job_of(job, cluster).shape
    found = types(job, cluster)
    return min((usd * _part(shape, of) for usd, of in found), default=None)


def _part(shape: Shape, of: InstanceType) -> float:
    is_part = of.cut_into or part_of_gpu(shape, of)
    return whole_gpus(shape, of) / of.whole_gpus if is_part else 1.0


def parts_for(job: TraceJob, cluster: Cluster) -> tuple[Part, ...]:
    """Parts of the GPU models that a job with one whole GPU may get, as its partition's pools have
    them; those that are kept apart first, then the cheapest.
    """
    if job.nodes != 1 or job.gpus != 1 or job.has_parts:
        return ()
    models = {of.gpu_type for _, of in types(job, cluster)}
    asked, found = job_of(job, cluster), set[Part]()
    for of, usd in _sold(asked, cluster):
        for part in parts_of_node(of, usd):
            shape = replace(asked.shape, gpus=part.count, gpu_type=part.gpu_type, gres=part.gres)
            if part.model in models and not lacks(shape, of):
                found.add(part)
    return tuple(sorted(found, key=lambda each: (not each.is_apart, each.usd_per_hour)))


def least_gpu_memory_mib(job: TraceJob, cluster: Cluster) -> int:
    """Of the smallest GPU that a job of one GPU could get there; 0: not known."""
    one = replace(job, gpus=min(job.gpus, 1), cpus=1, memory_mib=0)
    return min((of.gpu_memory_mib for _, of in types(one, cluster)), default=0)


def on_its_gpus(one: Proposal, cluster: Cluster) -> Proposal | Silent:
    """A smaller request must not open GPU models on which the job would run at another speed; a
    part is one of theirs already.
    """
    if one.part:
        return one
    job = one.key.job
    before = {of.gpu_type for _, of in types(job, cluster)}
    after = {of.gpu_type for _, of in types(one.change(job), cluster)}
    if not one.gpus or after <= before:
        return one
    return replace(one, gpu_type=before.pop()) if len(before) == 1 else Silent.OTHER_GPUS
