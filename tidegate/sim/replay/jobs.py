"""Jobs of a history as Slurm and the planner see them."""

from collections.abc import Hashable
from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.slurm import Job, Shape
from tidegate.sim.replay.parts import gpus_asked, type_here
from tidegate.sim.replay.state import EPOCH_S, Run
from tidegate.sim.replay.trace import TraceJob


def asked(job: Job) -> Hashable:
    """What jobs of one kind have in common."""
    return job.partitions, job.nodes, job.shape, job.constraint


def run_of(
    job: TraceJob,
    place: int,
    cluster: Cluster,
    kinds: dict[Hashable, int],
    *,
    error_sigma: float,
    seed: int,
) -> Run:
    """The job before it came; `kinds` grows by its kind."""
    limit_s = job.time_limit_s
    if limit_s is None:
        chance = Random(f"{seed} {job.job_id}")
        limit_s = max(job.duration_s, 1.0) * chance.lognormvariate(0.0, error_sigma)
    shown = job.queued or job_of(job, cluster)
    pending = replace(
        shown,
        job_id=str(place + 1),  # as Slurm does, it counts them as they come
        priority=4_000_000_000 - place,
        time_limit_s=limit_s,
    )
    return Run(
        job=job,
        limit_s=limit_s,
        place=place,
        pending=pending,
        kind=kinds.setdefault(asked(pending), len(kinds)),
        gpus=gpus_asked(pending.shape, cluster) * job.nodes,
        left_s=job.duration_s,
        ready_s=job.submit_s + EPOCH_S,
    )


def job_of(job: TraceJob, cluster: Cluster) -> Job:
    """As Slurm would show what the history tells of it."""
    partition = cluster.partition(job.partition)
    if partition is None:
        partition = next((p for p in cluster.partitions if p.is_default), cluster.partitions[0])
    shape = Shape(
        gpus=job.gpus,
        gpu_type=type_here(job, frozenset(partition.pools), cluster),
        cpus=job.cpus,
        memory_mib=job.memory_mib,
        is_exclusive=job.nodes > 1 and not job.has_parts,
        gres=job.gres,
    )
    return Job(
        job_id=job.job_id,
        state="PENDING",
        partitions=(partition.name,),
        nodes=job.nodes,
        shape=shape,
        user=job.user,
        account=job.account,
        constraint=job.constraint,
        reason="Resources",
    )
