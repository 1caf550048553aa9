"""What checks make of cases that drawn worlds seldom show."""

from dataclasses import replace

import pytest

from tests.make import T4, ZONE, cluster, pool
from tidegate.core.ec2 import POOL_TAG, FleetRequest, Instance, Market, Override
from tidegate.core.pool import Limits, Reservation
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.buying import LimitsHold
from tidegate.sim.checks.witness import Broken, Witness
from tidegate.sim.clock import START_S
from tidegate.sim.draw import draw
from tidegate.sim.world import SimWorld


def with_reservation() -> SimWorld:
    """One node is paid for, and nothing but that is allowed."""
    held = Reservation("cr-1", T4.name, ZONE, 1, Market.RESERVED, START_S - 60, None)
    made = cluster(pool(types=(T4,)))
    using = replace(made.pools[0], markets=(Market.RESERVED, *made.pools[0].markets))
    prices, limits = {**made.prices, held.offering: 0.0}, Limits(usd_per_hour=0.01)
    of = replace(made, pools=(using,), prices=prices, limits=limits, reservations=(held,))
    return SimWorld(of, lambda instance: 60.0)


def launched(world: SimWorld, market: Market) -> Instance:
    override = Override(T4.name, ZONE, "subnet", 0)
    token, tags = f"{market}-{len(world.compute.everything)}", ((POOL_TAG, "t4"),)
    world.compute.create_fleet(FleetRequest(token, "lt", "1", market, 1, 1, (override,), tags))
    return world.compute.live()[-1]


def limits_hold(world: SimWorld) -> LimitsHold:
    return LimitsHold(Witness(world, Chaos(draw(0), world)))


def test_a_prepaid_launch_beside_what_is_paid_by_the_hour_is_within_the_limit_or_not() -> None:
    world = with_reservation()
    launched(world, Market.SPOT)

    with pytest.raises(Broken, match="USD per hour, its limit is"):
        limits_hold(world).launched(launched(world, Market.RESERVED))


def test_what_an_ended_reservation_left_does_not_count_against_a_prepaid_launch() -> None:
    """It may stand over a limit until it idles, and what comes beside it costs nothing more."""
    world = with_reservation()
    launched(world, Market.RESERVED)
    world.step(600.0)
    (first,) = world.cluster.reservations
    world.compute.end_reservation(first)
    world.compute.prepaid.reservations = (replace(first, id="cr-2"),)

    second = launched(world, Market.RESERVED)

    assert [each.offering.market for each in world.compute.live()] == [
        Market.ON_DEMAND,
        Market.RESERVED,
    ]
    limits_hold(world).launched(second)
    with pytest.raises(Broken, match="USD per hour"):
        limits_hold(world).launched(launched(world, Market.SPOT))
