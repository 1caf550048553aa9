"""Which instance types a job of a history may get, and which it must not get by asking less."""

from dataclasses import replace

from tidegate.core.demand.fit import lacks
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import InstanceType
from tidegate.sim.advise.classes import Proposal, Silent
from tidegate.sim.replay.jobs import job_of
from tidegate.sim.replay.possible import meets
from tidegate.sim.replay.trace import TraceJob


def types(job: TraceJob, cluster: Cluster) -> list[tuple[float, InstanceType]]:
    """What may be bought for it, the cheapest first, with the USD per hour of the whole node."""
    asked = job_of(job, cluster)
    parts = (cluster.partition(name) for name in asked.partitions)
    names = {name for part in parts if part for name in part.pools}
    found: dict[str, tuple[float, InstanceType]] = {}
    for pool in cluster.pools:
        for of, offering in pool.offerings() if pool.name in names else ():
            if lacks(asked.shape, of) or not meets(asked, pool.features(of.name, offering.market)):
                continue
            usd = cluster.prices[offering]
            if of.name not in found or usd < found[of.name][0]:
                found[of.name] = usd, of
    return sorted(found.values(), key=lambda each: (each[0], each[1].name))


def least_gpu_memory_mib(job: TraceJob, cluster: Cluster) -> int:
    """Of the smallest GPU that a job of one GPU could get there; 0: not known."""
    one = replace(job, gpus=min(job.gpus, 1), cpus=1, memory_mib=0)
    return min((of.gpu_memory_mib for _, of in types(one, cluster)), default=0)


def on_its_gpus(one: Proposal, cluster: Cluster) -> Proposal | Silent:
    """A smaller request must not open GPU models on which the job would run at another speed."""
    job = one.key.job
    before = {of.gpu_type for _, of in types(job, cluster)}
    after = {of.gpu_type for _, of in types(one.change(job), cluster)}
    if not one.gpus or after <= before:
        return one
    return replace(one, gpu_type=before.pop()) if len(before) == 1 else Silent.OTHER_GPUS
