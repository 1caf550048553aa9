"""A node that was rebooted for what only a test shows to be mended is the next to be checked."""

from dataclasses import replace

import pytest

from tests.core.test_idle_check import ON_DEMAND, checked, said, world
from tests.make import NOW_S
from tidegate.core.explain.idle_checks import idle_checks_now
from tidegate.core.model.finding import Finding
from tidegate.core.model.idle_check import DAY_S, CheckedNode, IdleChecks
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.planner import plan

AGES_S = (20 * DAY_S, 9 * DAY_S)
YESTERDAY = IdleChecks(nodes=(CheckedNode("i-2", NOW_S - DAY_S),))
MEMORY = Finding(
    "i-2",
    "tidegate-health: xid",
    ON_DEMAND,
    NOW_S - 3600,
    pool_nodes=2,
    place_nodes=2,
    has_rebooted=True,
    needs_test=True,
)


def asked(finding: Finding, state: IdleChecks = YESTERDAY) -> list[str]:
    """i-1 is due since long ago; i-2 was checked yesterday."""
    return checked(plan(world(AGES_S, state, history=PoolHistory("t4", findings=(finding,)))))


def test_it_is_checked_before_one_whose_time_has_come() -> None:
    assert asked(MEMORY) == ["i-2"]
    assert asked(MEMORY, IdleChecks()) == ["i-2"]


@pytest.mark.parametrize(
    ("finding", "state"),
    [
        (replace(MEMORY, needs_test=False), YESTERDAY),
        (replace(MEMORY, has_rebooted=False), YESTERDAY),
        (replace(MEMORY, instance_id="i-9"), YESTERDAY),
        (MEMORY, IdleChecks(nodes=(CheckedNode("i-2", NOW_S - 600),))),
    ],
    ids=["the gate tests it", "not rebooted", "another node", "checked since"],
)
def test_else_who_has_waited_longest_is(finding: Finding, state: IdleChecks) -> None:
    assert asked(finding, state) == ["i-1"]


def test_who_asks_hears_why_and_how_many_are_due() -> None:
    seen = world(AGES_S, YESTERDAY, history=PoolHistory("t4", findings=(MEMORY,)))

    (told,) = (reason for code, reason in said(plan(seen)) if code == "idle-check-asked")
    now = idle_checks_now(seen)

    assert "i-2 is idle, was rebooted, and only a test shows that it is mended" in told
    assert now is not None
    assert now.due == 2
