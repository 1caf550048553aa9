"""What the check of instances that are no nodes thinks of planners that looked, or did not."""

import pytest

from tests.make import record, snapshot
from tests.sim.test_excuses import first_node, witnessed
from tidegate.core.model.plan import Plan
from tidegate.service.control import Looked, Round
from tidegate.service.outcome import Outcome
from tidegate.sim.checks.ending import NoStrayInstances
from tidegate.sim.checks.witness import Broken


@pytest.mark.parametrize(
    ("seen_as", "is_judged"),
    [
        ("a record", True),
        ("an instance, twice", True),
        ("an instance, once", False),
        ("an instance of a launch in doubt", False),
        ("a record, in a round that was stale", False),
        ("", False),
    ],
)
def test_a_stray_may_run_twice_as_long_where_no_planner_has_judged_it(
    seen_as: str, *, is_judged: bool
) -> None:
    world, seen = witnessed()
    check = NoStrayInstances(seen)
    (one,) = world.compute.create_fleet(first_node(world)).instances
    known = snapshot(
        records=[record(one.instance_id)] if seen_as.startswith("a record") else [],
        instances=[one] if seen_as.startswith("an instance") else [],
        launches=list(world.ledger.all_launches.values()) if seen_as.endswith("in doubt") else [],
    )
    done = Round(known, Plan((), (), ()), Outcome(is_stale=seen_as.endswith("stale")))

    check.passed(check.bound_s)
    for _ in range(1 if seen_as.endswith("once") else 2):
        check.looked(Looked([done]))

    if not is_judged:
        check.passed(check.bound_s)
    with pytest.raises(Broken, match="has run for"):
        check.passed(1.0)
