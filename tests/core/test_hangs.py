"""A job whose heartbeat is silent is requeued, so many times and no more."""

from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.make import A10G, NOW_S, instance, job, node, offering, record, snapshot
from tidegate.core.interruption.heartbeat import heartbeat
from tidegate.core.model.job_files import Hang
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Watch
from tidegate.core.model.slurm import Job
from tidegate.core.model.stuck import Stuck
from tidegate.core.passes.faults import RETRIES_MAX
from tidegate.core.planner import plan

NAMES = ("i-1", "i-2")
SILENT = Hang("/shared/beat", since_s=NOW_S - 400)
UNSEEN = Hang("/shared/beat", problem="/shared/beat is no regular file")


def hung(**more: object) -> Job:
    asked: dict[str, object] = {"hang": SILENT, "started_at_s": NOW_S - 1_000} | more
    return job(9, nodes=2, gpus=4, gpu_type="a10g", on=NAMES, **asked)  # type: ignore[arg-type]


def planned(of: Job, *before: Stuck) -> Plan:
    on = offering(A10G)
    busy = [node(n, A10G, state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=4) for n in NAMES]
    there = [instance(n, on, pool="a10g") for n in NAMES]
    known = [record(n, on, pool="a10g") for n in NAMES]
    seen = snapshot([of], busy, instances=there, records=known)
    return plan(replace(seen, stuck=before))


def noted(made: Plan) -> list[Stuck]:
    return [each.stuck for each in made.actions if isinstance(each, Watch)]


def sent(made: Plan) -> list[OrderKind]:
    kinds = (OrderKind.REQUEUE, OrderKind.HOLD, OrderKind.COMMENT)
    return [kind for kind in kinds for _ in orders(made, kind)]


def test_a_hung_job_is_requeued_with_the_reason_and_counted() -> None:
    made = planned(hung())

    (order,) = orders(made, OrderKind.REQUEUE)
    assert (order.names, order.only_if, order.restarts) == (("9",), ("RUNNING",), 0)
    assert "/shared/beat was last touched 7 min ago" in order.text
    (stuck,) = noted(made)
    assert (stuck.faults, stuck.fault_restarts) == (1, 1)


def test_one_order_goes_out_for_a_run_until_it_has_expired() -> None:
    (stuck,) = noted(planned(hung()))

    soon = planned(hung(), stuck)
    late = planned(hung(), replace(stuck, faulted_at_s=NOW_S - 61))

    assert not sent(soon)
    assert not noted(soon)
    assert sent(late) == [OrderKind.REQUEUE]
    assert [each.faults for each in noted(late)] == [1]


def test_the_next_run_that_hangs_counts_again() -> None:
    (stuck,) = noted(planned(hung()))

    made = planned(hung(restarts=1), stuck)

    assert sent(made) == [OrderKind.REQUEUE]
    assert [each.faults for each in noted(made)] == [2]


def test_after_three_retries_it_is_held() -> None:
    made = planned(hung(restarts=3), Stuck("9", "asked", 0.0, faults=RETRIES_MAX, fault_restarts=3))

    (order,) = orders(made, OrderKind.HOLD)
    assert sent(made) == [OrderKind.HOLD]
    assert order.only_if == ("RUNNING",)
    assert "scontrol release 9" in order.text
    assert [each.held_at_s for each in noted(made)] == [NOW_S]


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (hung(is_requeueable=False), "--no-requeue"),
        (hung(hang=UNSEEN), "nobody watches its heartbeat: /shared/beat is no regular file"),
    ],
    ids=["no requeue", "not seen"],
)
def test_a_job_that_cannot_be_helped_is_told_once_and_runs_on(of: Job, said: str) -> None:
    made = planned(of)
    again = planned(of, *(replace(each, faulted_at_s=NOW_S - 999) for each in noted(made)))

    assert sent(made) == [OrderKind.COMMENT]
    assert said in orders(made, OrderKind.COMMENT)[0].text
    assert [each.faults for each in noted(made)] == [0]
    assert not sent(again)
    assert not noted(again)


@pytest.mark.parametrize(
    ("comment", "found"),
    [
        ("tidegate:heartbeat=/shared/a/beat@300", ("/shared/a/beat", 300.0, None)),
        ("tidegate:heartbeat=/shared/a/beat@300/1800", ("/shared/a/beat", 300.0, 1800.0)),
        ("tidegate:heartbeat=/shared/beat@300/1 x", ("/shared/beat", 300.0, 30.0)),
        ("tidegate:heartbeat=/shared/beat@300/soon", ("/shared/beat", 300.0, None)),
        ("lr=3 tidegate:ckpt=USR1@20 tidegate:heartbeat=/s/b@90 x", ("/s/b", 90.0, None)),
        ("tidegate:heartbeat=/shared/beat@1", ("/shared/beat", 30.0, None)),
        ("tidegate:heartbeat=beat@300", None),
        ("tidegate:heartbeat=/shared/beat", None),
        ("nottidegate:heartbeat=/shared/beat@300", None),
    ],
)
def test_what_a_job_says_of_its_heartbeat(
    comment: str, found: tuple[str, float, float | None] | None
) -> None:
    asked = heartbeat(job(comment=comment))

    assert (asked and (asked.path, asked.silent_s, asked.begins_s)) == found


def test_a_run_that_never_began_to_beat_is_requeued_and_says_so() -> None:
    began = Hang("/shared/beat", since_s=NOW_S - 2_000)

    made = planned(hung(hang=began, started_at_s=NOW_S - 2_000, restarts=1))

    (order,) = orders(made, OrderKind.REQUEUE)
    assert "has not been touched since it began 33 min ago (4.45 GPU-hours)" in order.text
    assert [each.faults for each in noted(made)] == [1]
