"""A cluster's life as CloudWatch sees it: what is published, minute by minute.

Looks come as the agent's heartbeat and reconcile make them, their figures are the product's own;
queues and functions publish as SQS and Lambda do. The alarms are those of a template.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from cdk.queues import KEPT, MAX_RECEIVES, VISIBILITY_S
from local.cloudwatch import Alarm, Point, State
from tests import make
from tests.cdk.made import Stack, joined
from tidegate.agent.loop import HEARTBEAT_S, IDLE_HEARTBEAT_S
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.control import Looked, Round
from tidegate.service.figures import look_figures
from tidegate.service.outcome import Outcome
from tidegate.wire.deployment import Metrics
from tidegate.wire.metrics import NAMESPACE, SERVICE, is_metric

MINUTE_S, HOUR_S = 60.0, 3600.0
RECONCILE_S = 300.0
BATCH = 10
# What the agent takes between two heartbeats beside waiting.
READS_S = 5.0
RETENTION_S = float(KEPT.to_seconds())

type Seen = Callable[[float, float], Looked]
"""What a look makes of the moment and of the age of the newest digest, in seconds."""


def quiet(_: float, age_s: float) -> Looked:
    return _quiet(age_s)


@cache
def _quiet(age_s: float) -> Looked:
    """Heads and reconcile tick evenly: of a day's thousand quiet looks most are of few ages."""
    return looked(make.snapshot(age_s=age_s))


def looked(snapshot: Snapshot, outcome: Outcome | None = None) -> Looked:
    return Looked([Round(snapshot, plan(snapshot), outcome or Outcome())])


def failing(_: float, __: float) -> Looked:
    return Looked(trouble="NotAuthorized: no")


@dataclass(frozen=True, kw_only=True)
class Life:
    """What is so from 0 on; `sees` is asked of each look.

    `head_ends_s`: no heartbeat from then on. `import_fails`, `looks_are_read`, `notices_are_read`:
    of the planner's function and of the event sources, from 0 on; before that all is well.
    `notices_s`: when EC2 tells of something.
    """

    heartbeat_s: float = IDLE_HEARTBEAT_S
    head_ends_s: float = float("inf")
    sees: Seen = quiet
    import_fails: bool = False
    looks_are_read: bool = True
    notices_are_read: bool = True
    notices_s: tuple[float, ...] = ()
    reconcile_at_s: float = 40.0


