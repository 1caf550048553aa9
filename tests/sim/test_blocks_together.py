"""Two Capacity Blocks of one type and zone: filled together, past crashes and a cancelled one."""

from dataclasses import replace

import pytest

from tests.make import T4, ZONE, cluster, pool
from tests.sim.test_world import run, run_dying, states
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import Market
from tidegate.core.model.slurm import Shape
from tidegate.sim.clock import START_S
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.world import SimWorld

DAY_S = 86_400.0


def block(name: str, count: int, days: float = 1.0) -> Reservation:
    ends_at_s = START_S + days * DAY_S
    return Reservation(name, T4.name, ZONE, count, Market.CAPACITY_BLOCK, START_S - 60, ends_at_s)


def world(*held: Reservation) -> SimWorld:
    made = cluster(pool(types=(T4,)))
    using = replace(made.pools[0], markets=(Market.CAPACITY_BLOCK, *made.pools[0].markets))
    prices = {**made.prices, held[0].offering: 0.0}
    return SimWorld(
        replace(made, pools=(using,), reservations=held, prices=prices), lambda instance: 60.0
    )


def submit(of: SimWorld, *nodes: int) -> None:
    for count in nodes:
        asked = Shape(1, "t4", 1, 1000)
        of.slurm.submit(Submit("ada", asked, 300.0, nodes=count, time_limit_s=600.0))


def held(of: SimWorld) -> dict[str, int]:
    return {
        each.id: len(of.compute.prepaid.held_in(each)) for each in of.compute.prepaid.reservations
    }


def test_two_gangs_run_in_two_blocks_at_once_and_nothing_is_bought_by_the_hour() -> None:
    w = world(block("cr-1", 4), block("cr-2", 4))
    submit(w, 4, 4)

    run(w, 200)

    assert held(w) == {"cr-1": 4, "cr-2": 4}
    assert set(states(w).values()) == {"RUNNING"}
    assert [each.market for each in w.compute.requests] == [Market.CAPACITY_BLOCK] * 2


@pytest.mark.parametrize("every", [3, 4, 5, 7, 11, 13])
def test_a_planner_that_keeps_dying_fills_both_and_buys_nothing_beside_them(every: int) -> None:
    """Between any two calls: a launch in doubt holds its places in the block that it named."""
    w = world(block("cr-1", 4), block("cr-2", 3))
    submit(w, 4, 3)

    run_dying(w, every)

    assert set(states(w).values()) == {"COMPLETED"}
    assert {each.market for each in w.compute.requests} == {Market.CAPACITY_BLOCK}
    assert len(w.compute.everything) == 7


def test_a_gang_whose_block_is_cancelled_meanwhile_starts_in_the_other_at_the_next_look() -> None:
    """EC2 refuses what is gone: that says nothing of the other block."""
    gone, other = block("cr-1", 2), block("cr-2", 5)
    w = world(gone, other)
    w.compute.prepaid.reservations = (other,)
    submit(w, 2, 3)

    run(w, 200)

    assert held(w) == {"cr-2": 5}
    assert set(states(w).values()) == {"RUNNING"}
    assert {each.market for each in w.compute.requests} == {Market.CAPACITY_BLOCK}
    asked = [each.launch_template_id for each in w.compute.requests]
    assert asked.count("lt-t4/cr-1") == 1, "it rests, and is not asked in vain"
    (rest,) = w.ledger.all_resting.values()
    assert rest.reservation == "cr-1"
