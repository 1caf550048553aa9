"""The figures of a look, and that what did not happen costs no metric."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.test_block_ends import running, seen
from tests.make import (
    NOW_S,
    USD_PER_HOUR,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tests.service.conftest import World
from tests.service.test_describe import looked_at
from tidegate.core.model.calendar import Wanted
from tidegate.core.model.cluster import Limits, SpendingBudget
from tidegate.core.model.ec2 import Market, Refusal, RefusalKind
from tidegate.core.model.finding import StoppedCheck
from tidegate.core.model.ledger import Charge, Phase
from tidegate.core.model.plan import Plan
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.spend import day_of
from tidegate.core.planner import plan
from tidegate.service.control import Round
from tidegate.service.figures import LATE_FACTOR, LONG_WAIT_S, look_figures
from tidegate.service.outcome import Outcome
from tidegate.wire.metrics import ALWAYS, MINIMAL, unit_of


@pytest.mark.parametrize(
    ("since_s", "is_up", "age_s"),
    [
        (None, True, 700.0),
        (NOW_S - 86_400, True, 700.0),
        (NOW_S - 60, False, 0.0),  # stopped: a silent head is as it should be
        (NOW_S - 300, True, 0.0),  # started just now: it has not had the time
    ],
)
def test_the_age_of_the_digest_is_that_of_a_head_that_should_talk(
    since_s: float | None, is_up: bool, age_s: float
) -> None:
    wanted = Wanted(is_up, "as a test wants it", since_s=since_s)
    seen = Round(snapshot(age_s=700.0, wanted=wanted), Plan((), (), ()), Outcome())

    figures = look_figures(looked_at(seen))

    assert figures["DigestAge"] == age_s


def test_a_head_that_was_never_heard_has_an_age_that_cloudwatch_takes() -> None:
    never = replace(snapshot([], [node()]), digest=None, digest_age_s=float("inf"))

    figures = look_figures(looked_at(Round(never, Plan((), (), ()), Outcome())))

    assert figures["DigestAge"] == 86_400


def test_the_figures_count_what_was_done(world: World) -> None:
    world.report([job(1), job(2), job(3, gpus=64)])

    figures = look_figures(world.look())

    assert figures == {
        "LookFailed": 0,
        "Launched": 2,
        "UnmetJobs": 1,
        "StartingJobs": 2,
        "UsdPerHour": pytest.approx(2 * USD_PER_HOUR["g4dn.xlarge"][Market.SPOT]),
        "DigestAge": 0,
    }
    assert figures.keys() > ALWAYS


def of(snapshot: Snapshot, outcome: Outcome | None = None) -> dict[str, float]:
    return look_figures(looked_at(Round(snapshot, plan(snapshot), outcome or Outcome())))


def test_an_idle_cluster_has_no_figures_but_those_of_every_look() -> None:
    assert of(snapshot()).keys() == ALWAYS


def test_a_block_s_last_day_with_work_is_a_figure_and_any_other_day_is_none() -> None:
    last_day = seen(10, running(None))

    assert of(last_day)["BlockEnds"] == 1
    assert "BlockEnds" not in of(seen(30, running(None)))
    assert "BlockEnds" not in of(replace(last_day, digest=None))


def fleet(**more: object) -> Snapshot:
    """A node with a job, an idle one, and one that an operator drained."""
    nodes = [
        node("i-1", state="MIXED", gpus_alloc=1),
        node("i-2"),
        node("i-3", state="IDLE+DRAIN", reason="bad fan"),
    ]
    names = [each.name for each in nodes]
    return snapshot(
        [job(1, on=["i-1"])],
        nodes,
        instances=[instance(name) for name in names],
        records=[record(name) for name in names],
        **more,  # type: ignore[arg-type]
    )


def test_capacity_is_told_as_it_is_paid_for_and_as_it_can_be_used() -> None:
    found = of(fleet())

    assert (found["GpusConfigured"], found["GpusUsable"], found["GpusBusy"]) == (3, 2, 1)
    assert (found["GpuUse"], found["LostNodes"], found["RunningJobs"]) == (50, 1, 1)


@pytest.mark.parametrize(
    ("pool_gpus", "all_nodes", "percent"), [(4, 100, 75.0), (None, 3, 100.0), (None, None, None)]
)
def test_the_limit_that_is_used_most_is_told(
    pool_gpus: int | None, all_nodes: int | None, percent: float | None
) -> None:
    limited = cluster(pool(limits=Limits(gpus=pool_gpus)), limits=Limits(nodes=all_nodes))

    assert of(fleet(of=limited)).get("LimitUsed") == percent


def test_the_budget_that_is_used_most_is_told() -> None:
    budgets = {
        "cluster": SpendingBudget(usd_per_day=10),
        "pool t4": SpendingBudget(usd_per_month=1000),
    }
    seen = snapshot(of=replace(cluster(), budgets=budgets))

    spent = (Charge(day_of(NOW_S).name, "cluster", 8.0),)

    assert of(replace(seen, spent=spent))["BudgetUsed"] == 80.0
    assert "BudgetUsed" not in of(seen)


def test_refusals_are_counted_by_their_kind() -> None:
    kinds = (RefusalKind.CAPACITY, RefusalKind.CAPACITY, RefusalKind.QUOTA)
    refused = [Refusal(offering(), kind, "code", "words") for kind in kinds]

    found = of(snapshot(), Outcome(refused=refused))

    assert (found["Refused"], found["RefusedCapacity"], found["RefusedQuota"]) == (3, 2, 1)


def test_boots_are_timed_and_those_that_failed_are_counted() -> None:
    booted = {"instances": [instance()], "records": [record(phase=Phase.LAUNCHED, age_s=95)]}
    late = {
        "instances": [instance(age_s=2000)],
        "records": [record(phase=Phase.LAUNCHED, age_s=2000)],
    }

    assert of(snapshot([], [node()], **booted))["BootTime"] == 95  # type: ignore[arg-type]
    assert of(snapshot(**late))["BootFailed"] == 1  # type: ignore[arg-type]


def test_waits_are_those_of_jobs_that_may_start() -> None:
    waiting = [job(n, begins_at_s=NOW_S - n * 60) for n in (1, 2, 9)]
    others = [job(4, begins_at_s=NOW_S + 60), job(5), job(6, on=["i-1"])]

    found = of(snapshot([*waiting, *others]))

    assert (found["LongestWait"], found["MedianWait"]) == (540, 120)
    assert "LongestWait" not in of(snapshot(others))


def rested(seconds: float) -> dict[str, float]:
    """Figures of a job that has waited so long for what EC2 does not give."""
    resting = [
        Resting(each, NOW_S + 60, 2, "InsufficientInstanceCapacity", "We have none.")
        for _, each in pool().offerings()
    ]
    waiting = job(begins_at_s=NOW_S - seconds)
    return of(snapshot([waiting], resting=resting, of=cluster(pool())))


def test_a_job_that_ec2_gives_nothing_to_is_told_when_it_has_waited_for_long() -> None:
    assert rested(LONG_WAIT_S)["OldestWait"] == LONG_WAIT_S
    assert "OldestWait" not in rested(LONG_WAIT_S - 1)


def test_a_job_that_waits_for_a_limit_is_not_told_so() -> None:
    waiting = job(nodes=2, begins_at_s=NOW_S - 9000)
    limited = cluster(pool(limits=Limits(gpus=1)))

    assert "OldestWait" not in of(snapshot([waiting], of=limited))


def test_a_check_that_is_believed_no_more_is_counted_and_what_it_holds_back_is_lost() -> None:
    sick = [
        node(f"i-{n}", state="IDLE+DRAIN", reason="NHC: check_fs: full", set_by=SetBy.ROOT)
        for n in range(4)
    ]
    records, instances = [record(e.name) for e in sick], [instance(e.name) for e in sick]
    waiting = job(begins_at_s=NOW_S - 9000)
    seen = snapshot([waiting], sick, records=records, instances=instances)
    stop = StoppedCheck("NHC: check_fs", NOW_S, 2, 4)

    found = of(replace(seen, pool_history=(PoolHistory("t4", stopped_checks=(stop,)),)))

    assert (found["StoppedChecks"], found["LostNodes"]) == (1, 4)
    assert "OldestWait" not in found  # it waits for a person
    assert "StoppedChecks" not in of(seen)


def test_a_boot_that_takes_half_as_long_again_counts_until_it_is_over() -> None:
    def booting(age_s: float) -> Snapshot:
        waits = record(phase=Phase.LAUNCHED, age_s=age_s)
        return snapshot(instances=[instance(age_s=age_s)], records=[waits])

    late_s = LATE_FACTOR * pool().boot_s
    assert of(booting(late_s + 10))["BootFailed"] == 1
    assert "BootFailed" not in of(booting(late_s))


def test_figures_have_units() -> None:
    names: Sequence[str] = ("DigestAge", "GpuUse", "UsdPerHour", "Launched")

    assert [unit_of(name) for name in names] == ["Seconds", "Percent", "None", "Count"]
    assert ALWAYS < MINIMAL
    assert len(MINIMAL) <= 10, "AWS gives ten metrics for free"
