"""Nodes that have had their time: the oldest first, under budgets, new before old."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import NOW_S, T4, cluster, instance, job, node, offering, pool, record, snapshot
from tidegate.core.model.budgets import Budget, Disruption, DisruptionReason
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.cluster import Limits, Pool, Reservation
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind, PendingOrder
from tidegate.core.model.plan import Plan, Send
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job, Node
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

HOUR_S = 3600.0
UNLIMITED = (Budget(percent=100.0),)
BUSY, DRAINED = "ALLOCATED+DYNAMIC_NORM", "ALLOCATED+DRAIN+DYNAMIC_NORM"
OLD, NEW = 2 * HOUR_S, 0.5 * HOUR_S


def t4(**more: object) -> Pool:
    made = replace(pool(idle_s=10 * HOUR_S), **more)  # type: ignore[arg-type]
    if "disruption" not in more:
        made = replace(made, disruption=Disruption(UNLIMITED, expire_after_s=HOUR_S))
    return made


def busy(name: str, state: str = BUSY, reason: str = "") -> Node:
    return node(name, state=state, gpus_alloc=1, reason=reason)


def seen(
    of: Pool,
    ages: dict[str, float],
    nodes: Sequence[Node],
    jobs: Sequence[Job] = (),
    records: Sequence[NodeRecord] = (),
) -> Snapshot:
    made = records or [record(name, age_s=age_s) for name, age_s in ages.items()]
    return snapshot(
        jobs,
        nodes,
        of=cluster(of),
        instances=[instance(name, age_s=age_s) for name, age_s in ages.items()],
        records=made,
    )


def running(*names: str) -> list[Job]:
    return [job(number, on=[name]) for number, name in enumerate(names, 100)]


def drained(made: Plan) -> list[str]:
    return [name for order in orders(made, OrderKind.DRAIN) for name in order.names]


def released(made: Plan) -> list[str]:
    return [name for order in orders(made, OrderKind.RELEASE) for name in order.names]


def test_an_expired_node_that_idles_goes_at_once_and_one_that_works_is_drained():
    of = seen(
        t4(),
        {"i-1": OLD, "i-2": HOUR_S, "i-3": NEW},
        [node("i-1"), busy("i-2"), busy("i-3")],
        running("i-2", "i-3"),
    )

    made = plan(of)

    assert (released(made), drained(made)) == (["i-1"], ["i-2"])
    assert orders(made, OrderKind.RELEASE)[0].only_if == ("IDLE",)
    assert (
        orders(made, OrderKind.DRAIN)[0].text
        == "tidegate: expired: pool t4 keeps nodes for 60 min (expired)"
    )


def test_a_node_that_a_person_has_started_again_is_as_old_as_ec2_says():
    begun = seen(t4(), {"i-1": NEW}, [node("i-1")], records=[record("i-1", age_s=OLD)])

    assert plan(begun).actions == ()


def test_a_drained_node_is_waited_for_and_then_released():
    reason = "tidegate: expired: pool t4 keeps nodes for 60 min (expired)"
    busy_still = seen(t4(), {"i-1": OLD}, [busy("i-1", DRAINED, reason)], running("i-1"))
    free = seen(t4(), {"i-1": OLD}, [node("i-1", state="IDLE+DRAIN", reason=reason)])

    assert released(plan(busy_still)) == []
    assert released(plan(free)) == ["i-1"]


@pytest.mark.parametrize("state", [DRAINED, "IDLE+DRAIN+DYNAMIC_NORM"])
def test_a_node_that_has_had_its_time_stays_with_the_person_who_drained_it(state):
    one = node("i-1", state=state, gpus_alloc=int(state == DRAINED), reason="bad fan")
    jobs = running("i-1") if state == DRAINED else []

    assert plan(seen(t4(), {"i-1": OLD}, [one], jobs)).actions == ()


@pytest.mark.parametrize("is_busy", [True, False])
def test_as_many_go_at_once_as_the_pool_has_above_its_minimum(is_busy):
    ages = {"i-1": OLD, "i-2": OLD + 60, "i-3": OLD + 30}
    nodes = [busy(name) if is_busy else node(name) for name in ages]

    made = plan(seen(t4(min_nodes=1), ages, nodes, running(*ages) if is_busy else ()))

    assert drained(made) + released(made) == ["i-2", "i-3"]
    assert {each.is_budgeted for each in made.actions if isinstance(each, Send)} == {True}
    assert "before i-1 goes" in launches(made)[0].reason


def test_a_free_node_that_a_pool_keeps_is_replaced_before_it_goes():
    of = seen(t4(headroom_nodes=1), {"i-1": OLD, "i-2": NEW}, [node("i-1"), busy("i-2")])

    made = plan(of)

    assert (released(made), drained(made)) == ([], [])
    assert [each.count for each in launches(made)] == [1]


def test_a_node_that_has_idled_for_its_time_as_well_is_let_go_once():
    assert released(plan(seen(t4(idle_s=60.0), {"i-1": OLD}, [node(idle_s=500)]))) == ["i-1"]


def test_the_oldest_go_first_and_no_more_than_the_budget_allows():
    of = t4(disruption=Disruption((Budget(percent=34.0),), HOUR_S))
    ages = {"i-1": OLD, "i-2": OLD + 60, "i-3": OLD + 30, "i-4": NEW}
    nodes = [busy(name) for name in ages]

    assert drained(plan(seen(of, ages, nodes, running(*ages)))) == ["i-2", "i-3"]


def test_nodes_that_leave_already_count_whyever_they_leave():
    of = t4(disruption=Disruption((Budget(nodes=1),), HOUR_S))
    ages = {"i-1": OLD, "i-2": NEW}
    nodes = [busy("i-1"), busy("i-2", DRAINED, "bad fan")]

    assert drained(plan(seen(of, ages, nodes, running(*ages)))) == []


@pytest.mark.parametrize(("late_s", "is_held"), [(20.0, True), (60.0, False)])
def test_an_order_on_its_way_counts_until_nobody_can_carry_it_out_any_more(late_s, is_held):
    of = t4(disruption=Disruption((Budget(nodes=1),), HOUR_S))
    ages = {"i-1": OLD, "i-2": NEW}
    sent = PendingOrder("o-1", OrderKind.RELEASE, NOW_S - late_s)
    records = [record("i-1", age_s=OLD), record("i-2", age_s=NEW, order=sent)]

    made = plan(seen(of, ages, [busy(name) for name in ages], running(*ages), records))

    assert (drained(made) == []) is is_held


def test_an_order_of_another_reason_is_none_to_let_a_node_go():
    of = t4(disruption=Disruption((Budget(nodes=0),), HOUR_S))
    sent = PendingOrder("o-1", OrderKind.DRAIN, NOW_S - 20.0)
    records = [record("i-1", age_s=OLD, order=sent)]

    made = plan(seen(of, {"i-1": OLD}, [busy("i-1")], running("i-1"), records))

    assert drained(made) == []


def test_budgets_of_empty_nodes_hold_them_too():
    empty = Budget(nodes=1, reasons=frozenset({DisruptionReason.EMPTY}))
    of = t4(disruption=Disruption((empty,)), idle_s=60.0)
    ages = {"i-1": OLD, "i-2": OLD}

    made = plan(seen(of, ages, [node(name, idle_s=100) for name in ages]))

    assert released(made) == ["i-1"]


def test_a_budget_for_the_unhealthy_keeps_nodes_that_slurm_finds_down():
    down = Budget(nodes=0, reasons=frozenset({DisruptionReason.UNHEALTHY}))
    nodes = [node("i-1", state="DOWN+DYNAMIC_NORM", reason="Not responding")]
    kept = seen(t4(disruption=Disruption((down,))), {"i-1": OLD}, nodes)
    freed = seen(t4(), {"i-1": NEW}, nodes)

    assert released(plan(kept)) == []
    assert released(plan(freed)) == ["i-1"]


def test_of_two_unhealthy_nodes_that_slurm_has_drained_one_goes_and_then_the_other():
    """Each leaves work already; neither must wait for the other."""
    one = (Budget(nodes=1),)
    state, reason = "DOWN+DRAIN+DYNAMIC_NORM", "gres/gpu count too low"
    both = [node(name, state=state, reason=reason) for name in ("i-1", "i-2")]
    of, ages = t4(disruption=Disruption(one)), {"i-1": NEW, "i-2": NEW}
    told = PendingOrder("o-1", OrderKind.RELEASE, NOW_S + 30)
    records = [record("i-1", age_s=NEW, order=told), record("i-2", age_s=NEW)]

    assert released(plan(seen(of, ages, both))) == ["i-1"]
    assert released(plan(seen(of, ages, both, records=records))) == []
    assert released(plan(seen(of, {"i-2": NEW}, both[1:]))) == ["i-2"]


def test_a_node_that_was_let_go_counts_also_when_slurm_finds_it_down_before_it_is_gone():
    state = "DOWN+DRAIN+DYNAMIC_NORM"
    gone = DrainReason(DrainCode.EXPIRED, "pool t4 keeps nodes for 2 min")
    sick = node("i-1", state="IDLE+DRAIN+DYNAMIC_NORM", reason="Kill task failed")
    of, ages = t4(disruption=Disruption((Budget(nodes=1),))), {"i-1": NEW, "i-2": NEW}

    def beside(reason: str) -> list[str]:
        down = node("i-2", state=state, reason=f"{reason} : Not responding")
        return released(plan(seen(of, ages, [sick, down])))

    assert beside(str(gone)) == ["i-2"]
    assert beside("gres/gpu count too low") == ["i-1"]


def test_nodes_that_were_let_go_and_then_found_down_need_no_further_place():
    """They were many then, and of a few none is left over for the other now."""
    gone = f"{DrainReason(DrainCode.EXPIRED, 'its time')} : Not responding"
    ages = {"i-1": NEW, "i-2": NEW}
    nodes = [node(name, state="DOWN+DRAIN+DYNAMIC_NORM", reason=gone) for name in ages]

    assert released(plan(seen(t4(disruption=Disruption((Budget(nodes=1),))), ages, nodes))) == [
        "i-1",
        "i-2",
    ]


def test_a_node_that_a_pending_job_is_about_to_take_stays():
    of = seen(t4(), {"i-1": OLD}, [node("i-1")], [job(1)])

    made = plan(of)

    assert (released(made), drained(made), launches(made)) == ([], [], [])


def test_jobs_do_not_count_on_a_node_that_is_drained():
    """It has three GPUs free; the job that waits gets a node that will stay."""
    big = offering(pool().instance_types[1])
    one = replace(node("i-1", pool().instance_types[1], state="MIXED"), gpus_alloc=1, cpus_alloc=1)
    of = snapshot(
        [job(1), *running("i-1")],
        [one],
        of=cluster(t4()),
        instances=[instance("i-1", big, age_s=OLD)],
        records=[record("i-1", big, age_s=OLD)],
    )

    made = plan(of)

    assert drained(made) == ["i-1"]
    assert [launch.for_jobs for launch in launches(made)] == [("1",)]


@pytest.mark.parametrize("state", ["IDLE+DYNAMIC_NORM", BUSY])
def test_of_a_minimum_the_new_node_comes_before_the_old_one_goes(state):
    of = t4(min_nodes=1, instance_types=(T4,))
    old = node("i-1", state=state, gpus_alloc=int(state == BUSY))
    jobs = running("i-1") if state == BUSY else []
    first = seen(of, {"i-1": OLD}, [old], jobs)
    booting = replace(first, nodes=(*first.nodes, record("i-2", age_s=60.0, phase=Phase.LAUNCHED)))
    joined = seen(of, {"i-1": OLD, "i-2": 60.0}, [old, node("i-2")], jobs)

    assert [launch.count for launch in launches(plan(first))] == [1]
    assert "before i-1 goes" in launches(plan(first))[0].reason
    for waiting in (first, booting):
        assert drained(plan(waiting)) + released(plan(waiting)) == []
    assert launches(plan(booting)) == []
    assert drained(plan(joined)) + released(plan(joined)) == ["i-1"]
    assert launches(plan(joined)) == []


@pytest.mark.parametrize("state", ["IDLE+DYNAMIC_NORM", BUSY])
def test_the_old_node_goes_first_where_a_limit_leaves_no_room_for_both(state):
    of = t4(min_nodes=1, limits=Limits(nodes=1))
    old = node("i-1", state=state, gpus_alloc=int(state == BUSY))
    made = plan(seen(of, {"i-1": OLD}, [old], running("i-1") if state == BUSY else []))

    assert launches(made) == []
    assert drained(made) + released(made) == ["i-1"]


@pytest.mark.parametrize(("places", "gone", "bought"), [(1, ["i-1"], []), (2, [], [1])])
def test_the_old_node_of_a_full_reservation_goes_first_and_nothing_is_bought_beside_it(
    places, gone, bought
):
    of = t4(min_nodes=1)
    reserved = offering(market=Market.RESERVED)
    booked = Reservation("cr-1", "g4dn.xlarge", reserved.zone, places, Market.RESERVED, 0.0)
    cheap = cluster(of)
    here = replace(cheap, reservations=(booked,))
    rec = replace(record("i-1", age_s=OLD), offering=reserved, usd_per_hour=0.0)
    of_it = snapshot(
        [], [node("i-1")], of=here, instances=[instance("i-1", reserved, age_s=OLD)], records=[rec]
    )

    made = plan(of_it)

    assert (released(made), [each.count for each in launches(made)]) == (gone, bought)


def test_an_offering_that_rests_is_waited_for_and_the_old_node_stays():
    of = t4(min_nodes=1)
    rests = [Resting(each, NOW_S + 60, 1, "Ice", "none") for _, each in of.offerings()]
    made = plan(replace(seen(of, {"i-1": OLD}, [node("i-1")]), resting=tuple(rests)))

    assert (released(made), launches(made)) == ([], [])


def test_while_the_cluster_is_stopped_nothing_is_replaced():
    of = seen(t4(min_nodes=1), {"i-1": OLD}, [busy("i-1")], running("i-1"))

    made = plan(replace(of, wanted=Wanted(is_up=False, sentence="stopped")))

    assert launches(made) == []


KEPT_TIMES = [
    ("tidegate:keep", OLD, 3 * HOUR_S, True),
    ("tidegate:keep", OLD, 1.5 * HOUR_S, False),  # longer than the pool allows
    ("tidegate:keep=2027-01-15T09:00", OLD, HOUR_S, True),
    ("tidegate:keep=2027-01-15T07:59Z", OLD, HOUR_S, False),  # it is over: now is 08:00
    ("tidegate:keep=2027-01-15T17:30+09:00", OLD, HOUR_S, True),
    ("tidegate:keep=2099-01-01", OLD, HOUR_S, False),
    ("tidegate:keeper", OLD, 3 * HOUR_S, False),
]


@pytest.mark.parametrize(("mark", "since_s", "most_s", "is_kept"), KEPT_TIMES)
@pytest.mark.parametrize("by", ["feature", "comment"])
def test_a_mark_keeps_a_node_for_as_long_as_its_pool_allows(by, mark, since_s, most_s, is_kept):
    of = t4(disruption=Disruption(UNLIMITED, HOUR_S, most_s))
    one, jobs = busy("i-1"), running("i-1")
    if by == "feature":
        one = replace(one, features=("t4", mark))
    else:
        jobs = [replace(jobs[0], comment=f"note, {mark}", started_at_s=NOW_S - since_s)]

    assert (drained(plan(seen(of, {"i-1": since_s}, [one], jobs))) == []) is is_kept


def test_a_kept_node_is_not_let_go_for_being_empty():
    of = t4(idle_s=60.0)
    idle = replace(node("i-1", idle_s=100), features=("t4", "tidegate:keep"))

    assert released(plan(seen(of, {"i-1": NEW}, [idle]))) == []


def test_what_was_just_decided_is_not_decided_again():
    of = seen(t4(), {"i-1": OLD, "i-2": OLD}, [busy("i-1"), node("i-2")], running("i-1"))
    first = plan(of)
    told = {
        name: order
        for kind in (OrderKind.DRAIN, OrderKind.RELEASE)
        for order in orders(first, kind)
        for name in order.names
    }
    later = replace(
        of,
        nodes=tuple(
            replace(each, order=PendingOrder("o", told[each.instance_id].kind, NOW_S + 60))
            for each in of.nodes
        ),
    )

    assert len(told) == 2
    assert plan(later).actions == ()
