"""What a job's partitions allow, by the cluster file: Slurm's pending reason alone does not tell.

While no node is up Slurm shows `PartitionConfig` for a job that its partition will never let
start, `None` for one that it has not looked at, and the reason of one partition for a job that
names several; backfill then writes that of the nodes over a refusal by account. A node bought for
such a job would stand idle. Tried on 22.05 and 24.11, see docs/real-slurm.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import ceil

from tidegate.core.model.cluster import Cluster, Partition
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Job, Reading
from tidegate.core.model.why import Why, WhyNot

# Slurm has not compared the job with its partition, or says no more than that nothing fits yet.
NOT_JUDGED = ("", "None", "Priority", "PartitionConfig", "SchedDefer")
# What Slurm says when the limit of a partition stops the job; of several partitions, of one.
OF_A_PARTITION = (
    *("PartitionTimeLimit", "PartitionNodeLimit", "PartitionDown", "PartitionInactive"),
    *("MaxMemPerLimit", "AccountNotAllowed", "QOSNotAllowed", "Job's account", "Job's QOS"),
)
OF_AN_ACCOUNT = ("AccountNotAllowed", "Job's account")
# Newer releases let the accounts below one in as well, and the digest does not tell who is below.
WITHOUT_SUBACCOUNTS = "22.05"
# Its flags may lift the limits of partitions; the digest does not hold them.
PLAIN_QOS = ("", "normal")
PRIORITY_BITS = 32


@frozen
class Admitted:
    """The queue as its partitions let it in, and what stops the jobs that none takes."""

    reading: Reading
    refused: Mapping[str, WhyNot]


def admitted(reading: Reading, cluster: Cluster) -> Admitted:
    """Each pending job in the partitions that take it, on as many nodes as those demand."""
    if not any(map(_has_rules, cluster.partitions)):
        return Admitted(reading, {})
    jobs: list[Job] = []
    refused: dict[str, WhyNot] = {}
    for job in reading.jobs:
        if job.is_pending:
            job, why_not = _judge(job, cluster, reading.version)
            if why_not:
                refused[job.job_id] = why_not
        jobs.append(job)
    return Admitted(replace(reading, jobs=tuple(jobs)), refused)


def _has_rules(partition: Partition) -> bool:
    return replace(partition, name="", pools=(), is_default=False) != Partition("", ())


def _judge(job: Job, cluster: Cluster, version: str) -> tuple[Job, WhyNot | None]:
    known = [part for name in job.partitions if (part := cluster.partition(name))]
    if not known:
        return job, None
    refusals = {part.name: why for part in known if (why := _refusal(part, job, version))}
    taking = [part for part in known if part.name not in refusals]
    if not taking:
        return job, next(iter(refusals.values()))
    if refusals:
        names = tuple(name for name in job.partitions if name not in refusals)
        job = replace(job, partitions=names)
        if job.reason.startswith(OF_A_PARTITION):
            job = replace(job, reason="None")
    return _fitted(job, taking), None


def _refusal(part: Partition, job: Job, version: str) -> WhyNot | None:
    """Why this partition would never let the job start; None: it would."""
    if found := next(chain(_whose(part, job, version), _memory(part, job)), None):
        return found
    return None if _is_let_in(job) else next(_limits(part, job), None)


def _is_let_in(job: Job) -> bool:
    """Slurm looked at it, and its QOS may have lifted the limits of its partition."""
    is_judged = job.reason not in NOT_JUDGED and not job.reason.startswith(OF_A_PARTITION)
    return is_judged and job.qos not in PLAIN_QOS


def _fitted(job: Job, taking: Sequence[Partition]) -> Job:
    """The job on no fewer nodes than each of these partitions gives, and on no more."""
    least = min(part.min_nodes for part in taking)
    if job.nodes < least:
        wider = [spread for spread in job.spreads if spread.nodes <= least]
        job = replace(job, nodes=least, shape=wider[-1].shape if wider else job.shape)
        job = replace(job, spreads=tuple(each for each in job.spreads if each.nodes > least))
    most = None if any(p.max_nodes is None for p in taking) else max(map(_most, taking))
    if most is not None and job.spreads:
        job = replace(job, spreads=tuple(each for each in job.spreads if each.nodes <= most))
    tier = max(part.priority_tier for part in taking)
    return replace(job, priority=job.priority + (tier - 1 << PRIORITY_BITS)) if tier > 1 else job


def _most(partition: Partition) -> int:
    return partition.max_nodes or 0


def _limits(part: Partition, job: Job) -> Iterator[WhyNot]:
    update, submit = f"scontrol update JobId={job.job_id}", "submit it to another partition"
    limit_s = job.time_limit_s
    if part.max_time_s is not None and limit_s is not None and limit_s > part.max_time_s:
        most = int(part.max_time_s // 60)
        said = f"takes jobs of at most {most} minutes, it asks {ceil(limit_s / 60)}"
        yield _why(part, "max_time_s", said, f"{update} TimeLimit={most}, or {submit}")
    if part.max_nodes is not None and job.nodes > part.max_nodes:
        said = f"takes jobs of at most {part.max_nodes} nodes, it asks {job.nodes}"
        yield _why(part, "max_nodes", said, f"{update} NumNodes={part.max_nodes}, or {submit}")
    if job.nodes < part.min_nodes and job.reason.startswith(("PartitionConfig", "PartitionNode")):
        said = f"takes jobs of at least {part.min_nodes} nodes, it asks {job.nodes}"
        yield _why(part, "min_nodes", said, f"{update} NumNodes={part.min_nodes}, or {submit}")
    if part.state != "up":
        said = f"is {part.state}, by the cluster file"
        yield _why(part, "state", said, f"have it set up in the cluster file, or {submit}")


def _whose(part: Partition, job: Job, version: str) -> Iterator[WhyNot]:
    """Accounts and QOS. Whatever Slurm's reason is: backfill writes that of the nodes over it."""
    account, qos = job.account, job.qos
    otherwise = "submit it to another partition, or under another"
    is_exact = version.startswith(WITHOUT_SUBACCOUNTS) or job.reason.startswith(OF_AN_ACCOUNT)
    if is_exact and account and part.allow_accounts and account not in part.allow_accounts:
        said = f"takes jobs of {_names(part.allow_accounts)} alone, it is of {account}"
        yield _why(part, "allow_accounts", said, f"{otherwise} account (-A)")
    if account in part.deny_accounts:
        yield _why(part, "deny_accounts", f"takes no job of {account}", f"{otherwise} account (-A)")
    if qos and part.allow_qos and qos not in part.allow_qos:
        said = f"takes jobs of QOS {_names(part.allow_qos)} alone, it is of {qos}"
        yield _why(part, "allow_qos", said, f"{otherwise} QOS (--qos)")
    if qos in part.deny_qos:
        yield _why(part, "deny_qos", f"takes no job of QOS {qos}", f"{otherwise} QOS (--qos)")


def _memory(part: Partition, job: Job) -> Iterator[WhyNot]:
    """No QOS lifts this limit, and 24.11 says nothing of it at first."""
    most_mib = part.max_mem_per_node_mib
    if most_mib is not None and job.shape.memory_mib > most_mib:
        said = f"gives a job at most {most_mib} MiB per node, it asks {job.shape.memory_mib}"
        less = f"scontrol update JobId={job.job_id} MinMemoryNode={most_mib}"
        remedy = f"{less}, or submit it to another partition"
        yield _why(part, "max_mem_per_node_mib", said, remedy)


def _names(names: Sequence[str]) -> str:
    return ", ".join(names)


def _why(part: Partition, option: str, said: str, remedy: str) -> WhyNot:
    sentence = f"its partition {part.name} {said} ({option})"
    return WhyNot(Why.PARTITION, sentence, remedy=remedy)
