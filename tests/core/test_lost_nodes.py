"""Nodes that EC2 reclaims, and what one incomplete answer of EC2 must not do to them."""

from dataclasses import replace

import pytest

from tests.core.reading import ended, launches, orders
from tests.make import (
    NOW_S,
    T4,
    cluster,
    instance,
    job,
    node,
    offering,
    placement,
    pool,
    record,
    snapshot,
)
from tidegate.core.interruption.save import reclaim_at_s
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.cluster import Limits, Rebalance
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.ec2 import InstanceState, InstanceType, Market
from tidegate.core.model.ledger import Cordon, LaunchRecord, NodeRecord, Phase
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult, PendingOrder
from tidegate.core.model.plan import Mark, Plan, Resume, Send
from tidegate.core.model.slurm import NodeState
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

BUSY = node(state="MIXED+DRAIN+DYNAMIC_NORM", gpus_alloc=1)


def warned(reclaim_in_s: float) -> NodeRecord:
    return replace(record(phase=Phase.INTERRUPTED), reclaim_at_s=NOW_S + reclaim_in_s)


def test_a_notice_is_not_cut_short_by_one_describe_that_leaves_the_node_out() -> None:
    made = plan(snapshot([job(7, on=["i-1"])], [BUSY], records=[warned(100)]))

    assert [order.delay_s for order in orders(made, OrderKind.REQUEUE)] == [75]


def test_after_its_notice_a_node_that_ec2_does_not_show_is_given_up() -> None:
    made = plan(snapshot([job(7, on=["i-1"])], [BUSY], records=[warned(-1)]))

    assert [order.names for order in orders(made, OrderKind.DELETE)] == [("i-1",)]


@pytest.mark.parametrize(("age_s", "is_let_go"), [(30.0, False), (90.0, True)])
def test_a_node_that_joins_before_ec2_shows_it_stays(*, age_s: float, is_let_go: bool) -> None:
    seen = snapshot(nodes=[node()], records=[record(age_s=age_s)])

    assert bool(orders(plan(seen), OrderKind.RELEASE)) is is_let_go


def test_what_slurm_has_let_go_ends_before_ec2_shows_it() -> None:
    told = PendingOrder("o-1", OrderKind.RELEASE, NOW_S + 60.0)
    done = OrderResult("o-1", OrderKind.RELEASE, "i-1", OrderOutcome.DONE)

    made = plan(snapshot(records=[record(age_s=30.0, order=told)], results=[done]))

    assert ended(made) == ["i-1"]


def test_a_node_that_lives_on_long_after_its_announced_end_keeps_its_job() -> None:
    """Slurm would have found it DOWN: nothing ended it, and one Describe may leave it out."""
    alive = replace(BUSY, state=NodeState.parse("MIXED+DRAIN+DYNAMIC_NORM"))
    dead = replace(BUSY, state=NodeState.parse("DOWN+DRAIN+DYNAMIC_NORM"))
    running = [job(7, on=["i-1"])]

    made = plan(snapshot(running, [alive], records=[warned(-302)]))
    buried = plan(snapshot(running, [dead], records=[warned(-302)]))

    kinds = (OrderKind.DELETE, OrderKind.RELEASE)
    assert [order.names for kind in kinds for order in orders(made, kind)] == []
    assert [order.names for order in orders(buried, OrderKind.RELEASE)] == [("i-1",)]


@pytest.mark.parametrize(
    ("reclaim_in_s", "state", "is_replaced"),
    [(-290, BUSY.state, True), (-302, BUSY.state, False), (-302, NodeState.parse("DOWN"), True)],
)
def test_no_node_is_bought_for_the_job_of_one_that_lives_on(
    reclaim_in_s: float, state: NodeState, is_replaced: bool
) -> None:
    """Its job was not requeued in time, and runs on: a replacement would idle until its end."""
    seen = snapshot(
        [job(7, on=["i-1"])],
        [replace(BUSY, state=state)],
        instances=[instance()],
        records=[warned(reclaim_in_s)],
    )

    assert bool(launches(plan(seen))) == is_replaced


