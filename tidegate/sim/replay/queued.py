"""The queue of a cluster as a history that begins now: what waits, what runs, what will come."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidegate.core.demand.constraint import with_feature
from tidegate.core.demand.demand import Need, demand
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.sim.replay.trace import Trace, TraceJob

# A job that runs has a little left, whatever its limit says.
LEAST_S = 60.0


@frozen
class Queued:
    """`jobs`: those that run, in `waiting` places those that wait, then those of a history.

    `needs`: of the jobs that wait, by id. `left_out`: reasons, and how many jobs wait for each.
    """

    jobs: tuple[TraceJob, ...]
    waiting: range
    needs: Mapping[str, Need]
    left_out: tuple[tuple[str, int], ...]


def queued(snapshot: Snapshot, history: Trace | None = None, days: float = 0.0) -> Queued:
    """What `snapshot` shows. The last `days` of the history come again from now on."""
    assert snapshot.digest is not None, "a queue that nobody has reported"
    reading, cluster = snapshot.digest.reading, snapshot.cluster
    needs, _ = demand(reading, cluster, frozenset(), snapshot.now_s)
    by_id = {need.job_id: need for need in needs}
    running = [_running(job, snapshot) for job in reading.jobs if job.is_running]
    left_out: Counter[str] = Counter()
    waiting: list[TraceJob] = []
    for need in needs:  # in Slurm's order; a job of several kinds of nodes has several needs
        job = next((each for each in reading.jobs if each.job_id == need.job_id), None)
        if job is None or not job.is_pending:
            continue
        if why := _unplayable(job, need):
            left_out[why] += job.count
            continue
        waiting += [_waiting(job, need)] * max(need.count, 1)
    for job in reading.jobs:
        if job.is_pending and job.job_id not in by_id:
            left_out["held, or not ready to start"] += job.count
    first = len(running)
    later = _later(history, days, cluster) if history else ()
    return Queued(
        (*running, *waiting, *later),
        range(first, first + len(waiting)),
        by_id,
        tuple(sorted(left_out.items())),
    )


def _unplayable(job: Job, need: Need) -> str:
    """Why a job that waits for capacity cannot be played alone; "": it can."""
    if job.het_job_id or need.is_of_kinds:
        return "heterogeneous, or of several kinds of nodes"
    if job.reservation or job.required_nodes:
        return "bound to nodes or a reservation of Slurm's"
    if need.time_limit_s is None:
        return "without a time limit, so that no block is used for it"
    return ""


def _waiting(job: Job, need: Need) -> TraceJob:
    assert need.time_limit_s is not None
    shown = replace(job, count=1, array_job_id="", state="PENDING", reason="Resources")
    return _played(shown, job.job_id, need.expected_s or need.time_limit_s, need.time_limit_s)


def _running(job: Job, snapshot: Snapshot) -> TraceJob:
    """As long as it may still run, on nodes of the pool that it is on."""
    ran_s = max(snapshot.now_s - job.started_at_s, 0.0) if job.started_at_s else 0.0
    limit_s = job.time_limit_s if job.time_limit_s is not None else LEAST_S
    ratio = snapshot.cluster.time_limit_ratios.get(job.account, snapshot.cluster.time_limit_ratio)
    left_s = max(limit_s - ran_s, LEAST_S)
    pools = {each.instance_id: each.pool for each in snapshot.nodes}
    pool = next((pools[name] for name in job.node_names if name in pools), "")
    shown = replace(
        job,
        count=1,
        state="PENDING",
        reason="Resources",
        node_names=(),
        required_nodes=(),
        reservation="",
        het_job_id="",
        started_at_s=None,
        constraint=with_feature(job.constraint, pool) or job.constraint if pool else job.constraint,
    )
    return _played(shown, job.job_id, min(max(limit_s * ratio - ran_s, LEAST_S), left_s), left_s)


def _played(shown: Job, name: str, duration_s: float, limit_s: float) -> TraceJob:
    shape = shown.shape
    return TraceJob(
        job_id=name,
        submit_s=0.0,
        duration_s=duration_s,
        nodes=shown.nodes,
        gpus=shape.gpus,
        gpus_total=shape.gpus * shown.nodes,
        partition=shown.partitions[0],
        cpus=shape.cpus,
        memory_mib=shape.memory_mib,
        gpu_type=shape.gpu_type,
        time_limit_s=limit_s,
        user=shown.user,
        account=shown.account,
        constraint=shown.constraint,
        queued=shown,
        gres=shape.gres,
    )


def _later(history: Trace, days: float, cluster: Cluster) -> Iterable[TraceJob]:
    """The end of the history, with limits as its cluster's jobs keep them."""
    if not history.jobs:
        return ()
    from_s = max(history.jobs[-1].submit_s - days * 86400.0, history.jobs[0].submit_s)
    ratio = cluster.time_limit_ratio
    return tuple(
        replace(
            job,
            submit_s=job.submit_s - from_s,
            time_limit_s=job.time_limit_s or job.duration_s / ratio,
        )
        for job in history.jobs
        if job.submit_s >= from_s
    )
