"""Jobs that are moved from on demand to spot while they run, step by step."""

from dataclasses import replace

from tests.core.moving_jobs import GATE, GRACE_S, LIMIT_S, NET_S, STEADY, closing, running, seen
from tests.core.reading import ended, launches, orders
from tests.make import (
    NOW_S,
    instance,
    node,
    offering,
    record,
)
from tidegate.core.explain.answer import answer
from tidegate.core.model.drain_reason import DrainCode, read
from tidegate.core.model.ec2 import Market
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult
from tidegate.core.model.plan import Plan
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job, NodeState
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.moving import SEEN_S
from tidegate.core.planner import plan


def test_first_its_spot_node_is_bought_and_kept_closed_for_it() -> None:
    made = plan(seen())

    (launch,) = launches(made)
    assert [each.market for each in launch.offerings] == [Market.SPOT]
    assert (launch.count, launch.gated_for, launch.for_jobs) == (1, "1", ("1",))
    assert not [each for kind in OrderKind for each in orders(made, kind)]
    assert not made.unmet


def test_while_it_boots_nothing_more_happens() -> None:
    made = plan(seen(spot="boots"))

    assert not made.actions


def test_then_its_node_on_demand_is_closed_and_says_why() -> None:
    made = plan(seen(spot=GATE))

    found = read(closing(made))
    assert found is not None
    assert (found.code, found.subject) == (DrainCode.CONSOLIDATABLE, "1")
    assert found.sentence.startswith("job 1 moves to spot, which saves 2.")
    assert not orders(made, OrderKind.SIGNAL)
    assert not orders(made, OrderKind.REQUEUE)
    assert not orders(made, OrderKind.UNDRAIN)


def test_then_it_saves_its_work_and_is_requeued() -> None:
    closed = closing(plan(seen(spot=GATE)))

    made = plan(seen(spot=GATE, closed=closed))

    (signal,), (requeue,) = orders(made, OrderKind.SIGNAL), orders(made, OrderKind.REQUEUE)
    assert (signal.names, signal.text, signal.delay_s) == (("1",), "USR1", 0)
    assert (requeue.names, requeue.delay_s, requeue.restarts) == (("1",), GRACE_S + SEEN_S, 0)
    assert requeue.on_nodes == signal.on_nodes == ("i-1",)
    assert requeue.not_after_s >= NOW_S + GRACE_S + 60
    assert not orders(made, OrderKind.DRAIN)
    assert not ended(made)


def heard(made: Snapshot, order_id: str, after_s: float) -> Plan:
    """What is planned so much later, when the head has said that this was done."""
    done = OrderResult(order_id, OrderKind.SIGNAL, "1", OrderOutcome.DONE)
    head = replace(made.heard, results=(done,), written_at_s=NOW_S + after_s)
    return plan(replace(made, digest=head, now_s=NOW_S + after_s))


def test_it_is_told_once_and_requeued_again_only_when_it_runs_on_long_after() -> None:
    ready = seen(spot=GATE, closed=closing(plan(seen(spot=GATE))))
    (signal,) = orders(plan(ready), OrderKind.SIGNAL)
    (again,) = orders(plan(replace(ready, now_s=NOW_S + 5)), OrderKind.SIGNAL)
    last_s = GRACE_S + SEEN_S + 60

    assert again.order_id == signal.order_id
    assert not heard(ready, signal.order_id, last_s).actions
    late = heard(ready, signal.order_id, last_s + 1)
    assert not orders(late, OrderKind.SIGNAL)
    assert [each.delay_s for each in orders(late, OrderKind.REQUEUE)] == [0]


def test_who_was_told_goes_though_it_would_stay_by_now() -> None:
    """Its requeue cannot be called back."""
    ready = seen(spot=GATE, closed=closing(plan(seen(spot=GATE))))
    (signal,) = orders(plan(ready), OrderKind.SIGNAL)
    late = running(LIMIT_S + NET_S - 1)
    reading = replace(ready.heard.reading, jobs=(late,))
    late_now = replace(ready, digest=replace(ready.heard, reading=reading))

    assert orders(plan(late_now), OrderKind.UNDRAIN)
    assert not heard(late_now, signal.order_id, 5.0).actions


def test_who_is_told_late_still_has_its_time_to_save() -> None:
    ready = seen(spot=GATE, closed=closing(plan(seen(spot=GATE))))

    made = plan(replace(ready, now_s=NOW_S + SEEN_S + 5))

    assert [each.delay_s for each in orders(made, OrderKind.REQUEUE)] == [GRACE_S]


