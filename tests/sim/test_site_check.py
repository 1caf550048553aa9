"""A slow image: every job ends well on it, and the site's check alone finds it."""

from dataclasses import replace

import pytest

from tests.sim.test_rolls import A, B, deploy, of_three, templates
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.rollout import BY_CHECK
from tidegate.core.model.site_check import SiteCheck, is_check_name
from tidegate.core.model.slurm import Shape
from tidegate.sim.slurm_parts import SimJob, SimNode, Submit
from tidegate.sim.world import SimWorld

HOUR_S = 3600.0


def of(nodes: int) -> Cluster:
    return replace(of_three(), check=SiteCheck("ci", nodes))


def rolled(cluster: Cluster, *, is_slow: bool) -> SimWorld:
    """Three nodes with jobs, of which B is deployed an hour ago."""
    world = SimWorld(cluster, lambda instance: 60.0)
    deploy(world, A)
    world.look()

    def started(job: SimJob) -> None:
        if is_check_name(job.submit.name) and is_slow:
            world.at(world.clock.now_s() + 30.0, lambda: world.slurm.table.end(job, "FAILED"))

    world.slurm.table.on_start.append(started)
    world.step(300.0)
    world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3 * HOUR_S))
    world.step(60.0)
    deploy(world, B)
    world.step(HOUR_S)
    return world


def made_from_b(world: SimWorld) -> int:
    return sum(one.template == B.digest for one in world.compute.everything.values())


def checks(world: SimWorld) -> list[SimJob]:
    return [job for job in world.slurm.jobs.values() if job.submit.name]


@pytest.mark.parametrize("nodes", [1, 2])
def test_it_touches_no_more_nodes_than_the_check_and_ends_no_job(nodes: int) -> None:
    world = rolled(of(nodes), is_slow=True)

    assert made_from_b(world) <= 2
    assert templates(world) == ["aa-1"] * 3
    history = world.ledger.all_pool_history["t4"]
    assert history.rollout is not None
    assert history.rollout.given_up == "rollout-bad-check"
    assert [job.state for job in checks(world)] == ["FAILED"]
    assert world.slurm.jobs["1"].state == "RUNNING"


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_good_one_passes_once_and_comes_everywhere(nodes: int) -> None:
    world = rolled(of(nodes), is_slow=False)
    world.step(4 * HOUR_S)

    assert [(job.state, len(set(job.submit.node_name.split(",")))) for job in checks(world)] == [
        ("COMPLETED", nodes)
    ]
    assert templates(world) == ["bb-2"] * 3
    assert world.slurm.jobs["1"].state == "COMPLETED"


def test_where_its_nodes_never_get_free_a_person_is_asked_and_it_is_not_taken_for_good() -> None:
    short = SiteCheck("ci", wait_s=300.0, time_limit_s=60.0)
    world = SimWorld(replace(of_three(), check=short), lambda instance: 60.0)
    deploy(world, A)
    world.look()

    def stands(job: SimJob) -> None:
        """What takes the node first stays there."""
        if any(world.compute.everything[name].template == B.digest for name in job.node_names):
            assert not job.submit.name

    def joined(node: SimNode) -> None:
        if world.compute.everything[node.name].template == B.digest:
            world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 9 * HOUR_S))

    world.slurm.table.on_start.append(stands)
    world.slurm.on_join.append(joined)
    world.step(300.0)
    for _ in range(3):
        world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 9 * HOUR_S))
    world.step(60.0)
    deploy(world, B)
    world.step(HOUR_S)

    history = world.ledger.all_pool_history["t4"]
    assert history.good == A
    assert history.rollout is not None
    assert (history.rollout.is_paused, history.rollout.by) == (True, BY_CHECK)
    assert [job.state for job in checks(world)] == ["DEADLINE", "DEADLINE"]
