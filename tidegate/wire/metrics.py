"""Which figures become metrics of CloudWatch. Each name costs by the hour that has a value.

Figures that do not become metrics are fields of the functions' log records.
"""

from tidegate.wire.deployment import Metrics

NAMESPACE = "Tidegate"

# The same for all functions, so that a figure of two of them is one metric of the cluster.
SERVICE = "cluster"

# What a person looks at first, and what alarms need.
MINIMAL = frozenset(
    {
        *("LookFailed", "DigestAge", "UnmetJobs", "Launched", "Terminated"),
        *("Refused", "Interrupted", "LostGpuHours", "SavedJobs", "BadEvents"),
        "BudgetUsed",
    }
)


def is_metric(name: str, chosen: Metrics) -> bool:
    return chosen is Metrics.FULL or name in MINIMAL
