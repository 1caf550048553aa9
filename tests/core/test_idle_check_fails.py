"""A node that does not pass the site's check has another, and is drained where it fails again."""

from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.core.test_drift import learns
from tests.core.test_idle_check import MISSES, RUNS, after, checked, ended, said, world
from tests.make import NOW_S
from tidegate.core.fleet.idle_check import SUSPECT_S, SUSPECTS_MAX
from tidegate.core.model.finding import StoppedCheck
from tidegate.core.model.idle_check import DAY_S, FOUND, CheckedNode, FailedOnce
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.planner import plan

FAILS = {
    "fails": (ended("FAILED", exit_code=3), "ended with exit code 3"),
    "hangs": (ended("TIMEOUT"), "ran into its time limit of 15 min"),
    "eats": (ended("OUT_OF_MEMORY", exit_code=1), "ran out of memory"),
}


ONCE = FailedOnce("i-1", "job 70 ended with exit code 3", NOW_S - 60)
SUSPECT = replace(RUNS, failed=(ONCE,))


@pytest.mark.parametrize("how", FAILS)
def test_a_node_that_fails_takes_jobs_and_is_checked_once_more_before_all_others(how):
    found, words = FAILS[how]
    ages = [9 * DAY_S, 90 * DAY_S]

    made = plan(world(ages, state=RUNS, told=[found]))

    assert orders(made, OrderKind.DRAIN) == []
    state = learns(made)[-1].idle_checks
    assert state is not None
    assert state.failed == (FailedOnce("i-1", f"job 77 {words}", NOW_S),)
    assert (state.sick, state.gpu_hours) == (None, 0.0667)
    assert said(made)[0] == (
        "idle-check-failed-once",
        f"pool t4: i-1 did not pass: job 77 {words}; it is checked once more",
    )
    assert checked(plan(world(ages, replace(state, asked=None)))) == ["i-1"]


@pytest.mark.parametrize("how", FAILS)
def test_a_node_that_fails_again_is_drained_in_the_checks_name(how):
    found, words = FAILS[how]

    made = plan(world(state=SUSPECT, told=[found]))

    (order,) = orders(made, OrderKind.DRAIN)
    both = f"job 70 ended with exit code 3, job 77 {words}"
    assert (order.names, order.text) == (("i-1",), f"{FOUND}: {both}")
    assert said(made)[0][0] == "idle-check-failed"
    assert after(world(state=SUSPECT, told=[found])).failed == ()


def test_a_node_that_passes_the_second_time_is_good_once_it_has_passed_again():
    state = after(world(state=SUSPECT, told=[ended("COMPLETED")]))

    passed = replace(ONCE, has_passed=True)
    assert (state.failed, state.sick) == ((passed,), None)
    assert state.nodes == (CheckedNode("i-1", NOW_S),)
    late = replace(state, asked=None, failed=(replace(passed, at_s=NOW_S - 2 * SUSPECT_S),))
    made = plan(world(state=late))
    assert (checked(made), orders(made, OrderKind.DRAIN)) == ([], [])
    again = after(world(state=replace(RUNS, failed=(passed,)), told=[ended("COMPLETED")]))
    assert again.failed == ()


def test_a_node_that_fails_each_second_check_is_drained():
    """What comes and goes is a fault too."""
    passed = replace(RUNS, failed=(replace(ONCE, has_passed=True),))

    (order,) = orders(plan(world(state=passed, told=[FAILS["fails"][0]])), OrderKind.DRAIN)

    assert order.names == ("i-1",)


@pytest.mark.parametrize("how", ["cancelled", "could not test", "no program"])
def test_a_second_check_that_tests_nothing_mends_nothing(how):
    assert after(world(state=SUSPECT, told=[MISSES[how]])).failed == SUSPECT.failed


def test_who_is_gone_is_no_suspect():
    gone = replace(SUSPECT, asked=None, failed=(FailedOnce("i-9", "x", NOW_S),))
    assert after(world(state=gone)).failed == ()


def test_a_check_that_fails_everywhere_does_not_fill_the_pool_s_record():
    many = tuple(FailedOnce(f"i-{number}", "x", NOW_S) for number in range(2, SUSPECTS_MAX + 2))
    ages = [9 * DAY_S] * (SUSPECTS_MAX + 1)
    state = after(world(ages, replace(RUNS, failed=many), told=[FAILS["fails"][0]]))

    assert len(state.failed) == SUSPECTS_MAX
    assert state.failed[-1].instance_id == "i-1"


@pytest.mark.parametrize(("ago_s", "is_drained"), [(SUSPECT_S - 1, False), (SUSPECT_S + 1, True)])
def test_one_failure_counts_where_no_second_check_came(ago_s, is_drained):
    """It has jobs all the time, or the day's budget is used up."""
    late = replace(SUSPECT, asked=None, failed=(replace(ONCE, at_s=NOW_S - ago_s),))

    made = plan(world(state=late))

    drained = [(order.names, order.text) for order in orders(made, OrderKind.DRAIN)]
    once = f"{FOUND}: job 70 ended with exit code 3, and no other check in 30 min"
    assert drained == ([(("i-1",), once)] if is_drained else [])


def test_a_second_check_that_runs_is_waited_for():
    running = replace(SUSPECT, failed=(replace(ONCE, at_s=NOW_S - SUSPECT_S - 1),))
    assert orders(plan(world(state=running)), OrderKind.DRAIN) == []


def test_what_a_check_said_that_is_not_believed_any_more_drains_nobody():
    late = replace(SUSPECT, asked=None, failed=(replace(ONCE, at_s=NOW_S - SUSPECT_S - 1),))
    stop = StoppedCheck(FOUND, NOW_S - 60, 2, 2)

    made = plan(world(state=late, history=PoolHistory("t4", stopped_checks=(stop,))))

    assert orders(made, OrderKind.DRAIN) == []
    state = learns(made)[-1].idle_checks
    assert state is not None
    assert (state.failed, state.sick) == ((), None)


def test_who_is_stopped_meanwhile_is_not_forgotten():
    late = replace(SUSPECT, asked=None, failed=(replace(ONCE, at_s=NOW_S - SUSPECT_S - 1),))

    made = plan(world(state=late, nodes=()))

    kept = [each for each in learns(made) if each.idle_checks and each.idle_checks != late]
    assert (orders(made, OrderKind.DRAIN), kept) == ([], [])
