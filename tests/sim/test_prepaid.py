"""Reservations and capacity blocks: EC2's side of them, and what the whole loop makes of them."""

from dataclasses import replace

import pytest

from tests.make import T4, UNLIMITED, ZONE, cluster, pool
from tests.sim.test_world import one_gpu, run, states
from tidegate.core.model.cluster import Limits, Reservation
from tidegate.core.model.ec2 import FleetRequest, Instance, Market, Override
from tidegate.core.model.slurm import Shape
from tidegate.core.offers.reservations import BLOCK_DRAIN_S
from tidegate.core.offers.spend import charges, day_of
from tidegate.sim.clock import START_S, SimClock
from tidegate.sim.draw import draw
from tidegate.sim.ec2 import SimCompute
from tidegate.sim.prepaid import BLOCK_ENDS_EARLY_S, Prepaid
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.world import SimWorld

# A heartbeat of the head, and its way to a look.
LOOKS_S = 65.0


def paid(market: Market, count: int = 1, ends_in_s: float | None = None) -> Reservation:
    ends_at_s = None if ends_in_s is None else START_S + ends_in_s
    return Reservation("cr-1", "g4dn.xlarge", ZONE, count, market, START_S - 60, ends_at_s)


def request(market: Market, count: int = 1, template: str = "lt-t4") -> FleetRequest:
    override = Override("g4dn.xlarge", ZONE, "subnet", 0)
    return FleetRequest(f"{market}-{template}", template, "1", market, count, 1, (override,), ())


def ec2(of: Reservation) -> SimCompute:
    return SimCompute(SimClock(), prepaid=Prepaid((of,)))


def markets(shown: tuple[Instance, ...]) -> list[Market]:
    return [each.offering.market for each in shown]


def test_ec2_fills_an_open_reservation_with_whatever_fits_and_sells_the_rest_on_demand() -> None:
    of = ec2(paid(Market.RESERVED, 2))

    of.create_fleet(request(Market.ON_DEMAND))
    answer = of.create_fleet(request(Market.RESERVED, 2))

    assert markets(of.instances()) == [Market.RESERVED, Market.RESERVED, Market.ON_DEMAND]
    assert markets(answer.instances) == [Market.RESERVED, Market.RESERVED]  # as it was asked for


def test_a_place_in_a_reservation_is_free_again_when_its_instance_has_ended() -> None:
    of = ec2(paid(Market.RESERVED))
    (first,) = of.create_fleet(request(Market.RESERVED)).instances

    of.end(first.instance_id)
    of.create_fleet(request(Market.ON_DEMAND))

    assert markets(of.instances()) == [Market.RESERVED]


def test_a_block_takes_who_names_it_and_refuses_more_than_it_has() -> None:
    of = ec2(paid(Market.CAPACITY_BLOCK, 1, 9000.0))

    other = of.create_fleet(request(Market.CAPACITY_BLOCK))
    mine = of.create_fleet(request(Market.CAPACITY_BLOCK, 2, "lt-t4/cr-1"))

    assert [each.code for each in other.refusals] == ["ReservationCapacityExceeded"]
    assert len(mine.instances) == len(mine.refusals) == 1


def test_a_targeted_reservation_takes_only_what_names_it_and_sells_nothing_beside() -> None:
    of = ec2(replace(paid(Market.RESERVED, 1), is_targeted=True))

    other = of.create_fleet(request(Market.RESERVED, 1, "lt-t4/reserved"))
    of.create_fleet(request(Market.ON_DEMAND))
    mine = of.create_fleet(request(Market.RESERVED, 2, "lt-t4/cr-1"))

    assert [each.code for each in other.refusals] == ["ReservationCapacityExceeded"]
    assert markets(of.instances()) == [Market.ON_DEMAND, Market.RESERVED]
    assert len(mine.instances) == len(mine.refusals) == 1


def test_at_its_end_a_block_takes_its_instances_and_a_reservation_leaves_them_on_demand() -> None:
    for market, left in ((Market.RESERVED, [Market.ON_DEMAND]), (Market.CAPACITY_BLOCK, [])):
        one = paid(market, 1, 9000.0)
        of = ec2(one)
        of.create_fleet(request(market, 1, "lt-t4/cr-1"))

        of.end_reservation(one)

        assert markets(of.instances()) == left


def test_what_runs_on_demand_is_taken_into_a_reservation_that_begins_or_has_a_place_again() -> None:
    later = replace(paid(Market.RESERVED), starts_at_s=START_S + 60)
    of = ec2(later)
    for name in ("lt-1", "lt-2"):
        of.create_fleet(request(Market.ON_DEMAND, template=name))
    of.create_fleet(request(Market.SPOT))
    before = markets(of.live())

    of.clock.advance(60)  # type: ignore[attr-defined]
    of.fill_reservation(later)
    then = markets(of.live())
    of.end(of.live()[0].instance_id)

    assert before == [Market.ON_DEMAND, Market.ON_DEMAND, Market.SPOT]
    assert then == [Market.RESERVED, Market.ON_DEMAND, Market.SPOT]
    assert markets(of.live()) == [Market.RESERVED, Market.SPOT]


