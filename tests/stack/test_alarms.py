"""Each alarm on a metric of ours rings, from what the deployed functions themselves print.

The alarms are the template's; CloudWatch is `tests.stack.alarms`. Those on queues are rung in
test_trouble.py.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from local.trouble import Fault, Trouble
from tests import make
from tests.stack.alarms import firing
from tests.stack.broken import CLUSTER_FILE, gives_up, of
from tests.stack.world import StackWorld, stacked

MINUTE_S = 60.0
HOUR_S = 3600.0


@pytest.fixture(scope="module")
def deployed(broken: Path) -> Iterator[StackWorld]:
    with stacked(broken, CLUSTER_FILE, starts=None) as world:
        yield world


@pytest.fixture
def world(deployed: StackWorld) -> StackWorld:
    """A quiet hour later, in which nothing rings."""
    ec2 = deployed.cloud.observer("ec2")
    if left := deployed.nodes():
        ec2.terminate_instances(InstanceIds=left)
    for _ in range(2):
        deployed.report()
        later(deployed, HOUR_S)
    deployed.report()
    assert firing(deployed) == set()
    return deployed


def later(world: StackWorld, by_s: float) -> None:
    """Without the schedules that fire on the way."""
    clock = world.router.clock
    clock.jump_to(datetime.fromtimestamp(clock.now_s() + by_s, UTC))


def every(world: StackWorld, step_s: float, times: int, **report: Any) -> None:
    """The head reports so often."""
    for _ in range(times):
        later(world, step_s)
        world.report(**report)


def bought(world: StackWorld, nodes: int = 1) -> list[str]:
    """Nodes that have joined: at this clock EC2 says that they were launched hours ago."""
    world.report([of(1, "small", nodes=nodes)])
    names = world.nodes()
    world.report(nodes=[make.node(name) for name in names])
    return names


def test_a_head_that_falls_silent(world: StackWorld) -> None:
    for _ in range(2):
        world.age_digest(by_s=400)
        later(world, 5 * MINUTE_S)
        world.look()

    assert firing(world) == {"AgentSilent"}


def test_a_planner_whose_looks_fail(world: StackWorld) -> None:
    hung = world.cloud.trouble(Trouble("dynamodb:Query", Fault.THROTTLED, times=100))

    every(world, MINUTE_S, 3)

    hung.left = 0
    assert firing(world) == {"LookFailed"}


def test_an_event_that_nobody_can_read(world: StackWorld) -> None:
    world.put("tidegate.agent", "Tidegate Digest", {"odd": 1}, bus=world.deployment.stack_name)

    assert firing(world) == {"BadEvents"}


@pytest.mark.parametrize("says", [True, False], ids=["with last words", "without a word"])
def test_a_node_that_does_not_boot(world: StackWorld, says: bool) -> None:
    wanted = of(1, "driver" if says else "efs")
    world.report([wanted])
    (node,) = world.nodes()

    gives_up(world, node, "driver" if says else "")
    world.report([wanted])

    assert firing(world) == {"BootFailed"}


def test_a_pool_near_its_limit_for_five_minutes(world: StackWorld) -> None:
    nodes = [make.node(name) for name in bought(world, 8)]
    every(world, MINUTE_S, 3, nodes=nodes)
    assert firing(world) == set()

    every(world, MINUTE_S, 1, nodes=nodes)

    assert firing(world) == {"NearLimit"}


def test_gpus_that_nobody_uses_for_half_an_hour(world: StackWorld) -> None:
    nodes = [make.node(name) for name in bought(world)]
    every(world, 5 * MINUTE_S, 4, nodes=nodes)
    assert firing(world) == set()

    every(world, 5 * MINUTE_S, 1, nodes=nodes)

    assert firing(world) == {"GpusUnused"}


def test_a_node_that_is_paid_for_and_down(world: StackWorld) -> None:
    down = [make.node(name, state="DOWN", reason="Not responding") for name in bought(world)]

    every(world, 5 * MINUTE_S, 4, nodes=down)

    assert "LostCapacity" in firing(world)


def test_a_budget_that_is_spent(world: StackWorld) -> None:
    world.report([of(1, "rich", gpu_type="a10g", account="broke")])
    later(world, MINUTE_S)
    world.report()

    assert "BudgetNearlySpent" in firing(world)
