"""What an open reservation pays for, and what counts where it may not: limits in money hold."""

from dataclasses import replace

import pytest

from tests.core.reading import launches
from tests.make import (
    NOW_S,
    T4,
    UNLIMITED,
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
from tidegate.core.model.cluster import Cluster, Limits, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import LaunchRecord, NodeRecord, Phase
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.reservations import ReservedCapacity
from tidegate.core.planner import plan
from tidegate.service.requests import fleet_request

RESERVED = Offering(T4.name, ZONE, Market.RESERVED)
ON_DEMAND = replace(RESERVED, market=Market.ON_DEMAND)

# A node on demand is 0.526 USD per hour, on spot 0.2: one of each is too much.
TIGHT = Limits(usd_per_hour=0.7)


def reserving(ends_in_s: float | None, count: int = 1) -> Cluster:
    ends_at_s = None if ends_in_s is None else NOW_S + ends_in_s
    held = Reservation("cr-1", T4.name, ZONE, count, Market.RESERVED, NOW_S - 900, ends_at_s)
    of = cluster(pool(types=(T4,)))
    using = replace(of.pools[0], markets=(Market.RESERVED, *of.pools[0].markets))
    prices = {**of.prices, RESERVED: 0.0}
    return replace(of, pools=(using,), reservations=(held,), prices=prices, limits=TIGHT)


def paid_for(*, phase: Phase = Phase.JOINED) -> NodeRecord:
    return replace(record(on=ON_DEMAND, phase=phase), offering=RESERVED, usd_per_hour=0.0)


def bought(snapshot: Snapshot) -> list[Market]:
    return [each.offerings[0].market for each in launches(plan(snapshot))]


def beside_a_node(of: Cluster, known: NodeRecord, *, is_shown: bool) -> list[Market]:
    """What is bought for a job beside a busy node of a reservation."""
    shown = [instance(on=RESERVED)] if is_shown else []
    busy = node(state="ALLOCATED", gpus_alloc=1)
    running = job(1, on=["i-1"])
    return bought(snapshot([running, job(2)], [busy], of=of, instances=shown, records=[known]))


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_node_of_a_reservation_that_goes_on_leaves_all_of_the_limit(*, is_shown: bool) -> None:
    assert beside_a_node(reserving(None), paid_for(), is_shown=is_shown) == [Market.SPOT]
    assert beside_a_node(reserving(60.0), paid_for(), is_shown=is_shown) == [Market.SPOT]


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_reservation_that_ends_while_the_planner_acts_pays_for_nothing_more(
    *, is_shown: bool
) -> None:
    assert beside_a_node(reserving(30.0), paid_for(), is_shown=is_shown) == []
    assert bought(snapshot([job()], of=reserving(30.0))) == [Market.SPOT]


def test_a_node_that_ec2_leaves_out_costs_by_the_hour_since_its_reservation_ended() -> None:
    """Until it is shown again, nobody can say that it costs nothing."""
    over = reserving(-5.0)

    assert beside_a_node(over, paid_for(), is_shown=False) == []
    priced_since = replace(paid_for(), priced_at_s=NOW_S - 2)
    assert beside_a_node(over, priced_since, is_shown=False) == [Market.SPOT]


def test_a_launch_in_doubt_costs_by_the_hour_since_its_reservation_ended() -> None:
    (first,) = launches(plan(snapshot([job()], of=reserving(None))))
    of = reserving(-5.0)
    doubt = LaunchRecord(first, NOW_S - 20, fleet_request(first, "test", placement(of)))

    assert bought(snapshot([job(1), job(2)], of=of, launches=[doubt])) == []


def test_a_node_that_was_taken_in_holds_its_place_also_while_ec2_leaves_it_out() -> None:
    taken_in = replace(record(on=ON_DEMAND), usd_per_hour=0.0, priced_at_s=NOW_S - 50)

    assert beside_a_node(reserving(None), taken_in, is_shown=False) == [Market.SPOT]
    assert beside_a_node(reserving(None, 2), taken_in, is_shown=False) == [Market.RESERVED]


def test_the_place_of_a_node_that_slurm_has_let_go_is_free_when_ec2_shows_it_no_more() -> None:
    """It was left out of Describe for good: what waits gets the place, not a node by the hour."""
    reserved, joined = reserving(None), paid_for()
    booting = replace(joined, phase=Phase.LAUNCHED)
    stale = replace(snapshot([job()], of=reserved, records=[joined]), digest_age_s=9999.0)

    assert bought(snapshot([job()], of=reserved, records=[joined])) == [Market.RESERVED]
    assert bought(snapshot([job()], of=reserved, records=[booting])) != [Market.RESERVED]
    assert ReservedCapacity(stale).left_in_all(RESERVED) == 0


def test_a_place_that_another_job_needs_no_more_is_not_bought_by_the_hour() -> None:
    """What a gang gave back serves the first job: the place that was meant for it is left."""
    of = replace(reserving(None), limits=UNLIMITED)
    (using,) = of.pools
    of = replace(of, pools=(replace(using, limits=Limits(nodes=3)),))
    jobs = [job(1, nodes=4, priority=9), job(2, priority=5), job(3, cpus=2, priority=1)]
    idle = node("i-1")
    known = record("i-1", on=ON_DEMAND)
    shown = [instance("i-1", on=ON_DEMAND)]

    assert bought(snapshot(jobs, [idle], of=of, instances=shown, records=[known])) == [
        Market.RESERVED
    ]


def test_what_is_paid_for_serves_the_first_where_a_limit_leaves_room_for_one_node() -> None:
    """Jobs with GPUs are given nodes first, and have the place if there is room for both: else the
    first in the queue has it, and not a node by the hour.
    """
    of = replace(reserving(None), limits=Limits(nodes=1))
    jobs = [job(1, gpus=0, cpus=4, priority=9), job(2, cpus=4, priority=1)]

    assert bought(snapshot(jobs, of=of)) == [Market.RESERVED]
    both = replace(of, limits=Limits(nodes=2))
    assert sorted(bought(snapshot(jobs, of=both))) == [Market.RESERVED, Market.SPOT]


def test_a_node_that_is_in_a_reservation_that_ends_takes_no_place_of_another() -> None:
    """EC2 says which one an instance is in."""
    of = reserving(ends_in_s=10.0)
    (ends,) = of.reservations
    of = replace(of, reservations=(ends, replace(ends, id="cr-2", ends_at_s=None)))
    busy, running = node(state="ALLOCATED", gpus_alloc=1), job(1, on=["i-1"])

    def markets(reservation_id: str) -> list[Market]:
        shown = replace(instance(on=RESERVED), capacity_reservation_id=reservation_id)
        known = paid_for()
        return bought(
            snapshot([running, job(2)], [busy], of=of, instances=[shown], records=[known])
        )

    assert markets("cr-1") == [Market.RESERVED]
    assert Market.RESERVED not in markets("cr-2")
    assert Market.RESERVED not in markets("")
