"""Reservations that the cluster file names by a group: who is in it EC2 says."""

from collections.abc import Iterable
from dataclasses import replace

from tests.core.reading import launches
from tests.make import A10G, NOW_S, T4, ZONE, cluster, instance, job, placement, pool, snapshot
from tidegate.core.model.capacity import (
    BlockState,
    Extension,
    ExtensionState,
    Holding,
    paid_until_s,
)
from tidegate.core.model.cluster import Cluster, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.market import SeenMarket
from tidegate.core.model.seen_reservations import SeenReservations
from tidegate.core.offers.market import at_market
from tidegate.core.offers.seen_reservations import odd_members, seen_now
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/gpus"
RESERVED = Offering(T4.name, ZONE, Market.RESERVED)
HOUR_S = 3600.0


def grouping(*more: Reservation) -> Cluster:
    """A pool that takes nodes from a group first; `more`: what its file names by id."""
    of = cluster(pool(types=(T4,)))
    using = replace(of.pools[0], markets=(Market.RESERVED, *of.pools[0].markets))
    return replace(of, pools=(using,), reservations=more, reservation_groups=(GROUP,))


def odcr(name: str, count: int = 1, type_: str = T4.name, **more: object) -> Reservation:
    held = Reservation(name, type_, ZONE, count, Market.RESERVED, 0.0, is_targeted=True)
    return replace(held, **more)  # type: ignore[arg-type]


def seen(of: Cluster, *members: Reservation) -> Cluster:
    held = [Holding(each, BlockState.ACTIVE) for each in members]
    found = seen_now(of, held, {GROUP: [each.id for each in members]}, ())
    return at_market(of, SeenMarket(reservations=SeenReservations(found, (GROUP,), NOW_S)), NOW_S)


def bought(of: Cluster, jobs: int, *held: str) -> list[tuple[Market, int]]:
    """What is bought for so many jobs beside busy instances in these reservations."""
    shown = [
        replace(instance(f"i-{n}", RESERVED), capacity_reservation_id=name)
        for n, name in enumerate(held)
    ]
    made = plan(snapshot([job(n) for n in range(jobs)], of=of, instances=shown))
    return [(each.offerings[0].market, each.count) for each in launches(made)]


def test_a_launch_takes_what_all_of_a_group_has_and_names_the_group() -> None:
    of = seen(grouping(), odcr("cr-1", 2), odcr("cr-2", 1))

    made = plan(snapshot([job(n) for n in range(4)], of=of))

    assert bought(of, 4) == [(Market.RESERVED, 3), (Market.SPOT, 1)]
    first = launches(made)[0]
    request = fleet_request(first, of.name, placement(of))
    assert request.launch_template_id == "lt-t4/group-gpus"


def test_what_comes_into_a_group_or_leaves_it_is_followed() -> None:
    of = grouping()

    assert bought(of, 1) == [(Market.SPOT, 1)]
    assert bought(seen(of, odcr("cr-1")), 2) == [(Market.RESERVED, 1), (Market.SPOT, 1)]
    assert bought(seen(of, odcr("cr-1"), odcr("cr-2")), 2) == [(Market.RESERVED, 2)]
    assert bought(seen(of, odcr("cr-2")), 1) == [(Market.RESERVED, 1)]


def test_one_pool_of_several_takes_nodes_from_a_group() -> None:
    of = grouping()
    other = pool("a10g", (A10G,))
    both = replace(of, pools=(*of.pools, other), prices={**of.prices, **cluster(other).prices})

    assert bought(seen(both, odcr("cr-1")), 1) == [(Market.RESERVED, 1)]


def test_places_that_are_taken_in_any_member_are_not_asked_for_again() -> None:
    of = seen(grouping(), odcr("cr-1", 2), odcr("cr-2", 1))

    assert left(of, "cr-1") == 2
    assert left(of, "cr-1", "cr-2") == 1
    assert left(of, "cr-1", "") == 1, "EC2 has not said yet where the second is"
    assert left(of, "cr-1", "cr-1", "cr-2") == 0


def left(of: Cluster, *held: str) -> int:
    found = bought(of, 4, *held)
    return sum(count for market, count in found if market is Market.RESERVED)


def test_a_reservation_that_the_file_names_too_is_launched_into_by_its_own_id() -> None:
    of = seen(grouping(odcr("cr-1")), odcr("cr-1"), odcr("cr-2"))

    assert [(each.id, each.group) for each in of.reservations] == [("cr-1", ""), ("cr-2", GROUP)]


