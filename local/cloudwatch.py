"""CloudWatch's alarms: which state an alarm is in, from what was published until a moment.

Source: CloudWatch user guide, "Alarm evaluation" and "Configuring how CloudWatch alarms treat
missing data": at each evaluation it looks back over more periods than EvaluationPeriods. Where
enough of them have a value the latest of those decide, and missing ones count for nothing; else the
missing ones are filled in, as few as possible, as TreatMissingData says. How many periods more
these are is not said but for an example, in which they are two.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MORE_PERIODS = 2

STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Sum": sum,
    "Maximum": max,
    "Minimum": min,
    "SampleCount": len,
}
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": operator.gt,
    "LessThanThreshold": operator.lt,
}


class State(StrEnum):
    """CloudWatch's own words."""

    OK = "OK"
    ALARM = "ALARM"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"


@dataclass(frozen=True, slots=True)
class Point:
    """Values of a metric; `dimensions` as an alarm writes them."""

    at_s: float
    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Alarm:
    """An alarm on one metric, as PutMetricAlarm and a template write it."""

    namespace: str
    metric: str
    dimensions: frozenset[tuple[str, str]]
    statistic: str
    period_s: float
    threshold: float
    comparison: str
    periods: int
    breaching: int
    missing: str

    @classmethod
    def of(cls, described: Mapping[str, Any], text: Callable[[Any], str] = str) -> "Alarm":
        """`text`: what a dimension's value is in a template."""
        periods = int(described["EvaluationPeriods"])
        return cls(
            described["Namespace"],
            described["MetricName"],
            frozenset((each["Name"], text(each["Value"])) for each in described["Dimensions"]),
            described["Statistic"],
            float(described["Period"]),
            float(described["Threshold"]),
            described["ComparisonOperator"],
            periods,
            int(described.get("DatapointsToAlarm", periods)),
            described.get("TreatMissingData", "missing"),
        )

    def state(
        self,
        points: Iterable[Point],
        now_s: float,
        *,
        before: State = State.INSUFFICIENT_DATA,
        more_periods: int = MORE_PERIODS,
    ) -> State:
        """The state after an evaluation at `now_s`. `before`: the one until then."""
        values = self._values(points, now_s, self.periods + more_periods)
        real = [each for each in values if each is not None][: self.periods]
        missing = self.periods - len(real)
        breaching = sum(COMPARISONS[self.comparison](each, self.threshold) for each in real)
        if missing and self.missing == "ignore":
            return before
        if missing and self.missing == "missing":
            if not real:
                return State.INSUFFICIENT_DATA
            return State.ALARM if breaching >= min(self.breaching, len(real)) else State.OK
        if self.missing == "breaching":
            breaching += missing
        return State.ALARM if breaching >= self.breaching else State.OK

    def _values(self, points: Iterable[Point], now_s: float, periods: int) -> list[float | None]:
        """One for each period, the last first; None: nothing was published in it."""
        by_period: list[list[float]] = [[] for _ in range(periods)]
        for each in points:
            age_s = now_s - each.at_s
            if self._is_about(each) and 0 <= age_s < periods * self.period_s:
                by_period[int(age_s // self.period_s)].extend(each.values)
        compute = STATISTICS[self.statistic]
        return [compute(values) if values else None for values in by_period]

    def _is_about(self, point: Point) -> bool:
        return (point.namespace, point.name, point.dimensions) == (
            self.namespace,
            self.metric,
            self.dimensions,
        )