@pytest.mark.parametrize("market", [Market.SPOT, Market.RESERVED])
def test_a_node_that_was_but_recommended_to_leave_keeps_its_job_when_describe_leaves_it_out(
    market: Market,
) -> None:
    """AWS may let it live on; what is no spot node gets no recommendations."""
    drains = cluster(replace(pool(), rebalance=Rebalance.DRAIN))
    warned_of = replace(warned(-1), offering=replace(offering(), market=market))

    made = plan(snapshot([job(7, on=["i-1"])], [BUSY], records=[warned_of], of=drains))

    ends = [order.names for order in orders(made, OrderKind.DELETE)]
    assert ends == ([] if market is Market.SPOT else [("i-1",)])


def test_a_booting_node_that_was_told_to_leave_is_ended_once_slurm_does_not_show_it() -> None:
    """It had joined, and the planner that saw it died before it wrote that down."""
    told = PendingOrder("e-1-o0", OrderKind.RELEASE, NOW_S - 60.0)
    booting = record(phase=Phase.LAUNCHED)

    made = plan(snapshot(records=[replace(booting, order=told)], instances=[instance()]))
    untold = plan(snapshot(records=[booting], instances=[instance()]))
    # One that is to join closed is told so while it boots.
    closed = replace(booting, order=replace(told, kind=OrderKind.DRAIN))

    assert ended(made) == ["i-1"]
    assert ended(untold) == []
    assert ended(plan(snapshot(records=[closed], instances=[instance()]))) == []


def gone(*, state: str = "MIXED+DYNAMIC_NORM", order: PendingOrder | None = None) -> Plan:
    """The plan when EC2 says that a node is shutting down while a job runs on it."""
    ending = instance(state=InstanceState.SHUTTING_DOWN)
    return plan(
        snapshot(
            [job(7, on=["i-1"])],
            [node(state=state, gpus_alloc=1)],
            instances=[ending],
            records=[record(order=order)],
        )
    )


def test_a_node_that_ec2_ends_leaves_slurm_with_its_jobs_and_is_replaced() -> None:
    made = gone()

    (order,) = [send.order for send in made.actions if isinstance(send, Send)]
    assert (order.kind, order.names) == (OrderKind.DELETE, ("i-1",))
    assert len(launches(made)) == 1


def test_a_delete_that_is_on_its_way_is_not_asked_again() -> None:
    pending = PendingOrder("o-1", OrderKind.DELETE, NOW_S + 30)

    assert orders(gone(order=pending), OrderKind.DELETE) == []


def test_a_gone_node_that_slurm_has_down_is_released_with_patience() -> None:
    made = gone(state="DOWN+DYNAMIC_NORM")

    assert orders(made, OrderKind.DELETE) == []
    assert [order.names for order in orders(made, OrderKind.RELEASE)] == [("i-1",)]


def test_an_idle_node_that_one_describe_leaves_out_is_not_deleted_under_a_job() -> None:
    made = plan(snapshot([], [node()], records=[record()]))

    assert [send.order.kind for send in made.actions if isinstance(send, Send)] == [
        OrderKind.RELEASE
    ]


# -- cordons -------------------------------------------------------------------------------


def cordoned(*, busy: bool, ends_in_s: float | None = None) -> Plan:
    """The plan for a node that AWS Health warned of, with a job or without."""
    ends_at_s = None if ends_in_s is None else NOW_S + ends_in_s
    kept = replace(record(), cordon=Cordon("AWS Health: RETIREMENT", NOW_S - 10, ends_at_s))
    jobs = [job(7, on=["i-1"])] if busy else []
    state = "MIXED+DYNAMIC_NORM" if busy else "IDLE+DYNAMIC_NORM"
    nodes = [node(state=state, gpus_alloc=int(busy))]
    return plan(snapshot(jobs, nodes, instances=[instance()], records=[kept]))


def test_a_cordoned_node_takes_no_job_and_its_own_run_to_their_end() -> None:
    (send,) = [action for action in cordoned(busy=True).actions if isinstance(action, Send)]

    assert (send.order.kind, send.order.text) == (
        OrderKind.DRAIN,
        "tidegate: AWS Health: RETIREMENT (cordon RETIREMENT)",
    )


def test_a_cordoned_node_leaves_when_it_is_empty() -> None:
    made = cordoned(busy=False)

    assert [order.names for order in orders(made, OrderKind.RELEASE)] == [("i-1",)]


