"""Lost work is told once, when a run has ended and when the next one goes on."""

from dataclasses import replace
from typing import Any

import pytest

from tests.core.reading import orders
from tests.make import A10G, NOW_S, instance, job, node, offering, record, snapshot
from tidegate.core.explain.answer import answer
from tidegate.core.interruption.lost_work import lost_work
from tidegate.core.model.job_files import Hang, LostWork, ToldStep
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Watch
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import STUCK_KEPT_S, Stuck
from tidegate.core.planner import plan

NAMES = ("i-1", "i-2")
# Ten minutes on 8 GPUs until step 1240, and three more until the requeue.
ENDED = LostWork(1, 8, NOW_S - 60, NOW_S - 240, step=1240.0)
RESUMED = replace(ENDED, resumed_step=1200.0, resumed_at_s=NOW_S - 5, since_s=NOW_S - 600)


def seen(lost: LostWork | None, *before: Stuck, **more: Any) -> Snapshot:
    known = {"started_at_s": NOW_S - 50, "restarts": 1} | more
    of: Job = job(9, nodes=2, gpus=4, gpu_type="a10g", on=NAMES, **known)
    on = offering(A10G)
    busy = [node(n, A10G, state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=4) for n in NAMES]
    found = snapshot(
        [replace(of, lost=lost)],
        busy,
        instances=[instance(n, on, pool="a10g") for n in NAMES],
        records=[record(n, on, pool="a10g") for n in NAMES],
    )
    return replace(found, stuck=before)


def noted(made: Plan) -> list[Watch]:
    return [each for each in made.actions if isinstance(each, Watch)]


def test_the_end_of_a_run_and_the_next_step_are_each_told_once() -> None:
    (ended,) = noted(plan(seen(ENDED)))
    assert ended.reason == (
        "job 9: its last run ended at step 1240 and stood still for 3 min, 0.40 GPU-hours before "
        "it was requeued; where it goes on its next run will tell"
    )
    assert not noted(plan(seen(ENDED, ended.stuck)))

    (resumed,) = noted(plan(seen(RESUMED, ended.stuck)))
    assert resumed.reason == (
        "job 9: its last run ended at step 1240 and stood still for 3 min, 0.40 GPU-hours before "
        "it was requeued; it went on at step 1200: 40 steps (6 min, 0.80 GPU-hours) are done "
        "again, 9 min, 1.20 GPU-hours lost in all"
    )
    assert not noted(plan(seen(RESUMED, resumed.stuck)))


def test_it_is_remembered_for_longer_than_it_is_news() -> None:
    (told,) = noted(plan(seen(RESUMED)))

    assert told.stuck.is_forgotten_at_s >= NOW_S + STUCK_KEPT_S
    old = replace(RESUMED, until_s=NOW_S - 2 * 3600, resumed_at_s=NOW_S - 2 * 3600)
    assert not noted(plan(seen(old)))


def test_the_next_run_that_is_requeued_is_told_again() -> None:
    (told,) = noted(plan(seen(RESUMED)))

    again = replace(ENDED, restarts=2, step=1300.0)
    (more,) = noted(plan(seen(again, told.stuck, restarts=2)))
    assert "step 1300" in more.reason


def test_nothing_is_told_of_a_run_of_which_nothing_is_known() -> None:
    silent = replace(ENDED, step=None, stood_since_s=ENDED.until_s)

    assert not noted(plan(seen(silent)))
    assert not any("last run" in line for line in answer("9", seen(silent), None).needs)


def test_a_job_that_asks_for_something_else_keeps_what_it_was_told() -> None:
    (told,) = noted(plan(seen(RESUMED)))
    asked_otherwise = replace(told.stuck, request="something else")

    assert not noted(plan(seen(RESUMED, asked_otherwise)))


def test_why_says_how_far_it_is_and_what_it_lost() -> None:
    found = seen(RESUMED)
    reading = found.heard.reading
    at = replace(reading.jobs[0], step=ToldStep(1210.0))
    digest = replace(found.heard, reading=replace(reading, jobs=(at,)))

    needs = answer("9", replace(found, digest=digest), None).needs

    assert "its heartbeat says step 1210" in needs
    assert lost_work(RESUMED) in needs


@pytest.mark.parametrize("state", ["RUNNING", "PENDING"])
def test_why_says_why_no_step_is_counted(state: str) -> None:
    found = seen(None)
    reading = found.heard.reading
    at = replace(reading.jobs[0], state=state, step=ToldStep(problem="it went back"))
    digest = replace(found.heard, reading=replace(reading, jobs=(at,)))

    assert "no step of it is counted: it went back" in (
        answer("9", replace(found, digest=digest), None).needs
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"gpus": 0}, "40 steps (6 min) are done again, 9 min lost in all"),
        ({"resumed_step": 1239.0}, ": 1 step ("),
        ({"unit": "epoch", "step": 3.5, "resumed_step": 3.0}, ": 0.5 epochs ("),
        ({"resumed_step": 1500.0, "since_s": NOW_S - 240}, ": 0 steps (0 s, 0.00 GPU-hours)"),
        ({"since_s": None}, "it went on at step 1200, which cannot be compared"),
        ({"step": None, "problem": "it went back"}, "nobody knows: it went back"),
        ({"step": None}, "nobody knows: it tells no step"),
    ],
)
def test_what_is_not_known_is_not_said(changed: dict[str, Any], said: str) -> None:
    assert said in lost_work(replace(RESUMED, **changed))


def test_a_hang_says_its_gpu_hours_in_the_order_and_in_the_event() -> None:
    silent = Hang("/shared/beat", since_s=NOW_S - 450)
    made = plan(seen(None, restarts=0, hang=silent))

    (order,) = orders(made, OrderKind.REQUEUE)
    assert "was last touched 8 min ago (1.00 GPU-hours)" in order.text
    assert "(1.00 GPU-hours)" in noted(made)[0].reason
