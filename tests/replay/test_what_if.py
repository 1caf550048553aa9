"""What a block would do for a queue, with figures that can be worked out by hand."""

from dataclasses import replace

import pytest

from tests.make import NOW_S, T4, ZONE, cluster, job, offering, pool, record, snapshot
from tidegate.core.model.capacity import BlockOffer
from tidegate.core.model.capacity_advice import Offered
from tidegate.core.model.cluster import Cluster, Limits
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.sim.replay.queued import queued
from tidegate.sim.replay.trace import Trace, TraceJob
from tidegate.sim.replay.what_if import WhatIf, only, refused_now

HOUR_S, DAY_S = 3600.0, 86400.0
BOOT_S = 300.0
LATE_S = 900.0  # a look comes so often while nothing happens
SPOT = Offering(T4.name, ZONE, Market.SPOT)


def offer(count: int = 2, starts_s: float = DAY_S, days: float = 1, fee: float = 9.6) -> BlockOffer:
    starts_at_s = NOW_S + starts_s
    ends_at_s = starts_at_s + days * DAY_S
    return BlockOffer("cb-1", T4.name, ZONE, count, starts_at_s, ends_at_s, fee, "USD")


def spot_only(limits: Limits | None = None) -> Cluster:
    of = cluster(pool(types=(T4,), markets=(Market.SPOT,), limits=limits or Limits()))
    return replace(of, hazards={SPOT: 0.0})


def rest(on: Offering, of_pool: str = "") -> Resting:
    code, words = "InsufficientInstanceCapacity", "no capacity"
    return Resting(on, NOW_S + 600, 3, code, words, pool=of_pool)


def waiting(num: int, limit_s: float = 4 * HOUR_S) -> list[Job]:
    return [job(n + 1, time_limit_s=limit_s) for n in range(num)]


def told(
    seen: Snapshot, *offers: BlockOffer, refused_s: float | None = None, then: Trace | None = None
) -> list[Offered]:
    queue = queued(seen, then, days=1.5)
    asked = WhatIf(seen.cluster, queue, refused_now(seen), seen.now_s, refused_s)
    return list(asked.offered(offers or [offer()]))


def test_a_block_starts_what_nobody_sells() -> None:
    seen = snapshot(waiting(4), of=spot_only(), resting=[rest(SPOT)])

    (found,) = told(seen)

    assert found.jobs == ("1", "2", "3", "4")
    # Two start a boot after the block begins, two when these have ended: 19.9 h before its end.
    assert found.if_refused is not None
    assert found.if_refused.is_at_least
    mean_s = DAY_S - BOOT_S - 2 * HOUR_S
    assert found.if_refused.mean_s == pytest.approx(mean_s, abs=LATE_S)
    # If EC2 sold spot nodes at once, waiting for the block would be a loss of a day.
    assert found.if_sold is not None
    assert not found.if_sold.is_at_least
    assert found.if_sold.mean_s == pytest.approx(-DAY_S - 2 * HOUR_S, abs=LATE_S)


def test_what_the_block_does_not_use_is_idle() -> None:
    seen = snapshot(waiting(4), of=spot_only(), resting=[rest(SPOT)])

    (found,) = told(seen)

    assert found.idle_share == pytest.approx(1 - 4 * 4 / (2 * 24), abs=0.001)


def test_its_price_stands_beside_that_of_the_same_work_on_spot_and_on_demand() -> None:
    of = cluster(pool(types=(T4,)))
    seen = snapshot(waiting(4), of=replace(of, hazards={SPOT: 0.0}), resting=[rest(SPOT)])
    on_demand = replace(SPOT, market=Market.ON_DEMAND)

    (found,) = told(replace(seen, resting=(rest(SPOT), rest(on_demand))))

    # Four nodes of four hours, each with its boot and its idle time.
    assert found.spot_usd == pytest.approx(4 * 4.1 * 0.2, rel=0.02)
    assert found.on_demand_usd == pytest.approx(4 * 4.1 * 0.526, rel=0.02)
    assert found.times(found.spot_usd) == pytest.approx(9.6 / (4 * 4.1 * 0.2), rel=0.02)


def test_what_has_no_price_is_not_known_and_not_free() -> None:
    seen = snapshot(waiting(1), of=spot_only(), resting=[rest(SPOT)])

    (found,) = told(seen)

    assert found.on_demand_usd is None
    assert found.times(found.on_demand_usd) is None
    assert found.times(found.spot_usd) is not None
    assert only(seen.cluster, Market.ON_DEMAND, offer()) is None


