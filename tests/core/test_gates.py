"""Open nodes that a gang counts on are kept for it while its other nodes boot."""

from dataclasses import replace

import pytest

from tests.core.reading import launches, orders, why
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
from tidegate.core.model.cluster import Limits
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult, PendingOrder
from tidegate.core.model.plan import Send
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job, Node
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan

KEPT = "tidegate: kept for gang 9 (kept 9 until 2027-01-15T08:16:00Z)"
LATE = "tidegate: kept for gang 9 (kept 9 until 2027-01-15T07:59:00Z)"


def gang(nodes: int = 2) -> Job:
    return job(9, nodes=nodes, gpus=4, priority=5)


def seen(
    jobs: list[Job],
    nodes: list[Node],
    *,
    booting: int = 0,
    orders_on: PendingOrder | None = None,
    results: tuple[OrderResult, ...] = (),
) -> Snapshot:
    """Nodes with four GPUs each that are ours, and `booting` gated ones on their way."""
    on = offering(T4_BIG)
    names = [each.name for each in nodes]
    coming = [f"i-b{number}" for number in range(booting)]
    return snapshot(
        jobs,
        nodes,
        instances=[instance(name, on) for name in (*names, *coming)],
        records=[
            *(record(name, on, order=orders_on) for name in names),
            *(record(name, on, phase=Phase.LAUNCHED, gated_for="9") for name in coming),
        ],
        results=results,
    )


def big(name: str = "i-1", *, reason: str = "", state: str = "IDLE", idle_s: float = 0.0) -> Node:
    return node(name, T4_BIG, state=state, reason=reason, idle_s=idle_s)


def test_an_open_node_is_drained_for_the_gang_until_a_boot_must_have_ended() -> None:
    made = plan(seen([gang(), job(1)], [big()]))

    (drain,) = orders(made, OrderKind.DRAIN)
    assert (drain.names, drain.text, drain.only_if) == (("i-1",), KEPT, ("IDLE",))
    assert {x.for_jobs: x.count for x in launches(made)} == {("9",): 1, ("1",): 1}


def test_a_gang_whose_nodes_are_all_open_is_left_to_slurm() -> None:
    made = plan(seen([gang()], [big("i-1"), big("i-2")]))

    assert made.actions == ()
    assert "Slurm will start it" in made.served[0].reason


def test_a_kept_node_waits_with_the_gang_and_serves_nobody_else() -> None:
    kept = big(state="IDLE+DRAIN", reason=KEPT, idle_s=500)

    made = plan(seen([gang(), job(1)], [kept], booting=1))

    assert orders(made, OrderKind.UNDRAIN) == orders(made, OrderKind.RELEASE) == []
    assert [x.for_jobs for x in launches(made)] == [("1",)]


def test_kept_and_gated_nodes_open_in_one_command_that_lifts_the_reason() -> None:
    on = offering(T4_BIG)
    made = plan(
        snapshot(
            [gang()],
            [big("i-1", state="IDLE+DRAIN", reason=KEPT), big("i-2", state="IDLE+DRAIN")],
            instances=[instance("i-1", on), instance("i-2", on)],
            records=[record("i-1", on), record("i-2", on, gated_for="9")],
        )
    )

    (undrain,) = orders(made, OrderKind.UNDRAIN)
    assert (undrain.names, undrain.text) == (("i-1", "i-2"), KEPT)


@pytest.mark.parametrize("mark", ["", "*"])
def test_gates_stay_shut_while_the_node_behind_one_does_not_answer(mark: str) -> None:
    """Slurm could not start the gang there, and would give the other to whoever waits."""
    on, names = offering(T4_BIG), ("i-1", "i-2")
    silent = big("i-1", state=f"IDLE{mark}+DRAIN")
    made = plan(
        snapshot(
            [gang()],
            [silent, big("i-2", state="IDLE+DRAIN")],
            instances=[instance(name, on) for name in names],
            records=[record(name, on, gated_for="9") for name in names],
        )
    )

    opened = [each.names for each in orders(made, OrderKind.UNDRAIN)]
    assert opened == ([] if mark else [names])
    assert launches(made) == []


def test_a_gate_opens_with_the_first_of_those_that_were_kept_at_different_times() -> None:
    on, names = offering(T4_BIG), ["i-1", "i-2", "i-3"]
    reasons = {"i-1": KEPT, "i-2": KEPT.replace("08:16", "08:17"), "i-3": ""}
    made = plan(
        snapshot(
            [gang(3)],
            [big(name, state="IDLE+DRAIN", reason=why) for name, why in reasons.items()],
            instances=[instance(name, on) for name in names],
            records=[record(n, on, gated_for="" if reasons[n] else "9") for n in names],
        )
    )

    assert [(each.names, each.text) for each in orders(made, OrderKind.UNDRAIN)] == [
        (("i-1", "i-3"), reasons["i-1"]),
        (("i-2",), reasons["i-2"]),
    ]


