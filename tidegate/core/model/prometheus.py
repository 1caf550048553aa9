"""Tidegate's own metrics, in Prometheus' words: each name, its labels, and what it says.

No label is a job, a user or an instance, so that what is scraped grows with the cluster file and
not with the cluster. Units stand in the names; a count that only grows ends with `_total`.
"""

from collections.abc import Iterable
from enum import StrEnum

from tidegate.core.model.frozen import frozen
from tidegate.core.model.orders import OrderKind, OrderOutcome


class MetricType(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"


@frozen
class Sample:
    """One value of a metric. `labels`: name and value of each."""

    name: str
    value: float
    labels: tuple[tuple[str, str], ...] = ()


@frozen
class Metric:
    """`help`: what its value says, for people. `type`: a counter begins at 0 with the agent."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    type: MetricType = MetricType.GAUGE

    def of(self, value: float, **labels: str) -> Sample:
        assert set(labels) == set(self.labels), f"{self.name} has the labels {self.labels}"
        return Sample(self.name, value, tuple((each, labels[each]) for each in self.labels))


# -- what the planner saw in its last look -------------------------------------------------------

JOBS_WAITING = Metric("tidegate_jobs_waiting", "Jobs that wait, by verdict code.", ("verdict",))
JOBS_OLDEST_WAIT = Metric(
    "tidegate_jobs_oldest_wait_seconds",
    "How long the job has waited that has waited longest, by verdict code.",
    ("verdict",),
)
NODES = Metric("tidegate_nodes", "Nodes that are paid for.", ("pool", "capacity_type", "state"))
NODES_LATE = Metric(
    "tidegate_nodes_late", "Nodes that have been booting for longer than their pool's nodes do."
)
NODES_LOST = Metric("tidegate_nodes_lost", "Nodes of no use that somebody has to see to.")
GPUS = Metric(
    "tidegate_gpus",
    "GPUs: paid for, of nodes that take jobs, that jobs have, and paid for in vain.",
    ("state",),
)
PRICE = Metric(
    "tidegate_price_usd_per_hour", "What the nodes cost by the hour.", ("pool", "capacity_type")
)
SPENT = Metric(
    "tidegate_spent_usd",
    "What nodes have cost in the present day or month (UTC).",
    ("scope", "period"),
)
BUDGET = Metric("tidegate_budget_usd", "The budget of a day or month.", ("scope", "period"))
LIMIT_USED = Metric(
    "tidegate_limit_used_ratio", "Which part of a limit is used.", ("scope", "resource")
)
RESTING = Metric(
    "tidegate_offerings_resting",
    "Offerings that are not tried for a while: EC2 refused them, took a node back, or a node made"
    " of them did not come up.",
    ("reason",),
)
POOL_FAILED = Metric(
    "tidegate_pool_failed_launches",
    "Launches of the last half hour whose nodes did not join well, since one did.",
    ("pool",),
)
LOST_GPU_HOURS = Metric(
    "tidegate_month_lost_gpu_seconds",
    "GPU time that running jobs lost in this month since AWS took nodes back.",
)
INTERRUPTED = Metric(
    "tidegate_month_interrupted_nodes", "Nodes that AWS took back in the present month (UTC)."
)

# -- what the head's agent saw itself ------------------------------------------------------------

AGENT_STARTED = Metric("tidegate_agent_start_time_seconds", "When the agent was started.")
AGENT_WROTE = Metric(
    "tidegate_agent_written_timestamp_seconds", "When the agent wrote these metrics."
)
AGENT_LOOKED = Metric(
    "tidegate_agent_last_look_timestamp_seconds", "When the agent last read Slurm."
)
AGENT_LOOK_TOOK = Metric("tidegate_agent_look_seconds", "How long the agent's last look took.")
SLURM_ANSWERS = Metric("tidegate_agent_slurm_up", "1: slurmctld answered the last look, 0: not.")
DIGEST_PUBLISHED = Metric(
    "tidegate_digest_published_timestamp_seconds", "When the newest digest reached the planner."
)
DIGEST_AGE = Metric(
    "tidegate_digest_age_seconds", "How old the newest digest was as these metrics were written."
)
VERDICTS_AGE = Metric(
    "tidegate_verdicts_age_seconds",
    "For how long the agent has seen no new verdicts of the planner, by its own stopwatch.",
)
DIGESTS = Metric(
    "tidegate_agent_digests_total",
    "Digests that were sent, and those that could not be.",
    ("outcome",),
    MetricType.COUNTER,
)
ORDERS = Metric(
    "tidegate_agent_orders_total",
    "What became of the planner's orders: one for each node or job that an order names.",
    ("kind", "outcome"),
    MetricType.COUNTER,
)
JOB_GPUS = Metric(
    "tidegate_job_gpu_seconds_total",
    "GPU time of running jobs that nodes have told of: of GPUs that were used for less than 5 %,"
    " and of all others.",
    ("partition", "use"),
    MetricType.COUNTER,
)
SLURM_JOBS = Metric("tidegate_slurm_jobs", "Jobs in Slurm's queue.", ("state",))
SLURM_NODES = Metric("tidegate_slurm_nodes", "Tidegate's nodes in Slurm.", ("state",))

OF_PLANNER = (
    *(JOBS_WAITING, JOBS_OLDEST_WAIT, NODES, NODES_LATE, NODES_LOST, GPUS, PRICE, SPENT, BUDGET),
    *(LIMIT_USED, RESTING, POOL_FAILED, LOST_GPU_HOURS, INTERRUPTED),
)
OF_AGENT = (
    *(AGENT_STARTED, AGENT_WROTE, AGENT_LOOKED, AGENT_LOOK_TOOK, SLURM_ANSWERS, DIGEST_PUBLISHED),
    *(DIGEST_AGE, VERDICTS_AGE, DIGESTS, ORDERS, JOB_GPUS, SLURM_JOBS, SLURM_NODES),
)
METRICS = {each.name: each for each in (*OF_PLANNER, *OF_AGENT)}


def every_order() -> Iterable[tuple[str, str]]:
    """Kind and outcome of each counter of orders: all begin at 0, so that the first one counts."""
    return ((kind.value, outcome.value) for kind in OrderKind for outcome in OrderOutcome)
