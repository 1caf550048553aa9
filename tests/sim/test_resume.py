"""A node of a job of several nodes fails: step by step, with times, beside a job that waits."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from bench.resume import (
    BOOT_S,
    NODE,
    Story,
    gpu_fails,
    instance_ends,
    slurmd_dies,
    story,
)
from tidegate.core.interruption.heartbeat import Beat
from tidegate.core.model.cluster import Limits
from tidegate.core.passes.faults import RETRIES_MAX
from tidegate.sim.slurm_parts import Submit
from tidegate.sim.slurm_table import SLURMD_TIMEOUT_S


def rival(of: Story) -> None:
    """A more important job that has come just now, for one node: Slurm would start it first."""
    of.world.slurm.submit(Submit("bob", NODE, 5_000.0, priority=9))


@pytest.mark.parametrize(
    ("fails", "found_s"),
    [(slurmd_dies, SLURMD_TIMEOUT_S), (instance_ends, 0.0), (gpu_fails, 0.0)],
)
def test_it_runs_again_on_its_good_node_as_soon_as_the_replacement_has_joined(
    fails: Callable[[Story], None], found_s: float
) -> None:
    of = story()
    good = of.good
    of.began_s = of.world.clock.now_s()

    of.world.at(of.began_s + found_s, partial(rival, of))
    fails(of)
    of.world.step(found_s + 2 * BOOT_S + 10)

    assert of.gang.state == "RUNNING"
    assert good in of.gang.node_names
    assert of.gang.requeues == 1
    assert of.at_s["bought"] <= found_s + 2  # in one look with the requeue
    # The rival takes the first node that comes, the gang the second one.
    assert of.at_s["job 1 starts"] <= found_s + BOOT_S + 5
    assert of.at_s["job 2 starts"] <= found_s + BOOT_S + 5


def test_good_nodes_are_everybodys_again_when_the_job_is_cancelled() -> None:
    of = story(Limits(nodes=2))
    good = of.good
    gpu_fails(of)
    of.world.step(3)
    rival(of)
    of.world.step(5)
    kept = of.world.slurm.jobs["2"].state

    of.world.slurm.cancel(of.gang.job_id)
    of.world.step(10)

    assert kept == "PENDING"
    assert of.world.slurm.jobs["2"].node_names == (good,)


def test_a_job_whose_nodes_fail_again_and_again_is_held_until_somebody_releases_it() -> None:
    of = story()
    w, job = of.world, of.gang
    for _ in range(RETRIES_MAX + 1):
        assert job.state == "RUNNING"
        gpu_fails(of)
        w.step(150)
    held = job.state, job.reason, job.starts

    w.step(900)
    is_idle = len(w.compute.live()) == 0
    w.slurm.let_go(job.job_id)
    w.step(200)

    assert held == ("PENDING", "JobHeldAdmin", RETRIES_MAX + 1)
    assert is_idle
    assert job.state == "RUNNING"


def test_a_job_that_hangs_runs_again_on_its_own_nodes_beside_one_that_waits_for_a_node() -> None:
    of = story(Limits(nodes=2))
    w, job, names = of.world, of.gang, of.gang.node_names
    job.submit = replace(job.submit, comment="tidegate:heartbeat=/shared/beat@60")
    touched_s = w.clock.now_s()
    w.beats = lambda jobs: {
        each.job_id: Beat(touched_s) for each in jobs if each.is_running and not each.restarts
    }
    w.slurm.submit(Submit("bob", NODE, 5_000.0, priority=0))

    w.step(60 + w.heartbeat_s + 30)

    assert (job.state, job.starts, job.requeues) == ("RUNNING", 2, 1)
    assert set(job.node_names) == set(names)
    assert w.slurm.jobs["2"].state == "PENDING"


def test_a_spare_node_is_taken_at_once_and_bought_again() -> None:
    of = story(spare_nodes=1)
    w, names = of.world, set(of.world.slurm.nodes)
    of.began_s = w.clock.now_s()
    gpu_fails(of)

    w.step(BOOT_S + 30)

    assert of.at_s["job 1 starts"] <= 10
    assert set(of.gang.node_names) < names
    spares = [node for node in w.slurm.nodes.values() if not node.jobs and not node.is_drain]
    assert len(spares) == 1
