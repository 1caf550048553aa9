"""A pool's record stays within an item of DynamoDB (400 KB), however much it has seen."""

from dataclasses import replace

from tests.core.test_idle_check import after, world
from tests.core.test_seen_hazards import learns, of_one_pool, ran
from tests.core.test_spares import learnt, seen
from tests.make import NOW_S, T4, job, offering
from tidegate.core.fleet.idle_time import SEEN_MAX
from tidegate.core.fleet.week import HOURS, hour_at
from tidegate.core.model.finding import FINDINGS_MAX, Finding
from tidegate.core.model.idle_check import (
    CHECKED_MAX,
    DAY_S,
    CheckedNode,
    IdleChecks,
    PairChecks,
)
from tidegate.core.model.pool_history import (
    Arrivals,
    HourSeen,
    PoolHistory,
    SpareNode,
    SpotSeen,
    Week,
)
from tidegate.core.planner import plan
from tidegate.wire.records import POOL_HISTORY, encode

# Source: DynamoDB developer guide, "Quotas": an item with the names of its attributes.
ITEM_BYTES = 400_000
TYPES = [f"c7gn.{number}xlarge" for number in range(100)]
ZONES = [f"us-east-1{letter}" for letter in "abcdef"]
PIECE = int(NOW_S // 300)
AT_S = NOW_S + 0.123456


def busy(instance_type: str, *, pieces_ago: int = 1) -> Arrivals:
    """A type for which jobs come at all hours of the week, to a large cluster."""
    hours = tuple(
        HourSeen(hour, 2811, (1234.251, 1400.112, 0.512), (3512.235, 3022.012, 2.331, 1333512.123))
        for hour in range(HOURS)
    )
    since = hour_at(NOW_S) - 52 * HOURS
    week = Week(since, hour_at(NOW_S), 1034.5123, 12345.678, 1512.123, hours)
    spare = (SpareNode(0.123456, 0.234567, 0.345678, 0.456789),) * 32
    return Arrivals(instance_type, PIECE - pieces_ago, 12.0, 8.5, spare, week)


def test_of_a_hundred_busy_types_those_are_remembered_for_which_jobs_came_last() -> None:
    """With all of them every look would have failed, since what it learns is written first."""
    arrivals = [busy(each, pieces_ago=number + 1) for number, each in enumerate(TYPES)]
    before = PoolHistory("t4", arrivals=tuple(arrivals), newest_job=50)

    after = learnt(plan(seen(before, jobs=[job(51)])))["t4"]

    names = [each.instance_type for each in after.arrivals]
    assert names == sorted([*TYPES[: len(names) - 1], T4.name])
    assert len(names) > 6
    assert len(encode(POOL_HISTORY, after)) < ITEM_BYTES


def test_of_six_hundred_spot_offerings_those_are_remembered_that_ended_last() -> None:
    spots = tuple(
        SpotSeen(each, zone, NOW_S - 60 * number, 12345.6789, 2345.6789, 12.3456, 8.7654, NOW_S)
        for number, each in enumerate(TYPES)
        for zone in ZONES
    )
    world = replace(of_one_pool(), nodes=(ran("i-1", 10.0),))

    (noted,) = learns(plan(replace(world, pool_history=(PoolHistory("t4", spot=spots),))))

    after = noted.pool_history
    assert (T4.name, offering().zone) in {(e.instance_type, e.zone) for e in after.spot}
    assert {each.instance_type for each in after.spot} - {T4.name} == set(TYPES[:34])
    assert after.spot == tuple(sorted(after.spot, key=lambda each: (each.instance_type, each.zone)))


def test_with_all_that_a_pool_of_a_thousand_nodes_may_have_a_record_fits() -> None:
    arrivals = tuple(busy(each) for each in TYPES)
    known = PoolHistory("t4", arrivals=arrivals, newest_job=50)
    counted = learnt(plan(seen(known, jobs=[job(51)])))["t4"]
    world = replace(of_one_pool(), nodes=(ran("i-1", 10.0),))
    spots = tuple(
        SpotSeen(each, zone, AT_S, 12345.6789, 2345.6789, 12.3456, 8.7654, AT_S)
        for each in TYPES
        for zone in ZONES
    )
    (noted,) = learns(plan(replace(world, pool_history=(PoolHistory("t4", spot=spots),))))
    checked = tuple(CheckedNode(f"i-{number:017x}", AT_S) for number in range(CHECKED_MAX))
    found = Finding(
        *(f"i-{1:017x}", "tidegate-health: nvlink", offering(), AT_S, 1000, 500, "0a1b2c3d-12"),
        reservation=f"cr-{1:017x}",
        reboot_at_s=AT_S,
        network_node=f"nn-{1:017x}",
    )

    whole = replace(
        counted,
        spot=noted.pool_history.spot,
        findings=(found,) * FINDINGS_MAX,
        idle_checks=IdleChecks(nodes=checked, pairs=PairChecks(nodes=checked)),
        taken_at_s=(AT_S,) * SEEN_MAX,
        freed_at_s=(AT_S,) * SEEN_MAX,
    )

    assert len(encode(POOL_HISTORY, whole)) < ITEM_BYTES


def test_of_more_nodes_than_a_record_holds_those_are_remembered_that_were_checked_last() -> None:
    names = [f"i-{number}" for number in range(1, CHECKED_MAX + 101)]
    checked = tuple(CheckedNode(name, NOW_S - 9000 + at) for at, name in enumerate(names))
    ages_s = [9 * DAY_S] * len(names)
    before = IdleChecks(nodes=checked, pairs=PairChecks(nodes=checked))

    found = after(world(ages_s, before))

    assert found.nodes == checked[100:]
    assert found.pairs.nodes == checked[100:]