@pytest.mark.parametrize(
    ("until", "bound_s", "is_kept"), [("08:25", 900, False), ("08:25", 1800, True)]
)
def test_a_node_is_kept_for_as_long_as_a_boot_may_take(
    until: str, bound_s: float, is_kept: bool
) -> None:
    """An end that is further away was written by a clock that was wrong."""
    on, reason = offering(T4_BIG), KEPT.replace("08:16", until)
    seen = snapshot(
        [gang(3)],
        [big("i-1", state="IDLE+DRAIN", reason=reason)],
        instances=[instance("i-1", on)],
        records=[record("i-1", on)],
    )
    timings = replace(seen.cluster.timings, boot_bound_s=bound_s)
    made = plan(replace(seen, cluster=replace(seen.cluster, timings=timings)))

    renewed = [each.names for each in orders(made, OrderKind.DRAIN)]
    assert renewed == ([] if is_kept else [("i-1",)])
    assert orders(made, OrderKind.UNDRAIN) == []


def test_gates_stay_shut_while_the_drain_of_an_open_node_is_on_its_way() -> None:
    """The gate would open alone, and a smaller job be the first on it."""
    on, drain = offering(T4_BIG), PendingOrder("o-1", OrderKind.DRAIN, NOW_S + 30)
    done = OrderResult("o-1", OrderKind.DRAIN, "i-1", OrderOutcome.KEPT, "job 7 runs")
    waiting = snapshot(
        [gang()],
        [big("i-1"), big("i-2", state="IDLE+DRAIN")],
        instances=[instance("i-1", on), instance("i-2", on)],
        records=[record("i-1", on, order=drain), record("i-2", on, gated_for="9")],
    )
    assert waiting.digest
    answered = replace(waiting, digest=replace(waiting.digest, results=(done,)))

    assert plan(waiting).actions == ()
    (undrain,) = orders(plan(answered), OrderKind.UNDRAIN)
    assert undrain.names == ("i-2",)


def test_a_kept_node_opens_when_its_gang_is_gone() -> None:
    made = plan(seen([], [big(state="IDLE+DRAIN", reason=KEPT)]))

    assert [(o.names, o.text) for o in orders(made, OrderKind.UNDRAIN)] == [(("i-1",), KEPT)]


def test_a_kept_node_whose_time_is_over_is_kept_anew_for_a_gang_that_still_comes() -> None:
    """As an open one would be: opened in the same plan it would be the small job's."""
    made = plan(seen([gang(), job(1)], [big(state="IDLE+DRAIN", reason=LATE)], booting=1))

    assert [(o.names, o.text) for o in orders(made, OrderKind.DRAIN)] == [(("i-1",), KEPT)]
    assert orders(made, OrderKind.UNDRAIN) == []


def test_a_kept_node_whose_time_is_over_opens_when_its_gang_cannot_come() -> None:
    small = cluster(pool(types=(T4_BIG,), limits=Limits(nodes=1)))
    late = seen([gang(), job(1)], [big(state="IDLE+DRAIN", reason=LATE)])

    made = plan(replace(late, cluster=small))

    assert [(o.names, o.text) for o in orders(made, OrderKind.UNDRAIN)] == [(("i-1",), LATE)]
    assert [(each.job_id, each.by) for each in made.served] == [("1", ("i-1",))]


def test_a_drain_on_its_way_is_not_sent_again() -> None:
    order = PendingOrder("o-1", OrderKind.DRAIN, NOW_S + 30)
    kept = OrderResult("o-1", OrderKind.DRAIN, "i-1", OrderOutcome.KEPT, "job 7 runs")

    waiting = plan(seen([gang()], [big()], orders_on=order))
    answered = plan(seen([gang()], [big()], orders_on=order, results=(kept,)))

    assert orders(waiting, OrderKind.DRAIN) == []
    assert [o.names for o in orders(answered, OrderKind.DRAIN)] == [("i-1",)]


def test_a_gang_that_cannot_be_completed_keeps_nothing() -> None:
    small = cluster(pool(types=(T4_BIG,), limits=Limits(nodes=1)))

    made = plan(replace(seen([gang(), job(1)], [big()]), cluster=small))

    assert orders(made, OrderKind.DRAIN) == []
    assert "limited to 1 nodes" in why(made, "9")
    assert [(each.job_id, each.by) for each in made.served] == [("1", ("i-1",))]


