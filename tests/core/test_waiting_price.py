"""Money against time among what is sold: at which price of waiting a dearer node is bought."""

from dataclasses import replace
from math import exp, expm1
from typing import Any

import pytest

from tests.core.reading import launches
from tests.make import (
    A10G,
    NOW_S,
    T4,
    USD_PER_HOUR,
    cluster,
    job,
    offering,
    pool,
    snapshot,
)
from tidegate.core.demand.demand import Need, demand
from tidegate.core.model.cluster import Cluster, Limits
from tidegate.core.model.ec2 import Cure, Market
from tidegate.core.model.ledger import Launch
from tidegate.core.model.plan import Plan
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.waiting import Waiting
from tidegate.core.offers.cost import LOST_WORK_FACTOR, billed_hours, expected, interrupted
from tidegate.core.offers.offers import OfferGroups
from tidegate.core.planner import plan

HOUR_S = 3600.0
ON_DEMAND = (Market.ON_DEMAND,)
USD = USD_PER_HOUR[T4.name][Market.ON_DEMAND]
QUICK_S, SLOW_S = 100.0, 700.0
SLOW = replace(pool("slow", (T4,), markets=ON_DEMAND), boot_s=SLOW_S)
QUICK = replace(pool("quick", (A10G,), markets=ON_DEMAND), boot_s=QUICK_S)
DEAR_USD = 2 * USD
# Each runs for an hour: what the quick node costs more, and how much sooner it is up.
MORE_USD = DEAR_USD * (HOUR_S + QUICK_S) / HOUR_S - USD * (HOUR_S + SLOW_S) / HOUR_S
EVEN_USD = MORE_USD * HOUR_S / (SLOW_S - QUICK_S)


def two_pools(waiting: Waiting) -> Cluster:
    of = cluster(SLOW, QUICK)
    prices = {**of.prices, offering(A10G, Market.ON_DEMAND): DEAR_USD}
    return replace(of, prices=prices, waiting=waiting)


def any_gpu(job_id: int = 1, **more: Any) -> Job:
    return job(job_id, gpu_type="", time_limit_s=HOUR_S, **more)


def bought(of: Cluster, *jobs: Job) -> list[Launch]:
    return launches(plan(snapshot(jobs or [any_gpu()], of=of)))


@pytest.mark.parametrize(
    ("usd_per_hour", "chosen"),
    [(0.0, "slow"), (0.95 * EVEN_USD, "slow"), (1.05 * EVEN_USD, "quick"), (1e9, "quick")],
)
def test_a_dearer_node_that_boots_sooner_is_bought_where_the_wait_costs_more(usd_per_hour, chosen):
    of = two_pools(Waiting(usd_per_hour))

    (alone,) = bought(of)
    (gang,) = bought(of, any_gpu(nodes=2, is_exclusive=True))

    assert alone.pool == chosen
    # Two nodes are twice as dear, and no more than one job waits.
    assert gang.pool == ("quick" if usd_per_hour > 2 * EVEN_USD else "slow")


def test_jobs_that_share_a_node_wait_for_it_together():
    pair = [any_gpu(n, gpus=0, cpus=2) for n in (1, 2)]

    assert {each.pool for each in bought(two_pools(Waiting(0.6 * EVEN_USD)), *pair)} == {"quick"}


def test_the_price_is_that_of_whose_job_it_is():
    of = two_pools(Waiting(0.0, accounts={"team": 1e6}))

    (theirs,) = bought(of, any_gpu(account="team"))
    (others,) = bought(of, any_gpu(account="unknown"))

    assert (theirs.pool, others.pool) == ("quick", "slow")


def test_the_reason_says_both_sides():
    (quick,) = bought(two_pools(Waiting(1.5 * EVEN_USD)))
    (slow,) = bought(two_pools(Waiting(0.5 * EVEN_USD)))
    (free,) = bought(two_pools(Waiting()))

    assert quick.reason.endswith(
        f"; its nodes are up 600 s sooner than those of pool slow, for {MORE_USD:.2f} USD more"
    )
    assert slow.reason.endswith(
        f"; those of pool quick are up 600 s sooner, for {MORE_USD:.2f} USD more, and to wait so "
        f"long costs {MORE_USD / 2:.2f}"
    )
    assert "sooner" not in free.reason


