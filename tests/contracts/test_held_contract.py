"""Nodes that look free and are not: what the planner and the agent's guards rely on."""

import time
from contextlib import ExitStack
from dataclasses import replace

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tests.contracts.sim_slurm import SimBench
from tests.contracts.test_slurm_contract import (
    Bench,
    bench,
    cluster,
    fresh_name,
    job,
    names,
    node,
    real_bench,
    running_job,
    state,
)
from tidegate.agent.delete import delete
from tidegate.agent.release import Pace, release
from tidegate.core.demand.held import holds
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.orders import Order, OrderKind, OrderOutcome

__all__ = ["bench", "cluster", "real_bench"]


def suspended_job(bench: Bench, name: str, *options: str) -> str:
    job_id = running_job(bench, name, *options)
    bench.suspend(job_id)
    eventually("it is suspended", lambda: bench.state(job_id) == "SUSPENDED")
    return job_id


def test_a_job_that_may_begin_only_later_is_held_from_its_first_moment_and_when_it_is_changed(
    bench,
):
    """Slurm itself says so only once a pass has looked at it: until then it waits for nodes."""
    first = bench.submit("--gres=gpu:t4:1")
    after = bench.submit("--gres=gpu:t4:1", f"--dependency=afterany:{first}")
    later = bench.submit("--gres=gpu:t4:1", "--begin=now+3600")
    kept = [after, later]

    def held() -> list[str]:
        now_s = bench.clock.now_s() if isinstance(bench, SimBench) else time.time()
        return [holds(job(bench, each), 300.0, now_s).partition(":")[0] for each in kept]

    said = ["it waits for another job", "its begin time has not come"]
    assert held() == said
    if isinstance(bench, RealSlurm):
        for each in kept:
            bench.run("scontrol", "update", f"jobid={each}", "comment=changed")
    assert held() == said
    if isinstance(bench, SimBench):  # the real one takes until its next pass to see it
        bench.pause(35.0)
        assert held() == said
        bench.cancel(first)
        assert held() == ["", said[1]]


def release_of(name: str) -> Order:
    return Order("o1", OrderKind.RELEASE, (name,), time.time() + 1e9, only_if=("IDLE",))


def test_the_node_of_a_suspended_job_is_not_released_though_22_05_shows_it_idle(bench):
    name = fresh_name()
    bench.join(name)
    job_id = suspended_job(bench, name, "--gres=gpu:t4:1")

    results = release(release_of(name), bench.port, bench.pause, Pace(3, 0.1))

    looks_busy = isinstance(bench, RealSlurm) and bench.release > (22, 5)
    assert ("MIXED" in node(bench, name).state.words) == looks_busy
    by_state, by_job = (
        "The node is DYNAMIC_NORM+MIXED, not IDLE.",
        f"Job {job_id} is suspended here.",
    )
    why = by_state if looks_busy else by_job
    assert [(one.outcome, one.detail) for one in results] == [(OrderOutcome.KEPT, why)]
    assert not node(bench, name).state.is_drain
    assert job(bench, job_id).node_names == (name,)


@pytest.mark.parametrize("option", ["--requeue", "--no-requeue"])
def test_a_dead_node_with_a_suspended_job_is_deleted_without_harm(bench, option):
    name = fresh_name()
    bench.join(name)
    job_id = suspended_job(bench, name, option)
    bench.die(name)
    order = replace(release_of(name), kind=OrderKind.DELETE, only_if=())

    def is_gone() -> bool:
        delete([order], bench.port, bench.pause, Pace(3, 0.5), time.time())
        return name not in names(bench)

    eventually("it is deleted", is_gone)
    bench.pause(1.0)
    assert state(bench, job_id) == ("PENDING" if option == "--requeue" else "")


def test_a_suspended_job_is_requeued(bench):
    name = fresh_name()
    bench.join(name)
    job_id = suspended_job(bench, name)

    assert bench.port.requeue([job_id]) == {}

    eventually("it waits", lambda: bench.state(job_id) == "PENDING")


@pytest.mark.parametrize("kind", ["simulated", "real"])
def test_deleting_the_node_of_a_suspended_job_ends_slurmctld(kind):
    """That of 22.05; whoever restarts it and repeats the command ends it again."""
    with ExitStack() as stack:
        bench = SimBench() if kind == "simulated" else stack.enter_context(slurm_of_its_own())
        name = fresh_name()
        bench.join(name)
        job_id = suspended_job(bench, name)
        if not bench.port.read().version.startswith(("22.05", "sim")):
            pytest.skip("slurmctld of this release does not end of it, 22.05 does")
        bench.port.drain([name], "going")
        bench.pause(8.0)  # until slurmctld has written down that the job is suspended

        for _ in range(2):
            with pytest.raises(SlurmUnavailable, match="Zero Bytes"):
                bench.port.delete([name])
            with pytest.raises(SlurmUnavailable):
                bench.port.read()
            bench.restart()
            eventually("it answers", lambda: bench.state(job_id) == "SUSPENDED")


def test_a_job_that_was_requeued_is_not_counted_again_when_its_node_is_set_down(bench):
    """As when EC2 takes a node: the job is requeued first, and then the node leaves."""
    name = fresh_name()
    bench.join(name)
    job_id = running_job(bench, name)

    assert bench.port.requeue([job_id]) == {}
    bench.port.down([name], "tidegate: its instance is gone")

    eventually("the job waits", lambda: bench.state(job_id) == "PENDING", 5.0)
    assert job(bench, job_id).restarts == 1
