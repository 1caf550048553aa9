"""Which idle nodes are left alone by the site's check, and what people see of it."""

from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.core.test_idle_check import RUNS, checked, world
from tests.make import NOW_S, job, offering
from tidegate.core.explain.idle_checks import IdleChecksNow
from tidegate.core.explain.node_report import node_reports
from tidegate.core.explain.overview import overview
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.cluster import Limits, Reservation
from tidegate.core.model.ec2 import Market
from tidegate.core.model.idle_check import (
    DAY_S,
    FOUND,
    CheckedNode,
    FailedOnce,
    IdleChecks,
    SickNode,
    day_of,
)
from tidegate.core.model.ledger import Launch
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan


def test_status_says_what_is_used_and_nodes_when_each_was_checked():
    state = replace(RUNS, day=day_of(NOW_S), gpu_hours=0.5)
    state = replace(state, nodes=(CheckedNode("i-2", NOW_S - 2 * 3600),))
    of = world([9 * DAY_S] * 3, state)

    assert overview(of, None).idle_checks == IdleChecksNow(0.75, 1.0, 2, 3, ("i-1",))
    assert overview(world(check=None), None).idle_checks is None
    reports = {each.name: each for each in node_reports(of)}
    found = [reports[name].checked for name in ("i-1", "i-2", "i-3")]
    assert found == ["is being checked", "2.0 h ago", "never"]
    suspect = replace(
        RUNS, asked=None, failed=(FailedOnce("i-1", "job 77 ran out of memory", NOW_S),)
    )
    (shown,) = node_reports(world(state=suspect))
    assert shown.checked == "failed, has another"
    assert [each.checked for each in node_reports(world(check=None))] == [""]


def test_status_asks_for_a_person_where_the_check_does_not_run():
    state = IdleChecks(
        missed=2, rests_until_s=NOW_S + 3600, said="it was not taken: Invalid account"
    )
    (said_,) = [each for each in overview(world(state=state), None).needs_a_look if "idle" in each]
    assert said_.startswith(
        "pool t4: the check of idle nodes did not run: it was not taken: Invalid account; the next"
    )
    assert said_.endswith("tidegate retry t4")
    assert checked(plan(world(state=state.tried_anew))) == ["i-1"]


def in_pool(of: Snapshot, **changes: object) -> Snapshot:
    """With another pool of the same name."""
    first, *others = of.cluster.pools
    changed = replace(first, **changes)  # type: ignore[arg-type]
    return replace(of, cluster=replace(of.cluster, pools=(changed, *others)))


def test_while_a_job_waits_that_a_limit_holds_back_none_is_checked():
    of = in_pool(world([9 * DAY_S] * 2, jobs=[job(1, nodes=3)]), limits=Limits(nodes=2))
    assert plan(of).unmet
    assert checked(plan(of)) == []


def test_a_node_that_only_its_idle_time_keeps_is_not_checked():
    of = in_pool(world(least=0), idle_s=7200.0)
    assert orders(plan(of), OrderKind.RELEASE) == []
    assert checked(plan(of)) == []


def test_a_node_whose_successor_is_being_bought_is_not_checked():
    expires = Disruption((Budget(nodes=1),), expire_after_s=8 * DAY_S)
    made = plan(in_pool(world(), disruption=expires))
    assert [each for each in made.actions if isinstance(each, Launch)]
    assert checked(made) == []


def test_a_sick_node_that_goes_anyway_is_not_drained_as_well():
    sick = SickNode("i-1", f"{FOUND}: job 77 ended with exit code 3", NOW_S - 300, NOW_S - 90)
    made = plan(world(state=IdleChecks(sick=sick), least=0))
    assert [each.names for each in orders(made, OrderKind.RELEASE)] == [("i-1",)]
    assert orders(made, OrderKind.DRAIN) == []


@pytest.mark.parametrize(("left_s", "on"), [(3600.0, []), (9000.0, ["i-1"])])
def test_a_node_whose_block_ends_before_a_check_would_is_not_checked(left_s, on):
    of, block = world(), offering(market=Market.CAPACITY_BLOCK)
    sold = Reservation(
        "cr-1", block.instance_type, block.zone, 1, block.market, NOW_S - 10 * DAY_S, NOW_S + left_s
    )
    of = replace(
        of,
        cluster=replace(of.cluster, reservations=(sold,)),
        nodes=(replace(of.nodes[0], offering=block),),
        instances=(replace(of.instances[0], offering=block, capacity_reservation_id="cr-1"),),
    )
    of = in_pool(of, markets=(Market.CAPACITY_BLOCK,))
    assert checked(plan(of)) == on