def test_pools_of_more_weight_come_first_whatever_their_boot():
    of = two_pools(Waiting(1e6))
    of = replace(of, pools=(replace(SLOW, weight=2), QUICK))

    (launch,) = bought(of)

    assert (launch.pool, "sooner" in launch.reason) == ("slow", False)


def both_markets(usd_per_hour: float, **more: object) -> Cluster:
    of = cluster(replace(pool(types=(T4,)), **more))  # type: ignore[arg-type]
    return replace(of, hazards={offering(): 0.02}, waiting=Waiting(usd_per_hour))


def test_spot_is_bought_while_it_saves_more_than_the_boots_for_which_it_is_waited_again():
    wants = any_gpu()

    def chosen(usd_per_hour: float) -> Market:
        (launch,) = bought(both_markets(usd_per_hour), wants)
        return launch.offerings[0].market

    of = snapshot([wants], of=both_markets(1.0))
    (spot,) = [
        each for tier in OfferGroups(of).tiers for each in tier if each.market is Market.SPOT
    ]
    (need,) = _needs(of)
    again = spot.expected(need).wait_usd  # at 1 USD per hour
    spot_usd = USD_PER_HOUR[T4.name][Market.SPOT] * spot.expected(need).hours
    even_usd = (USD * (HOUR_S + 300.0) / HOUR_S - spot_usd) / again
    assert chosen(0.0) is Market.SPOT
    assert chosen(0.95 * even_usd) is Market.SPOT
    assert chosen(1.05 * even_usd) is Market.ON_DEMAND


def _needs(of: Snapshot) -> tuple[Need, ...]:
    assert of.digest is not None
    return demand(of.digest.reading, of.cluster, frozenset(), of.now_s)[0]


def test_where_a_limit_refuses_the_dearer_market_the_job_does_not_wait_for_it():
    """The price of its waiting is no reason to let it wait."""
    of = both_markets(1000.0, limits=Limits(usd_per_hour=USD * 0.9))

    (launch,) = bought(of)

    assert launch.offerings[0].market is Market.SPOT


def test_after_an_interruption_a_job_waits_for_a_boot_again_and_its_work_is_paid_for_again():
    (need,) = _needs(snapshot([any_gpu()], of=both_markets(36.0)))
    on: dict[str, Any] = {"boot_s": 300.0, "hazard_per_hour": 0.02, "checkpoint_s": None}

    again, of_all = interrupted(need, **on), expected(need, **on)

    assert again.times == pytest.approx(expm1(0.02))  # one hour on one node
    assert of_all.wait_usd == pytest.approx(3.0 * again.times)  # 300 s at 36 USD an hour
    assert of_all.hours == billed_hours(need, **on)
    assert of_all.hours == pytest.approx(3900 / 3600 + LOST_WORK_FACTOR * again.hours)
    slow = {**on, "boot_s": 400.0, "hazard_per_hour": 0.0}
    assert expected(need, **slow).wait_usd == pytest.approx(1.0)  # 100 s after the quickest


def test_a_job_that_may_not_be_requeued_waits_again_once_if_at_all():
    (need,) = _needs(snapshot([any_gpu(is_requeueable=False)], of=both_markets(1.0)))

    again = interrupted(need, boot_s=300.0, hazard_per_hour=0.5, checkpoint_s=None)

    assert again.times == pytest.approx(1.0 - exp(-0.5))
    assert again.hours == pytest.approx((3900 / 3600) * again.times)


def test_a_job_that_was_requeued_a_thousand_times_stops_no_plan():
    """Some requeue themselves after each step, and any user can."""
    made = plan(snapshot([replace(any_gpu(), restarts=1_100)], of=both_markets(0.05)))

    assert [each.offerings[0].market for each in launches(made)] == [Market.ON_DEMAND]


