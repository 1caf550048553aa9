"""What a cluster learns of its spot offerings: how long nodes ran, and which AWS took back."""

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from random import Random

import pytest

from tests.core.reading import launches, why
from tests.make import NOW_S, T4, cluster, instance, job, node, offering, pool, record, snapshot
from tidegate.core.explain.overview import overview
from tidegate.core.model.cluster import HAZARD_MAX_PER_HOUR
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import InterruptionLoss, NodeRecord, Phase
from tidegate.core.model.plan import COUNTED, Learn, Plan
from tidegate.core.model.pool_history import PoolHistory, SpotSeen
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.seen_hazards import (
    HALF_LIFE_S,
    estimate,
    seen_hazards,
    settled,
    stepped,
    until,
)
from tidegate.core.planner import plan

HOUR_S = 3600.0
FRESH = SpotSeen(T4.name, "us-east-1a")
SPOT = offering()


def ran(name: str, hours: float, *, ended_ago_s: float = 0.0, is_taken: bool = False) -> NodeRecord:
    """A node that ran for so long, and then was let go of or taken back."""
    of = record(name, age_s=ended_ago_s + hours * HOUR_S)
    at_s = NOW_S - ended_ago_s
    if is_taken:
        return replace(of, phase=Phase.INTERRUPTED, reclaim_at_s=at_s)
    return replace(of, phase=Phase.RELEASED, ended_at_s=at_s)


def learns(made: Plan) -> list[Learn]:
    return [each for each in made.actions if isinstance(each, Learn)]


def of_one_pool(**more: float) -> Snapshot:
    spot = pool(types=(T4,), markets=(Market.SPOT, Market.ON_DEMAND))
    return snapshot(of=replace(cluster(spot), hazards={SPOT: more.get("hazard", 0.05)}))


# -- what is counted -------------------------------------------------------------------------


def test_a_node_that_ends_is_noted_with_its_hours_and_a_look_without_an_end_notes_nothing() -> None:
    running = record("i-2", age_s=2 * HOUR_S)
    quiet = replace(of_one_pool(), nodes=(running,), instances=(instance("i-2"),))
    quiet = replace(quiet, digest=snapshot(nodes=[node("i-2")]).digest)

    (noted,) = learns(plan(replace(quiet, nodes=(running, ran("i-1", 10.0)))))

    assert learns(plan(quiet)) == []
    old = PoolHistory("t4", spot=(replace(FRESH, zone="us-east-1b", node_hours=0.1),))
    assert learns(plan(replace(quiet, pool_history=(old,)))) == []
    (seen,) = noted.pool_history.spot
    assert (noted.code, seen.instance_type, seen.taken) == (COUNTED, T4.name, 0.0)
    assert seen.node_hours == pytest.approx(12.0, rel=0.02)  # what goes on counts until now
    assert seen.hours == pytest.approx(10.0, rel=0.02)


def test_a_look_that_is_repeated_counts_nothing_twice() -> None:
    once = replace(of_one_pool(), nodes=(ran("i-1", 10.0, ended_ago_s=30.0, is_taken=True),))
    (noted,) = learns(plan(once))

    again = replace(once, now_s=NOW_S + 60, pool_history=(noted.pool_history,))

    (seen,) = noted.pool_history.spot
    assert (seen.taken, seen.storms) == (1.0, 1.0)
    (repeated,) = learns(plan(again))
    (same,) = repeated.pool_history.spot
    assert same.taken == pytest.approx(1.0, rel=1e-4)
    assert same.node_hours == pytest.approx(seen.node_hours, rel=1e-4)


def test_hours_are_the_same_whether_somebody_noted_them_meanwhile() -> None:
    nodes = [ran("i-1", 50.0, ended_ago_s=7200.0), record("i-2", age_s=30 * HOUR_S)]

    at_once, noted = until(FRESH, nodes, NOW_S), FRESH
    for ago_s in range(60 * 3600, 0, -3500):
        noted = settled(noted, _as_of(nodes, NOW_S - ago_s), NOW_S - ago_s, ())

    noted = until(noted, nodes, NOW_S)
    assert noted.node_hours == pytest.approx(at_once.node_hours, rel=1e-3)
    assert noted.hours == pytest.approx(at_once.hours, rel=1e-3)
    assert at_once.node_hours == pytest.approx(80.0, rel=0.1)
    assert at_once.hours == pytest.approx(52.0, rel=0.1)


def _as_of(nodes: list[NodeRecord], now_s: float) -> list[NodeRecord]:
    """Without the ends that nobody knew yet."""
    there = [each for each in nodes if each.launched_at_s <= now_s]
    return [each if (each.ended_at_s or inf) <= now_s else _running(each) for each in there]


def _running(of: NodeRecord) -> NodeRecord:
    return replace(of, ended_at_s=None, phase=Phase.JOINED)


def test_what_goes_together_is_one_storm() -> None:
    together = [ran(f"i-{n}", 5.0, ended_ago_s=n, is_taken=True) for n in range(4)]
    later = ran("i-9", 5.0, ended_ago_s=3000.0, is_taken=True)

    found = until(FRESH, [*together, later], NOW_S)

    assert (found.taken, found.storms) == (5, 2)


