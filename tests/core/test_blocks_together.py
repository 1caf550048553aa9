"""Several blocks or reservations of one type and zone are filled in one plan."""

from dataclasses import replace

import pytest

from tests.core.reading import launches
from tests.make import NOW_S, T4, ZONE, cluster, instance, job, placement, pool, snapshot
from tidegate.core.model.cluster import OPEN, Cluster, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import LaunchRecord, NodeRecord
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

HOUR_S = 3600.0
BLOCK = Offering(T4.name, ZONE, Market.CAPACITY_BLOCK)
GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/gpus"


def block(name: str, count: int, hours: float = 9.0) -> Reservation:
    ends_at_s = NOW_S + hours * HOUR_S
    return Reservation(name, T4.name, ZONE, count, BLOCK.market, NOW_S - 60, ends_at_s)


def odcr(name: str, count: int, **more: object) -> Reservation:
    held = Reservation(name, T4.name, ZONE, count, Market.RESERVED, NOW_S - 60)
    return replace(held, **more)  # type: ignore[arg-type]


def holding(*held: Reservation) -> Cluster:
    of = cluster(pool(types=(T4,)))
    markets = (*dict.fromkeys(each.market for each in held), *of.pools[0].markets)
    prices = {**of.prices, **{each.offering: 0.0 for each in held}}
    pools = (replace(of.pools[0], markets=markets),)
    return replace(of, pools=pools, prices=prices, reservations=held)


def gang(number: int, nodes: int, hours: float = 1.0) -> Job:
    return job(number, nodes=nodes, time_limit_s=hours * HOUR_S, priority=100 - number)


def filled(seen: Snapshot) -> list[tuple[str, int]]:
    """What is launched into, and by the hour as its market; with how many nodes."""
    return sorted(
        (one.reservation or str(one.offerings[0].market), one.count) for one in launches(plan(seen))
    )


def of(held: tuple[Reservation, ...], *jobs: Job) -> list[tuple[str, int]]:
    return filled(snapshot(list(jobs), of=holding(*held)))


def test_two_gangs_start_from_two_blocks_in_one_plan() -> None:
    both = (block("cr-1", 4), block("cr-2", 4))

    assert of(both, gang(1, 4), gang(2, 4)) == [("cr-1", 4), ("cr-2", 4)]


def test_a_gang_goes_into_the_block_that_holds_it_whole() -> None:
    assert of((block("cr-1", 2, 9), block("cr-2", 4, 8)), gang(1, 4)) == [("cr-2", 4)]


def test_a_gang_takes_the_block_with_the_least_room_for_it() -> None:
    """The next one may need all of the other."""
    both = (block("cr-1", 4, 9), block("cr-2", 2, 8))

    assert of(both, gang(1, 2), gang(2, 4)) == [("cr-1", 4), ("cr-2", 2)]
    assert of(both, gang(1, 1), gang(2, 4)) == [("cr-1", 4), ("cr-2", 1)]


def test_no_gang_is_split_over_two_blocks() -> None:
    assert of((block("cr-1", 2), block("cr-2", 2)), gang(1, 4)) == [("spot", 4)]


def test_a_gang_goes_where_the_block_outlasts_it() -> None:
    both = (block("cr-1", 8, 9), block("cr-2", 4, 8))

    assert of(both, gang(1, 4, hours=8), gang(2, 4)) == [("cr-1", 4), ("cr-2", 4)]


def test_jobs_of_one_node_fill_all_blocks_however_many_there_are() -> None:
    many = tuple(block(f"cr-{n}", 1 + n % 2, 9 - n / 10) for n in range(8))
    jobs = [job(n, time_limit_s=HOUR_S) for n in range(12)]

    found = of(many, *jobs)

    assert sorted(found) == [(f"cr-{n}", 1 + n % 2) for n in range(8)]


def test_blocks_that_have_not_begun_or_are_in_another_zone_take_nothing() -> None:
    coming = replace(block("cr-3", 4, 99), starts_at_s=NOW_S + 1)
    elsewhere = replace(block("cr-4", 4, 99), zone="us-east-1b")

    assert of((block("cr-1", 4), coming, elsewhere), gang(1, 4), gang(2, 4)) == [
        ("cr-1", 4),
        ("spot", 4),
    ]


def test_reservations_that_are_named_a_group_and_open_ones_are_filled_together() -> None:
    held = (
        odcr("cr-1", 2, is_targeted=True),
        odcr("cr-2", 3, group=GROUP),
        odcr("cr-3", 1, group=GROUP),
        odcr("cr-4", 2),
    )

    assert of(held, *[gang(n, 2) for n in range(4)]) == [
        ("cr-1", 2),
        ("group-gpus", 4),
        (OPEN, 2),
    ]


def test_each_launch_is_made_from_the_template_of_what_it_names() -> None:
    made = holding(block("cr-1", 4), block("cr-2", 4))
    both = launches(plan(snapshot([gang(1, 4), gang(2, 4)], of=made)))

    asked = [fleet_request(each, made.name, placement(made)) for each in both]
    assert sorted(each.launch_template_id for each in asked) == ["lt-t4/cr-1", "lt-t4/cr-2"]
    assert all(each.reservation in each.reason for each in both)


@pytest.mark.parametrize("name", ["cr-1", "cr-2"])
@pytest.mark.parametrize("is_shown", [True, False])
def test_a_node_that_ec2_has_not_placed_yet_is_where_its_launch_has_put_it(
    name: str, is_shown: bool
) -> None:
    """It is one of the gang's five, and its block has the least room for the others."""
    made = holding(block("cr-1", 5, 9), block("cr-2", 5, 8))
    record = NodeRecord("i-1", "l-0", "t4", BLOCK, NOW_S - 9, 0.0, reservation=name)
    shown = [instance("i-1", BLOCK, age_s=9)] * is_shown

    seen = snapshot([gang(1, 5)], of=made, instances=shown, records=[record])

    assert filled(seen) == [(name, 4)]


def test_a_launch_in_doubt_holds_its_places_in_what_it_named() -> None:
    made = holding(block("cr-1", 4), block("cr-2", 4))
    first = launches(plan(snapshot([gang(1, 4)], of=made)))[0]
    doubt = LaunchRecord(first, NOW_S - 20, fleet_request(first, "test", placement(made)))
    other = "cr-2" if first.reservation == "cr-1" else "cr-1"

    seen = snapshot([gang(1, 4), gang(2, 4)], of=made, launches=[doubt])

    assert filled(seen) == [(other, 4)]


@pytest.mark.parametrize(("resting", "found"), [("cr-1", ("cr-2", 4)), ("", ("spot", 4))])
def test_what_ec2_refuses_of_one_block_rests_for_that_block(
    resting: str, found: tuple[str, int]
) -> None:
    made = holding(block("cr-1", 4), block("cr-2", 8))
    said = Resting(BLOCK, NOW_S + 100, 1, "ReservationCapacityExceeded", "", reservation=resting)

    assert filled(snapshot([gang(1, 4)], of=made, resting=[said])) == [found]
