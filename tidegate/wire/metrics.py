"""Which figures become metrics of CloudWatch. Each name costs by the hour that has a value.

Figures that do not become metrics are fields of the functions' log records.
"""

from tidegate.wire.deployment import Metrics

NAMESPACE = "Tidegate"

# The same for all functions, so that a figure of two of them is one metric of the cluster.
SERVICE = "cluster"

# What has a value in every look, also when nothing happens.
ALWAYS = frozenset({"LookFailed", "DigestAge"})

# What alarms need: not more than AWS gives for free.
MINIMAL = ALWAYS | {
    *("BootFailed", "BadEvents", "LostNodes", "RefusedOther", "OldestWait"),
    *("GpuUse", "LimitUsed", "BudgetUsed"),
}

# What has a value in a block's last day alone, where a cluster has one: 0.01 USD each time.
OF_BLOCKS = frozenset({"BlockEnds"})

SECONDS = frozenset({"DigestAge", "BootTime", "LongestWait", "MedianWait", "OldestWait"})
PERCENT = frozenset({"GpuUse", "LimitUsed", "BudgetUsed"})
NO_UNIT = frozenset({"UsdPerHour", "LostGpuHours"})


def is_metric(name: str, chosen: Metrics) -> bool:
    return chosen is Metrics.FULL or name in MINIMAL | OF_BLOCKS


def unit_of(name: str) -> str:
    """CloudWatch's word for the unit of a figure."""
    if name in SECONDS:
        return "Seconds"
    if name in PERCENT:
        return "Percent"
    return "None" if name in NO_UNIT else "Count"