def test_a_notice_counts_at_once_and_is_noted_when_its_time_is_over() -> None:
    told = replace(record("i-1", age_s=HOUR_S), phase=Phase.INTERRUPTED, reclaim_at_s=NOW_S + 90)

    noted = settled(FRESH, [told], NOW_S, ())

    assert until(FRESH, [told], NOW_S).taken == 1
    assert (noted.taken, until(noted, [told], NOW_S + 60).taken) == (0, 1)
    assert settled(noted, [told], NOW_S + 100, ("i-1",)).taken == 1


def test_each_word_of_a_nodes_end_moves_it_and_it_counts_once() -> None:
    """A notice, shutting-down and terminated may come with other nodes' ends between them."""
    first = settled(FRESH, [ran("i-1", 1.0, is_taken=True)], NOW_S, ("i-9",))

    later = ran("i-1", 1.0, ended_ago_s=-30.0, is_taken=True)
    second = settled(first, [later], NOW_S + 40, ("i-8",))
    last = ran("i-1", 1.0, ended_ago_s=-60.0, is_taken=True)

    assert until(second, [last], NOW_S + 70).taken == pytest.approx(1.0, rel=1e-3)
    closed = settled(second, [last], NOW_S + 70, ("i-1",))
    assert (closed.taken, closed.storms) == pytest.approx((1.0, 1.0), rel=1e-3)
    assert settled(closed, [], NOW_S + 80, ("i-7",)).counted == ()


def test_a_node_that_nobody_announced_counts_once_where_its_record_could_not_be_closed() -> None:
    of = record("i-1", age_s=HOUR_S)

    first = settled(FRESH, [of], NOW_S, ("i-1",))

    assert settled(first, [of], NOW_S + 60, ("i-1",)).taken == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("of", "taken"),
    [
        (replace(record("i-1", age_s=HOUR_S)), 1),  # nobody has announced it
        (replace(record("i-1", age_s=HOUR_S), ended_at_s=NOW_S - 5), 0),
        (replace(record("i-1", age_s=HOUR_S), phase=Phase.RELEASED), 0),
        (replace(ran("i-1", 1.0, is_taken=True), silent_s=1800.0), 0),
        (
            replace(
                ran("i-1", 1.0, is_taken=True),
                interruption_loss=InterruptionLoss(is_taken=False),
            ),
            0,
        ),
    ],
)
def test_only_what_aws_took_back_counts_as_taken(of: NodeRecord, taken: int) -> None:
    assert settled(FRESH, [of], NOW_S, ("i-1",)).taken == taken


def test_what_is_older_counts_less() -> None:
    busy = until(FRESH, [ran("i-1", 10.0, is_taken=True)], NOW_S)

    later = until(busy, [], NOW_S + HALF_LIFE_S)

    assert later.node_hours == pytest.approx(busy.node_hours / 2)
    assert (later.taken, later.storms) == (0.5, 0.5)


def test_pools_that_share_an_offering_know_the_same() -> None:
    two = cluster(pool("a", (T4,)), pool("b", (T4,)))
    seen = replace(FRESH, until_s=NOW_S, node_hours=100.0, hours=100.0)
    histories = PoolHistory("a", spot=(seen,)), PoolHistory("b", spot=(seen,))

    (found,) = seen_hazards(replace(snapshot(of=two), pool_history=histories)).values()

    assert found.node_hours == 200.0


# -- what follows from it --------------------------------------------------------------------


def test_nothing_seen_is_the_files_word() -> None:
    assert [estimate(FRESH, each) for each in (0.0, 0.0003, 0.05, 60.0)] == [0, 0.0003, 0.05, 60]


@pytest.mark.parametrize("file_per_hour", [0.0, 0.0003, 0.01, 0.05, 1.0, 60.0])
@pytest.mark.parametrize("hours", [0.0, 0.1, 3.0, 50.0])
def test_one_loss_or_one_storm_raises_no_hazard(file_per_hour: float, hours: float) -> None:
    one = replace(FRESH, node_hours=hours, hours=hours, taken=1.0, storms=1.0)
    storm = replace(FRESH, node_hours=20 * hours, hours=hours, taken=20.0, storms=1.0)

    assert estimate(one, file_per_hour) <= file_per_hour
    assert estimate(storm, file_per_hour) <= file_per_hour


def test_as_long_without_a_loss_as_the_file_says_lowers_nothing() -> None:
    calm = replace(FRESH, node_hours=20.0, hours=20.0)
    calmer = replace(FRESH, node_hours=100.0, hours=100.0)

    assert estimate(calm, 0.05) == 0.05
    assert estimate(calmer, 0.05) == pytest.approx(2 / 120)


def lived(true_per_hour: float, *, is_together: bool, seed: int, days: float = 14) -> SpotSeen:
    """Ten nodes for so long: each is taken by itself, or half of them in storms."""
    chance, hours, nodes = Random(seed), days * 24, 10
    size = nodes / 2 if is_together else 1
    times = list(_times(chance, true_per_hour * nodes / size, hours))
    return replace(
        FRESH,
        node_hours=nodes * hours,
        hours=hours,
        taken=size * len(times),
        storms=float(len(times)),
    )


