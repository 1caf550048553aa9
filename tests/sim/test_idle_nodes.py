"""Which idle nodes a check lets stay, and that it lets no other."""

from dataclasses import replace

import pytest

from tests.make import T4, cluster, pool
from tests.sim.test_excuses import first_node
from tidegate.core.model.headroom import Headroom
from tidegate.core.model.slurm import SetBy, Shape
from tidegate.core.model.waiting import Waiting
from tidegate.core.passes.steer import CLOSED
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.ending import IdleNodesGo
from tidegate.sim.checks.witness import Broken, Witness
from tidegate.sim.draw import draw
from tidegate.sim.slurm_parts import Submit, node_of
from tidegate.sim.world import SimWorld

ONE_GPU = Shape(1, "t4", 1, 1000)
HOUR_S = 3600.0


def idling(
    num_nodes: int, *headroom: Headroom, waiting_usd: float = 0.0
) -> tuple[SimWorld, IdleNodesGo]:
    """One node of the pool has a job, the others have none. `waiting_usd`: what an hour costs."""
    of = replace(
        cluster(replace(pool(types=(T4,)), headroom=headroom)), waiting=Waiting(waiting_usd)
    )
    world = SimWorld(of, lambda instance: 60.0)
    job = world.slurm.jobs[world.slurm.submit(Submit("ada", ONE_GPU, 10 * HOUR_S))]
    for _ in range(num_nodes):
        (one,) = world.compute.create_fleet(first_node(world)).instances
        world.slurm.register(node_of(one.instance_id, T4, (), is_gated=False))
    job.state = "RUNNING"
    next(iter(world.slurm.nodes.values())).jobs[job.job_id] = job
    return world, IdleNodesGo(Witness(world, Chaos(draw(0), world)))


def test_room_for_jobs_is_kept_beside_a_busy_node_and_no_node_more() -> None:
    headroom = Headroom(ONE_GPU, nodes=2), Headroom(ONE_GPU)

    _, kept = idling(4, *headroom)
    kept.passed(HOUR_S)

    _, check = idling(5, *headroom)
    with pytest.raises(Broken, match="has idled for 3600 s"):
        check.passed(HOUR_S)


def test_spare_nodes_are_kept_beside_a_busy_one_no_more_than_jobs_came_for() -> None:
    _, kept = idling(2, waiting_usd=20.0)
    kept.passed(HOUR_S)

    for num_nodes, waiting_usd in ((2, 0.0), (3, 20.0)):
        _, check = idling(num_nodes, waiting_usd=waiting_usd)
        with pytest.raises(Broken, match="has idled for 3600 s"):
            check.passed(HOUR_S)


@pytest.mark.parametrize(("is_down", "is_leaving"), [(True, True), (True, False), (False, True)])
def test_a_node_that_is_down_waits_behind_one_that_leaves_with_its_job(
    is_down: bool, is_leaving: bool
) -> None:
    """The usual budget of unhealthy nodes lets one of two go at once, and of empty ones all."""
    world, check = idling(2)
    busy, idle = world.slurm.nodes.values()
    busy.is_drain, busy.set_by = is_leaving, SetBy.US
    idle.is_down = is_down

    if is_down and is_leaving:
        check.passed(HOUR_S)
    else:
        with pytest.raises(Broken, match=f"{idle.name} has idled for 3600 s"):
            check.passed(HOUR_S)


def test_a_node_that_is_down_is_no_node_that_its_pool_keeps() -> None:
    """The other one may stay as the pool's minimum."""
    world, check = idling(3)
    of = world.cluster.pools[0]
    world.cluster = replace(world.cluster, pools=(replace(of, min_nodes=1),))
    busy, lost, _ = world.slurm.nodes.values()
    busy.is_drain, busy.set_by = True, SetBy.US
    lost.is_down = True
    check.passed(HOUR_S)

    lost.is_down = False
    with pytest.raises(Broken, match=f"{lost.name} has idled for 3600 s"):
        check.passed(HOUR_S)


def test_a_node_that_is_closed_to_small_jobs_is_room_for_large_ones() -> None:
    world, check = idling(3, Headroom(ONE_GPU, nodes=2))
    for node in list(world.slurm.nodes.values())[1:]:
        node.is_drain, node.set_by, node.reason = True, SetBy.US, str(CLOSED)

    check.passed(HOUR_S)

    world.slurm.nodes[node.name].reason = "tidegate: drifted"
    with pytest.raises(Broken, match="has idled for"):
        check.passed(HOUR_S)
