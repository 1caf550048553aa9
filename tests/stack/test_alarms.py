"""Each alarm on a metric of ours rings, and each graph of the dashboard has something to draw, from
what the deployed functions themselves print.

The alarms are the template's; CloudWatch is `tests.stack.alarms`. Those on queues are rung in
test_trouble.py.
"""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import batched
from pathlib import Path
from typing import Any

import pytest

from local.stack_world import StackWorld
from local.trouble import Fault, Trouble
from tests import make
from tests.stack import story
from tests.stack.alarms import emitted, firing
from tests.stack.broken import CLUSTER_FILE, gives_up, of
from tests.stack.world import stacked
from tidegate.core.model.ec2 import Market, Offering

# The local EC2 refuses for want of capacity only.
NOT_HERE = {"RefusedQuota", "RefusedSubnet", "RefusedOther"}
MINUTE_S = 60.0
DAY_S = 86_400.0


@pytest.fixture(scope="module")
def deployed(broken: Path) -> Iterator[StackWorld]:
    with stacked(broken, CLUSTER_FILE, starts=None) as world:
        yield world


@pytest.fixture
def world(deployed: StackWorld) -> StackWorld:
    """A quiet day later, when nothing rings and no budget is spent."""
    ec2 = deployed.cloud.observer("ec2")
    if left := deployed.nodes():
        ec2.terminate_instances(InstanceIds=left)
    for _ in range(2):
        deployed.report()
        later(deployed, DAY_S / 2)
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

    every(world, 3 * MINUTE_S, 3)

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


def drawn(world: StackWorld) -> set[tuple[str, str, frozenset[tuple[str, str]]]]:
    """What the deployed dashboard draws of ours: namespace, name and dimensions."""
    name = world.deployment.stack_name
    body = world.cloud.observer("cloudwatch").get_dashboard(DashboardName=name)["DashboardBody"]
    widgets = [each["properties"] for each in json.loads(body)["widgets"]]
    lines = [line for each in widgets for line in each.get("metrics", ())]
    return {
        (namespace, metric, frozenset(batched(pairs, 2, strict=True)))
        for namespace, metric, *pairs, _ in lines
        if namespace == "Tidegate"
    }


def live_through_everything(world: StackWorld) -> None:
    """What has a figure, once."""
    lost, saved, idle = bought(world, 3)
    long = make.job(5, on=[lost], started_at_s=time.time() - 3600)
    asks = make.job(6, on=[saved], comment="tidegate:ckpt=USR1@90")
    busy = [make.node(each, gpus_alloc=1, state="MIXED") for each in (lost, saved)]
    world.report([long, asks], [*busy, make.node(idle)])
    for each in (lost, saved):
        story.warn(world, each)
    story.let_go(world, [idle])
    story.let_go(world, [idle])
    world.cloud.capacity.dry.add(Offering("g5.xlarge", "us-east-1a", Market.SPOT))
    soon = of(7, "small", begins_at_s=make.NOW_S - 60)
    world.report([soon, of(8, "small", gpus=64), of(9, "dry", gpu_type="a10g", nodes=9)])
    gives_up(world, world.nodes()[0], "driver")
    world.put("tidegate.agent", "Tidegate Digest", {"odd": 1}, bus=world.deployment.stack_name)
    world.report([of(10, "rich", gpu_type="a10g", account="broke")])
    later(world, MINUTE_S)
    world.report()
    (*_, down) = bought(world)
    every(world, 5 * MINUTE_S, 3, nodes=[make.node(down, state="DOWN", reason="fan")])


def test_each_metric_on_the_dashboard_is_printed_by_a_function(world: StackWorld) -> None:
    live_through_everything(world)
    printed = {(each.namespace, each.name, each.dimensions) for each in emitted(world)}

    left = drawn(world) - printed

    assert {metric for _, metric, _ in left} == NOT_HERE
