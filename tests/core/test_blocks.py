"""Two capacity blocks of one type and zone: which one a node goes into, and when it goes."""

from dataclasses import replace

import pytest

from tests.core.reading import launches
from tests.make import NOW_S, T4, ZONE, cluster, instance, job, node, pool, record, snapshot
from tidegate.core.model.cluster import OPEN, Cluster, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Send
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.reservations import active, block_drains_at_s
from tidegate.core.planner import plan

HOUR_S = 3600.0
BLOCK = Offering(T4.name, ZONE, Market.CAPACITY_BLOCK)


def bought(made: Plan) -> list[tuple[Market, int]]:
    return [(x.offerings[0].market, x.count) for x in launches(made)]


def two_blocks() -> Cluster:
    """One node of nine hours, two of eight."""
    longer = Reservation(
        "cr-1", T4.name, ZONE, 1, Market.CAPACITY_BLOCK, NOW_S - 60, NOW_S + 9 * HOUR_S
    )
    shorter = replace(longer, id="cr-2", count=2, ends_at_s=NOW_S + 8 * HOUR_S)
    of = cluster(pool(types=(T4,)))
    using = replace(of.pools[0], markets=(Market.CAPACITY_BLOCK, *of.pools[0].markets))
    prices = {**of.prices, BLOCK: 0.0}
    return replace(of, pools=(using,), reservations=(longer, shorter), prices=prices)


def test_both_of_two_blocks_are_filled_and_a_launch_takes_no_more_than_one_has() -> None:
    of, wanted = two_blocks(), [job(n, time_limit_s=HOUR_S) for n in range(2)]

    assert bought(plan(snapshot(wanted, of=of))) == [(Market.CAPACITY_BLOCK, 1)] * 2
    assert [next_block(of, *[""] * held) for held in range(4)] == ["cr-1", "cr-2", "cr-2", ""]


def test_what_ec2_says_to_be_in_the_shorter_block_leaves_the_longer_one_its_place() -> None:
    of = two_blocks()

    assert next_block(of, "cr-2", "cr-2") == "cr-1"
    assert next_block(of, "cr-1", "cr-2") == "cr-2"
    assert next_block(of, "cr-2", "") == "cr-2"
    assert next_block(of, "cr-0") == "cr-1", "one of a block that has ended takes no place"


def next_block(of: Cluster, *held: str) -> str:
    """Where the next one goes, beside instances that are in these ("": nobody has said)."""
    alive = [
        replace(instance(f"i-{number}", BLOCK), capacity_reservation_id=block)
        for number, block in enumerate(held)
    ]
    wanted = [job(n, time_limit_s=HOUR_S) for n in range(len(held) + 1)]
    seen = snapshot(wanted, of=of, instances=alive)
    return launches(plan(seen))[0].reservation


RESERVED = replace(BLOCK, market=Market.RESERVED)


def named_and_open() -> Cluster:
    """Two places that a launch has to name, and an open one."""
    named = Reservation(*("cr-1", T4.name, ZONE, 2, Market.RESERVED, NOW_S - 60), is_targeted=True)
    of = cluster(pool(types=(T4,)))
    using = replace(of.pools[0], markets=(Market.RESERVED, *of.pools[0].markets))
    reservations = (replace(named, id="cr-0", count=1, is_targeted=False), named)
    prices = {**of.prices, RESERVED: 0.0}
    return replace(of, pools=(using,), reservations=reservations, prices=prices)


def test_a_targeted_reservation_is_named_and_an_open_one_is_filled_beside_it() -> None:
    of = named_and_open()

    def after(*held: str) -> list[tuple[str, int]]:
        alive = [
            replace(instance(f"i-{n}", RESERVED), capacity_reservation_id=each)
            for n, each in enumerate(held)
        ]
        seen = snapshot([job(n) for n in range(9)], of=of, instances=alive)
        return [(each.reservation, each.count) for each in launches(plan(seen)) if each.reservation]

    assert after() == [("cr-1", 2), (OPEN, 1)]
    assert after("cr-0") == [("cr-1", 2)]
    assert after("cr-1") == [("cr-1", 1), (OPEN, 1)]
    assert after("cr-1", "") == [(OPEN, 1)], "nobody has said: named ones first"
    assert after("cr-1", "cr-1", "cr-0") == []


def test_a_job_is_held_against_the_end_of_the_block_that_its_node_goes_into() -> None:
    """The longer one lasts for it, the shorter one not."""
    wanted = job(time_limit_s=8 * HOUR_S)

    assert bought(plan(snapshot([wanted], of=two_blocks()))) == [(Market.CAPACITY_BLOCK, 1)]
    full = snapshot(
        [wanted, job(7, on=["i-1"])],
        [node(state="ALLOCATED", gpus_alloc=1)],
        of=two_blocks(),
        instances=[instance(on=BLOCK)],
        records=[NodeRecord("i-1", "l-0", "t4", BLOCK, NOW_S - 100, 0.0)],
    )
    assert bought(plan(full)) == [(Market.ON_DEMAND, 1)]


