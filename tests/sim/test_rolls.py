"""A new launch template rolls through a pool, or is rolled back; runaways are bounded."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.make import T4, cluster, pool
from tidegate.core.explain.plan import sentence
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.cluster import Cluster, Limits, Timings
from tidegate.core.model.ec2 import Instance, Market, Template
from tidegate.core.model.ledger import Launch
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Learn, Send
from tidegate.core.model.pool_history import BREAKER_S
from tidegate.core.model.slurm import Shape
from tidegate.core.planner import plan
from tidegate.service.control import Looked
from tidegate.service.observe import observe
from tidegate.sim.draw import draw
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.story import Story
from tidegate.sim.world import SimWorld

A, B = Template("lt-t4", "1", "aa-1"), Template("lt-t4", "2", "bb-2")
ON_NODES = (OrderKind.DRAIN, OrderKind.UNDRAIN, OrderKind.RELEASE, OrderKind.DELETE)
NEVER = float("inf")
HALF_MIN_S = 30.0


def of_three(**more: object) -> Cluster:
    made = pool(types=(T4,), markets=(Market.ON_DEMAND,), idle_s=60.0)
    kept = replace(
        made,
        min_nodes=3,
        boot_s=120.0,
        disruption=Disruption((Budget(percent=10.0),)),
        **more,  # type: ignore[arg-type]
    )
    return cluster(kept, timings=Timings(boot_bound_s=300.0))


def world_with(boot_s: Callable[[Instance], float], of: Cluster | None = None) -> SimWorld:
    made = SimWorld(of or of_three(), boot_s)
    deploy(made, A)
    made.look()
    return made


def deploy(world: SimWorld, template: Template) -> None:
    placement = replace(world.control.placement, templates={"t4": template})
    world.control = replace(world.control, placement=placement)


def templates(world: SimWorld) -> list[str]:
    return sorted(one.template for one in world.compute.live())


def ready(world: SimWorld) -> int:
    return sum(not node.is_drain for node in world.slurm.nodes.values())


def test_a_deployment_rolls_through_a_pool_one_by_one_and_new_before_old() -> None:
    world = world_with(lambda instance: 60.0)
    world.step(300.0)
    job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 1500.0))
    world.step(60.0)
    assert templates(world) == ["aa-1"] * 3

    deploy(world, B)
    fewest, most = 3, 0
    for number in range(120):
        if number == 10:  # one for each node that is idle then, so one meets the new template
            for _ in range(3):
                world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 60.0))
        world.step(HALF_MIN_S)
        fewest = min(fewest, ready(world))
        most = max(most, len(world.slurm.nodes) - ready(world))

    assert templates(world) == ["bb-2"] * 3
    assert (fewest, most) == (3, 1)
    assert world.slurm.jobs[job_id].state == "COMPLETED"


def test_a_template_whose_nodes_fail_is_given_up_and_the_last_good_one_used_again() -> None:
    world = world_with(lambda instance: NEVER if instance.template == "bb-2" else 60.0)
    world.step(300.0)
    deploy(world, B)
    world.step(3600.0)
    tried = [one for one in world.compute.everything.values() if one.template == "bb-2"]
    assert (len(tried), templates(world)) == (2, ["aa-1"] * 3)

    lost = next(iter(world.compute.live()))
    world.compute.end(lost.instance_id)
    world.step(1200.0)

    assert templates(world) == ["aa-1"] * 3
    assert [one.template for one in world.compute.everything.values()][-1] == "aa-1"


def test_where_every_new_node_fails_three_launches_are_made_in_half_an_hour() -> None:
    world = world_with(lambda instance: NEVER, replace(of_three(), prices=of_three().prices))
    launched_s: list[float] = []
    world.compute.on_request.append(lambda request: launched_s.append(world.clock.now_s()))
    for number in range(6):
        shape = Shape(1, "t4", 1 + number % 4, 1000)
        world.slurm.submit(Submit("ada", shape, 60.0))
    world.step(4 * 3600.0)

    assert len(launched_s) > 3
    for at_s in launched_s:
        assert sum(at_s - BREAKER_S < one_s <= at_s for one_s in launched_s) <= 3


@pytest.mark.parametrize("seed", range(25))
def test_a_second_plan_at_once_finds_nothing_to_do(seed: int) -> None:
    """No ping-pong: what one plan has done, the next one leaves alone."""
    story = Story(draw(seed, faults=()))
    control = story.world.control
    limits = (control.cluster.limits, *(pool.limits for pool in control.cluster.pools))
    is_limited = any(each != Limits() for each in limits)
    again: list[str] = []

    hear = story.world.on_look

    def look_again(looked: Looked) -> None:
        hear(looked)
        seen, _ = observe(
            control.cluster,
            compute=control.compute,
            ledger=control.ledger,
            bus=control.bus,
            clock=control.clock,
            calendar=control.calendar,
            templates=story.world.control.placement.templates,
        )
        # What has ended makes room, under limits and budgets, and what was bought takes it: then
        # the first node of a new template can come only in the place of an old one.
        if not any(
            done.plan.is_cut
            or done.outcome.refused
            or done.outcome.ended
            or (done.outcome.launched and is_limited)
            for done in looked.rounds
        ):
            again.extend(
                sentence(each)
                for each in plan(seen).actions
                if isinstance(each, Launch | Learn)
                or (isinstance(each, Send) and each.order.kind in ON_NODES)
            )

    story.world.on_look = look_again

    assert story.play().broken is None
    assert again == []