@pytest.mark.parametrize("allowed", [0, 1])
def test_a_cordoned_node_that_is_down_goes_without_a_budget_and_before_a_sick_one(
    allowed: int,
) -> None:
    """It leaves already: that Slurm finds it DOWN frees no place for another."""
    kept = replace(record("i-2"), cordon=Cordon("AWS Health: ISSUE", NOW_S - 10))
    reasons = {"i-1": "tidegate-health: xid: Xid 79", "i-2": str(LEAVE.drain_reason)}
    states = {"i-1": "IDLE+DRAIN", "i-2": "DOWN+DRAIN"}
    seen = snapshot(
        [],
        [node(name, state=states[name], reason=reasons[name]) for name in states],
        instances=[instance(name) for name in states],
        records=[record("i-1"), kept],
    )
    t4 = replace(seen.cluster.pools[0], disruption=Disruption((Budget(nodes=allowed),)))
    made = plan(replace(seen, cluster=replace(seen.cluster, pools=(t4, *seen.cluster.pools[1:]))))

    (release,) = orders(made, OrderKind.RELEASE)
    assert (release.names, code_of(release.text)) == (("i-2",), DrainCode.CORDON)


def test_ten_minutes_before_maintenance_jobs_move_and_the_node_is_replaced() -> None:
    made = cordoned(busy=True, ends_in_s=590)

    assert [order.delay_s for order in orders(made, OrderKind.REQUEUE)] == [565]
    assert len(launches(made)) == 1


LEAVE = Cordon("EC2 recommends to leave", NOW_S - 60, lifts_at_s=NOW_S, code="rebalance")


@pytest.mark.parametrize("busy", [True, False])
def test_a_node_that_outlives_its_cordon_takes_jobs_again(busy: bool) -> None:
    kept = replace(record(), cordon=LEAVE)
    state = f"{'MIXED' if busy else 'IDLE'}+DRAIN+DYNAMIC_NORM"
    drained = node(state=state, gpus_alloc=int(busy), reason=str(LEAVE.drain_reason))
    jobs = [job(7, on=["i-1"])] if busy else [job(7)]

    made = plan(snapshot(jobs, [drained], instances=[instance()], records=[kept]))

    assert [(o.names, o.text) for o in orders(made, OrderKind.UNDRAIN)] == [
        (("i-1",), str(LEAVE.drain_reason))
    ]
    assert orders(made, OrderKind.RELEASE) == []
    assert launches(made) == []


def test_a_cordon_holds_until_its_time() -> None:
    kept = replace(record(), cordon=replace(LEAVE, lifts_at_s=NOW_S + 1))
    drained = node(state="MIXED+DRAIN", gpus_alloc=1, reason=str(LEAVE.drain_reason))

    made = plan(snapshot([job(7, on=["i-1"])], [drained], instances=[instance()], records=[kept]))

    assert made.actions == ()


def test_the_end_of_a_maintenance_that_was_called_off_saves_nobody() -> None:
    cordon = Cordon("maintenance", NOW_S - 60, NOW_S + 300, lifts_at_s=NOW_S - 1)

    assert reclaim_at_s(replace(record(), cordon=cordon), NOW_S) is None


def test_a_job_does_not_wait_for_a_cordoned_node_that_boots() -> None:
    booting = replace(
        record(phase=Phase.LAUNCHED, age_s=10), cordon=Cordon("AWS Health: ISSUE", NOW_S)
    )
    made = plan(snapshot([job(7)], instances=[instance(age_s=10)], records=[booting]))

    assert len(launches(made)) == 1


def test_a_launch_in_doubt_counts_as_its_largest_alternative() -> None:
    larger = InstanceType("g4dn.12xlarge", vcpus=48, memory_mib=196608, gpus=4, gpu_type="t4")
    both = cluster(pool(types=(T4, larger), limits=Limits(gpus=4)))
    first = launches(plan(snapshot([job(1)], of=both)))[0]
    wide = replace(first, offerings=(offering(T4), offering(larger)))
    in_doubt = LaunchRecord(wide, NOW_S - 1, fleet_request(wide, "test", placement(both)))

    made = plan(snapshot([job(1), job(2, is_exclusive=True)], of=both, launches=[in_doubt]))

    assert launches(made) == []


