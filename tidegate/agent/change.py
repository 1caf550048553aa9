"""Whether a reading says anything new to the planner. Pure."""

from dataclasses import replace

from tidegate.core.slurm import Job, Node, Reading

# Slurm has not looked at the job since it changed: all mean the same to the planner, and
# every scheduling pass moves jobs between them.
NOT_EVALUATED = frozenset({"", "None", "Priority"})

type Fingerprint = tuple[object, ...]


def fingerprint(reading: Reading) -> Fingerprint:
    """Equal for two readings that the planner would treat alike.

    Left out: how old priorities have grown (their order counts), the nodes that a reason
    lists, and when a busy node was last busy.
    """
    ranked = sorted(reading.jobs, key=lambda job: (-job.priority, job.job_id))
    return (
        reading.version,
        tuple(_job(job) for job in ranked),
        tuple(_node(node) for node in sorted(reading.nodes, key=lambda node: node.name)),
        reading.associations,
    )


def _job(job: Job) -> Job:
    reason = job.reason.partition(", UnavailableNodes:")[0]
    return replace(job, priority=0, reason="" if reason in NOT_EVALUATED else reason)


def _node(node: Node) -> Node:
    return replace(node, last_busy_at_s=0.0) if node.state.is_busy else node
