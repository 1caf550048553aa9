"""What CloudWatch makes of the lines that the deployed functions print: metrics, and alarms.

Source: CloudWatch user guide, "Embedded metric format specification" and "Evaluating an alarm";
with DatapointsToAlarm equal to EvaluationPeriods, every period has to breach. The period that has
not ended yet counts as well, as it does at CloudWatch.
"""

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.stack.world import STACK, StackWorld

STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Sum": sum,
    "Maximum": max,
    "Minimum": min,
}
COMPARISONS = {"GreaterThanThreshold": operator.gt, "LessThanThreshold": operator.lt}


@dataclass(frozen=True, slots=True)
class Point:
    """Values of a metric; `dimensions` as an alarm writes them."""

    at_s: float
    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]]
    values: tuple[float, ...]


def emitted(world: StackWorld) -> list[Point]:
    """Every metric that a function has printed, at the router's time: Powertools takes its own
    from the machine.
    """
    return [
        point
        for each in world.router.invocations
        for line in each.lines
        if '"_aws":' in line
        for point in _points(json.loads(line), each.at_s)
    ]


def _points(record: Mapping[str, Any], at_s: float) -> Iterator[Point]:
    for directive in record["_aws"]["CloudWatchMetrics"]:
        for dimensions in directive["Dimensions"]:
            of = frozenset((name, record[name]) for name in dimensions)
            for metric in directive["Metrics"]:
                found = record[metric["Name"]]
                values = tuple(found) if isinstance(found, list) else (found,)
                yield Point(at_s, directive["Namespace"], metric["Name"], of, values)


def firing(world: StackWorld) -> set[str]:
    """The deployed alarms on our metrics that are in ALARM now."""
    points = emitted(world)
    described = world.cloud.observer("cloudwatch").describe_alarms()["MetricAlarms"]
    return {
        alarm["AlarmName"].removeprefix(f"{STACK}-")
        for alarm in described
        if alarm["Namespace"] == "Tidegate" and _breaches(alarm, points, world.router.clock.now_s())
    }


def _breaches(alarm: Mapping[str, Any], points: Sequence[Point], now_s: float) -> bool:
    assert alarm["TreatMissingData"] == "notBreaching"
    assert alarm["DatapointsToAlarm"] == alarm["EvaluationPeriods"]
    compare = COMPARISONS[alarm["ComparisonOperator"]]
    data = list(_datapoints(alarm, points, now_s))
    return all(compare(each, alarm["Threshold"]) for each in data) and (
        len(data) == alarm["EvaluationPeriods"]
    )


def _datapoints(alarm: Mapping[str, Any], points: Sequence[Point], now_s: float) -> Iterator[float]:
    """One for each of the alarm's last periods that has a value."""
    of = frozenset((each["Name"], each["Value"]) for each in alarm["Dimensions"])
    ours = [
        each
        for each in points
        if (each.namespace, each.name, each.dimensions)
        == (alarm["Namespace"], alarm["MetricName"], of)
    ]
    for number in range(alarm["EvaluationPeriods"]):
        ends_s = now_s - number * alarm["Period"]
        values = [
            value
            for each in ours
            if ends_s - alarm["Period"] < each.at_s <= ends_s
            for value in each.values
        ]
        if values:
            yield STATISTICS[alarm["Statistic"]](values)
