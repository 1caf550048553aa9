"""Who has a node is read from the jobs: 22.05 shows the node of a suspended job as IDLE."""

from dataclasses import replace

import pytest

from tests.core.reading import launches, orders
from tests.make import NOW_S, cluster, instance, job, node, pool, record, snapshot
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.ledger import Cordon
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.slurm import RUNNING_STATES, Job
from tidegate.core.planner import plan

STOPPED = Wanted(False, "stopped until Tue 24 Nov 08:00 Asia/Tokyo", NOW_S + 3600)


def with_job(state: str) -> Job:
    return replace(job(7, on=("i-1",)), state=state)


@pytest.mark.parametrize("state", sorted({*RUNNING_STATES, "COMPLETING"}))
def test_a_node_that_looks_idle_and_has_a_job_is_not_released(state: str) -> None:
    """Beside one that is free, so that the pool could spare it."""
    nodes = [node(idle_s=9_000), node("i-2")]
    instances, records = [instance(), instance("i-2")], [record(), record("i-2")]

    made = plan(snapshot([with_job(state)], nodes, instances=instances, records=records))

    assert orders(made, OrderKind.RELEASE) == []


def test_without_the_job_it_goes() -> None:
    made = plan(snapshot([], [node(idle_s=9_000)], instances=[instance()], records=[record()]))

    assert [order.names for order in orders(made, OrderKind.RELEASE)] == [("i-1",)]


@pytest.mark.parametrize("cause", ["stopped", "maintenance", "too old"])
def test_a_node_that_has_to_go_waits_for_its_suspended_job(cause: str) -> None:
    old = Disruption((Budget(percent=100.0),), expire_after_s=50.0)
    of = replace(pool(), disruption=old) if cause == "too old" else pool()
    known = record()
    if cause == "maintenance":
        known = replace(known, cordon=Cordon("AWS Health: RETIREMENT", NOW_S - 10))
    seen = snapshot(
        [with_job("SUSPENDED")], [node()], of=cluster(of), instances=[instance()], records=[known]
    )

    made = plan(replace(seen, wanted=STOPPED) if cause == "stopped" else seen)

    assert orders(made, OrderKind.RELEASE) == []
    assert [order.names for order in orders(made, OrderKind.DRAIN)] == [("i-1",)]


def test_no_gang_and_no_exclusive_job_counts_on_its_node() -> None:
    waits = job(8, gpus=0, is_exclusive=True)

    made = plan(
        snapshot(
            [with_job("SUSPENDED"), waits], [node()], instances=[instance()], records=[record()]
        )
    )

    assert [launch.count for launch in launches(made)] == [1]


def test_nobody_knows_when_a_suspended_job_ends() -> None:
    ends = {"started_at_s": NOW_S - 590.0, "time_limit_s": 600.0}
    full = node(state="IDLE+DYNAMIC_NORM", gpus_alloc=1)

    def bought(state: str) -> int:
        held = replace(with_job(state), **ends)  # type: ignore[arg-type]
        seen = snapshot([held, job(8)], [full], instances=[instance()], records=[record()])
        return len(launches(plan(seen)))

    assert bought("RUNNING") == 0
    assert bought("SUSPENDED") == 1
