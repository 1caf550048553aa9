"""What Slurm's answers say only together: queue beside nodes, jobs beside partitions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tidegate.core.demand.pending_reasons import held_because
from tidegate.core.model.slurm import Job, Node, asked_by_name

# Base states and flag of a node on which a job runs or ends; PLANNED has none yet.
_HAS_JOBS = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})


def was_left(nodes: Sequence[Node], jobs: Sequence[Job]) -> bool:
    """A node has a job that the queue, read after it, does not show there any more.

    A gang that was requeued in between would wait beside nodes that look taken, and be bought
    others.
    """
    used = {name for job in jobs if not job.is_pending for name in job.node_names}
    return any(
        node.name not in used and not _HAS_JOBS.isdisjoint(node.state.words) for node in nodes
    )


def static_nodes(
    nodes: Sequence[Node], known: frozenset[str], jobs: Sequence[Job]
) -> tuple[str, ...]:
    """Those that a pending job asks for by name and that are not Tidegate's."""
    asked = asked_by_name(jobs).keys()
    return tuple(sorted(asked & known - {node.name for node in nodes}))


def in_open_partition(job: Job, closed: Mapping[str, str]) -> Job:
    """With the reason that Slurm will give after its next pass.

    To a job that is submitted to a partition that is down it says ReqNodeNotAvail or Resources.
    """
    reasons = [closed.get(name, "") for name in job.partitions]
    is_closed = waits_for_nodes(job) and all(reasons) and reasons
    return replace(job, reason=reasons[0]) if is_closed else job


def waits_for_nodes(job: Job) -> bool:
    return job.is_pending and not held_because(job.reason)


def without_account(job: Job) -> Job:
    """23.11.4 says InvalidAccount of any job where there are no accounts, and starts it later."""
    return replace(job, reason="None") if job.reason == "InvalidAccount" else job