def world(of: Reservation, limits: Limits = UNLIMITED) -> SimWorld:
    made = cluster(pool(types=(T4,)))
    using = replace(made.pools[0], markets=(of.market, *made.pools[0].markets))
    prices = {**made.prices, of.offering: 0.0}
    whole = replace(made, pools=(using,), reservations=(of,), prices=prices, limits=limits)
    return SimWorld(whole, lambda instance: 60.0)


def test_the_node_of_a_reservation_stays_and_the_node_beside_it_goes() -> None:
    w = world(paid(Market.RESERVED))
    for _ in range(2):
        w.slurm.submit(one_gpu())

    run(w, 1500, 5.0)

    assert set(states(w).values()) == {"COMPLETED"}
    assert markets(w.compute.live()) == [Market.RESERVED]
    assert next(iter(w.slurm.nodes.values())).features[3] == "on-demand"


def spent_today(of: SimWorld) -> float:
    today = day_of(of.clock.now_s()).name
    counted = of.ledger.all_spent.get((today, "cluster"))
    living = (each for each in of.ledger.all_nodes.values() if each.ended_at_s is None)
    alive = (charges(each, of.clock.now_s()) for each in living)
    return (counted.usd if counted else 0.0) + sum(
        one.usd for each in alive for one in each if (one.period, one.scope) == (today, "cluster")
    )


def test_a_node_costs_by_the_hour_while_no_reservation_pays_for_it_and_no_longer() -> None:
    first = paid(Market.RESERVED)
    w = world(first)
    usd_per_s = w.cluster.prices[replace(first.offering, market=Market.ON_DEMAND)] / 3600
    w.slurm.submit(one_gpu(2000.0))

    run(w, 600, 5.0)
    in_it = spent_today(w)
    w.compute.end_reservation(first)
    w.compute.prepaid.reservations = ()
    run(w, 600, 5.0)
    out_of_it = spent_today(w)
    second = replace(first, id="cr-2")
    w.compute.prepaid.reservations = (second,)
    w.compute.fill_reservation(second)
    run(w, 600, 5.0)
    taken_in = spent_today(w)
    run(w, 600, 5.0)

    late_usd = LOOKS_S * usd_per_s
    assert in_it == 0.0
    assert out_of_it == pytest.approx(600 * usd_per_s, abs=late_usd)
    assert taken_in == pytest.approx(out_of_it, abs=late_usd)
    assert spent_today(w) == taken_in
    assert len(w.compute.everything) == 1


def usd_per_hour(of: SimWorld) -> float:
    return sum(of.cluster.prices[each.offering] for each in of.compute.live())


def test_a_reservation_that_strangers_fill_costs_nothing_over_a_limit() -> None:
    """EC2 tells nobody that its places are gone; what it would sell on demand has a price."""
    w = world(paid(Market.RESERVED, 4), Limits(usd_per_hour=0.61))
    w.compute.prepaid.strangers["cr-1"] = 4
    most_usd = 0.0
    for number in range(120):
        if number % 10 == 0:
            w.slurm.submit(one_gpu(3000.0))
        run(w, 10, 5.0)
        most_usd = max(most_usd, usd_per_hour(w))

    asked = [each for each in w.compute.requests if each.market is Market.RESERVED]
    assert most_usd <= 0.61
    assert 1 < len(asked) < 6
    assert markets(w.compute.live()) == [Market.SPOT] * 3

    w.compute.prepaid.strangers.clear()
    run(w, 1800, 5.0)
    assert markets(w.compute.live()) == [Market.SPOT] * 3 + [Market.RESERVED] * 4
    assert usd_per_hour(w) <= 0.61


def test_the_node_of_a_block_is_closed_and_gone_before_ec2_ends_it() -> None:
    drains_s = 1500.0
    w = world(paid(Market.CAPACITY_BLOCK, 1, drains_s + BLOCK_DRAIN_S))
    w.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 100.0, time_limit_s=600.0))
    run(w, drains_s - 100, 5.0)
    before = markets(w.compute.live())

    run(w, BLOCK_DRAIN_S - BLOCK_ENDS_EARLY_S, 5.0)

    assert before == [Market.CAPACITY_BLOCK]
    assert w.compute.live() == ()


def test_some_worlds_have_reservations_and_a_pool_for_each() -> None:
    drawn = [each for seed in range(100) if (each := draw(seed).cluster).reservations]

    assert 5 <= len(drawn) <= 25
    assert {one.market for each in drawn for one in each.reservations} == {
        Market.RESERVED,
        Market.CAPACITY_BLOCK,
    }
    for each in drawn:
        offered = {offering for pool in each.pools for _, offering in pool.offerings()}
        assert offered >= {one.offering for one in each.reservations}