def refused(of: Cluster, *, failures: int = 1, rests_s: float = 180.0, **more: Any) -> Snapshot:
    """Spot of the type was refused."""
    rest = Resting(offering(), NOW_S + rests_s, failures, "InsufficientInstanceCapacity", "none")
    return replace(snapshot([any_gpu()], of=of), resting=(replace(rest, **more),))


def saved_usd(of: Cluster) -> float:
    """What spot saves the job, with what it waits for interruptions there."""
    (need,) = _needs(snapshot([any_gpu()], of=of))
    on: dict[str, Any] = {"boot_s": 300.0, "checkpoint_s": None}
    spot = expected(need, hazard_per_hour=0.02, **on).usd(USD_PER_HOUR[T4.name][Market.SPOT])
    return expected(need, hazard_per_hour=0.0, **on).usd(USD) - spot


def unmet_code(made: Plan) -> list[str]:
    return [str(each.why_nots[0].kind) for each in made.unmet]


@pytest.mark.parametrize("failures", [1, 2, 3])
def test_what_was_refused_is_waited_for_while_it_saves_more_than_that_costs(failures):
    """The longer it was refused the longer it is taken to be."""
    rests_s = 180.0 * 2 ** (failures - 1)
    wait_h = (rests_s + rests_s - 180.0) / HOUR_S
    again_h = saved_usd(both_markets(0.0)) - saved_usd(both_markets(1.0))
    even_usd = saved_usd(both_markets(0.0)) / (wait_h + again_h)

    def made(usd_per_hour: float) -> Plan:
        return plan(refused(both_markets(usd_per_hour), failures=failures, rests_s=rests_s))

    waits, buys = made(0.99 * even_usd), made(1.01 * even_usd)
    assert (unmet_code(waits), launches(waits)) == (["cheaper"], [])
    assert unmet_code(buys) == []
    assert launches(buys)[0].offerings[0].market is Market.ON_DEMAND
    assert waits.unmet[0].why_nots[0].until_s == NOW_S + rests_s


def test_the_sentence_says_what_it_saves_and_what_it_costs():
    made = plan(refused(both_markets(0.5)))

    assert f"it saves {saved_usd(both_markets(0.5)):.2f} USD" in made.unmet[0].reason
    assert "is expected to cost 0.03 (waiting: 0.5 USD per job-hour)" in made.unmet[0].reason


@pytest.mark.parametrize(
    ("usd_per_hour", "more"),
    [
        (0.0, {}),  # nobody could say for how long
        (0.05, {"failures": 5}),  # its rest grows no more: it is gone
        (0.05, {"failures": 1_100}),  # for three weeks
        (0.5, {"cure": Cure.QUOTA}),
        (0.5, {"pool": "t4"}),  # what came of it was no good
        (0.5, {"rests_s": -1.0}),
    ],
)
def test_what_is_dearer_is_bought_at_once_where_nothing_is_to_be_waited_for(usd_per_hour, more):
    assert len(launches(plan(refused(both_markets(usd_per_hour), **more)))) == 1


def test_what_a_pool_of_less_weight_sells_is_not_waited_for():
    first = replace(pool("first", (T4,), markets=ON_DEMAND), weight=9)
    of = cluster(first, pool("second", (T4,), markets=(Market.SPOT,)))
    of = replace(of, waiting=Waiting(0.5), hazards={offering(): 0.02})

    assert len(launches(plan(refused(of)))) == 1


def test_the_same_in_another_zone_is_bought_at_once():
    zones = ("us-east-1a", "us-east-1b")
    of = both_markets(0.5, zones=zones)
    prices = {offering(zone=zone): USD_PER_HOUR[T4.name][Market.SPOT] for zone in zones}
    alike = dict.fromkeys(prices, 0.02)
    of = replace(of, prices={**of.prices, **prices}, hazards=alike)

    (launch,) = launches(plan(refused(of)))

    assert {str(each) for each in launch.offerings} == {f"{T4.name}/us-east-1b/spot"}