def test_an_instance_that_ec2_does_not_show_is_ended_before_it_is_forgotten() -> None:
    """Left out by one Describe and gone from Slurm, it would run for ever."""
    made = plan(snapshot(records=[record(phase=Phase.JOINED)]))

    assert ended(made) == ["i-1"]
    assert [mark.phase for mark in made.actions if isinstance(mark, Mark)] == [Phase.TERMINATED]


def test_an_instance_that_ec2_shows_as_ended_is_not_ended_again() -> None:
    gone = instance(state=InstanceState.SHUTTING_DOWN)

    made = plan(snapshot(instances=[gone], records=[record(phase=Phase.JOINED)]))

    assert ended(made) == []


def test_a_node_that_a_person_has_drained_survives_an_incomplete_describe() -> None:
    theirs = node(state="IDLE+DRAIN+DYNAMIC_NORM", reason="ada: looking at a fan")

    made = plan(snapshot([], [theirs], records=[record()]))

    assert orders(made, OrderKind.RELEASE) == []


def test_a_launch_in_doubt_buys_nothing_more_over_a_limit_or_in_silence() -> None:
    """Its planner meant to end i-1 first and died between the two."""
    one = cluster(pool(types=(T4,), limits=Limits(nodes=1)))
    first = launches(plan(snapshot([job(1)], of=one)))[0]
    doubt = [LaunchRecord(first, NOW_S - 61, fleet_request(first, "test", placement(one)))]

    def may_buy(records: list[NodeRecord], age_s: float = 1.0) -> list[bool]:
        seen = [instance(each.instance_id) for each in records]
        made = plan(
            snapshot([job(1)], of=one, instances=seen, records=records, launches=doubt, age_s=age_s)
        )
        return [action.may_buy for action in made.actions if isinstance(action, Resume)]

    assert may_buy([]) == [True]
    assert may_buy([record(phase=Phase.LAUNCHED)]) == [False]
    assert may_buy([], age_s=1000.0) == [False]


def test_a_node_that_slurm_still_has_counts_although_it_is_down_and_ec2_does_not_show_it() -> None:
    one = cluster(pool(types=(T4,), limits=Limits(nodes=1)))
    down = node(state="DOWN+DYNAMIC_NORM", reason="gres/gpu count too low")

    made = plan(snapshot([job(2)], [down], of=one, records=[record()]))

    assert launches(made) == []


@pytest.mark.parametrize(("age_s", "is_over"), [(100, False), (1000, True)])
def test_an_instance_that_boots_unseen_is_neither_ended_nor_replaced(
    age_s: float, is_over: bool
) -> None:
    """It may have joined since the digest, and run a job; until its boot bound it is waited for."""
    unseen = record(phase=Phase.LAUNCHED, age_s=age_s)

    made = plan(snapshot([job(1)], records=[unseen]))

    assert ended(made) == (["i-1"] if is_over else [])
    assert len(launches(made)) == (1 if is_over else 0)


def test_dead_nodes_that_only_slurm_knows_are_deleted() -> None:
    names = ("i-0123456789abcdef0", "gpu-1", "i-0123456789abcdef1", "i-0123456789abcdef2")
    states = ("DOWN", "DOWN", "IDLE", "DOWN")
    features = (("t4",), ("t4",), ("t4",), ("theirs",))
    nodes = [
        replace(node(name, state=state), features=of)
        for name, state, of in zip(names, states, features, strict=True)
    ]

    made = plan(snapshot([], nodes))

    assert [order.names for order in orders(made, OrderKind.RELEASE)] == [names[:1]]


@pytest.mark.parametrize(("age_s", "gone"), [(902, []), (962, ["i-1"])])
def test_a_node_that_never_registers_is_ended_once_its_own_bound_is_over(
    age_s: float, gone: list[str]
) -> None:
    """Its own counts from its boot's begin, and until then it might join, and get a job."""
    booting = record(phase=Phase.LAUNCHED, age_s=age_s)

    made = plan(snapshot(instances=[instance(age_s=age_s)], records=[booting]))

    assert ended(made) == gone