def told(*held: Holding) -> list[str]:
    return list(odd_members(grouping(), held, {GROUP: [each.reservation.id for each in held]}))


def test_what_no_node_can_be_taken_from_is_left_out_and_said() -> None:
    block = odcr("cr-1", market=Market.CAPACITY_BLOCK, ends_at_s=NOW_S + HOUR_S)
    over, other = odcr("cr-2"), odcr("cr-3", type_="p5.48xlarge")
    lent = Holding(odcr("cr-4", market=Market.INTERRUPTIBLE), BlockState.ACTIVE)
    held = [
        *(Holding(each, BlockState.ACTIVE) for each in (block, other)),
        *(Holding(over, BlockState.CANCELLED), lent),
    ]
    names = [each.reservation.id for each in held]

    found = seen_now(grouping(), held, {GROUP: names}, ())
    sentences = list(odd_members(grouping(), held, {GROUP: [*names, "cr-9"]}))

    assert [each.id for each in found] == ["cr-3"]
    assert (
        at_market(grouping(), SeenMarket(reservations=SeenReservations(found)), NOW_S) == grouping()
    ), "no pool has its type"
    group = "in the reservation group gpus"
    assert sentences == [
        f"cr-1 {group} gives no node: it is a Capacity Block; name it in reservations by its id",
        f"cr-3 {group} is of p5.48xlarge in {ZONE}, which no pool has with capacity type reserved:"
        " it is paid for and never used",
        f"cr-2 {group} gives no node: EC2 says that it is cancelled; take it out of the group",
        f"cr-4 {group} gives no node: it is interruptible; name it in reservations by its id",
        f"cr-9 {group}: EC2 does not show it here, so it gives no node",
    ]


def test_an_empty_group_is_said() -> None:
    assert told() == [
        "the reservation group gpus is empty: what it is for is not bought; add reservations to it"
    ]


BLOCK = odcr("cr-7", market=Market.CAPACITY_BLOCK, is_targeted=False, ends_at_s=NOW_S + HOUR_S)
DAY_S = 24 * HOUR_S


def extended(state: ExtensionState, from_s: float = HOUR_S) -> Extension:
    return Extension("cbe-1", "cr-7", state, NOW_S + from_s, NOW_S + from_s + DAY_S)


def ends_in_s(shown_s: float, extensions: Iterable[Extension]) -> float:
    """When the block ends that EC2 shows to end in `shown_s`."""
    holding = Holding(replace(BLOCK, ends_at_s=NOW_S + shown_s), BlockState.ACTIVE)
    ends_at_s = paid_until_s(holding, extensions)
    assert ends_at_s is not None
    return ends_at_s - NOW_S


def test_the_end_of_an_extended_block_counts_once_it_is_paid_for() -> None:
    """EC2 does not say whether it shows the new end before."""
    paid, pending = ExtensionState.PAYMENT_SUCCEEDED, ExtensionState.PAYMENT_PENDING
    failed = ExtensionState.PAYMENT_FAILED
    later_s = HOUR_S + DAY_S

    assert ends_in_s(later_s, [extended(paid)]) == later_s
    for shown_s in (HOUR_S, later_s):
        assert ends_in_s(shown_s, [extended(pending)]) == HOUR_S
        assert ends_in_s(shown_s, [extended(failed)]) == HOUR_S
    assert ends_in_s(later_s, [extended(failed), extended(paid)]) == later_s, "bought again"
    both = [extended(paid), extended(pending, later_s)]
    assert ends_in_s(later_s + DAY_S, both) == later_s


def test_a_block_of_the_file_ends_when_ec2_says() -> None:
    of = replace(grouping(BLOCK), reservation_groups=())
    found = (replace(BLOCK, ends_at_s=NOW_S + DAY_S),)

    made = at_market(of, SeenMarket(reservations=SeenReservations(found)), NOW_S)

    assert made.reservations == found


def test_a_node_stays_whose_reservation_left_the_group() -> None:
    """EC2 leaves it where it is; what comes next finds no place."""
    assert bought(grouping(), 2, "cr-1") == [(Market.SPOT, 1)]
    assert bought(seen(grouping(), odcr("cr-2")), 3, "cr-1") == [
        (Market.RESERVED, 1),
        (Market.SPOT, 1),
    ]
