"""Nodes at gates whose gang has begun on others: whoever waits gets them, and nothing is bought."""

from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import NOW_S, T4_BIG, instance, job, node, offering, record, snapshot
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Send
from tidegate.core.model.slurm import Job, Node
from tidegate.core.planner import plan

ON = offering(T4_BIG)
BEGUN_ON = ("i-1", "i-2")


def begun(**more: object) -> Job:
    """Gang 3, which Slurm has started on the nodes that came for gang 4."""
    return job(3, nodes=2, gpus=4, on=BEGUN_ON, **more)  # type: ignore[arg-type]


def planned(*jobs: Job, up: int, busy: str = "ALLOCATED+DYNAMIC_NORM") -> Plan:
    """Gang 3 runs; of its own two nodes so many are up, at their gates, and the others boot."""
    at_gates, boot = ("i-3", "i-4")[:up], ("i-3", "i-4")[up:]
    nodes: list[Node] = [
        *(node(name, T4_BIG, state=busy, gpus_alloc=4) for name in BEGUN_ON),
        *(node(name, T4_BIG, state="IDLE+DRAIN+DYNAMIC_NORM") for name in at_gates),
    ]
    records = [
        *(record(name, ON) for name in BEGUN_ON),
        *(record(name, ON, gated_for="3") for name in at_gates),
        *(record(name, ON, phase=Phase.LAUNCHED, gated_for="3") for name in boot),
    ]
    live = [instance(name, ON) for name in (*BEGUN_ON, *at_gates, *boot)]
    return plan(snapshot(jobs, nodes, instances=live, records=records))


def by(made: Plan) -> dict[str, tuple[str, ...]]:
    return {each.job_id: each.by for each in made.served}


WAITS = job(4, nodes=2, gpus=4)


def test_what_came_for_a_gang_that_has_begun_elsewhere_is_the_next_ones() -> None:
    made = planned(begun(), WAITS, up=1)

    assert by(made) == {"4": ("i-3", "i-4")}
    assert launches(made) == []
    assert [order.names for order in orders(made, OrderKind.DRAIN)] == [("i-3",)]
    assert orders(made, OrderKind.UNDRAIN) == []


def test_it_opens_in_one_command_once_all_of_it_is_there() -> None:
    sent = [each for each in planned(begun(), WAITS, up=2).actions if isinstance(each, Send)]

    assert [(each.order.kind, each.order.names, each.opens_for) for each in sent] == [
        (OrderKind.UNDRAIN, ("i-3", "i-4"), "4")
    ]


def test_a_single_job_counts_on_it_too() -> None:
    made = planned(begun(), job(5, gpus=4), job(6, gpus=4), up=1)

    assert by(made) == {"5": ("i-3",), "6": ("i-4",)}
    assert launches(made) == []
    assert [order.names for order in orders(made, OrderKind.UNDRAIN)] == [("i-3",)]


def test_where_nobody_waits_it_opens_and_says_why() -> None:
    (sent,) = [each for each in planned(begun(), up=2).actions if isinstance(each, Send)]

    assert (sent.order.kind, sent.order.names) == (OrderKind.UNDRAIN, ("i-3", "i-4"))
    assert sent.reason == "job 3 no longer waits for this node"


@pytest.mark.parametrize(
    ("gang", "busy"),
    [
        (begun(comment="tidegate:move"), "ALLOCATED+DYNAMIC_NORM"),  # it goes to these
        (begun(), "ALLOCATED*+DYNAMIC_NORM"),  # it may lose a node
        (job(3, nodes=2, gpus=4, begins_at_s=NOW_S + 120), "IDLE+DRAIN+DYNAMIC_NORM"),
    ],
    ids=["moves", "silent", "waits"],
)
def test_what_its_gang_may_still_need_is_nobody_elses(gang: Job, busy: str) -> None:
    gang = replace(gang, reason="BeginTime") if gang.is_pending else gang
    made = planned(gang, WAITS, up=2, busy=busy)

    assert not {"i-3", "i-4"} & set(by(made).get("4", ()))


def test_what_boots_for_a_component_that_loses_a_node_is_bought_once() -> None:
    """All components of a heterogeneous job start again together: nodes wait for its leader."""
    leader = job(1, gpus=4, on=["i-1"], het_job_id="1")
    hit = job(2, nodes=2, gpus=4, on=["i-2", "i-3"], het_job_id="1")
    up = ("i-1", "i-2", "i-3")
    taken = record("i-3", ON, phase=Phase.INTERRUPTED)
    nodes = [node(name, T4_BIG, state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=4) for name in up]
    records = [record("i-1", ON), record("i-2", ON), replace(taken, reclaim_at_s=NOW_S + 100)]
    live = [instance(name, ON) for name in up]
    before = plan(snapshot([leader, hit], nodes, instances=live, records=records))
    (launch,) = launches(before)

    came = [f"i-{3 + n}" for n in range(1, launch.count + 1)]
    records += [record(n, ON, phase=Phase.LAUNCHED, gated_for=launch.gated_for) for n in came]
    live += [instance(name, ON) for name in came]
    made = plan(snapshot([leader, hit], nodes, instances=live, records=records))

    assert launch.gated_for == "1"
    assert launches(made) == []


def test_components_that_lose_nodes_are_bought_for_though_another_job_ranks_between_them() -> None:
    """Each has a priority of its own, and all of them start again together."""
    leader = job(1, nodes=2, gpus=4, on=["i-1", "i-2"], het_job_id="1", priority=100)
    between = job(2, gpus=4, priority=70)
    other = job(3, nodes=2, gpus=4, on=["i-3", "i-4"], het_job_id="1", priority=50)
    up, taken = ("i-1", "i-2", "i-3", "i-4"), ("i-2", "i-4")
    nodes = [node(name, T4_BIG, state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=4) for name in up]
    going = [record(name, ON, phase=Phase.INTERRUPTED) for name in taken]
    records = [
        *(record(name, ON) for name in ("i-1", "i-3")),
        *(replace(each, reclaim_at_s=NOW_S + 100) for each in going),
    ]
    live = [instance(name, ON) for name in up]

    made = plan(snapshot([leader, between, other], nodes, instances=live, records=records))

    bought = {each.for_jobs: (each.count, each.gated_for) for each in launches(made)}
    assert bought == {("1",): (1, "1"), ("2",): (1, ""), ("3",): (1, "1")}
