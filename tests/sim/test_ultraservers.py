"""Gangs in UltraServers through the whole loop: crashes, a part that is refused, and the end."""

from dataclasses import replace

import pytest

from tests.core.test_ultraservers import GB200, ULTRA
from tests.make import ZONE, cluster, pool
from tests.sim.test_world import run, run_dying, states
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.slurm import Shape
from tidegate.core.model.ultraservers import ULTRASERVER_DRAIN_S
from tidegate.sim.clock import START_S
from tidegate.sim.prepaid import ULTRASERVER_ENDS_EARLY_S
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.world import SimWorld

DAY_S = 86_400.0


def part(name: str, count: int, block: str, ends_in_s: float = DAY_S) -> Reservation:
    times = START_S - 60, START_S + ends_in_s
    return Reservation(name, GB200.name, ZONE, count, ULTRA.market, *times, block=block)


def world(*held: Reservation) -> SimWorld:
    gb200 = pool("gb200", (GB200,), markets=(ULTRA.market,), idle_s=DAY_S)
    made = replace(cluster(pool()), pools=(gb200,), reservations=held, prices={ULTRA: 0.0})
    partition = replace(made.partitions[0], pools=("gb200",))
    return SimWorld(replace(made, partitions=(partition,)), lambda instance: 60.0)


def submit(of: SimWorld, nodes: int) -> None:
    asked = Shape(4, "gb200", 4, 1000)
    of.slurm.submit(Submit("ada", asked, 300.0, nodes=nodes, time_limit_s=600.0))


def held(of: SimWorld) -> dict[str, int]:
    prepaid = of.compute.prepaid
    return {each.id: len(prepaid.held_in(each)) for each in prepaid.reservations}


def test_one_larger_than_an_ultraserver_runs_over_two() -> None:
    w = world(part("cr-1", 6, "cb-1"), part("cr-2", 6, "cb-2"))
    submit(w, 8)

    run(w, 200)

    assert held(w) == {"cr-1": 6, "cr-2": 2}
    assert set(states(w).values()) == {"RUNNING"}


@pytest.mark.parametrize("every", [3, 5, 7, 11])
def test_a_planner_that_keeps_dying_brings_both_parts_once(every: int) -> None:
    w = world(part("cr-1", 6, "cb-1"), part("cr-2", 6, "cb-2"))
    submit(w, 8)

    run_dying(w, every)

    assert set(states(w).values()) == {"COMPLETED"}
    assert len(w.compute.everything) == 8


def test_where_one_part_is_refused_nothing_stays_of_the_other() -> None:
    """The gang starts once both can be had."""
    first, other = part("cr-1", 6, "cb-1"), part("cr-2", 6, "cb-2")
    w = world(first, other)
    w.compute.prepaid.reservations = (first,)
    submit(w, 8)
    run(w, 600)
    assert set(states(w).values()) == {"PENDING"}

    w.compute.prepaid.reservations = (first, other)
    run(w, 3600)

    assert set(states(w).values()) <= {"RUNNING", "COMPLETED"}


def test_its_nodes_are_gone_before_ec2_would_end_them() -> None:
    lasts_s = 2 * 3600.0
    w = world(part("cr-1", 2, "cb-1", ends_in_s=lasts_s))
    submit(w, 2)
    run(w, lasts_s - ULTRASERVER_DRAIN_S - 60, 5.0)
    assert len(w.compute.live()) == 2

    run(w, ULTRASERVER_DRAIN_S + 60 - ULTRASERVER_ENDS_EARLY_S - 60, 5.0)

    assert w.compute.live() == ()
