"""A capacity block in its last day: who runs past its end, and who waits for nothing else."""

from dataclasses import replace

import pytest

from tests.make import NOW_S, T4, ZONE, cluster, instance, job, node, pool, snapshot
from tidegate.core.explain.block_ends import block_ends
from tidegate.core.explain.overview import overview
from tidegate.core.model.cluster import Cluster, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot

HOUR_S = 3600.0
BLOCK = Offering(T4.name, ZONE, Market.CAPACITY_BLOCK)
SPOT = Offering(T4.name, ZONE, Market.SPOT)


def held(hours_left: float, *markets: Market) -> Cluster:
    """One block of which so many hours are left, beside other markets."""
    block = Reservation(
        "cr-1", T4.name, ZONE, 2, BLOCK.market, NOW_S - 9 * HOUR_S, NOW_S + hours_left * HOUR_S
    )
    of = cluster(pool(types=(T4,), markets=markets or (Market.SPOT,)))
    using = replace(of.pools[0], markets=(BLOCK.market, *of.pools[0].markets))
    return replace(of, pools=(using,), reservations=(block,), prices={**of.prices, BLOCK: 0.0})


def seen(hours_left: float, *jobs: Job, is_refused: bool = True) -> Snapshot:
    rest = Resting(SPOT, NOW_S + 600, 1, "InsufficientInstanceCapacity", "none left")
    inside = replace(instance("i-1", BLOCK), capacity_reservation_id="cr-1")
    return snapshot(
        jobs,
        [node("i-1", state="MIXED+DYNAMIC_NORM", gpus_alloc=1)],
        of=held(hours_left),
        instances=[inside],
        resting=[rest] if is_refused else [],
    )


def running(limit_h: float | None, ran_h: float = 1) -> Job:
    limit_s = None if limit_h is None else limit_h * HOUR_S
    return job(7, on=["i-1"], time_limit_s=limit_s, started_at_s=NOW_S - ran_h * HOUR_S)


@pytest.mark.parametrize(
    ("limit_h", "is_told"),
    # Of ten hours the last 40 minutes take no job; one of its own has run.
    [(10.3, False), (10.4, True), (None, True)],
)
def test_a_job_that_may_outlast_its_block_is_named(limit_h: float | None, is_told: bool) -> None:
    found = list(block_ends(seen(10, running(limit_h))))

    assert [each.running for each in found] == ([("7",)] if is_told else [])


def test_a_job_elsewhere_is_none_of_its() -> None:
    found = seen(10, running(None))
    elsewhere = replace(found.instances[0], capacity_reservation_id="cr-2")

    assert not list(block_ends(replace(found, instances=(elsewhere,))))


@pytest.mark.parametrize(("is_refused", "told"), [(True, [4]), (False, [])])
def test_what_only_the_block_serves_is_counted(is_refused: bool, told: list[int]) -> None:
    waiting = job(1, time_limit_s=HOUR_S)

    found = block_ends(seen(10, replace(waiting, count=4), is_refused=is_refused))

    assert [each.waiting for each in found] == told


def test_what_another_pool_is_refused_is_sold_to_this_one() -> None:
    found = seen(10, job(1, time_limit_s=HOUR_S))
    others = tuple(replace(each, pool="a10g") for each in found.resting)

    assert not list(block_ends(replace(found, resting=others)))


def test_what_does_not_fit_on_its_nodes_does_not_wait_for_it() -> None:
    assert not list(block_ends(seen(10, job(1, gpus=4, time_limit_s=HOUR_S))))


@pytest.mark.parametrize("hours", [24.1, 0.5])
def test_nothing_is_told_more_than_a_day_before_or_once_it_drains(hours: float) -> None:
    assert not list(block_ends(seen(hours, running(None))))


def test_status_says_it_with_what_to_do() -> None:
    told = overview(seen(10, running(None), job(1, time_limit_s=HOUR_S)), None).needs_a_look

    (said,) = [each for each in told if "capacity block" in each]
    assert said == (
        "the capacity block cr-1 ends in 10.0 h: 7 may run longer and are requeued then; "
        "a job waits that nothing else serves now; "
        "extend it or buy the next one before Fri 2027-01-15 17:20 UTC: tidegate capacity"
    )