@dataclass(slots=True)
class Day:
    """Everything that is published from `starts_s` to `ends_s`, by metric."""

    alarms: Mapping[str, Alarm]
    starts_s: float
    ends_s: float
    points: dict[tuple[str, str], list[Point]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, stack: Stack, life: Life, *, lead_s: float, ends_s: float) -> "Day":
        alarms = {
            each["AlarmName"].removeprefix("tidegate-dev-"): Alarm.of(each, joined)
            for each in stack.all("AWS::CloudWatch::Alarm")
        }
        day = cls(alarms, -lead_s, ends_s)
        day._live(life)
        for each in day.points.values():
            each.sort(key=lambda point: point.at_s)
        return day

    def rings(self, *, more_periods: int) -> dict[str, float]:
        """Alarm -> minutes from 0 until it rang first."""
        found: dict[str, float] = {}
        moments = range(int(self.starts_s + HOUR_S), int(self.ends_s), int(MINUTE_S))
        for name, alarm in self.alarms.items():
            series = [
                each
                for (namespace, metric), points in self.points.items()
                if (namespace, metric) == (alarm.namespace, alarm.metric)
                for each in points
                if each.dimensions == alarm.dimensions
            ]
            times = [each.at_s for each in series]
            back_s = (alarm.periods + more_periods) * alarm.period_s
            for now_s in moments:
                near = series[bisect_left(times, now_s - back_s) : bisect_right(times, now_s)]
                if alarm.state(near, now_s, more_periods=more_periods) is State.ALARM:
                    found[name] = now_s / MINUTE_S
                    break
        return found

    def _live(self, life: Life) -> None:
        digests = list(
            _steps(self.starts_s, min(self.ends_s, life.head_ends_s), life.heartbeat_s + READS_S)
        )
        reconciles = list(_steps(self.starts_s + life.reconcile_at_s, self.ends_s, RECONCILE_S))
        asked = sorted([*digests, *reconciles])
        self._looks(life, asked, digests)
        self._queue("LooksWait", "DeadLooksNotEmpty", _waiting(life, asked))
        notices = life.notices_s if not life.notices_are_read else ()
        self._queue("NoticesWait", "DeadNotEmpty", _unread(notices))
        for name in ("Interruption", "Schedule", "Reconcile"):
            for at_s in reconciles:
                self._invoked(name, at_s, failed=False)

    def _looks(self, life: Life, asked: Sequence[float], digests: Sequence[float]) -> None:
        for at_s in asked:
            is_well = at_s < 0
            if life.import_fails and not is_well:
                continue
            if not is_well and not life.looks_are_read:
                continue
            newest = digests[bisect_right(digests, at_s) - 1]
            sees = quiet if is_well else life.sees
            for name, value in look_figures(sees(at_s, at_s - newest)).items():
                if is_metric(name, Metrics.MINIMAL):
                    of = {("cluster", "dev"), ("service", SERVICE)}
                    self._put(at_s, NAMESPACE, name, frozenset(of), value)
            self._invoked("Planner", at_s, failed=False)
        if life.import_fails:
            for at_s in _steps(0.0, self.ends_s, VISIBILITY_S):
                self._invoked("Planner", at_s, failed=True)

    def _invoked(self, name: str, at_s: float, *, failed: bool) -> None:
        for metric, value in (("Errors", float(failed)), ("Throttles", 0.0)):
            of = self.alarms[f"{name}{metric}"].dimensions
            self._put(at_s, "AWS/Lambda", metric, of, value)

    def _queue(self, age: str, dead: str, told: Callable[[float], tuple[float, float]]) -> None:
        """SQS tells each minute how old the oldest message is, and how many are dead."""
        for at_s in _steps(self.starts_s, self.ends_s, MINUTE_S):
            age_s, count = told(at_s)
            self._put(at_s, "AWS/SQS", self.alarms[age].metric, self.alarms[age].dimensions, age_s)
            visible = self.alarms[dead]
            self._put(at_s, "AWS/SQS", visible.metric, visible.dimensions, count)

    def _put(
        self, at_s: float, namespace: str, name: str, of: frozenset[tuple[str, str]], value: float
    ) -> None:
        self.points[namespace, name].append(Point(at_s, namespace, name, of, (value,)))


def _waiting(life: Life, asked: Sequence[float]) -> Callable[[float], tuple[float, float]]:
    """The look queue: age of the oldest message and number of dead ones, at a moment."""
    if not life.looks_are_read:
        return lambda at_s: (_oldest([each for each in asked if 0 <= each <= at_s], at_s), 0.0)
    if not life.import_fails:
        return lambda _: (0.0, 0.0)
    # A batch comes back a minute after each try, and dies whole; the others of its group wait.
    died: list[tuple[float, float]] = []
    left, free_s = [each for each in asked if each >= 0], 0.0
    while left:
        begun_s = max(free_s, left[0])
        free_s = begun_s + MAX_RECEIVES * VISIBILITY_S
        batch = [each for each in left[:BATCH] if each <= begun_s]
        died += [(each, free_s) for each in batch]
        left = left[len(batch) :]

    def told(at_s: float) -> tuple[float, float]:
        there = [sent_s for sent_s, died_s in died if sent_s <= at_s < died_s]
        return _oldest(there, at_s), float(sum(died_s <= at_s for _, died_s in died))

    return told


def _unread(sent: Sequence[float]) -> Callable[[float], tuple[float, float]]:
    return lambda at_s: (_oldest([each for each in sent if each <= at_s], at_s), 0.0)


def _oldest(sent: Sequence[float], at_s: float) -> float:
    return max((at_s - each for each in sent if at_s - each < RETENTION_S), default=0.0)


def _steps(begin_s: float, end_s: float, step_s: float) -> Iterator[float]:
    at_s = begin_s
    while at_s < end_s:
        yield at_s
        at_s += step_s


BUSY = Life(heartbeat_s=HEARTBEAT_S)
