"""Which alarm rings for which trouble, after how long, and that no other does.

CloudWatch looks back over more periods than an alarm asks for and does not say over how many:
each case holds for none and for two.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import pytest

from local.cloudwatch import Alarm, Point, State
from tests import make
from tests.cdk.alarm_days import BUSY, HOUR_S, Day, Life, failing, looked, quiet
from tests.cdk.made import Stack, joined
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.ec2 import Refusal, RefusalKind
from tidegate.core.model.ledger import Phase
from tidegate.core.model.resting import Resting
from tidegate.core.model.snapshot import Snapshot
from tidegate.service.control import Looked
from tidegate.service.outcome import Outcome

RETRIES_S = (0.0, 180.0, 540.0, 1260.0, 2700.0, 4500.0)  # 3, 6, 12, 24, then 30 minutes
BOOT_BOUND_S = 900.0
SPOT_SHORTAGE_S = 420.0


def waiting(at_s: float, age_s: float, *, since_s: float = 0.0) -> Snapshot:
    """A job that has waited since then, and nothing that fits it may be tried now."""
    code = "InsufficientInstanceCapacity"
    resting = [
        Resting(each, make.NOW_S + 60, 2, code, "We have none.")
        for pool in make.cluster().pools
        for _, each in pool.offerings()
    ]
    job = make.job(1, begins_at_s=make.NOW_S - (at_s - since_s))
    return make.snapshot([job], resting=resting, age_s=age_s)


def refused_as(kind: RefusalKind, at_s: float, age_s: float) -> Looked:
    """What EC2 refuses is tried again when its rest is over."""
    is_try = any(0 <= at_s - each < 60 for each in RETRIES_S)
    refused = [Refusal(make.offering(), kind, "a code", "words")] if is_try else []
    return looked(waiting(at_s, age_s), Outcome(refused=refused))


def other_refused(at_s: float, age_s: float) -> Looked:
    """Denied, no role for spot, the image gone."""
    return refused_as(RefusalKind.OTHER, at_s, age_s)


def quota_refused(at_s: float, age_s: float) -> Looked:
    return refused_as(RefusalKind.QUOTA, at_s, age_s)


def spot_role_missing(at_s: float, age_s: float) -> Looked:
    """On demand is bought instead, dearly."""
    is_try = any(0 <= at_s - each < 60 for each in RETRIES_S)
    kind = RefusalKind.OTHER
    refused = [Refusal(make.offering(), kind, "a code", "words")] if is_try else []
    return looked(make.snapshot(age_s=age_s), Outcome(refused=refused))


def never_joins(at_s: float, age_s: float) -> Looked:
    """Its node is launched, ended when it is late, and another one launched."""
    since_s = at_s % (BOOT_BOUND_S + 60)
    record = make.record(phase=Phase.LAUNCHED, age_s=since_s)
    booting = make.instance(age_s=since_s)
    job = make.job(1, begins_at_s=make.NOW_S - at_s)
    return looked(make.snapshot([job], instances=[booting], records=[record], age_s=age_s))


def not_started(at_s: float, age_s: float) -> Looked:
    """Slurm starts a job on none of the nodes that fit it, so that nothing more is bought."""
    return looked(waiting(at_s, age_s))


TROUBLES: dict[str, tuple[Life, str, float, set[str]]] = {
    # What is so from minute 0 on; what rings first and by which minute; what may follow from it.
    "dead head": (Life(head_ends_s=0), "AgentSilent", 15, set()),
    "dead head while nodes are up": (replace(BUSY, head_ends_s=0), "AgentSilent", 13, set()),
    "planner fails at import": (
        Life(import_fails=True),
        "PlannerErrors",
        10,
        {"DeadLooksNotEmpty", "LooksWait"},
    ),
    "planner hangs while nodes are up": (
        replace(BUSY, import_fails=True),
        "PlannerErrors",
        10,
        {"DeadLooksNotEmpty", "LooksWait"},
    ),
    "planner is denied the ledger": (Life(sees=failing), "LookFailed", 10, set()),
    "the same while nodes are up": (replace(BUSY, sees=failing), "LookFailed", 10, set()),
    "dead head and failing planner": (
        Life(sees=failing, head_ends_s=0),
        "LookFailed",
        15,
        set(),
    ),
    "dead head and planner that fails at import": (
        Life(import_fails=True, head_ends_s=0),
        "PlannerErrors",
        10,
        {"DeadLooksNotEmpty", "LooksWait"},
    ),
    "looks are not read": (Life(looks_are_read=False), "LooksWait", 15, set()),
    "the same with nodes": (replace(BUSY, looks_are_read=False), "LooksWait", 10, set()),
    "dead head and looks are not read": (
        Life(looks_are_read=False, head_ends_s=0),
        "LooksWait",
        15,
        set(),
    ),
    "notices are not read": (
        replace(BUSY, notices_are_read=False, notices_s=(0.0,)),
        "NoticesWait",
        10,
        set(),
    ),
    "CreateFleet is denied": (replace(BUSY, sees=failing), "LookFailed", 10, set()),
    "launches are denied": (replace(BUSY, sees=other_refused), "LaunchesRefused", 10, {"JobsWait"}),
    "no role for spot": (replace(BUSY, sees=spot_role_missing), "LaunchesRefused", 10, set()),
    "quota of 0": (replace(BUSY, sees=quota_refused), "JobsWait", 15, set()),
    "a node never joins": (replace(BUSY, sees=never_joins), "BootFailed", 10, set()),
    "the queue is stuck": (replace(BUSY, sees=not_started), "JobsWait", 15, set()),
}


type Lives = Callable[[Life, float, float], Day]
"""The day of a life, from so many seconds before 0 to so many after it."""


@pytest.fixture(scope="module")
def lived(dev: Stack) -> Lives:
    """Each life is lived once: the cases that differ in what CloudWatch looks at come together."""

    @lru_cache(maxsize=1)
    def day(life: Life, lead_s: float, ends_s: float) -> Day:
        return Day.of(dev, life, lead_s=lead_s, ends_s=ends_s)

    return day


@pytest.mark.parametrize("more_periods", [0, 2])
@pytest.mark.parametrize("reconcile_at_s", [40.0, 299.0])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_trouble_rings_its_alarm_in_time_and_no_other(
    lived: Lives, trouble: str, reconcile_at_s: float, more_periods: int
) -> None:
    life, first, within_min, follow = TROUBLES[trouble]
    told = replace(life, reconcile_at_s=reconcile_at_s)

    rings = lived(told, 2 * HOUR_S, 2 * HOUR_S).rings(more_periods=more_periods)

    assert min(rings, key=lambda each: (rings[each], each != first), default="none") == first
    assert 0 <= rings[first] <= within_min
    assert rings.keys() - {first} <= follow


def normal(at_s: float, age_s: float) -> Looked:
    """A working day: jobs wait a few minutes, spot is short now and then, a look fails.

    Every fifth hour a look is throttled; every second hour spot is short for seven minutes, and
    a node boots for four. From 20:00 to 8:00 the cluster is stopped.
    """
    hour, of_hour_s = int(at_s // HOUR_S) % 24, at_s % HOUR_S
    if hour % 5 == 0 and of_hour_s < 60:
        return failing(at_s, age_s)
    if hour >= 20 or hour < 8:
        stopped = Wanted(False, "it is night", since_s=make.NOW_S - 7200)
        return looked(make.snapshot(age_s=9e4, wanted=stopped))
    if hour % 2 == 0 and of_hour_s < SPOT_SHORTAGE_S:
        is_try = of_hour_s % 180 < 60
        short = Refusal(make.offering(), RefusalKind.CAPACITY, "a code", "words")
        return looked(waiting(of_hour_s, age_s), Outcome(refused=[short] if is_try else []))
    if hour % 2 == 1 and of_hour_s < 240:
        booting = make.record(phase=Phase.LAUNCHED, age_s=of_hour_s)
        seen = make.snapshot(
            [make.job(1)], instances=[make.instance(age_s=of_hour_s)], records=[booting]
        )
        return looked(replace(seen, digest_age_s=age_s))
    return quiet(at_s, age_s)


@pytest.mark.parametrize("more_periods", [0, 2])
@pytest.mark.parametrize("reconcile_at_s", [40.0, 299.0])
@pytest.mark.parametrize(
    "life", [Life(), BUSY, replace(BUSY, sees=normal)], ids=["idle", "busy", "working"]
)
def test_nothing_rings_on_a_normal_day(
    lived: Lives, life: Life, reconcile_at_s: float, more_periods: int
) -> None:
    day = replace(life, reconcile_at_s=reconcile_at_s)

    assert lived(day, HOUR_S, 24 * HOUR_S).rings(more_periods=more_periods) == {}


@pytest.mark.parametrize("more_periods", [0, 2])
def test_a_head_that_hangs_is_rebooted_after_three_minutes_and_one_that_is_stopped_is_not(
    dev: Stack, more_periods: int
) -> None:
    """EC2 publishes its checks each minute, and none of a stopped machine."""
    alarm = Alarm.of(dev.named("AlarmsHeadHangs", "AWS::CloudWatch::Alarm"), joined)

    def after(*checks: float) -> State:
        points = [
            Point(60.0 * minute + 30, alarm.namespace, alarm.metric, alarm.dimensions, (failed,))
            for minute, failed in enumerate(checks)
        ]
        return alarm.state(points, 60.0 * len(checks), before=State.OK, more_periods=more_periods)

    assert after(0, 0, 1, 1, 1) is State.ALARM
    assert after(0, 1, 0, 1, 1) is State.OK
    assert after() is State.OK
