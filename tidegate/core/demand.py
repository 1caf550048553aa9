"""Which pending jobs need capacity, and which would not start even with it."""

import re
from dataclasses import dataclass, replace

from tidegate.core.actions import Unmet
from tidegate.core.caps import Caps
from tidegate.core.fit import is_readable
from tidegate.core.pool import Cluster
from tidegate.core.slurm import Job, Reading, Shape

# Slurm's pending reasons, matched by prefix because squeue prints long texts for some.
# `None` and `Priority` mean "not evaluated yet"; `NodeDown` follows a requeue, as `BeginTime`
# does: the agent cuts that one short for the jobs that we requeue.
NEEDS_CAPACITY = (
    "Nodes required for job are DOWN",
    "ReqNodeNotAvail",
    "Resources",
    "PartitionConfig",
    "Priority",
    "None",
    "NodeDown",
)

HELD_BECAUSE = {
    "Dependency": "it waits for another job",
    "BeginTime": "its begin time has not come",
    "JobHeld": "it is held",
    "JobArrayTaskLimit": "its array already runs as many tasks as its %limit allows",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionTimeLimit": "it asks more time than its partition allows",
    "PartitionNodeLimit": "it asks more nodes than its partition allows",
    "Licenses": "it waits for licences",
    "Reservation": "it waits for its reservation",
    "Assoc": "it is over a limit of its account or association",
    "QOS": "it is over a limit of its QOS",
    "BadConstraints": "its constraints can never be met",
}


@dataclass(frozen=True, slots=True)
class Need:
    """A job (or `count` equal jobs) for which `nodes` nodes of `shape` must exist.

    `is_gang`: all of them at once, or none. `beside`: nodes that the gang has already, when
    only those that it lost are needed. `expected_s`: how long it will really run, None:
    unknown. `deadline_s`: the instant by which it must have ended. `checkpoint_s`: the work
    that an interruption costs it at most, None: as its pool says.
    """

    job_id: str
    count: int
    nodes: int
    shape: Shape
    constraint: str
    pools: tuple[str, ...]
    why: str
    is_gang: bool = False
    beside: tuple[str, ...] = ()
    account: str = ""
    qos: str = ""
    time_limit_s: float | None = None
    expected_s: float | None = None
    deadline_s: float | None = None
    is_requeueable: bool = True
    checkpoint_s: float | None = None
    priority: int = 0


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """A sort key under which job 9 comes before job 10."""
    parts = re.findall(r"\d+|\D+", text)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


def rank(job: Job) -> tuple[object, ...]:
    """Slurm priority first; at equal priority the largest; then the oldest id."""
    return (-job.priority, -job.nodes * max(job.shape.gpus, 1), natural(job.job_id))


def holds(job: Job) -> str:
    """Why this pending job would not start even if nodes were up, "" when it would."""
    if job.unreadable:
        return job.unreadable
    if job.count <= 0:
        return HELD_BECAUSE["JobArrayTaskLimit"]
    if not is_readable(job.constraint):
        return f"its constraint {job.constraint!r} cannot be planned for yet: counts, brackets"
    if not job.reason or job.reason.startswith(NEEDS_CAPACITY):
        return ""
    for prefix, sentence in HELD_BECAUSE.items():
        if job.reason.startswith(prefix):
            return sentence
    return f"Slurm says {job.reason}, which more nodes would not change"


def demand(
    reading: Reading, cluster: Cluster, lost: frozenset[str]
) -> tuple[tuple[Need, ...], tuple[Unmet, ...]]:
    """All needs in the order in which Slurm would serve them, and the jobs that wait anyway.

    `lost`: nodes that EC2 reclaims; their requeueable jobs need a place again.
    """
    needs: list[Need] = []
    unmet: list[Unmet] = []
    caps = Caps(reading)
    for job in sorted(reading.jobs, key=rank):
        gone = lost.intersection(job.node_names)
        if job.is_running and job.is_requeueable and gone:
            kept = tuple(name for name in job.node_names if name not in gone)
            need = _need(job, 1, cluster, "its node is being reclaimed")
            needs.append(replace(need, nodes=len(gone), beside=kept))
        if not job.is_pending:
            continue
        sentence = holds(job)
        admitted, stopped_by = (0, sentence) if sentence else caps.admit(job)
        if admitted:
            needs.append(_need(job, admitted, cluster, job.reason or "None"))
        else:
            unmet.append(Unmet(job.job_id, stopped_by))
    return tuple(needs), tuple(unmet)


def _need(job: Job, count: int, cluster: Cluster, why: str) -> Need:
    pools: list[str] = []
    for name in job.partitions:
        partition = cluster.partition(name)
        pools.extend(pool for pool in (partition.pools if partition else ()) if pool not in pools)
    return Need(
        job.job_id,
        count,
        job.nodes,
        job.shape,
        job.constraint,
        tuple(pools),
        why,
        is_gang=job.nodes > 1,
        account=job.account,
        qos=job.qos,
        time_limit_s=job.time_limit_s,
        expected_s=cluster.expected_s(job.time_limit_s, job.account),
        deadline_s=job.deadline_s,
        is_requeueable=job.is_requeueable,
        checkpoint_s=0.0 if job.is_checkpointed else None,
        priority=job.priority,
    )