def test_a_node_that_may_be_in_either_of_two_blocks_goes_before_the_first_ends() -> None:
    of = two_blocks()

    assert block_drains_at_s(of, BLOCK, NOW_S) == NOW_S + 8 * HOUR_S - 2400
    assert block_drains_at_s(of, BLOCK, NOW_S + 8 * HOUR_S) == NOW_S + 9 * HOUR_S - 2400


@pytest.mark.parametrize(
    "changes",
    [
        {"zone": "us-east-1z"},
        {"instance_type": "p5.48xlarge"},
        {"market": Market.RESERVED},
        {"starts_at_s": NOW_S + 60, "ends_at_s": NOW_S + HOUR_S},
        {"ends_at_s": None},
    ],
)
def test_no_other_block_says_when_a_node_goes(changes) -> None:
    of = two_blocks()
    other = replace(of.reservations[1], **({"ends_at_s": NOW_S + HOUR_S} | changes))
    of = replace(of, reservations=(of.reservations[0], other))

    assert block_drains_at_s(of, BLOCK, NOW_S) == NOW_S + 9 * HOUR_S - 2400


def test_a_node_leaves_before_the_end_of_its_own_block_and_not_of_another_of_its_type() -> None:
    """Its jobs would be requeued, hours or days before they had to be."""
    of = two_blocks()
    shorter = replace(of.reservations[1], ends_at_s=NOW_S + 2400)
    of = replace(of, reservations=(of.reservations[0], shorter))

    def does(block_id: str) -> list[OrderKind]:
        running = job(7, on=["i-1"], is_requeueable=True)
        made = plan(
            snapshot(
                [running],
                [node(state="ALLOCATED", gpus_alloc=1)],
                of=of,
                instances=[replace(instance(on=BLOCK), capacity_reservation_id=block_id)],
                records=[
                    NodeRecord("i-1", "l-0", "t4", BLOCK, NOW_S - 100, 0.0, Phase.JOINED),
                ],
            )
        )
        return [each.order.kind for each in made.actions if isinstance(each, Send)]

    assert does("cr-1") == []
    assert sorted(does("cr-2")) == [OrderKind.DRAIN, OrderKind.REQUEUE]


def gang_lacks_one(*, in_its_block: int, elsewhere: int) -> Snapshot:
    """A gang of three has two nodes in a block; so many places are left there, and in another."""
    has = (T4.name, ZONE, 2 + in_its_block, Market.CAPACITY_BLOCK, NOW_S - 60)
    own = Reservation("cr-1", *has, NOW_S + 9 * HOUR_S)
    other = replace(own, id="cr-2", count=elsewhere)
    of = cluster(pool(types=(T4,)))
    using = replace(of.pools[0], markets=(Market.CAPACITY_BLOCK, *of.pools[0].markets))
    of = replace(of, pools=(using,), reservations=(own, other), prices={**of.prices, BLOCK: 0.0})
    names = ("i-1", "i-2")
    return snapshot(
        [job(9, nodes=3, time_limit_s=HOUR_S)],
        [node(each, state="IDLE+DRAIN+DYNAMIC_NORM") for each in names],
        of=of,
        instances=[replace(instance(n, BLOCK), capacity_reservation_id="cr-1") for n in names],
        records=[
            replace(record(each, gated_for="9"), offering=BLOCK, usd_per_hour=0.0) for each in names
        ],
    )


@pytest.mark.parametrize(
    ("in_its_block", "elsewhere", "goes_to"), [(3, 1, "cr-1"), (1, 3, "cr-1"), (0, 1, "cr-2")]
)
def test_the_last_node_of_a_gang_comes_from_the_block_of_the_others_where_that_has_a_place(
    in_its_block: int, elsewhere: int, goes_to: str
) -> None:
    """EC2 may have two blocks far apart, and a gang is as fast as its farthest node."""
    made = plan(gang_lacks_one(in_its_block=in_its_block, elsewhere=elsewhere))

    assert [(each.reservation, each.count) for each in launches(made)] == [(goes_to, 1)]


@pytest.mark.parametrize(("market", "is_used"), [(Market.RESERVED, True), (BLOCK.market, False)])
def test_nodes_of_a_block_alone_leave_before_its_end(market: Market, is_used: bool) -> None:
    """EC2 ends those of a block half an hour early; other reservations last until their end."""
    of = two_blocks()
    ends = replace(of.reservations[0], market=market, ends_at_s=NOW_S + 1800)

    assert [*active(replace(of, reservations=(ends,)), NOW_S)] == [ends] * is_used
