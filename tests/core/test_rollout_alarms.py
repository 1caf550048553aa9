"""A roll-out and the CloudWatch alarms that the cluster file names."""

from dataclasses import replace

import pytest

from tests.core.test_drift import NEW, busy, going, learns, made_from
from tests.core.test_rollout import FIRST, TENTH, WELL, bought, told, waiting, world
from tests.make import NOW_S
from tidegate.core.explain.rollouts import rollouts
from tidegate.core.fleet.templates import troubles
from tidegate.core.model.alarms import (
    BY_ALARM,
    AlarmState,
    RolloutAlarms,
    SeenAlarm,
    SeenAlarms,
)
from tidegate.core.model.rollout import Rollout, RolloutCode
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

OK, ALARM, NO_DATA = AlarmState.OK, AlarmState.ALARM, AlarmState.NO_DATA
WATCHED = replace(WELL, is_watched=True)
# Its first node has been watched for long enough.
OVER = replace(WATCHED, step_since_s=NOW_S - 3600)
NAMES = ("errors", "loss")


def seen(**states: AlarmState | None) -> SeenAlarms:
    return SeenAlarms(tuple(SeenAlarm(name, states.get(name, OK)) for name in NAMES))


def alarmed(
    rollout: Rollout | None, alarms: SeenAlarms | None, *, rolls_back: bool = True, jobs: int = 4
) -> Snapshot:
    """A node is made from the new template where the roll-out has tried one."""
    tried = rollout.tried if rollout else ()
    of = world(
        rollout, made_from(dict.fromkeys(tried, NEW)), [busy(n) for n in tried], waiting(jobs)
    )
    watched = replace(of.cluster, alarms=RolloutAlarms(NAMES, rolls_back))
    return replace(of, cluster=watched, alarms=alarms)


def after(of: Snapshot) -> Rollout:
    """The roll-out once the plan's lessons are noted."""
    (found,) = learns(plan(of)) or of.pool_history
    assert found.rollout is not None
    return found.rollout


def test_quiet_alarms_keep_no_first_node_away():
    of = alarmed(None, seen(loss=NO_DATA))

    made = plan(of)

    assert bought(made)["new-2"] == 1
    assert after(of).is_watched


def test_one_that_goes_into_alarm_gives_the_template_up():
    made = plan(alarmed(WATCHED, seen(errors=ALARM)))

    (code, reason) = told(made)[0]
    assert code == RolloutCode.BAD_ALARM
    assert "given up: alarm errors is in ALARM, and none was when it was rolled out" in reason
    assert "new-2" not in bought(made)
    assert going(made) == ["i-2"]


def test_where_the_file_says_so_it_pauses_and_a_person_goes_on():
    of = alarmed(WATCHED, seen(errors=ALARM, loss=ALARM), rolls_back=False)

    made = plan(of)

    paused = after(of)
    assert (paused.is_paused, paused.by, paused.given_up) == (True, BY_ALARM, None)
    assert told(made) == [
        (
            RolloutCode.PAUSED,
            "pool t4: no more nodes are made from template new-2: alarms errors, loss are in "
            "ALARM, and none was when it was rolled out",
        )
    ]
    assert going(made) == []
    assert "new-2" not in bought(made)


BEFORE = {
    "no node is made yet": (None, "comes on one node first"),
    "a person goes on while it is in alarm": (
        replace(WELL, asked=RolloutCode.RESUMED, is_paused=True, by="ada"),
        "is rolled out again: resumed by ada",
    ),
    "the file names it only now": (WELL, "no nodes are made from template new-2"),
}


@pytest.mark.parametrize("how", BEFORE)
def test_what_was_in_alarm_before_is_waited_for(how):
    rollout, says = BEFORE[how]
    of = alarmed(rollout, seen(loss=ALARM))

    made = plan(of)

    waits = after(of)
    assert (waits.is_watched, waits.is_stopped) == (False, False)
    assert "alarm loss is in ALARM since before" in waits.held
    assert says in told(made)[0][1]
    assert "new-2" not in bought(made)

    quiet = alarmed(waits, seen())
    assert after(quiet).is_watched
    assert told(plan(quiet))[0] == (
        RolloutCode.UNHELD,
        "pool t4: template new-2 is rolled out: its alarms are quiet",
    )
    assert bought(plan(quiet))["new-2"] == 1


UNREAD = {
    "there is none": (
        seen(loss=None),
        "CloudWatch has no alarm loss in this account and region: make it, or take it out of "
        "rollout.alarms and deploy",
    ),
    "nobody may read them": (
        SeenAlarms(trouble="the planner may not: AccessDenied"),
        "its alarms cannot be read: the planner may not: AccessDenied",
    ),
    "nobody has read them": (None, "its alarms were not read yet"),
}


@pytest.mark.parametrize("how", UNREAD)
def test_what_nobody_can_read_is_waited_for_in_each_step(how):
    alarms, why = UNREAD[how]
    of = alarmed(OVER, alarms)

    made = plan(of)

    assert after(of).step is OVER.step
    assert told(made) == [
        (RolloutCode.HELD, f"pool t4: no nodes are made from template new-2: {why}")
    ]
    assert bought(made) == {"old-1": 4}
    assert list(troubles(of)) == [f"pool t4: template new-2 waits: {why}; nodes come from old-1"]
    (now,) = rollouts(of)
    assert (now.state, now.most, now.sentence) == ("rollout-held", 0, f"its first nodes: {why}")


def test_an_alarm_counts_more_than_one_that_is_missing():
    assert after(alarmed(WATCHED, seen(errors=None, loss=ALARM))).given_up is RolloutCode.BAD_ALARM


def test_the_step_ends_only_while_all_are_quiet():
    assert after(alarmed(OVER, seen())).step is not OVER.step
    assert after(alarmed(replace(OVER, is_watched=False), seen(loss=ALARM))).step is OVER.step


def test_what_is_told_of_a_wait_is_told_once():
    waits = after(alarmed(FIRST, seen(loss=None)))

    assert told(plan(alarmed(waits, seen(loss=None)))) == []


@pytest.mark.parametrize("rollout", [WATCHED, replace(TENTH, is_watched=True)])
def test_a_planner_that_dies_before_it_notes_an_alarm_leaves_it_to_the_next(rollout):
    """Nothing but what CloudWatch says now decides."""
    first, second = (plan(alarmed(rollout, seen(errors=ALARM))) for _ in range(2))

    assert told(first) == told(second)
    assert told(second)[0][0] == RolloutCode.BAD_ALARM


def test_without_alarms_in_the_file_nothing_waits():
    of = alarmed(replace(WELL, held="its alarms were not read yet"), None)

    made = replace(of, cluster=replace(of.cluster, alarms=None))

    assert after(made).held == ""
    assert bought(plan(made))["new-2"] == 1
