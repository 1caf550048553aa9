"""Whether a reading says anything new to the planner. Pure."""

from dataclasses import fields
from operator import attrgetter

from tidegate.core.demand.accounting import MINUTES
from tidegate.core.model.slurm import Job, Node, Reading

# Slurm has not looked at the job since it changed: all mean the same to the planner, and
# every scheduling pass moves jobs between them.
NOT_EVALUATED = frozenset({"", "None", "Priority"})

type Fingerprint = tuple[object, ...]

# A tuple of fields takes a tenth of the time of a changed copy, and a queue has 100,000 rows.
_OTHERWISE = ("priority", "reason", "gpu_use", "progress", "step")
_of_job = attrgetter(*(f.name for f in fields(Job) if f.name not in _OTHERWISE))
_of_node = attrgetter(*(f.name for f in fields(Node) if f.name not in ("last_busy_at_s", "weight")))


def fingerprint(reading: Reading) -> Fingerprint:
    """Equal for two readings that the planner would treat alike.

    Left out: how old priorities have grown (their order counts), the nodes that a reason
    lists, when a busy node was last busy, minutes that pass anyway, how little GPUs are used, how
    far jobs have come, and weights: a lost hint waits for the heartbeat.
    """
    ranked = sorted(reading.jobs, key=lambda job: (-job.priority, job.job_id))
    return (
        reading.version,
        tuple(_job(job) for job in ranked),
        tuple(_node(node) for node in sorted(reading.nodes, key=lambda node: node.name)),
        tuple(cap for cap in reading.associations if not cap.tres.startswith(MINUTES)),
        reading.reservations,
        reading.static_nodes,
        reading.checks,
    )


def _job(job: Job) -> tuple[object, ...]:
    reason = job.reason.partition(", UnavailableNodes:")[0]
    is_little = job.gpu_use is not None
    return "" if reason in NOT_EVALUATED else reason, is_little, _of_job(job)


def _node(node: Node) -> tuple[object, ...]:
    return 0.0 if node.state.is_busy else node.last_busy_at_s, _of_node(node)