def test_it_does_not_go_while_a_node_on_demand_idles_on_which_it_would_start() -> None:
    ready = seen(spot=GATE)
    reading = replace(ready.heard.reading, nodes=(*ready.heard.reading.nodes, node("i-3")))
    beside = replace(
        ready,
        digest=replace(ready.heard, reading=reading),
        nodes=(*ready.nodes, record("i-3", on=STEADY)),
        instances=(*ready.instances, instance("i-3", on=STEADY)),
    )

    assert not orders(plan(beside), OrderKind.DRAIN)
    assert "would start it on i-3, which idles" in answer("1", beside, None).needs[-1]


def test_who_was_started_elsewhere_is_not_moved_again_at_once() -> None:
    """Its spot node is given to others."""
    one = replace(running(), restarts=1, started_at_s=NOW_S - 5)

    made = plan(seen(one, spot=GATE))

    assert [each.names for each in orders(made, OrderKind.UNDRAIN)] == [("i-2",)]
    assert not orders(made, OrderKind.DRAIN)


def requeued(reason: str) -> Job:
    again = replace(running(), node_names=(), state="PENDING", reason=reason, restarts=1)
    return replace(again, started_at_s=None, begins_at_s=NOW_S + 118)


def test_when_its_old_run_is_over_its_spot_node_opens_and_the_other_goes() -> None:
    closed = closing(plan(seen(spot=GATE)))
    waits = seen(requeued("BeginTime"), spot=GATE, closed=closed)
    idle = replace(waits.heard.reading.nodes[0], state=NodeState.parse("IDLE+DRAIN+DYNAMIC_NORM"))

    def look(reason: str) -> Plan:
        reading = replace(
            waits.heard.reading,
            jobs=(requeued(reason),),
            nodes=(idle, *waits.heard.reading.nodes[1:]),
        )
        return plan(replace(waits, digest=replace(waits.heard, reading=reading)))

    early, free = look("BeginTime"), look("Priority")

    for made in (early, free):
        assert not launches(made)
        assert [each.names for each in orders(made, OrderKind.RELEASE)] == [("i-1",)]
    assert not orders(early, OrderKind.UNDRAIN)
    assert [each.names for each in orders(free, OrderKind.UNDRAIN)] == [("i-2",)]


def test_while_its_old_run_ends_its_spot_node_stays_closed() -> None:
    closed = closing(plan(seen(spot=GATE)))
    ending = replace(running(), state="COMPLETING", restarts=1)

    made = plan(seen(ending, spot=GATE, closed=closed))

    assert not made.actions


def test_an_idle_spot_node_is_closed_for_it_before_it_is_told() -> None:
    found = seen()
    free = node("i-2")
    reading = replace(found.heard.reading, nodes=(*found.heard.reading.nodes, free))
    there = replace(
        found,
        digest=replace(found.heard, reading=reading),
        nodes=(*found.nodes, record("i-2")),
        instances=(*found.instances, instance("i-2")),
    )

    made = plan(there)

    (order,) = orders(made, OrderKind.DRAIN)
    kept = read(order.text)
    assert order.names == ("i-2",)
    assert kept is not None
    assert (kept.code, kept.subject) == (DrainCode.KEPT, "1")
    assert not launches(made)


def test_spot_that_is_gone_meanwhile_opens_its_node_on_demand_again() -> None:
    closed = closing(plan(seen(spot=GATE)))
    rests = [Resting(offering(), NOW_S + 60, 1, "spot interruption", "EC2 reclaims")]

    made = plan(seen(closed=closed, resting=rests))

    (order,) = orders(made, OrderKind.UNDRAIN)
    assert (order.names, order.text) == (("i-1",), closed)
    assert not orders(made, OrderKind.REQUEUE)
    assert not launches(made)


def test_spot_that_is_silent_is_not_gone_to() -> None:
    closed = closing(plan(seen(spot=GATE)))

    made = plan(seen(spot="IDLE+DRAIN+NOT_RESPONDING+DYNAMIC_NORM", closed=closed))

    assert not orders(made, OrderKind.SIGNAL)
    assert not orders(made, OrderKind.REQUEUE)


def test_with_the_net_used_up_its_spot_node_is_given_to_others() -> None:
    closed = closing(plan(seen(spot=GATE)))
    late = running(LIMIT_S + NET_S - 1)

    made = plan(seen(late, spot=GATE, closed=closed))

    opened = sorted(each.names for each in orders(made, OrderKind.UNDRAIN))
    assert opened == [("i-1",), ("i-2",)]
    assert not orders(made, OrderKind.REQUEUE)