def _times(chance: Random, per_hour: float, hours: float) -> Iterator[float]:
    at = chance.expovariate(per_hour)
    while at < hours:
        yield at
        at += chance.expovariate(per_hour)


@pytest.mark.parametrize("is_together", [False, True])
@pytest.mark.parametrize("factor", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("true_per_hour", [0.01, 0.05, 0.2])
def test_a_file_that_is_off_by_five_is_corrected_within_two_weeks(
    true_per_hour: float, factor: float, is_together: bool
) -> None:
    of_file = true_per_hour * factor

    found = [
        estimate(lived(true_per_hour, is_together=is_together, seed=seed), of_file)
        for seed in range(20)
    ]

    found.sort()
    assert true_per_hour / 2 <= found[10] <= true_per_hour * 2
    assert true_per_hour / 5 <= found[0]
    assert found[-1] <= true_per_hour * 5


def test_calm_is_judged_by_storms_that_might_have_come() -> None:
    """A hundred nodes for an hour are no hundred hours without a storm."""
    an_hour = replace(FRESH, node_hours=100.0, hours=1.0)

    assert estimate(an_hour, 0.05) > 0.04


@pytest.mark.parametrize(
    "seen",
    [
        replace(FRESH, taken=5.0, storms=5.0),
        replace(FRESH, hours=1e9, node_hours=1e9),
        replace(FRESH, node_hours=1e-9, taken=1e9, storms=1e9),
        replace(FRESH, hours=5.0),
        replace(FRESH, until_s=NOW_S + 1e9, newest_s=NOW_S + 1e9, hours=3.0, node_hours=3.0),
    ],
)
@pytest.mark.parametrize("file_per_hour", [0.0, 0.03, 0.05, 60.0])
def test_absurd_counts_give_a_hazard_that_can_be_meant(
    seen: SpotSeen, file_per_hour: float
) -> None:
    nodes = [replace(record("i-1"), launched_at_s=0.0), record("i-2", age_s=-500.0)]

    now = until(seen, nodes, NOW_S)

    for each in (seen, now):
        found = estimate(each, file_per_hour)
        assert 0 <= found <= HAZARD_MAX_PER_HOUR
        assert stepped(found, file_per_hour) <= HAZARD_MAX_PER_HOUR
    assert now.until_s == NOW_S
    assert 0 <= now.node_hours <= seen.node_hours + 500


def test_estimates_come_in_steps_of_which_the_files_word_is_one() -> None:
    found = {stepped(per_hour / 1000, 0.05) for per_hour in range(1, 1000)}

    assert 0.05 in found
    assert len(found) < 20
    assert all(0.8 < stepped(per_hour, 0.0) / per_hour < 1.25 for per_hour in (0.001, 0.03, 2.0))


# -- what is done with it --------------------------------------------------------------------


def three_hours(seen: SpotSeen, hazard: float) -> Snapshot:
    """A job of three hours, which is worth spot up to some 0.06 interruptions an hour."""
    of = of_one_pool(hazard=hazard)
    jobs = snapshot([job(time_limit_s=3 * HOUR_S)]).digest
    history = PoolHistory("t4", spot=(replace(seen, until_s=NOW_S),))
    return replace(of, digest=jobs, pool_history=(history,))


def market(made: Plan) -> Market:
    (launch,) = launches(made)
    return launch.offerings[0].market


MANY = replace(FRESH, node_hours=40.0, hours=40.0, taken=8.0, storms=8.0)
ONE = replace(FRESH, node_hours=3.0, hours=3.0, taken=1.0, storms=1.0)
CALM = replace(FRESH, node_hours=400.0, hours=400.0)


@pytest.mark.parametrize(
    ("seen", "hazard", "bought"),
    [
        (FRESH, 0.05, Market.SPOT),
        (ONE, 0.05, Market.SPOT),
        (MANY, 0.05, Market.ON_DEMAND),
        (FRESH, 0.2, Market.ON_DEMAND),
        (CALM, 0.2, Market.SPOT),
    ],
)
def test_spot_is_bought_by_what_was_seen_of_it(
    seen: SpotSeen, hazard: float, bought: Market
) -> None:
    assert market(plan(three_hours(seen, hazard))) is bought


def test_why_says_that_it_was_seen_here() -> None:
    spot = pool(types=(T4,), markets=(Market.SPOT,))
    of = replace(three_hours(MANY, 0.05), cluster=cluster(spot))
    long = replace(of, digest=snapshot([job(time_limit_s=100 * HOUR_S)]).digest)

    assert "times an hour as seen here" in why(plan(long))


def test_status_tells_what_was_seen_beside_what_the_file_says() -> None:
    (found,) = overview(three_hours(MANY, 0.05), None).spot

    assert found.offering == str(Offering(T4.name, "us-east-1a", Market.SPOT))
    assert (found.node_hours, found.taken, found.file_per_hour) == (40.0, 8.0, 0.05)
    assert found.per_hour > 0.1
