"""What CloudWatch makes of the lines that the deployed functions print: metrics, and alarms.

Source: CloudWatch user guide, "Embedded metric format specification".
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from local.cloudwatch import Alarm, Point, State
from local.stack_world import StackWorld
from tests.stack.world import STACK


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
    points, now_s = emitted(world), world.router.clock.now_s()
    described = world.cloud.observer("cloudwatch").describe_alarms()["MetricAlarms"]
    return {
        alarm["AlarmName"].removeprefix(f"{STACK}-")
        for alarm in described
        if alarm["Namespace"] == "Tidegate" and Alarm.of(alarm).state(points, now_s) is State.ALARM
    }
