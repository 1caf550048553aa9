"""Equal gangs that share a call: what comes of it, also in part, and whatever dies meanwhile."""

import random
from collections import Counter

import pytest

from tests.make import A10G, cluster, job, node, offering, pool
from tests.service.conftest import World
from tidegate.core.model.ec2 import Market
from tidegate.core.model.errors import Throttled
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind
from tidegate.sim.faults import KillAt, Killed, no_faults

AT_GATE = "IDLE+DRAIN+DYNAMIC_NORM"
KIND = offering(A10G, Market.ON_DEMAND)
GANGS = [job(n, nodes=3, gpus=4, gpu_type="a10g") for n in range(1, 5)]
MANY = [job(n, nodes=50, gpus=4, gpu_type="a10g") for n in range(1, 5)]


def gang_world() -> World:
    return World(cluster(pool("a10g", (A10G,), markets=(Market.ON_DEMAND,))))


def gates(world: World) -> Counter[str]:
    """How many living nodes each gang has, by the ledger."""
    nodes = {one.instance_id: one for one in world.ledger.view().nodes}
    return Counter(nodes[one.instance_id].gated_for for one in world.compute.live())


def test_equal_gangs_are_bought_with_one_call(world: World) -> None:
    world.report(GANGS)

    world.look()

    assert len(world.compute.requests) == 1
    assert gates(world) == {str(n): 3 for n in range(1, 5)}


def test_of_what_comes_in_part_whole_gangs_are_dealt_and_the_rest_goes_back() -> None:
    world = gang_world()
    world.compute.shortages[KIND] = 8
    world.report(GANGS)

    looked = world.look()

    assert gates(world) == {"1": 3, "2": 3}
    assert {len(names) for names in world.compute.terminated} == {2}
    assert len({name for names in world.compute.terminated for name in names}) == 2
    assert [each.job_id for each in looked.rounds[-1].plan.unmet] == ["3", "4"]
    assert [rest.offering for rest in world.ledger.view().resting] == [KIND]


def test_what_went_back_is_no_failed_boot_and_is_forgotten() -> None:
    world = gang_world()
    world.compute.shortages[KIND] = 8
    world.report(GANGS)
    world.look()

    for _ in range(3):
        world.clock.advance(60.0)
        world.report(GANGS)
        world.look()

    left = [each for each in world.ledger.all_nodes.values() if not each.gated_for]
    assert [each.phase for each in left] == [Phase.TERMINATED] * 2
    assert all(each.ended_at_s is not None for each in left)
    assert [rest.code for rest in world.ledger.view().resting] == ["InsufficientInstanceCapacity"]
    assert all(
        each.good is not None or not each.failed for each in world.ledger.view().pool_history
    )


def test_less_than_one_gang_is_not_bought_at_all() -> None:
    world = gang_world()
    world.compute.shortages[KIND] = 2
    world.report(GANGS)

    world.look()

    assert world.compute.everything == {}


def test_what_ec2_would_not_end_is_ended_by_the_next_look() -> None:
    world = gang_world()
    world.compute.shortages[KIND] = 8
    world.report(GANGS)
    refused: list[str] = []

    def refuse(point: str) -> None:
        if point == "before terminate" and not refused:
            refused.append(point)
            raise Throttled("slow down")

    world.break_with(refuse)
    looked = world.look()

    assert "end later" in looked.rounds[0].outcome.trouble[0]
    assert gates(world) == {"1": 3, "2": 3}  # by the second round of the same look


def steps(seed: int, left: int | None) -> int:
    world = gang_world()
    witness = prepared(world, seed, left)
    world.break_with(witness)
    world.look()
    return len(witness.points)


def prepared(world: World, seed: int, left: int | None) -> KillAt:
    world.compute.describe_lag_s = 30.0
    world.compute.luck = random.Random(seed).random
    if left is not None:
        world.compute.shortages[KIND] = left
    world.report(MANY)
    return KillAt()


@pytest.mark.parametrize("left", [None, 130, 49])
def test_a_planner_killed_at_any_point_deals_each_gang_whole_once(left: int | None) -> None:
    """200 nodes are written in three transactions: it may die between them."""
    whole = 4 if left is None else left // 50
    for step in range(steps(1, left)):
        world = gang_world()
        prepared(world, 1, left)
        world.break_with(KillAt(step))
        with pytest.raises(Killed):
            world.look()
        world.break_with(no_faults)

        for _ in range(5):
            world.clock.advance(20.0)
            world.report(MANY)
            world.look()

        found = gates(world)
        assert set(found.values()) <= {50}, f"killed at step {step}: {found}"
        assert len(found) == whole, f"killed at step {step}: {found}"
        assert not world.ledger.view().launches


def kill_before(world: World, method: str) -> None:
    """The planner dies as it comes to this call."""

    def kill(point: str) -> None:
        if point == f"before {method}":
            raise Killed(point)

    world.break_with(kill)
    with pytest.raises(Killed):
        world.look()
    world.break_with(no_faults)


def released(world: World) -> set[str]:
    """What the head is asked to let go of."""
    return {n for one in world.bus.orders if one.kind is OrderKind.RELEASE for n in one.names}


@pytest.mark.parametrize("died_at", ["finish_launches", "terminate"])
def test_what_joined_before_its_launch_was_finished_leaves_slurm_first(died_at: str) -> None:
    """The planner died as EC2 answered, and a node beyond whole gangs has joined since."""
    world = gang_world()
    world.compute.shortages[KIND] = 8
    world.report(GANGS)
    kill_before(world, died_at)
    there = [node(one.instance_id, A10G, state=AT_GATE) for one in world.compute.live()]
    world.clock.advance(60.0)

    world.report(GANGS, there)
    world.look()

    spare = {one.name for one in there if not world.ledger.all_nodes[one.name].gated_for}
    assert len(spare) == 2
    assert world.compute.terminated == []
    assert released(world) == spare

    world.clock.advance(10.0)
    world.report(GANGS, [one for one in there if one.name not in spare])
    world.look()

    assert {name for names in world.compute.terminated for name in names} == spare