def test_a_price_in_another_currency_is_compared_with_nothing() -> None:
    seen = snapshot(waiting(1), of=spot_only(), resting=[rest(SPOT)])

    (found,) = told(seen, replace(offer(), currency="CNY"))

    assert found.times(found.spot_usd) is None


def test_when_ec2_sells_again_is_an_assumption_that_may_be_made() -> None:
    seen = snapshot(waiting(2), of=spot_only(), resting=[rest(SPOT)])

    (found,) = told(seen, refused_s=1.5 * DAY_S)

    assert found.if_refused is not None
    assert not found.if_refused.is_at_least
    assert found.if_refused.mean_s == pytest.approx(DAY_S / 2, abs=3600)


def test_what_ec2_sells_now_makes_a_block_start_nothing() -> None:
    (found,) = told(snapshot(waiting(4), of=spot_only()))

    assert found.jobs == ()
    assert found.if_refused is None
    assert found.idle_share == 1.0


def test_a_job_that_would_not_end_in_the_block_does_not_count_on_it() -> None:
    seen = snapshot(waiting(2, 30 * HOUR_S), of=spot_only(), resting=[rest(SPOT)])

    assert told(seen)[0].jobs == ()


def test_a_limit_of_the_pool_holds_in_a_block_too() -> None:
    seen = snapshot(waiting(2), of=spot_only(Limits(nodes=1)), resting=[rest(SPOT)])

    (found,) = told(seen)

    assert len(found.jobs) == 2  # one after the other, on the one node that may be there
    assert found.idle_share == pytest.approx(1 - 8 / 48, abs=0.001)


def test_what_runs_holds_its_limit_until_it_has_ended() -> None:
    running = job(9, on=["i-1"], time_limit_s=8 * HOUR_S, started_at_s=NOW_S - 6 * HOUR_S)
    of = spot_only(Limits(nodes=1))
    seen = snapshot([running, *waiting(1)], of=of, records=[record("i-1", offering(T4))])

    queue = queued(seen)

    assert [each.job_id for each in queue.jobs] == ["9", "1"]
    assert queue.jobs[0].duration_s == 2 * HOUR_S
    assert queue.jobs[0].queued is not None
    assert queue.jobs[0].queued.constraint == "t4"
    assert list(queue.waiting) == [1]


def test_what_waits_for_other_things_is_left_out_and_counted() -> None:
    jobs = [
        *waiting(1),
        job(2, reason="JobHeldUser", time_limit_s=60.0),
        job(3, time_limit_s=None),
        replace(job(4, time_limit_s=60.0), count=3),
    ]

    queue = queued(snapshot(jobs, of=spot_only()))

    assert [each.job_id for each in queue.jobs] == ["1", "4", "4", "4"]
    assert dict(queue.left_out) == {
        "held, or not ready to start": 1,
        "without a time limit, so that no block is used for it": 1,
    }


def test_the_end_of_a_history_comes_again() -> None:
    """It fills what the queue leaves idle, and is no job that waits."""
    base = TraceJob("old", 0.0, HOUR_S, 1, 1, 1, "gpu", gpu_type="t4")
    comes = replace(base, job_id="new", submit_s=10 * DAY_S, duration_s=4 * HOUR_S)
    first = replace(base, job_id="first", submit_s=9 * DAY_S)
    seen = snapshot(waiting(1), of=spot_only(), resting=[rest(SPOT)])

    (found,) = told(seen, then=Trace((base, first, comes)))

    assert found.jobs == ("1",)
    assert found.later == 2
    assert found.idle_share == pytest.approx(1 - 9 / 48, abs=0.01)


def test_what_one_pool_is_refused_is_not_what_ec2_has_none_of() -> None:
    seen = snapshot(resting=[rest(SPOT, "t4"), replace(rest(SPOT), until_s=NOW_S - 1)])

    assert refused_now(seen) == {}


def test_a_block_that_begins_in_a_week_is_waited_for() -> None:
    seen = snapshot(waiting(1), of=spot_only(), resting=[rest(SPOT)])

    (found,) = told(seen, offer(starts_s=7 * DAY_S))

    assert found.jobs == ("1",)


def test_ec2_ends_what_still_runs_in_a_block() -> None:
    """Slurm starts a long job on a node that a short one has left: its work is no use of it."""
    jobs = [job(1, time_limit_s=HOUR_S), job(2, time_limit_s=30 * HOUR_S)]
    seen = snapshot(jobs, of=spot_only(), resting=[rest(SPOT)])

    (found,) = told(seen)

    assert found.idle_share > 1 - 24 / 48
