"""Idle nodes that are checked two at a time: the sick one is found, and nobody beside it goes."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from tests.sim.test_rolls import A, deploy, of_three
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.finding import BELIEVED_MIN
from tidegate.core.model.idle_check import (
    FOUND_PAIR,
    IdleCheck,
    IdleChecks,
    PairCheck,
    is_pair_check_name,
)
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.slurm import Shape
from tidegate.sim.slurm_parts import SimJob, Submit
from tidegate.sim.world import SimWorld

HOUR_S = 3600.0
NODES = 6
CHECK = IdleCheck(
    "ci",
    ("t4",),
    gpu_hours_per_day=48.0,
    every_s=100 * HOUR_S,
    time_limit_s=300.0,
    wait_s=300.0,
    pair=PairCheck(12 * HOUR_S, 300.0),
)


def of(check: IdleCheck = CHECK) -> Cluster:
    found = of_three()
    pools = tuple(
        replace(each, min_nodes=NODES) if each.name == "t4" else each for each in found.pools
    )
    return replace(found, pools=pools, idle_check=check)


def up(fails: Callable[[SimWorld, SimJob], bool], cluster: Cluster | None = None) -> SimWorld:
    """Six nodes that idle; of their pairs these fail."""
    world = SimWorld(cluster or of(), lambda instance: 60.0)
    deploy(world, A)
    world.look()

    def started(job: SimJob) -> None:
        if is_pair_check_name(job.submit.name) and fails(world, job):
            world.at(world.clock.now_s() + 30.0, lambda: world.slurm.table.end(job, "FAILED"))

    world.slurm.table.on_start.append(started)
    world.step(300.0)
    return world


def pairs(world: SimWorld) -> list[SimJob]:
    return [job for job in world.slurm.jobs.values() if is_pair_check_name(job.submit.name)]


def state(world: SimWorld) -> IdleChecks:
    found = world.ledger.all_pool_history["t4"].idle_checks
    assert found is not None
    return found


def dead(world: SimWorld) -> set[str]:
    return {i for i, one in world.compute.everything.items() if not one.is_alive}


def sick(count: int) -> Callable[[SimWorld, SimJob], bool]:
    """The first nodes of the world are."""

    def fails(world: SimWorld, job: SimJob) -> bool:
        bad = sorted(world.compute.everything)[:count]
        return bool({*bad} & {*job.node_names})

    return fails


def test_all_pass_in_three_tests_and_twice_a_day() -> None:
    world = up(lambda world, job: False)
    world.step(HOUR_S * 13)

    assert len(pairs(world)) == NODES // 2
    assert {job.state for job in pairs(world)} == {"COMPLETED"}
    on = {name for job in pairs(world) for name in job.submit.node_name.split(",")}
    assert on == {*world.compute.everything}
    assert state(world).gpu_hours <= 3 * 2 * 75 / 3600
    world.step(HOUR_S * 12)
    assert len(pairs(world)) == NODES


@pytest.mark.parametrize("lost", [None, OrderKind.CHECK, OrderKind.DRAIN])
def test_one_sick_node_goes_after_three_tests_and_no_other_does(lost: OrderKind | None) -> None:
    world = up(sick(1))
    bad, dropped = min(world.compute.everything), list[str]()

    def route(order: Order) -> tuple[float, ...]:
        if order.kind is not lost or len(dropped) == 2:
            return (0.0,)
        dropped.append(order.text)
        return ()

    world.bus.order_route = route
    world.step(HOUR_S * 14)

    assert dead(world) == {bad}
    assert sum(job.state == "FAILED" for job in pairs(world)) <= 3
    assert (state(world).asked, state(world).sick, state(world).pairs.tried) == (None, None, ())
    assert len([one for one in world.compute.everything.values() if one.is_alive]) == NODES
    assert len(set(dropped)) <= 1, "the same is asked for again"


def test_two_sick_nodes_go_and_nobody_beside_them() -> None:
    world = up(sick(2))
    bad = {*sorted(world.compute.everything)[:2]}
    world.step(HOUR_S * 20)

    assert dead(world) == bad


def test_a_check_that_always_fails_costs_no_node_and_is_told() -> None:
    world = up(lambda world, job: True)
    world.step(HOUR_S * 30)

    assert dead(world) == set()
    assert state(world).pairs.missed
    assert "the check errs" in state(world).pairs.said
    assert len(pairs(world)) <= 12, "six a day"


def test_a_check_that_errs_at_random_costs_two_nodes_at_most() -> None:
    for seed in range(2):
        chance = Random(seed)
        check = replace(CHECK, pair=PairCheck(HOUR_S, 300.0))
        world = up(lambda world, job, chance=chance: chance.random() < 0.7, of(check))  # type: ignore[misc]
        world.step(HOUR_S * 12)

        gone = dead(world)
        assert len(gone) <= BELIEVED_MIN, seed
        drained = [
            node for node in world.slurm.nodes.values() if node.reason.startswith(FOUND_PAIR)
        ]
        assert len(drained) <= 1, "what it drained beyond its share stays"


def test_a_job_takes_suspects_meanwhile_and_the_question_waits() -> None:
    world = up(sick(1))
    while not any(job.state == "FAILED" for job in pairs(world)):
        world.step(60.0)
    tests = len(pairs(world))
    for _ in range(NODES):
        world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), HOUR_S * 2))
    world.step(HOUR_S)

    assert sum(job.state == "RUNNING" for job in world.slurm.jobs.values()) == NODES
    assert len(pairs(world)) <= tests + 1
    world.step(HOUR_S * 3)
    first, *others = sorted(world.compute.everything)[:NODES]
    assert first in dead(world)
    assert dead(world).isdisjoint(others)
