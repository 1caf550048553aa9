"""Nodes that come for a job and go unused, since other jobs have its place under a cap."""

from dataclasses import replace

import pytest

from tests.core.reading import launches, orders, why
from tests.make import NOW_S, cluster, instance, job, node, offering, pool, record, snapshot
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.cluster import Limits, Pool
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Watch
from tidegate.core.model.slurm import Association, Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck
from tidegate.core.planner import plan

CAP = Association("account lab", account="lab", in_all=1)
OTHERS = Association("account vision", account="vision", in_all=9)
WAITS = job(1, account="lab", reason="ReqNodeNotAvail, May be reserved for other job")
RUNS = job(2, account="lab", state="RUNNING", on=["i-2"])
LIVED_S = 400.0


def seen(
    *jobs: Job, idle_s: float = 200.0, launch_id: str = "l-1", stuck: tuple[Stuck, ...] = ()
) -> Snapshot:
    """A node that was bought for job 1 and is idle; another is busy."""
    bought = replace(record(age_s=LIVED_S), launch_id=launch_id, for_jobs=("1",))
    made = snapshot(
        list(jobs),
        [node(idle_s=idle_s), node("i-2", state="ALLOCATED", gpus_alloc=1)],
        instances=[instance(age_s=LIVED_S), instance("i-2", offering(), age_s=LIVED_S)],
        records=[bought, record("i-2", age_s=LIVED_S)],
    )
    assert made.digest
    reading = replace(made.digest.reading, associations=(CAP, OTHERS))
    return replace(made, digest=replace(made.digest, reading=reading), stuck=stuck)


def watched(made: Plan) -> list[Stuck]:
    return [each.stuck for each in made.actions if isinstance(each, Watch)]


def test_a_node_that_goes_unused_is_noted_for_the_job_that_it_came_for() -> None:
    made = plan(seen(WAITS, RUNS))

    (stuck,) = watched(made)
    assert [each.names for each in orders(made, OrderKind.RELEASE)] == [("i-1",)]
    assert (stuck.job_id, stuck.vain_launches, stuck.until_s) == ("1", ("l-1",), 0.0)


def test_after_the_second_one_nothing_is_bought_for_it_for_a_while() -> None:
    (first,) = watched(plan(seen(WAITS, RUNS)))

    (second,) = watched(plan(seen(WAITS, RUNS, launch_id="l-2", stuck=(first,))))
    tried = replace(second, until_s=NOW_S)
    (third,) = watched(plan(seen(WAITS, RUNS, launch_id="l-3", stuck=(tried,))))
    often = replace(tried, failures=9)
    (last,) = watched(plan(seen(WAITS, RUNS, launch_id="l-3", stuck=(often,))))
    waits = replace(seen(WAITS, stuck=(second,)), nodes=(), instances=())

    assert (second.vain_launches, second.until_s) == (("l-1", "l-2"), NOW_S + 300)
    assert (third.until_s, last.until_s) == (NOW_S + 900, NOW_S + 3600)
    assert launches(plan(waits)) == []
    assert "went again unused, since a limit held it back meanwhile" in why(plan(waits))
    assert launches(plan(replace(waits, stuck=(tried,)))) != []


def test_one_that_has_run_something_was_not_in_vain() -> None:
    assert watched(plan(seen(WAITS, RUNS, idle_s=0.0))) == []
    used = replace(
        seen(WAITS, RUNS),
        nodes=(replace(record(age_s=9999.0), for_jobs=("1",)),),
        instances=(instance(age_s=9999.0),),
    )
    assert watched(plan(used)) == []


EXPIRES = Disruption((Budget(percent=100.0),), expire_after_s=300.0)


@pytest.mark.parametrize("of", [replace(pool(idle_s=9999.0), disruption=EXPIRES), pool("new")])
def test_one_that_goes_for_another_reason_says_nothing_of_its_job(of: Pool) -> None:
    """It has had its time, or its pool is not in the cluster file any more."""
    made = plan(replace(seen(WAITS, RUNS), cluster=cluster(of)))

    assert [each.names for each in orders(made, OrderKind.RELEASE)] == [("i-1",)]
    assert watched(made) == []


@pytest.mark.parametrize(
    "change",
    [
        {"reason": "JobHeldUser"},
        {"reason": "Dependency"},
        {"reason": "BeginTime", "begins_at_s": NOW_S + 9999},
        {"restarts": 1},
    ],
)
def test_a_job_that_waits_for_something_else_gets_its_node_when_that_is_over(
    change: dict[str, object],
) -> None:
    held = replace(WAITS, **change)  # type: ignore[arg-type]

    assert watched(plan(seen(held, RUNS))) == []


def test_nor_is_the_node_of_a_job_that_is_gone_or_runs() -> None:
    assert watched(plan(seen(RUNS))) == []
    assert watched(plan(seen(replace(WAITS, state="RUNNING", node_names=("i-2",)), RUNS))) == []


ONE_OF_A_GANG = replace(job(1, nodes=2), reason="Resources")
SMALL = pool(limits=Limits(nodes=2))


@pytest.mark.parametrize(
    "gang",
    [
        [ONE_OF_A_GANG],
        [replace(job(3), het_job_id="3"), replace(job(1), het_job_id="3")],
    ],
)
def test_a_gang_of_which_another_job_took_a_node_waits_longer_each_time(gang: list[Job]) -> None:
    """A limit has no room for one more. The gang is held back as one, by its leader."""
    of = replace(seen(*gang, job(2, state="RUNNING", on=["i-2"])), cluster=cluster(SMALL))
    of = replace(of, digest=replace(of.heard, reading=replace(of.heard.reading, associations=())))
    (first,) = watched(plan(of))

    again = replace(of.nodes[0], launch_id="l-2")
    (second,) = watched(plan(replace(of, nodes=(again, of.nodes[1]), stuck=(first,))))
    now = replace(of, nodes=(), instances=(), stuck=(second,), cluster=cluster(pool()))

    assert (first.job_id, first.until_s) == (gang[0].job_id, 0.0)
    assert (second.job_id, second.until_s) == (gang[0].job_id, NOW_S + 300)
    assert launches(plan(now)) == []
    assert launches(plan(replace(now, stuck=(replace(second, until_s=NOW_S),)))) != []


def test_it_is_noted_as_well_where_another_waits_for_a_cap() -> None:
    """Then a plan takes two tries, and what the first one refused is passed over in the second."""
    gang = replace(ONE_OF_A_GANG, account="vision")
    of = replace(seen(gang, RUNS, replace(WAITS, job_id="4")), cluster=cluster(SMALL))

    (first,) = watched(plan(of))

    assert (first.job_id, first.vain_launches) == ("1", ("l-1",))


def test_what_waits_already_is_not_made_to_wait_longer() -> None:
    (first,) = watched(plan(seen(WAITS, RUNS)))
    (second,) = watched(plan(seen(WAITS, RUNS, launch_id="l-2", stuck=(first,))))

    assert watched(plan(seen(WAITS, RUNS, launch_id="l-3", stuck=(second,)))) == []
