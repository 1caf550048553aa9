"""Many requests on their way to EC2 at once: killed, throttled, without an answer, or too late."""

import random
from collections.abc import Callable

import pytest

from tests.make import A10G, T4, T4_BIG, cluster, job, offering, pool
from tests.service.conftest import World
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import FleetRequest, InstanceType, Market
from tidegate.core.model.errors import Throttled
from tidegate.core.model.ledger import LaunchStatus
from tidegate.service.control import BUDGET_S
from tidegate.sim.faults import KillAt, Killed, no_faults

# Three launches, of which none waits for another.
JOBS = [
    job(1, nodes=3, gpus=4, gpu_type="a10g"),
    job(2, nodes=2, gpus=4, gpu_type="t4"),
    job(3, gpu_type="t4"),
]
NODES = {"g5.12xlarge": 3, "g4dn.12xlarge": 2, "g4dn.xlarge": 1}
DRAWS = range(12)


def three_pools() -> Cluster:
    on_demand = (Market.ON_DEMAND,)
    return cluster(
        pool("t4", (T4,), markets=on_demand),
        pool("big", (T4_BIG,), markets=on_demand),
        pool("a10g", (A10G,), markets=on_demand),
    )


def drawn_world(seed: int) -> World:
    """One in which requests reach EC2 in any order, and answers come in another."""
    world = World(three_pools())
    world.compute.describe_lag_s = 30.0
    world.compute.luck = random.Random(seed).random
    world.report(JOBS)
    return world


def points_of_a_look(seed: int) -> list[str]:
    world = drawn_world(seed)
    witness = KillAt()
    world.break_with(witness)
    world.look()
    return witness.points


def bought(world: World) -> dict[str, int]:
    types = [one.offering.instance_type for one in world.compute.live()]
    return {name: types.count(name) for name in set(types)}


def looks_again(world: World) -> None:
    world.break_with(no_faults)
    for _ in range(5):
        world.clock.advance(20.0)
        world.report(JOBS)
        world.look()


def test_the_requests_of_a_look_are_on_their_way_at_once() -> None:
    numbers: list[int] = []
    world = drawn_world(0)
    world.compute.in_flight = numbers.append

    world.look()

    assert numbers == [3]
    assert bought(world) == NODES


def test_the_draws_differ_in_what_comes_first() -> None:
    assert len({tuple(points_of_a_look(seed)) for seed in DRAWS}) > 3


@pytest.mark.parametrize("seed", DRAWS)
def test_a_planner_killed_while_requests_are_on_their_way_buys_once(seed: int) -> None:
    """At each point: some requests have reached EC2, some do after its death, some never do."""
    for step in range(len(points_of_a_look(seed))):
        world = drawn_world(seed)
        world.break_with(KillAt(step))
        with pytest.raises(Killed):
            world.look()

        looks_again(world)

        assert bought(world) == NODES, f"killed at step {step}"
        known = {node.instance_id for node in world.ledger.view().nodes}
        assert known == {one.instance_id for one in world.compute.live()}
        assert not world.ledger.view().launches


@pytest.mark.parametrize("point", ["before create_fleet", "after create_fleet"])
@pytest.mark.parametrize("number", range(3))
def test_a_request_without_an_answer_leaves_the_others_alone(point: str, number: int) -> None:
    """Throttled, or read in vain until the time-out: EC2 may have bought all the same."""
    world = drawn_world(number)
    world.break_with(_nth(point, number, Throttled("no answer in time")))

    looked = world.look()

    assert len(looked.rounds[0].outcome.launched) == sum(bought_in_ledger(world).values())
    (doubt,) = world.ledger.view().launches
    assert doubt.status is LaunchStatus.RECORDED
    assert "has to wait" in looked.rounds[0].outcome.trouble[0]
    looks_again(world)
    assert bought(world) == NODES
    assert not world.ledger.view().launches


def bought_in_ledger(world: World) -> dict[str, int]:
    types = [one.offering.instance_type for one in world.ledger.view().nodes]
    return {name: types.count(name) for name in set(types)}


def test_a_ledger_that_fails_between_two_answers_loses_none_of_them() -> None:
    for number in range(3):
        world = drawn_world(number)
        world.break_with(_nth("before finish_launches", number, Throttled("slow down")))

        world.look()
        looks_again(world)

        assert bought(world) == NODES


def test_what_there_is_no_time_for_is_not_asked_and_not_left_in_doubt() -> None:
    world = drawn_world(0)
    asked: list[FleetRequest] = []
    world.compute.on_request.append(asked.append)
    world.bus.take_looks()

    def slow(point: str) -> None:
        if point == "after commit":
            world.clock.advance(BUDGET_S)

    world.break_with(slow)
    looked = world.look()

    assert looked.rounds[0].outcome.is_late
    assert not asked
    assert not world.ledger.view().launches
    assert world.bus.take_looks() == ("more to launch than one look can",)
    looks_again(world)
    assert bought(world) == NODES


def test_what_was_refused_in_one_wave_is_not_asked_for_in_the_next() -> None:
    """Two gangs want the same node: the second waits for the answer to the first."""
    world = World(cluster(pool("a10g", (A10G,), markets=(Market.ON_DEMAND,))))
    world.compute.shortages[offering(A10G, Market.ON_DEMAND)] = 0
    world.report([job(n, nodes=n, gpus=4, gpu_type="a10g") for n in (2, 3)])

    looked = world.look()

    assert len(world.compute.requests) == 1
    assert len(looked.rounds[-1].plan.unmet) == 2
    assert not world.ledger.view().launches


def _nth(point: str, number: int, trouble: Exception) -> Callable[[str], None]:
    """Trouble when this point is passed for the `number`-th time, from 0."""
    passed: list[str] = []

    def hook(now: str) -> None:
        if now == point:
            passed.append(now)
            if len(passed) == number + 1:
                raise trouble

    return hook


# The components of one job: many small nodes, and two large ones.
PARTS = [
    job(7, nodes=20, gpus=4, gpu_type="t4", het_job_id="7"),
    job(8, nodes=2, gpus=4, gpu_type="a10g", het_job_id="7"),
]


@pytest.mark.parametrize("scarce", [A10G, T4_BIG])
def test_of_a_job_of_which_one_component_cannot_be_had_nothing_is_bought_for_long(
    scarce: InstanceType,
) -> None:
    """The first look may not know which one it is; those after it ask for that one first."""
    world = World(three_pools())
    world.compute.shortages = {
        offering(scarce, Market.ON_DEMAND, zone): 0 for zone in ("us-east-1a", "us-east-1b")
    }
    nodes = 0

    for _ in range(30):
        world.report(PARTS)
        world.look()
        world.clock.advance(600.0)
        nodes = max(nodes, len(world.compute.everything))

    assert nodes <= 2  # those that the first look bought before it knew


def test_a_component_that_is_refused_keeps_the_others_from_being_bought() -> None:
    world = World(three_pools())
    world.compute.shortages = {
        offering(A10G, Market.ON_DEMAND, zone): 0 for zone in ("us-east-1a", "us-east-1b")
    }
    world.report(PARTS)

    looked = world.look()

    assert looked.rounds[0].outcome.lacking == {"7"}
    assert not world.compute.everything
    assert not world.ledger.view().launches


def test_all_components_are_bought_where_all_can_be_had() -> None:
    world = World(three_pools())
    world.report(PARTS)

    world.look()

    assert bought(world) == {"g4dn.12xlarge": 20, "g5.12xlarge": 2}
