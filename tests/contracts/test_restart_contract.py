"""When a requeued job may start again: what the agent's `Restarts` relies on."""

import time
from collections.abc import Iterator

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tests.contracts.sim_slurm import STEP_S, SimBench
from tests.contracts.test_slurm_contract import (
    Bench,
    bench,
    fresh_name,
    job,
    real_bench,
    state,
)
from tidegate.core.passes.faults import HELD

__all__ = ["bench", "real_bench"]

# slurmctld's passes have a beat of one second then; by default every third second has one.
AT_ONCE = "SchedulerParameters=sched_min_interval=0,batch_sched_delay=0"


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealSlurm]:
    with slurm_of_its_own(AT_ONCE) as slurm:
        yield slurm


def running(bench: Bench) -> str:
    bench.join(fresh_name())
    job_id = bench.submit()
    eventually("the job runs", lambda: bench.state(job_id) == "RUNNING")
    return job_id


def requeued(bench: Bench, job_id: str) -> None:
    assert bench.port.requeue([job_id]) == {}
    eventually("its old run ended", lambda: bench.state(job_id) == "PENDING")


def started(bench: Bench, job_id: str) -> None:
    bench.port.start([job_id])
    eventually("it starts", lambda: bench.state(job_id) != "PENDING")


def knows_runs(bench: Bench) -> bool:
    """From 25.11 on each run of a job has an id of its own (SLUID), by which slurmd ends it."""
    return isinstance(bench, RealSlurm) and bench.release >= (25, 11)


def starts_in_the_same_second(bench: Bench, job_id: str) -> str:
    """The job's state when it was told to end and to start as early in a second as can be."""
    if isinstance(bench, RealSlurm):
        bench.pause(1.02 - time.time() % 1)
    requeued(bench, job_id)
    started(bench, job_id)
    return state(bench, job_id)


def test_a_job_that_starts_in_the_second_in_which_its_old_run_ended_is_failed(bench: Bench) -> None:
    """Its node refuses it: "Job credential revoked"; not from 25.11 on."""
    if isinstance(bench, SimBench):
        bench.port.longest_step_s = STEP_S  # it is about moments
    job_id = running(bench)
    if knows_runs(bench):
        for _ in range(10):
            eventually("it runs", lambda: bench.state(job_id) == "RUNNING")
            assert starts_in_the_same_second(bench, job_id) == "RUNNING"
        bench.pause(0.5)
        assert state(bench, job_id) == "RUNNING"
        return

    def is_lost() -> bool:
        if state(bench, job_id) == "RUNNING":
            starts_in_the_same_second(bench, job_id)
        return state(bench, job_id) == ""

    # Where slurmctld's beat falls into the first moments of a second, it has to drift a little.
    eventually("the job is lost", is_lost, 240.0)


def test_a_job_that_starts_in_a_later_second_runs(bench: Bench) -> None:
    job_id = running(bench)

    for _ in range(3):
        requeued(bench, job_id)
        bench.pause(1.0)
        started(bench, job_id)
        bench.pause(0.5)
        assert state(bench, job_id) == "RUNNING"


def test_a_held_job_waits_until_it_is_released_also_one_that_runs(bench: Bench) -> None:
    runs = running(bench)
    waits = bench.submit("--gres=gpu:t4:4")

    assert set(bench.port.hold([runs, waits, "7; reboot"])) == {"7; reboot"}
    eventually("the run ended", lambda: bench.state(runs) == "PENDING")
    bench.pause(1.0)

    assert job(bench, runs).reason.startswith(HELD)
    assert job(bench, waits).reason.startswith(HELD)
