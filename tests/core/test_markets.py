"""Which market a job is bought on: what it costs with its interruptions, and until when."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.core.reading import launches, orders, why
from tests.make import (
    NOW_S,
    T4,
    T4_BIG,
    ZONE,
    cluster,
    instance,
    job,
    node,
    placement,
    pool,
    record,
    snapshot,
)
from tidegate.core.demand.demand import Need
from tidegate.core.model.cluster import Cluster, Limits, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import LaunchRecord, NodeRecord
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Resume
from tidegate.core.model.slurm import Job, Shape
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.cost import LOST_WORK_FACTOR, billed_hours
from tidegate.core.offers.due import MARGIN_S
from tidegate.core.offers.limits import UNLIMITED
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

HOUR_S = 3600.0
RESERVED = Offering("g4dn.xlarge", ZONE, Market.RESERVED)
BLOCK = Offering("g4dn.xlarge", ZONE, Market.CAPACITY_BLOCK)


def need(**more: object) -> Need:
    return Need("1", 1, 1, Shape(1, "t4"), "", ("t4",), **more)  # type: ignore[arg-type]


def hours(of: Need, *, hazard: float, checkpoint_s: float | None = None) -> float:
    return billed_hours(of, boot_s=360.0, hazard_per_hour=hazard, checkpoint_s=checkpoint_s)


def bought(made: Plan) -> list[tuple[Market, int]]:
    return [(x.offerings[0].market, x.count) for x in launches(made)]


def hazardous(per_hour: float, **more: object) -> Cluster:
    of = cluster(pool(types=(T4,)))
    hazards = {each: per_hour for _, each in of.pools[0].offerings()}
    return replace(of, hazards=hazards, **more)  # type: ignore[arg-type]


def reserving(
    count: int = 1, market: Market = Market.RESERVED, ends_in_s: float | None = None
) -> Cluster:
    ends_at_s = None if ends_in_s is None else NOW_S + ends_in_s
    held = Reservation("cr-1", "g4dn.xlarge", ZONE, count, market, NOW_S - 60, ends_at_s)
    of = cluster(pool(types=(T4,)))
    using = replace(of.pools[0], markets=(market, *of.pools[0].markets))
    return replace(of, pools=(using,), reservations=(held,), prices={**of.prices, held.offering: 0})


def test_without_interruptions_a_node_is_paid_for_its_boot_and_its_job() -> None:
    assert hours(need(expected_s=HOUR_S), hazard=0.0) == pytest.approx(1.1)


def test_a_job_that_loses_all_its_work_pays_for_it_again() -> None:
    # (e^(0.5 x 2 h) - 1) / 0.5 of running, and a boot for each attempt; what is over 2.1 h is lost.
    attempts = 0.1 * 2.71828 + (2.71828 - 1) / 0.5
    expected = 2.1 + LOST_WORK_FACTOR * (attempts - 2.1)

    assert hours(need(expected_s=2 * HOUR_S), hazard=0.5) == pytest.approx(expected, rel=1e-4)


def test_a_checkpoint_saves_all_but_half_an_interval() -> None:
    told = hours(need(expected_s=2 * HOUR_S, checkpoint_s=600.0), hazard=0.5)
    by_pool = hours(need(expected_s=2 * HOUR_S), hazard=0.5, checkpoint_s=600.0)

    lost = 1.0 * (300 / HOUR_S + 0.1)
    assert told == by_pool == pytest.approx(2.1 + LOST_WORK_FACTOR * lost, rel=0.02)


def test_a_job_that_was_interrupted_without_checkpoints_is_taken_to_be_so_more_often() -> None:
    plain, saving = need(expected_s=HOUR_S), need(expected_s=HOUR_S, checkpoint_s=600.0)

    again = {each: hours(replace(each, restarts=1), hazard=0.1) for each in (plain, saving)}

    assert again[plain] > hours(plain, hazard=0.15)
    assert again[saving] == hours(saving, hazard=0.1)


def test_a_gang_is_interrupted_as_often_as_all_its_nodes_together() -> None:
    gang = replace(need(expected_s=HOUR_S), nodes=8)

    assert hours(gang, hazard=0.1) == hours(need(expected_s=HOUR_S), hazard=0.8)


@pytest.mark.parametrize(
    ("limit_h", "is_requeueable", "comment", "market"),
    [
        (1, True, "", Market.SPOT),
        (60, True, "", Market.ON_DEMAND),  # it would hardly ever come to its end
        (60, True, "tidegate:ckpt=USR1@20", Market.SPOT),
        (1, False, "", Market.SPOT),
        (4, False, "", Market.ON_DEMAND),
    ],
)
def test_each_job_gets_the_market_that_costs_least_until_it_has_ended(
    limit_h: int, is_requeueable: bool, comment: str, market: Market
) -> None:
    one = job(time_limit_s=limit_h * HOUR_S, is_requeueable=is_requeueable, comment=comment)

    assert bought(plan(snapshot([one], of=hazardous(0.05)))) == [(market, 1)]


def test_spot_is_tried_while_there_is_time_and_on_demand_at_the_last_safe_moment() -> None:
    # Two boots of 300 s, the job, and the job again after an interruption at its very end, which
    # the next look has to see.
    last_s = 2 * 300 + 2 * HOUR_S + MARGIN_S
    patient = job(time_limit_s=HOUR_S, deadline_s=NOW_S + last_s)
    urgent = job(time_limit_s=HOUR_S, deadline_s=NOW_S + last_s - 1)

    assert bought(plan(snapshot([patient]))) == [(Market.SPOT, 1)]
    assert bought(plan(snapshot([urgent]))) == [(Market.ON_DEMAND, 1)]


def test_a_late_job_takes_spot_when_there_is_nothing_else() -> None:
    only = cluster(pool(markets=(Market.SPOT,)))
    urgent = job(time_limit_s=HOUR_S, deadline_s=NOW_S + 300 + HOUR_S)

    assert bought(plan(snapshot([urgent], of=only))) == [(Market.SPOT, 1)]


def test_nothing_is_bought_for_a_job_that_cannot_end_before_its_deadline() -> None:
    """Slurm cancels it; with --time-min it gives it less time first."""
    late = job(1, time_limit_s=HOUR_S, deadline_s=NOW_S + HOUR_S)
    shorter = replace(late, job_id="2", time_min_s=HOUR_S / 2)

    made = plan(snapshot([late, shorter]))

    assert [x.for_jobs for x in launches(made)] == [("2",)]
    said = "boots a node in 300 s: the job would end 300 s after its deadline"
    assert why(made) == f"pool a10g {said}; pool t4 {said}"


def test_a_job_whose_deadline_is_near_may_still_use_a_node_that_is_there() -> None:
    late = job(1, time_limit_s=HOUR_S, deadline_s=NOW_S + HOUR_S)

    made = plan(snapshot([late], [node()], instances=[instance()], records=[record()]))

    assert made.served[0].by == ("i-1",)


def test_a_checkpoint_gives_spot_more_time_before_a_deadline() -> None:
    deadline_s = NOW_S + 2 * 300 + HOUR_S + MARGIN_S
    plain = job(time_limit_s=HOUR_S, deadline_s=deadline_s)
    saving = replace(plain, comment="tidegate:ckpt=USR1@20")

    assert bought(plan(snapshot([plain]))) == [(Market.ON_DEMAND, 1)]
    assert bought(plan(snapshot([saving]))) == [(Market.SPOT, 1)]


def test_pool_weight_comes_before_expected_cost() -> None:
    dear = pool("dear", (T4_BIG,), weight=50, markets=(Market.ON_DEMAND,))

    assert launches(plan(snapshot([job()], of=cluster(pool(), dear))))[0].pool == "dear"


def test_what_is_reserved_is_used_up_before_anything_is_paid_by_the_hour() -> None:
    made = plan(snapshot([job(n) for n in range(3)], of=reserving(2)))

    assert bought(made) == [(Market.RESERVED, 2), (Market.SPOT, 1)]
    assert made.usd_per_hour == pytest.approx(0.2)
    assert launches(made)[0].offerings == (RESERVED,)


def test_nodes_in_a_reservation_and_launches_in_doubt_leave_less_of_it() -> None:
    mine = NodeRecord("i-1", "l-0", "t4", RESERVED, NOW_S - 100, 0.0)
    busy = node(state="ALLOCATED", gpus_alloc=1)
    seen = snapshot(
        [job(1, on=["i-1"]), job(2)],
        [busy],
        of=reserving(1),
        instances=[instance(on=RESERVED)],
        records=[mine],
    )

    assert bought(plan(seen)) == [(Market.SPOT, 1)]


def test_a_pool_leaves_reservations_alone_that_are_not_of_its_capacity_types() -> None:
    of = reserving(1)
    (pool_,) = of.pools
    hourly = replace(pool_, markets=(Market.SPOT,))

    assert bought(plan(snapshot([job()], of=replace(of, pools=(hourly,))))) == [(Market.SPOT, 1)]


def test_what_is_reserved_is_asked_for_before_anything_that_would_take_its_place() -> None:
    """EC2 puts any node into an open reservation that it fits, whoever asks first."""
    of = reserving(1)
    (using,) = of.pools
    hourly = replace(using, name="h", markets=(Market.ON_DEMAND,))
    parts = tuple(replace(each, pools=("t4", "h")) for each in of.partitions)
    jobs = [job(1, constraint="h", priority=9), job(2, constraint="t4", priority=1)]

    made = plan(snapshot(jobs, of=replace(of, pools=(using, hourly), partitions=parts)))

    assert bought(made) == [(Market.RESERVED, 1), (Market.ON_DEMAND, 1)]


@pytest.mark.parametrize(("ends_in_s", "may_buy"), [(None, True), (60.0, True), (-1.0, False)])
def test_a_launch_in_doubt_is_not_repeated_once_its_reservation_has_ended(
    ends_in_s: float | None, may_buy: bool
) -> None:
    """EC2 would sell it on demand, which no limit has counted; so it would with its place taken."""
    of = reserving(1, ends_in_s=ends_in_s)
    (first,) = launches(plan(snapshot([job()], of=reserving(1))))
    doubt = LaunchRecord(first, NOW_S - 61, fleet_request(first, "test", placement(of)))

    made = plan(snapshot([], of=of, launches=[doubt]))

    assert [each.may_buy for each in made.actions if isinstance(each, Resume)] == [may_buy]
    taken = snapshot([], of=of, launches=[doubt], instances=[instance(on=RESERVED)])
    made = plan(taken)
    assert [each.may_buy for each in made.actions if isinstance(each, Resume)] == [False]


def test_a_reserved_node_has_the_features_of_one_on_demand() -> None:
    """EC2 tells a machine nothing of an open reservation."""
    on_demand, reserved = job(1, constraint="on-demand"), job(2, constraint="reserved")

    assert bought(plan(snapshot([on_demand], of=reserving(1)))) == [(Market.RESERVED, 1)]
    assert bought(plan(snapshot([reserved], of=reserving(1)))) == []


def test_a_reservation_that_has_not_begun_or_has_ended_is_not_there() -> None:
    of = reserving(1)
    (held,) = of.reservations
    later = replace(of, reservations=(replace(held, starts_at_s=NOW_S + 60),))
    over = replace(of, reservations=(replace(held, ends_at_s=NOW_S - 1),))

    for each in (later, over):
        assert bought(plan(snapshot([job()], of=each))) == [(Market.SPOT, 1)]


@pytest.mark.parametrize(
    ("limit_s", "market"),
    [
        (HOUR_S, Market.CAPACITY_BLOCK),
        (HOUR_S + 1, Market.SPOT),
        (None, Market.SPOT),  # nobody knows when it ends
    ],
)
def test_no_job_is_bought_a_node_of_a_block_that_ends_before_it(
    limit_s: float | None, market: Market
) -> None:
    # The job, its boot of 300 s, and the 40 min before the end in which nodes are drained.
    block = reserving(1, Market.CAPACITY_BLOCK, ends_in_s=HOUR_S + 300 + 2400)

    assert bought(plan(snapshot([job(time_limit_s=limit_s)], of=block))) == [(market, 1)]


def test_a_job_that_only_a_block_could_hold_is_told_when_that_ends() -> None:
    block = reserving(1, Market.CAPACITY_BLOCK, ends_in_s=HOUR_S)
    only = replace(block, prices={})

    assert "ends before the job would" in why(plan(snapshot([job(time_limit_s=HOUR_S)], of=only)))


@pytest.mark.parametrize(("ends_in_s", "drained"), [(2401.0, []), (2399.0, [("i-1",)])])
def test_nodes_of_a_block_are_drained_40_minutes_before_its_end(
    ends_in_s: float, drained: list[tuple[str, ...]]
) -> None:
    mine = NodeRecord("i-1", "l-0", "t4", BLOCK, NOW_S - 30, 0.0)
    made = plan(
        snapshot(
            [job(1, on=["i-1"])],
            [node(state="ALLOCATED", gpus_alloc=1)],
            of=reserving(1, Market.CAPACITY_BLOCK, ends_in_s=ends_in_s),
            instances=[instance(on=BLOCK)],
            records=[mine],
        )
    )

    assert [order.names for order in orders(made, OrderKind.DRAIN)] == drained


def test_an_idle_node_in_a_reservation_is_kept_and_one_paid_by_the_hour_is_not() -> None:
    mine = NodeRecord("i-1", "l-0", "t4", RESERVED, NOW_S - 500, 0.0)
    made = plan(
        snapshot(
            [],
            [node("i-1", idle_s=400), node("i-2", idle_s=400)],
            of=reserving(1),
            instances=[instance("i-1", RESERVED), instance("i-2")],
            records=[mine, record("i-2", age_s=500)],
        )
    )

    assert [order.names for order in orders(made, OrderKind.RELEASE)] == [("i-2",)]


def after_its_reservation(jobs: Sequence[Job] = (), limits: Limits = UNLIMITED) -> Snapshot:
    """Its node runs on, and EC2 bills it by the hour."""
    mine = NodeRecord("i-1", "l-0", "t4", RESERVED, NOW_S - 500, 0.0)
    on_demand = Offering("g4dn.xlarge", ZONE, Market.ON_DEMAND)
    ended = replace(reserving(1, ends_in_s=-30), limits=limits)
    nodes = [node("i-1", idle_s=400)]
    instances = [instance("i-1", on_demand)]
    return snapshot(jobs, nodes, of=ended, instances=instances, records=[mine])


def test_a_node_whose_reservation_has_ended_goes_when_it_idles() -> None:
    made = plan(after_its_reservation())

    assert [order.names for order in orders(made, OrderKind.RELEASE)] == [("i-1",)]


def test_a_node_whose_reservation_has_ended_counts_against_the_limits_with_its_price() -> None:
    usd = reserving().prices[Offering("g4dn.xlarge", ZONE, Market.ON_DEMAND)]
    wanted = [job(5, nodes=2)]
    tight = plan(after_its_reservation(wanted, Limits(usd_per_hour=1.2 * usd)))
    wide = plan(after_its_reservation(wanted, Limits(usd_per_hour=2.2 * usd)))

    assert bought(tight) == []
    assert sum(count for _, count in bought(wide)) == 1


def test_a_gang_takes_a_reservation_only_when_it_holds_all_of_it() -> None:
    assert bought(plan(snapshot([gang(3)], of=reserving(2)))) == [(Market.SPOT, 3)]
    assert bought(plan(snapshot([gang(3)], of=reserving(3)))) == [(Market.RESERVED, 3)]
    two = plan(snapshot([gang(2), replace(gang(3), job_id="8")], of=reserving(4)))
    assert sorted(bought(two)) == [(Market.RESERVED, 3), (Market.SPOT, 2)]


def gang(nodes: int) -> Job:
    return job(9, nodes=nodes)


def test_a_place_that_was_kept_for_a_refused_job_is_the_next_ones() -> None:
    small = replace(reserving(2), limits=Limits(nodes=2))
    parts = [job(5, het_job_id="5", priority=9), job(6, nodes=2, het_job_id="5", priority=9)]

    made = plan(snapshot([*parts, job(7, nodes=2)], of=small))

    assert [each.job_id for each in made.served] == ["7"]
    assert bought(made) == [(Market.RESERVED, 2)]


def test_reservations_of_one_offering_hold_as_many_as_all_of_them() -> None:
    of = reserving(1)
    two = replace(of, reservations=(*of.reservations, replace(of.reservations[0], id="cr-2")))

    assert bought(plan(snapshot([job(1, count=3)], of=two)))[0] == (Market.RESERVED, 2)
