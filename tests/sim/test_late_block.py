"""A capacity block that opens later than it was sold for: nothing lost, nothing bought twice."""

from dataclasses import replace

import pytest

from tests.make import T4, cluster, pool
from tests.sim.test_prepaid import paid
from tests.sim.test_world import one_gpu, run, states
from tidegate.core.model.capacity import BlockState, Holding
from tidegate.core.model.ec2 import Market
from tidegate.service.reservations import Reservations
from tidegate.sim.clock import START_S
from tidegate.sim.reservations import SimReservations
from tidegate.sim.world import SimWorld

LATE_S = 1500
SOLD = paid(Market.CAPACITY_BLOCK, 2, 9 * 3600.0)


def late(*markets: Market) -> SimWorld:
    """By its file, and by the dates that EC2 shows, the block has begun."""
    whole = cluster(pool(types=(T4,)))
    using = replace(whole.pools[0], markets=(Market.CAPACITY_BLOCK, *markets))
    prices = {**whole.prices, SOLD.offering: 0.0}
    whole = replace(whole, pools=(using,), reservations=(SOLD,), prices=prices)
    made = SimWorld(whole, lambda instance: 60.0)
    made.compute.prepaid.change(replace(SOLD, starts_at_s=START_S + LATE_S))
    for _ in range(2):
        made.slurm.submit(replace(one_gpu(600.0), time_limit_s=1200.0))
    return made


def play(w: SimWorld, seconds: int, state: BlockState) -> None:
    """With reconcile's reading of what EC2 says of the block."""
    for _ in range(seconds // 300):
        feed = SimReservations([Holding(SOLD, state)])
        Reservations(cluster=w.cluster, feed=feed, ledger=w.ledger, clock=w.clock).refresh()
        run(w, 300, 5.0)


@pytest.mark.parametrize("says", [BlockState.SCHEDULED, BlockState.DELAYED, BlockState.ACTIVE])
def test_its_jobs_wait_and_start_in_it_once_it_is_there(says: BlockState) -> None:
    w = late()

    play(w, LATE_S, says)
    early, asked = len(w.compute.everything), len(w.compute.requests)
    play(w, 3600, BlockState.ACTIVE)

    assert early == 0
    assert asked > 0 or says is not BlockState.ACTIVE
    assert asked <= 6, "what EC2 refuses rests for 3 to 30 minutes"
    assert set(states(w).values()) == {"COMPLETED"}
    bought = [each.offering.market for each in w.compute.everything.values()]
    assert bought == [Market.CAPACITY_BLOCK] * 2


def test_where_a_pool_buys_otherwise_too_its_jobs_go_there_once() -> None:
    w = late(Market.ON_DEMAND)

    play(w, 3600, BlockState.DELAYED)

    assert set(states(w).values()) == {"COMPLETED"}
    bought = [each.offering.market for each in w.compute.everything.values()]
    assert bought == [Market.ON_DEMAND] * 2
