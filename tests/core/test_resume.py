"""Jobs of several nodes that lose one: requeued at once, and their good nodes kept for them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import A10G, NOW_S, cluster, instance, job, node, offering, pool, record, snapshot
from tidegate.core.fleet.resume import kept_for
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.cluster import Limits, Pool
from tidegate.core.model.drain_reason import DrainCode, read
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind, PendingOrder
from tidegate.core.model.plan import Plan
from tidegate.core.model.slurm import Job, Node, SetBy
from tidegate.core.planner import plan

XID = "tidegate-health: xid: Xid 79: GPU has fallen off the bus (fatal; NVIDIA's remedy: reboot)"
NEURON = "tidegate-health: neuron: Neuron DMA_ERROR: it has aborted (fatal; AWS's remedy: replace)"
ON = offering(A10G)
NAMES = ("i-1", "i-2")
KEPT = str(kept_for("9", NOW_S + 600))


def a10g(**more: object) -> Pool:
    return replace(pool("a10g", (A10G,)), **more)  # type: ignore[arg-type]


def gang(**more: object) -> Job:
    return job(9, nodes=2, gpus=4, gpu_type="a10g", **more)  # type: ignore[arg-type]


def busy(name: str, state: str = "ALLOCATED", **more: object) -> Node:
    return node(name, A10G, state=f"{state}+DYNAMIC_NORM", gpus_alloc=4, **more)  # type: ignore[arg-type]


def failed(name: str, reason: str = XID) -> Node:
    return busy(name, "ALLOCATED+DRAIN", reason=reason, set_by=SetBy.ROOT)


def kept(name: str, reason: str = KEPT) -> Node:
    return node(name, A10G, state="IDLE+DRAIN+DYNAMIC_NORM", reason=reason, set_by=SetBy.US)


def planned(
    jobs: Sequence[Job],
    nodes: Sequence[Node],
    *,
    of: Pool | None = None,
    told: PendingOrder | None = None,
) -> Plan:
    """With an instance and a record for each node; `told`: the last order to them."""
    there = [instance(each.name, ON, pool="a10g") for each in nodes]
    known = [record(each.name, ON, pool="a10g", order=told) for each in nodes]
    of_pool = cluster(of or a10g())
    return plan(snapshot(jobs, nodes, of=of_pool, instances=there, records=known))


def drained(made: Plan, code: DrainCode = DrainCode.KEPT) -> list[tuple[str, ...]]:
    found = [(order, read(order.text)) for order in orders(made, OrderKind.DRAIN)]
    return [order.names for order, reason in found if reason and reason.code is code]


def undrained(made: Plan) -> list[tuple[str, ...]]:
    return [order.names for order in orders(made, OrderKind.UNDRAIN)]


@pytest.mark.parametrize("reason", [XID, NEURON])
def test_a_job_of_which_one_nodes_gpu_failed_is_requeued_and_one_node_bought_in_one_plan(
    reason: str,
) -> None:
    made = planned([gang(on=NAMES, restarts=3)], [busy("i-1"), failed("i-2", reason)])

    (order,) = orders(made, OrderKind.REQUEUE)
    assert (order.names, order.on_nodes) == (("9",), ("i-2",))
    assert order.restarts == 3  # a person may have mended the node before its next run
    assert "RUNNING" in order.only_if
    assert reason in order.text
    assert [(each.count, each.gated_for) for each in launches(made)] == [(1, "9")]


@pytest.mark.parametrize(
    "running",
    [
        job(9, gpus=4, gpu_type="a10g", on=["i-2"]),
        gang(on=NAMES, is_requeueable=False),
    ],
    ids=["one node", "no requeue"],
)
def test_other_jobs_run_on_beside_a_gpu_that_failed(running: Job) -> None:
    made = planned([running], [busy("i-1"), failed("i-2")])

    assert orders(made, OrderKind.REQUEUE) == []
    assert launches(made) == []


def test_what_another_check_has_drained_takes_no_job_from_it() -> None:
    sick = busy("i-2", "ALLOCATED+DRAIN", reason="tidegate-health: disk full", set_by=SetBy.ROOT)

    made = planned([gang(on=NAMES)], [busy("i-1"), sick])

    assert orders(made, OrderKind.REQUEUE) == []
    assert launches(made) == []


def test_the_nodes_beside_a_silent_one_are_kept_for_their_job_before_slurm_finds_it_down() -> None:
    made = planned([gang(on=NAMES)], [busy("i-1"), busy("i-2", "ALLOCATED*")])

    (order,) = orders(made, OrderKind.DRAIN)
    reason = read(order.text)
    assert reason is not None
    until_s = NOW_S + cluster().timings.given_up_s
    assert (order.names, reason.subject, reason.until_s) == (("i-1",), "9", until_s)
    assert launches(made) == []  # it may answer again


def test_what_is_kept_beside_a_silent_node_is_not_let_go_for_its_age_in_the_same_plan() -> None:
    """Two drains of one node: which reason it gets in the end would be chance."""
    old = a10g(disruption=Disruption((Budget(percent=100.0),), expire_after_s=60.0))

    made = planned([gang(on=NAMES)], [busy("i-1"), busy("i-2", "ALLOCATED*")], of=old)

    about = [read(each.text) for each in orders(made, OrderKind.DRAIN) if "i-1" in each.names]
    assert [reason.code for reason in about if reason] == [DrainCode.KEPT]


def opened_lately() -> PendingOrder:
    return PendingOrder("o-1", OrderKind.UNDRAIN, NOW_S + 30)


def test_what_is_kept_of_a_run_that_has_lost_a_node_stays_shut_until_the_run_has_ended() -> None:
    """Its replacement boots, and Slurm has not heard yet that the other is gone."""
    there = [
        busy("i-1", "ALLOCATED+DRAIN", reason=KEPT, set_by=SetBy.US),
        busy("i-2", "ALLOCATED*"),
    ]
    dead = replace(record("i-2", ON, pool="a10g", phase=Phase.INTERRUPTED), reclaim_at_s=NOW_S - 30)
    boots = record("i-3", ON, pool="a10g", phase=Phase.LAUNCHED, gated_for="9", age_s=5)
    live = [instance("i-1", ON, pool="a10g"), instance("i-3", ON, pool="a10g", age_s=5)]
    records = [record("i-1", ON, pool="a10g"), dead, boots]

    made = plan(
        snapshot(
            [gang(on=NAMES)], there, of=cluster(a10g()), instances=live, records=records, age_s=0.0
        )
    )

    assert {each.job_id: each.by for each in made.served} == {"9": ("i-3",)}
    assert undrained(made) == []


def test_a_node_that_was_opened_just_now_is_not_silent() -> None:
    """Slurm says of it that it does not answer, until it has asked it."""
    made = planned([gang(on=NAMES)], [busy("i-1"), busy("i-2", "ALLOCATED*")], told=opened_lately())

    assert orders(made, OrderKind.DRAIN) == []


def test_what_was_kept_beside_a_silent_node_opens_when_that_answers_again() -> None:
    held = busy("i-1", "ALLOCATED+DRAIN", reason=KEPT, set_by=SetBy.US)

    silent = planned([gang(on=NAMES)], [held, busy("i-2", "ALLOCATED*")])
    answers = planned([gang(on=NAMES)], [held, busy("i-2")])

    assert undrained(silent) == []
    assert undrained(answers) == [("i-1",)]


@pytest.mark.parametrize("mark", ["", "*"])
def test_a_gang_is_not_opened_while_one_of_its_kept_nodes_does_not_answer(mark: str) -> None:
    """Slurm could not start it, and would give the others to whoever waits."""
    first = node("i-1", A10G, state=f"IDLE{mark}+DRAIN", reason=KEPT, set_by=SetBy.US)

    made = planned([gang()], [first, kept("i-2")])

    assert undrained(made) == ([] if mark else [("i-1", "i-2")])
    assert launches(made) == []


FULL = a10g(limits=Limits(nodes=1))


@pytest.mark.parametrize(
    ("waiting", "is_kept"),
    [
        (gang(restarts=1), True),
        (gang(restarts=1, state="COMPLETING"), True),
        (gang(restarts=1, reason="JobHeldUser"), False),
        (gang(), False),  # it has never run
        (job(1, gpus=4, gpu_type="a10g"), False),  # the gang was cancelled
    ],
    ids=["waits", "its run ends", "held", "new", "cancelled"],
)
def test_good_nodes_stay_kept_while_the_rest_cannot_be_had(waiting: Job, is_kept: bool) -> None:
    made = planned([waiting], [kept("i-1")], of=FULL)

    assert launches(made) == []
    assert undrained(made) == ([] if is_kept else [("i-1",)])


def test_the_gate_of_a_replacement_stays_shut_while_the_old_run_ends() -> None:
    gate = node("i-3", A10G, state="IDLE+DRAIN+DYNAMIC_NORM")
    on = [instance("i-3", ON, pool="a10g")]
    known = [record("i-3", ON, pool="a10g", gated_for="9")]

    def made(of: Job) -> list[tuple[str, ...]]:
        return undrained(
            plan(snapshot([of], [gate], of=cluster(a10g()), instances=on, records=known))
        )

    assert made(gang(restarts=1, state="COMPLETING")) == []
    assert made(gang(restarts=0, state="COMPLETING")) == [("i-3",)]


def test_a_gang_that_is_there_stays_shut_while_slurm_keeps_it_from_its_next_run() -> None:
    nodes = [kept("i-1"), kept("i-2")]
    delayed = gang(restarts=1, reason="BeginTime", begins_at_s=NOW_S + 119)

    assert undrained(planned([delayed], nodes)) == []
    assert undrained(planned([gang(restarts=1, reason="None")], nodes)) == [NAMES]


def test_what_slurm_keeps_by_itself_is_not_kept_twice() -> None:
    """`--requeue=expedite`: the job could not start on a node that is drained for it."""
    expedited = gang(restarts=1, state="EXPEDITING")

    held = planned([expedited], [kept("i-1")])
    is_open = planned([expedited], [node("i-1", A10G)])

    assert undrained(held) == [("i-1",)]
    assert drained(is_open) == []
    assert [each.count for each in launches(is_open)] == [1]


def test_a_node_that_its_job_would_not_start_on_any_more_is_everybodys() -> None:
    """It was constrained to on-demand nodes meanwhile, and the node is a spot one."""
    features = ("a10g", A10G.name, "g5", "spot")
    spot = replace(kept("i-1"), features=features)

    assert undrained(planned([gang(restarts=1)], [spot], of=FULL)) == []
    moved = gang(restarts=1, constraint="on-demand")
    assert undrained(planned([moved], [spot], of=FULL)) == [("i-1",)]


@pytest.mark.parametrize("until_s", [NOW_S - 1, NOW_S + 86_400])
def test_nodes_are_kept_no_longer_than_a_boot_takes_whatever_a_clock_says(until_s: float) -> None:
    made = planned([gang(restarts=1)], [kept("i-1", str(kept_for("9", until_s)))], of=FULL)

    assert undrained(made) == [("i-1",)]


def test_a_requeued_job_needs_its_node_at_once_whatever_begin_time_slurm_gave_it() -> None:
    soon = gang(restarts=1, reason="BeginTime", begins_at_s=NOW_S + 119)
    quick = a10g(boot_s=30.0)

    made = planned([soon], [kept("i-1")], of=quick)
    later = planned([replace(soon, restarts=0)], [kept("i-1")], of=quick)

    assert [each.count for each in launches(made)] == [1]
    assert launches(later) == []


def test_a_replacement_that_is_there_stays_shut_until_the_job_has_left_the_node_that_goes() -> None:
    on = [instance(name, ON, pool="a10g") for name in (*NAMES, "i-3")]
    known = [
        record("i-1", ON, pool="a10g"),
        replace(record("i-2", ON, pool="a10g"), reclaim_at_s=NOW_S + 60),
        record("i-3", ON, pool="a10g", gated_for="9"),
    ]
    gate = node("i-3", A10G, state="IDLE+DRAIN+DYNAMIC_NORM")

    def made(of: Job, nodes: Sequence[Node]) -> list[tuple[str, ...]]:
        seen = snapshot([of], nodes, of=cluster(a10g()), instances=on, records=known)
        return undrained(plan(seen))

    runs = made(gang(on=NAMES), [busy("i-1"), busy("i-2", "ALLOCATED+DRAIN"), gate])
    waits = made(gang(restarts=1), [kept("i-1"), gate])

    assert runs == []
    assert waits == [("i-1", "i-3")]


def test_what_a_run_that_ends_still_fills_is_kept_though_there_is_no_room_for_the_next_one() -> (
    None
):
    """It may have no other node, and the rest of its own cannot be had now."""
    held = busy("i-1", "ALLOCATED+DRAIN", reason=KEPT, set_by=SetBy.US)
    taken = replace(record("i-2", ON, pool="a10g", phase=Phase.INTERRUPTED), reclaim_at_s=NOW_S + 9)
    silent = busy("i-2", "ALLOCATED*+DRAIN", reason="tidegate: EC2 reclaims it (reclaim)")
    full = cluster(replace(a10g(), limits=Limits(nodes=2)))
    live = [instance(name, ON, pool="a10g") for name in NAMES]
    known = [record("i-1", ON, pool="a10g"), taken]
    seen = snapshot([gang(on=NAMES)], [held, silent], of=full, instances=live, records=known)

    made = plan(seen)

    assert [each.job_id for each in made.unmet] == ["9"]
    assert undrained(made) == []


def test_what_a_run_that_ends_has_stays_shut_while_all_of_the_next_one_is_elsewhere() -> None:
    there = replace(ON, zone="us-east-1b")
    held = busy("i-1", "ALLOCATED+DRAIN", reason=KEPT, set_by=SetBy.US)
    silent = busy("i-2", "ALLOCATED*+DRAIN", reason="tidegate: EC2 reclaims it (reclaim)")
    taken = replace(record("i-2", ON, pool="a10g", phase=Phase.INTERRUPTED), reclaim_at_s=NOW_S + 9)
    at_gates = ("i-3", "i-4")
    gates = [node(name, A10G, state="IDLE+DRAIN+DYNAMIC_NORM") for name in at_gates]
    live = [instance(name, ON, pool="a10g") for name in NAMES]
    live += [instance(name, there, pool="a10g") for name in at_gates]
    known = [record("i-1", ON, pool="a10g"), taken]
    known += [record(name, there, pool="a10g", gated_for="9") for name in at_gates]

    made = plan(
        snapshot(
            [gang(on=NAMES)],
            [held, silent, *gates],
            of=cluster(a10g()),
            instances=live,
            records=known,
        )
    )

    assert {each.job_id: each.by for each in made.served} == {"9": at_gates}
    assert undrained(made) == []
