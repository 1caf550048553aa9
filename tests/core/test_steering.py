"""Where jobs should start: weights of open nodes, and nodes that are kept for larger jobs."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.make import (
    NOW_S,
    T4,
    T4_BIG,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.model.cluster import Cluster, Limits
from tidegate.core.model.digest import Digest
from tidegate.core.model.ec2 import Instance, InstanceType, Market
from tidegate.core.model.ledger import Launch, Phase
from tidegate.core.model.orders import Order, OrderKind, OrderOutcome, OrderResult, PendingOrder
from tidegate.core.model.plan import Plan, Send
from tidegate.core.model.slurm import Job, Node, NodeState
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.steer import CLOSED
from tidegate.core.planner import plan

HOUR_S = 3600.0
ON_DEMAND = (Market.ON_DEMAND,)


def fleet(**more: object) -> Cluster:
    return cluster(replace(pool(markets=ON_DEMAND, idle_s=600.0), **more))  # type: ignore[arg-type]


def seen(jobs: Sequence[Job], nodes: Sequence[Node], of: Cluster | None = None) -> Snapshot:
    """These nodes of the pool t4 on demand, which have long joined."""
    kinds = {each.name: T4_BIG if each.gpus > 1 else T4 for each in nodes}
    return snapshot(
        jobs,
        nodes,
        of=of or fleet(),
        instances=[_instance(name, kind) for name, kind in kinds.items()],
        records=[record(name, offering(kind, Market.ON_DEMAND)) for name, kind in kinds.items()],
        age_s=0.0,
    )


def _instance(name: str, kind: InstanceType) -> Instance:
    return instance(name, offering(kind, Market.ON_DEMAND))


def small(job_id: int = 1, **more: object) -> Job:
    return job(job_id, gpus=1, **{"time_limit_s": HOUR_S, **more})  # type: ignore[arg-type]


def large(job_id: int = 9, **more: object) -> Job:
    return job(job_id, gpus=4, **{"time_limit_s": HOUR_S, **more})  # type: ignore[arg-type]


def running(of: Job, on: str, left_s: float = HOUR_S) -> Job:
    return replace(
        of,
        state="RUNNING",
        node_names=(on,),
        time_limit_s=HOUR_S,
        started_at_s=NOW_S - HOUR_S + left_s,
    )


def busy(name: str = "i-big", gpus: int = 4) -> Node:
    return node(name, T4_BIG, state="MIXED+DYNAMIC_NORM", gpus_alloc=gpus)


def closed(name: str = "i-big", gpus: int = 0) -> Node:
    base = "MIXED" if gpus else "IDLE"
    state = f"{base}+DRAIN+DYNAMIC_NORM"
    return node(name, T4_BIG, state=state, gpus_alloc=gpus, reason=str(CLOSED))


def closings(made: Plan) -> list[Order]:
    return [one for one in orders(made, OrderKind.DRAIN) if one.text == str(CLOSED)]


def weights(made: Plan) -> dict[str, int]:
    return {name: int(o.text) for o in orders(made, OrderKind.WEIGHT) for name in o.names}


def test_a_large_node_is_closed_while_a_small_job_waits_for_its_own() -> None:
    jobs = [running(large(), "i-big"), small()]
    made = plan(seen(jobs, [busy()]))
    assert [one.names for one in closings(made)] == [("i-big",)]
    assert {launch.offerings[0].instance_type for launch in _launches(made)} == {T4.name}


def _launches(made: Plan) -> list[Launch]:
    return [action for action in made.actions if isinstance(action, Launch)]


def test_nothing_is_closed_where_all_jobs_need_such_nodes() -> None:
    jobs = [running(large(), "i-big"), large(2)]
    assert not closings(plan(seen(jobs, [busy()])))


def test_a_node_that_lives_on_for_others_takes_small_jobs_beside_them() -> None:
    """Its free GPUs cost nothing as long as the others run."""
    long = replace(running(large(gpus := 3), "i-big"), shape=job(gpus=gpus).shape)
    long = replace(long, time_limit_s=500 * HOUR_S, started_at_s=NOW_S - 60)
    made = plan(seen([long, small()], [busy(gpus=3)]))
    assert not closings(made)
    assert not _launches(made)


def test_a_closed_node_is_opened_for_a_job_that_needs_it() -> None:
    made = plan(seen([large()], [closed()]))
    assert [one.names for one in orders(made, OrderKind.UNDRAIN)] == [("i-big",)]
    assert [one.opens_for for one in made.actions if isinstance(one, Send)] == ["9"]
    assert not _launches(made)


def test_a_closed_node_that_a_gang_counts_on_opens_with_the_others() -> None:
    gang, big = large(nodes=2), offering(T4_BIG, Market.ON_DEMAND)
    boots = record("i-2", big, phase=Phase.LAUNCHED, gated_for="9")
    alone = seen([gang], [closed()])
    alone = replace(
        alone,
        instances=(*alone.instances, _instance("i-2", T4_BIG)),
        nodes=(*alone.nodes, boots),
    )
    there = seen([gang], [closed(), node("i-2", T4_BIG, state="IDLE+DRAIN")])
    there = replace(there, nodes=(there.nodes[0], replace(boots, phase=Phase.JOINED)))

    opened = [
        {name for one in orders(plan(each), OrderKind.UNDRAIN) for name in one.names}
        for each in (alone, there)
    ]

    assert opened == [set(), {"i-big", "i-2"}]


@pytest.mark.parametrize(
    ("requeued", "words"),
    [
        ({"restarts": 1, "reason": "BeginTime", "begins_at_s": NOW_S + 119}, set()),
        ({}, {"NOT_RESPONDING"}),
    ],
    ids=["Slurm delays it", "one is silent"],
)
def test_no_closed_node_of_a_gang_opens_while_slurm_would_not_start_it(
    requeued: dict[str, object], words: set[str]
) -> None:
    """Whoever came meanwhile would have those that opened first."""
    waits, other = large(nodes=2), closed("i-2")
    shown = replace(other, state=NodeState(other.state.words | words))

    made = plan(seen([replace(waits, **requeued)], [closed(), shown]))  # type: ignore[arg-type]
    later = plan(seen([waits], [closed(), other]))

    assert not orders(made, OrderKind.UNDRAIN)
    assert [one.names for one in orders(later, OrderKind.UNDRAIN)] == [("i-2", "i-big")]


def test_a_closed_node_stays_closed_until_the_gang_that_it_is_for_has_left_a_failed_one() -> None:
    reason = "tidegate-health: xid: 79 (fatal; remedy: reboot)"
    failed = node("i-sick", T4_BIG, state="ALLOCATED+DRAIN", reason=reason)
    runs = replace(running(large(nodes=2), "i-1"), node_names=("i-1", "i-sick"))

    made = plan(seen([runs], [closed("i-1", gpus=4), failed, closed("i-2")]))

    assert [one.names for one in orders(made, OrderKind.REQUEUE)] == [("9",)]
    assert {one.job_id: one.by for one in made.served} == {"9": ("i-2",)}
    assert not orders(made, OrderKind.UNDRAIN)


def test_a_closed_node_is_not_opened_for_a_small_job() -> None:
    made = plan(seen([small()], [closed()]))
    assert not orders(made, OrderKind.UNDRAIN)
    assert len(_launches(made)) == 1


def test_a_small_job_that_would_be_first_keeps_the_node_closed() -> None:
    """Slurm would start it there; the large one gets a node of its own."""
    jobs = [small(priority=9), large(priority=1)]
    made = plan(seen(jobs, [closed()]))
    assert not orders(made, OrderKind.UNDRAIN)
    assert {launch.offerings[0].instance_type for launch in _launches(made)} == {
        T4.name,
        T4_BIG.name,
    }


def test_a_small_job_behind_the_one_that_fills_the_node_does_not_matter() -> None:
    jobs = [large(priority=9), small(priority=1)]
    made = plan(seen(jobs, [closed()]))
    assert [one.names for one in orders(made, OrderKind.UNDRAIN)] == [("i-big",)]


def test_a_node_does_not_open_where_a_small_job_would_slip_in_beside_the_large_one() -> None:
    half = replace(large(priority=9), shape=job(gpus=2).shape)
    assert orders(plan(seen([half], [closed()])), OrderKind.UNDRAIN)
    made = plan(seen([half, small(priority=1)], [closed()]))
    assert not orders(made, OrderKind.UNDRAIN)
    wide = replace(half, shape=replace(half.shape, cpus=46))  # of the others one has room
    made = plan(seen([wide, small(priority=1), small(2, cpus=4)], [closed()]))
    assert not orders(made, OrderKind.UNDRAIN)


def test_a_job_that_gets_nothing_cheaper_gets_the_closed_node() -> None:
    of = fleet(limits=Limits(nodes=1))
    made = plan(seen([small()], [closed()], of))
    assert [one.names for one in orders(made, OrderKind.UNDRAIN)] == [("i-big",)]
    assert [served.by for served in made.served] == [("i-big",)]
    assert not plan(seen([small(constraint=T4.name)], [closed()], of)).served


def test_a_closed_node_that_nobody_wants_goes_after_its_idle_time() -> None:
    idle = replace(closed(), last_busy_at_s=NOW_S - 61)
    made = plan(seen([small()], [idle], fleet(idle_s=60.0)))
    assert [one.names for one in orders(made, OrderKind.RELEASE)] == [("i-big",)]


def test_nodes_that_a_pool_keeps_anyway_are_not_closed() -> None:
    jobs = [running(large(), "i-big"), small()]
    assert not closings(plan(seen(jobs, [busy()], fleet(min_nodes=1))))


def test_a_booting_node_that_nobody_needs_any_more_is_closed_as_it_joins() -> None:
    shown = seen([running(small(), "i-1")], [node("i-1", T4, state="ALLOCATED", gpus_alloc=1)])
    big = offering(T4_BIG, Market.ON_DEMAND)
    booting = record("i-big", big, phase=Phase.LAUNCHED)
    shown = replace(
        shown,
        instances=(*shown.instances, instance("i-big", big)),
        nodes=(*shown.nodes, booting),
    )
    order = closings(plan(shown))[0]
    assert order.names == ("i-big",)
    assert not order.only_if, "a guarded drain does not last until the node is there"
    assert shown.digest is not None
    told = PendingOrder("o-1", OrderKind.DRAIN, NOW_S + 30)
    failed = OrderResult("o-1", OrderKind.DRAIN, "i-big", OrderOutcome.FAILED)
    answered = replace(shown.digest, results=(failed,))
    records = (*shown.nodes[:-1], replace(booting, order=told))
    assert not closings(plan(replace(shown, digest=answered, nodes=records)))
    reading = shown.digest.reading
    waited_for = replace(reading, jobs=(*reading.jobs, large()))
    assert not closings(plan(replace(shown, digest=replace(shown.digest, reading=waited_for))))


@pytest.mark.parametrize("is_told", [True, False])
def test_a_booting_node_that_joins_closed_serves_no_job_that_is_not_worth_it(
    *, is_told: bool
) -> None:
    """Slurm will not start it there, so that a job which counted on it would wait for nothing."""
    big = offering(T4_BIG, Market.ON_DEMAND)
    order = PendingOrder("o", OrderKind.DRAIN, NOW_S + 30) if is_told else None
    booting = record("i-big", big, phase=Phase.LAUNCHED, order=order)
    shown = replace(seen([small()], []), instances=(instance("i-big", big),), nodes=(booting,))

    made = plan(shown)

    assert [each.offerings[0].instance_type for each in _launches(made)] == [T4.name] * is_told
    assert ("i-big" in made.served[0].by) is not is_told


@pytest.mark.parametrize("kind", [OrderKind.DRAIN, OrderKind.WEIGHT])
def test_an_order_on_its_way_is_not_repeated(kind: OrderKind) -> None:
    jobs = [running(large(), "i-big"), small()]
    shown = seen(jobs, [busy(), node("i-1", T4)])
    pending = PendingOrder("o", kind, NOW_S + 30)
    shown = replace(shown, nodes=tuple(replace(n, order=pending) for n in shown.nodes))
    made = plan(shown)
    assert not closings(made)
    assert not weights(made)


def test_jobs_start_first_on_the_node_that_lives_longest() -> None:
    nodes = [busy("i-soon", gpus=1), busy("i-late", gpus=1)]
    jobs = [running(small(1), "i-soon", 600), running(small(2), "i-late", 3500)]
    jobs = [replace(one, time_limit_s=HOUR_S) for one in jobs]
    found = weights(plan(seen(jobs, nodes, fleet(instance_types=(T4_BIG,)))))
    assert found["i-late"] < found["i-soon"]


def test_a_job_past_its_time_limit_is_taken_to_run_on() -> None:
    """As long again as it has: what outlived every guess does not end this minute."""
    nodes = [busy("i-soon", gpus=1), busy("i-over", gpus=1)]
    jobs = [running(small(1), "i-soon", 600), running(small(2), "i-over", -9 * HOUR_S)]
    found = weights(plan(seen(jobs, nodes, fleet(instance_types=(T4_BIG,)))))
    assert found["i-over"] < found["i-soon"]


def test_cheap_idle_nodes_come_before_dear_ones() -> None:
    nodes = [node("i-big", T4_BIG), node("i-1", T4)]
    found = weights(plan(seen([], nodes)))
    assert found["i-1"] < found["i-big"]


def test_a_component_does_not_find_the_only_nodes_of_a_later_one_lighter_than_its_own() -> None:
    """Slurm serves components in turn, each on the lightest nodes that are left."""
    parts = [small(8, het_job_id="8"), small(9, constraint=T4.name, het_job_id="8")]
    shown = seen(parts, [node("i-1", T4), node("i-big", T4_BIG)])
    made = plan(shown)
    assert {each.job_id: each.by for each in made.served} == {"8": ("i-big",), "9": ("i-1",)}
    found = weights(made)
    assert found["i-big"] < found["i-1"]
    assert not weights(plan(_carried_out(made, shown)))


def test_a_component_on_a_node_that_an_order_is_about_leaves_the_others_their_weights() -> None:
    kinds = {8: T4_BIG, 9: T4}
    parts = [small(n, constraint=of.name, het_job_id="8") for n, of in kinds.items()]
    shown = seen(parts, [node("i-1", T4), node("i-big", T4_BIG), node("i-2", T4)])
    order = PendingOrder("o", OrderKind.WEIGHT, NOW_S + 30)
    told = tuple(replace(r, order=order) if r.instance_id == "i-1" else r for r in shown.nodes)

    assert weights(plan(replace(shown, nodes=told))).keys() == {"i-2", "i-big"}


def test_components_that_may_take_each_others_nodes_need_no_weights() -> None:
    parts = [small(8, het_job_id="8"), small(9, het_job_id="8")]
    assert not weights(plan(seen(parts, [node("i-1", T4), node("i-2", T4)])))


@pytest.mark.parametrize(("age_s", "is_told"), [(0.0, True), (5.0, True), (5.1, False)])
def test_weights_are_told_with_a_digest_and_not_by_each_look_until_the_next(
    age_s: float, is_told: bool
) -> None:
    """None tells before its next digest that it has set one: each look would order it again."""
    nodes = [replace(node("i-big", T4_BIG), weight=2), replace(node("i-1", T4), weight=5)]

    made = plan(replace(seen([], nodes), digest_age_s=age_s))

    assert bool(weights(made)) is is_told


def test_weights_in_the_right_order_are_left_alone() -> None:
    nodes = [replace(node("i-big", T4_BIG), weight=5), replace(node("i-1", T4), weight=2)]
    assert not weights(plan(seen([], nodes)))


def test_after_the_orders_are_carried_out_nothing_more_is_to_do() -> None:
    """No to and fro: what steering did gives it nothing to do."""
    jobs = [running(large(), "i-big"), small()]
    shown = seen(jobs, [busy(), busy("i-two", 1), node("i-1", T4)])
    first = plan(shown)
    assert first.actions
    again = plan(_carried_out(first, shown))
    assert not orders(again, OrderKind.DRAIN)
    assert not orders(again, OrderKind.UNDRAIN)
    assert not weights(again)


def _carried_out(made: Plan, shown: Snapshot) -> Snapshot:
    digest = shown.digest
    assert isinstance(digest, Digest)
    drained = {name for order in closings(made) for name in order.names}
    nodes = [
        replace(closed(one.name, one.gpus_alloc), weight=one.weight)
        if one.name in drained
        else replace(one, weight=weights(made).get(one.name, one.weight))
        for one in digest.reading.nodes
    ]
    reading = replace(digest.reading, nodes=tuple(nodes))
    return replace(shown, digest=replace(digest, reading=reading))


def test_a_node_that_boots_counts_for_what_its_pool_keeps() -> None:
    jobs = [running(large(), "i-big"), small()]
    alone = seen(jobs, [busy()], fleet(min_nodes=1))
    boots = replace(
        alone,
        instances=(*alone.instances, _instance("i-new", T4)),
        nodes=(
            *alone.nodes,
            record("i-new", offering(T4, Market.ON_DEMAND), phase=Phase.LAUNCHED, age_s=10.0),
        ),
    )

    assert not closings(plan(alone))
    assert [order.names for order in closings(plan(boots))] == [("i-big",)]


def test_a_closed_node_opens_once_a_reservation_pays_for_it() -> None:
    """It stays for good then, and whatever starts there costs nothing more."""
    known = seen([], [closed(), node("i-1")])
    taken_in = instance("i-big", offering(T4_BIG, Market.RESERVED))
    instances = (taken_in, *(one for one in known.instances if one.instance_id != "i-big"))

    opened = orders(plan(replace(known, instances=instances)), OrderKind.UNDRAIN)

    assert [order.names for order in opened] == [("i-big",)]
    assert orders(plan(known), OrderKind.UNDRAIN) == []
