"""Nodes that were opened for a gang a moment ago, before Slurm could start it there."""

import pytest

from tests.core.reading import orders
from tests.core.test_gates import big, gang
from tests.make import (
    NOW_S,
    T4_BIG,
    instance,
    job,
    offering,
    record,
    snapshot,
)
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult, PendingOrder
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan


def opened_for_an_array(*others: Job, shut: int) -> Snapshot:
    """Two tasks of two nodes each: i-2 and i-3 have opened for the first; `shut`: how many of the
    others are up, at their gates.
    """
    tasks = job(9, nodes=2, gpus=4, priority=5, count=2, array_job_id="9")
    told = PendingOrder("o-1", OrderKind.UNDRAIN, NOW_S + 29.0, opens_for="9")
    on, opened = offering(T4_BIG), ("i-2", "i-3")
    up, boot = ("i-1", "i-4")[:shut], ("i-1", "i-4")[shut:]
    return snapshot(
        [*others, tasks],
        [
            *(big(name, state="IDLE+NOT_RESPONDING") for name in opened),
            *(big(name, state="IDLE+DRAIN") for name in up),
        ],
        instances=[instance(name, on) for name in (*opened, *up, *boot)],
        records=[
            *(record(name, on, order=told) for name in opened),
            *(record(name, on, gated_for="9") for name in up),
            *(record(name, on, phase=Phase.LAUNCHED, gated_for="9" * (not up)) for name in boot),
        ],
        results=[OrderResult("o-1", OrderKind.UNDRAIN, each, OrderOutcome.DONE) for each in opened],
    )


def test_nodes_that_were_opened_for_an_arrays_first_task_are_not_shut_for_its_next() -> None:
    made = plan(opened_for_an_array(shut=1))

    assert not orders(made, OrderKind.DRAIN)
    assert not orders(made, OrderKind.UNDRAIN)


def test_nor_where_a_job_before_it_has_counted_on_one_of_them_in_vain() -> None:
    parts = [job(n, gpus=gpus, priority=9, het_job_id="7") for n, gpus in ((7, 4), (8, 64))]
    made = plan(opened_for_an_array(*parts, shut=0))

    assert {"7", "8"} <= {each.job_id for each in made.unmet}
    assert not orders(made, OrderKind.DRAIN)


@pytest.mark.parametrize("shut", [0, 1, 2])
def test_nor_for_a_gang_with_a_higher_priority_that_has_just_come(*, shut: int) -> None:
    """What Slurm starts there in these seconds it decides itself; the other gets what is bought."""
    made = plan(opened_for_an_array(job(7, nodes=2, gpus=4, priority=9), shut=shut))

    (sold,) = (each.by for each in made.served if each.job_id == "7")
    assert not {"i-2", "i-3"} & set(sold)
    assert not orders(made, OrderKind.DRAIN)


@pytest.mark.parametrize(
    ("opened_ago_s", "opened_for", "is_kept"),
    [(1.0, "", False), (60.0, "", True), (1.0, "9", True)],
)
def test_what_was_freed_a_moment_ago_is_not_closed_again_at_once(
    opened_ago_s: float, opened_for: str, *, is_kept: bool
) -> None:
    """What the gang counts on beside it may be another job's once it is closed: then the gang has
    not enough, the node is opened, and so on look by look.
    """
    on, told_s = offering(T4_BIG), NOW_S + 30.0 - opened_ago_s
    told = PendingOrder("o-1", OrderKind.UNDRAIN, told_s, opens_for=opened_for)
    made = plan(
        snapshot(
            [gang()],
            [big("i-1", state="IDLE")],
            instances=[instance(name, on) for name in ("i-1", "i-2")],
            records=[record("i-1", on, order=told), record("i-2", on, phase=Phase.LAUNCHED)],
        )
    )

    assert [each.names for each in orders(made, OrderKind.DRAIN)] == ([("i-1",)] if is_kept else [])
