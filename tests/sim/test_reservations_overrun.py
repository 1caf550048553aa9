"""What may be asked of a reservation that EC2 fills by itself too."""

from dataclasses import replace

import pytest

from tests.make import T4, ZONE, cluster, pool
from tidegate.core.model.cluster import OPEN, Reservation
from tidegate.core.model.ec2 import LAUNCH_TAG, POOL_TAG, FleetRequest, Market, Offering, Override
from tidegate.core.model.ledger import Launch, LaunchRecord
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.prepaid import ReservationsNotOverrun
from tidegate.sim.checks.witness import Broken, Witness
from tidegate.sim.clock import START_S
from tidegate.sim.draw import draw
from tidegate.sim.world import SimWorld

ON = Offering(T4.name, ZONE, Market.RESERVED)
ONE_PLACE = Reservation("cr-1", T4.name, ZONE, 1, Market.RESERVED, START_S - 600)


def launched(world: SimWorld, name: str, reservation: str) -> FleetRequest:
    """A launch of one node into an open reservation, which the ledger has for `reservation`."""
    tags = ((LAUNCH_TAG, name), (POOL_TAG, "t4"))
    template, override = "lt-t4/reserved", Override(T4.name, ZONE, "subnet", 0)
    request = FleetRequest(name, template, "1", Market.RESERVED, 1, 1, (override,), tags)
    launch = Launch(name, "t4", (ON,), 1, 1, ("1",), 0.0, "", "", reservation=reservation)
    world.ledger.all_launches[name] = LaunchRecord(launch, world.clock.now_s(), request)
    return request


@pytest.mark.parametrize("was_for", ["group-gpus", OPEN])
def test_what_ec2_moved_here_when_its_own_reservation_was_over_is_not_ours_to_know(
    was_for: str,
) -> None:
    made = cluster(pool(types=(T4,)))
    pools = (replace(made.pools[0], markets=(Market.RESERVED, Market.ON_DEMAND)),)
    prices = {**made.prices, ON: 0.0}
    of = replace(made, pools=pools, prices=prices, reservations=(ONE_PLACE,))
    world = SimWorld(of, lambda instance: 60.0)
    check = ReservationsNotOverrun(Witness(world, Chaos(draw(0), world)))
    world.compute.create_fleet(launched(world, "l-1", was_for))

    another = launched(world, "l-2", OPEN)
    if was_for == OPEN:
        with pytest.raises(Broken, match=", 0 left"):
            check.requested(another)
    else:
        check.requested(another)
