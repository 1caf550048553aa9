"""Money is not spent in a loop on a job that Slurm will not start."""

from dataclasses import replace

import pytest

from tests.core.reading import launches, orders, why
from tests.make import NOW_S, digest, instance, job, node, record, snapshot
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Watch
from tidegate.core.model.slurm import Association, Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck
from tidegate.core.passes.futile import request
from tidegate.core.planner import plan

LATER_S = 200.0


def seen(idle_s: float = 500, *, stuck: tuple[Stuck, ...] = (), of: Job | None = None) -> Snapshot:
    """One idle node, and a job that fits it."""
    made = snapshot(
        [of or job()],
        [node(idle_s=idle_s)],
        instances=[instance(age_s=900)],
        records=[record(age_s=900)],
    )
    return replace(made, stuck=stuck)


def watched(made: Plan) -> list[Stuck]:
    return [each.stuck for each in made.actions if isinstance(each, Watch)]


def first_watch(at_s: float = NOW_S) -> Stuck:
    (stuck,) = watched(plan(seen()))
    return replace(stuck, since_s=at_s)


def test_a_job_beside_a_node_that_just_became_idle_is_left_to_slurm() -> None:
    assert plan(seen(idle_s=179)).actions == ()


def test_a_job_beside_a_node_that_has_long_been_idle_is_watched() -> None:
    (stuck,) = watched(plan(seen(idle_s=180)))

    assert (stuck.job_id, stuck.since_s, stuck.failures) == ("1", NOW_S, 0)


def test_it_is_not_watched_twice_and_not_passed_over_before_three_passes() -> None:
    assert plan(seen(stuck=(first_watch(NOW_S - 179),))).actions == ()


@pytest.mark.parametrize(
    ("failures", "back_off_s"), [(0, 300), (1, 900), (2, 3600), (3, 3600), (9, 3600)]
)
def test_after_three_passes_it_is_passed_over_longer_each_time(
    failures: int, back_off_s: float
) -> None:
    before = replace(first_watch(NOW_S - LATER_S), failures=failures, is_sick=True, is_vain=True)

    (stuck,) = watched(plan(seen(stuck=(before,))))

    assert (stuck.failures, stuck.until_s) == (failures + 1, NOW_S + back_off_s)
    assert not stuck.is_sick | stuck.is_vain  # as it was held back the last time


def test_a_job_whose_node_is_lost_is_not_watched_beside_the_idle_one_that_it_gets() -> None:
    """It still runs."""
    names, busy = ("i-1", "i-2"), "MIXED+DRAIN+DYNAMIC_NORM"
    lost = snapshot(
        [job(7, on=["i-2"])],
        [node(idle_s=500), node("i-2", state=busy, gpus_alloc=1)],
        instances=[instance(name, age_s=900) for name in names],
        records=[record(age_s=900), record("i-2", age_s=900, phase=Phase.INTERRUPTED)],
    )

    made = plan(lost)

    assert [each.by for each in made.served] == [("i-1",)]
    assert watched(made) == []


def test_a_job_of_which_a_fault_was_counted_has_its_three_passes_too() -> None:
    fault = replace(first_watch(0.0), faults=2, faulted_at_s=NOW_S - LATER_S)

    (stuck,) = watched(plan(seen(stuck=(fault,))))

    assert (stuck.since_s, stuck.until_s, stuck.faults) == (NOW_S, 0.0, 2)


def test_a_job_that_was_kept_off_spot_meanwhile_is_still_passed_over() -> None:
    """We add to its constraint ourselves, which is no new request."""
    held = replace(first_watch(), failures=1, until_s=NOW_S + 300)
    kept_off = replace(snapshot([job(constraint="on-demand")]), stuck=(held,))
    other = replace(snapshot([job(constraint="t4")]), stuck=(held,))

    assert launches(plan(kept_off)) == []
    assert launches(plan(other)) != []


def test_while_it_is_passed_over_its_node_goes_and_it_buys_nothing() -> None:
    held = replace(first_watch(), failures=1, until_s=NOW_S + 300)

    made = plan(seen(stuck=(held,)))
    alone = plan(replace(snapshot([job()]), stuck=(held,)))

    assert [order.names for order in orders(made, OrderKind.RELEASE)] == [("i-1",)]
    assert launches(alone) == []
    assert "Slurm did not start it in 3 passes" in why(made)
    assert "for 300 s more" in why(alone)


def test_when_its_time_is_over_it_may_try_again() -> None:
    over = replace(first_watch(NOW_S - 900), failures=1, until_s=NOW_S - 1)

    assert [x.for_jobs for x in launches(plan(replace(snapshot([job()]), stuck=(over,))))] == [
        ("1",)
    ]
    assert watched(plan(seen(stuck=(over,)))) == []  # three passes count from the end of its time


@pytest.mark.parametrize(
    "changed",
    [job(cpus=2), job(constraint="t4"), job(account="lab"), job(excluded_nodes=("i-9",))],
)
def test_a_job_that_asks_something_else_is_tried_at_once(changed: Job) -> None:
    held = replace(first_watch(), failures=1, until_s=NOW_S + 300)

    made = plan(replace(snapshot([changed]), stuck=(held,)))

    assert [x.for_jobs for x in launches(made)] == [("1",)]


def test_a_job_that_excludes_another_node_asks_something_else() -> None:
    of_first, of_other = job(excluded_nodes=("i-8",)), job(excluded_nodes=("i-9",))
    reading = digest().reading

    assert request(of_first, reading) != request(of_other, reading)
    assert request(of_first, reading) == request(replace(of_first, priority=7), reading)


def test_a_job_whose_limits_change_is_tried_at_once() -> None:
    held = replace(first_watch(), failures=1, until_s=NOW_S + 300)
    cap = Association("account lab", per_user=9)
    of_others = replace(cap, account="lab")

    def bought(cap: Association) -> list[tuple[str, ...]]:
        made = plan(replace(snapshot([job()], associations=[cap]), stuck=(held,)))
        return [x.for_jobs for x in launches(made)]

    assert bought(cap) == [("1",)]
    assert bought(of_others) == []


def test_slurms_pending_reason_does_not_reset_the_watch() -> None:
    held = replace(first_watch(), failures=1, until_s=NOW_S + 300)

    made = plan(replace(snapshot([job(reason="Priority")]), stuck=(held,)))

    assert launches(made) == []