def test_nodes_gated_in_a_zone_that_has_no_more_open_when_the_whole_gang_goes_elsewhere() -> None:
    two = cluster(pool(types=(T4_BIG,), zones=("us-east-1a", "us-east-1b")))
    on = offering(T4_BIG)
    rests = [
        Resting(each, NOW_S + 60, 1, "InsufficientInstanceCapacity", "none left")
        for _, each in two.pools[0].offerings()
        if each.zone == "us-east-1a"
    ]
    gated = big(state="IDLE+DRAIN")

    made = plan(
        snapshot(
            [gang()],
            [gated],
            of=two,
            instances=[instance("i-1", on)],
            records=[record("i-1", on, gated_for="9")],
            resting=rests,
        )
    )

    (launch,) = launches(made)
    assert (launch.count, launch.offerings[0].zone) == (2, "us-east-1b")
    assert [o.names for o in orders(made, OrderKind.UNDRAIN)] == [("i-1",)]


def test_a_component_whose_nodes_all_boot_in_another_zone_buys_no_more_of_them() -> None:
    """It has one more in a zone that rests, and smaller open nodes stand beside those that were
    bought.
    """
    a, b = "us-east-1a", "us-east-1b"
    big = {"i-a1": a, "i-a2": a, "i-b1": b, "i-b2": b}
    on = {name: offering(T4_BIG, zone=zone) for name, zone in big.items()}
    small = {name: offering(T4, zone=b) for name in ("i-s1", "i-s2")}
    of = cluster(pool(zones=(a, b)))
    rests = [Resting(each, NOW_S + 60, 1, "x", "y") for each in of.prices if each.zone == a]
    parts = [
        job(9, gpus=4, priority=5, het_job_id="9"),
        job(10, nodes=2, priority=5, het_job_id="9"),
    ]

    made = plan(
        snapshot(
            parts,
            [node(name, T4) for name in small],
            of=of,
            instances=[instance(name, each) for name, each in (on | small).items()],
            records=[
                *(record(n, each, phase=Phase.LAUNCHED, gated_for="9") for n, each in on.items()),
                *(record(name, each) for name, each in small.items()),
            ],
            resting=rests,
        )
    )

    assert launches(made) == []
    assert {each.job_id: each.by for each in made.served} == {
        "9": ("i-a1",),
        "10": ("i-b1", "i-b2"),
    }


def test_a_large_component_leaves_the_only_node_of_a_small_one_alone() -> None:
    """It is on its way; the like would be bought once more for the small one."""
    parts = [
        job(9, memory_mib=100_000, priority=5, het_job_id="9"),
        job(10, nodes=4, priority=5, het_job_id="9"),
    ]
    big = offering(T4_BIG)

    made = plan(
        snapshot(
            parts,
            of=cluster(pool()),
            instances=[instance("i-1", big)],
            records=[record("i-1", big, phase=Phase.LAUNCHED, gated_for="9")],
        )
    )

    assert [(each.count, each.for_jobs) for each in launches(made)] == [(4, ("10",))]
    assert {each.job_id: each.by for each in made.served}["9"] == ("i-1",)


@pytest.mark.parametrize(
    ("told", "age_s", "outcome", "is_sent"),
    [
        ("i-1 i-2", -1.0, None, False),
        ("i-1", -1.0, None, False),  # whoever sent it died before it was noted of both
        ("i-1 i-2", 1.0, None, True),  # the agent never heard of it
        ("i-1 i-2", -1.0, OrderOutcome.KEPT, True),
    ],
)
def test_what_opens_a_gang_is_sent_again_when_it_has_come_to_nothing(
    told: str, age_s: float, outcome: OrderOutcome | None, *, is_sent: bool
) -> None:
    on, names = offering(T4_BIG), ["i-1", "i-2"]
    order = PendingOrder("o-1", OrderKind.UNDRAIN, NOW_S - age_s)
    known = dict.fromkeys(told.split(), order)
    answers = [OrderResult("o-1", OrderKind.UNDRAIN, "i-1", each) for each in [outcome] if each]

    made = plan(
        snapshot(
            [gang()],
            [big(name, state="IDLE+DRAIN") for name in names],
            instances=[instance(name, on) for name in names],
            records=[record(name, on, gated_for="9", order=known.get(name)) for name in names],
            results=answers,
        )
    )

    assert bool(orders(made, OrderKind.UNDRAIN)) is is_sent


@pytest.mark.parametrize(("jobs", "gang_id"), [([gang()], "9"), ([], "")])
def test_an_order_says_for_which_gang_it_opens_nodes_and_of_freed_ones_none(
    jobs: list[Job], gang_id: str
) -> None:
    made = plan(seen(jobs, [big(name, state="IDLE+DRAIN", reason=KEPT) for name in ("i-1", "i-2")]))

    sent = [one for one in made.actions if isinstance(one, Send)]
    assert [(one.order.names, one.opens_for) for one in sent] == [(("i-1", "i-2"), gang_id)]
