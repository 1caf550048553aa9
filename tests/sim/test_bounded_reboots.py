"""How often a node may be rebooted, by what was found."""

from dataclasses import replace

import pytest

from tests.make import snapshot
from tests.sim.test_excuses import SPOT, first_node, witnessed
from tidegate.core.model.finding import Finding, StoppedCheck
from tidegate.core.model.plan import Plan
from tidegate.core.model.pool_history import PoolHistory
from tidegate.service.control import Looked, Round
from tidegate.service.outcome import Outcome
from tidegate.sim.checks.reboots import RebootsBounded


@pytest.mark.parametrize(
    ("check", "is_lifted", "is_forgotten"),
    [("NHC: eth", True, True), ("NHC: eth", False, False), ("NHC: fs", True, False)],
)
def test_who_was_rebooted_may_be_again_once_a_person_has_said_that_its_check_erred(
    check: str, *, is_lifted: bool, is_forgotten: bool
) -> None:
    world, seen = witnessed()
    bounded = RebootsBounded(seen)
    (one,) = world.compute.create_fleet(first_node(world)).instances
    bounded.asked[one.instance_id] = 2
    stopped = StoppedCheck(check, 0.0, 2, 3, is_lifted=is_lifted)
    found = Finding(one.instance_id, "NHC: eth", SPOT, 0.0, 3, 3)
    history = PoolHistory("t4", findings=(found,), stopped_checks=(stopped,))
    known = replace(snapshot(), pool_history=(history,))

    bounded.looked(Looked([Round(known, Plan((), (), ()), Outcome())]))

    assert bounded.asked == ({} if is_forgotten else {one.instance_id: 2})
