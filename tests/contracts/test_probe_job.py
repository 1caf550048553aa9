"""The job of `tidegate probe --launch`, with the commands that it types, on a real slurmctld."""

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.test_slurm_contract import cluster, fresh_name, real_bench
from tests.make import T4_BIG, offering
from tidegate.cli.probe.cheapest import Cheapest
from tidegate.cli.probe.slurm_job import JobState, SlurmJob
from tidegate.core.model.errors import SlurmUnavailable

__all__ = ["cluster", "real_bench"]


@dataclass(frozen=True)
class Shell:
    """The bench's head, without a session around the commands."""

    bench: RealSlurm

    def run(self, *argv: str) -> str:
        done = subprocess.run(
            [*self.bench.prefix, *argv], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SlurmUnavailable(f"{argv[0]}: {done.stdout}{done.stderr}")
        return done.stdout


@pytest.fixture
def job(real_bench: RealSlurm) -> SlurmJob:
    return SlurmJob(Shell(real_bench), lambda job_id, since_s: ())


def node() -> Cheapest:
    """Nodes of the bench have the features gpu and t4, and four GPUs."""
    return Cheapest("gpu", "gpu", replace(T4_BIG, name="t4"), offering(T4_BIG), 1.0)


def once(job: SlurmJob, what: str, is_so: Callable[[JobState], bool]) -> JobState:
    """The first state of which it is so."""
    found: list[JobState] = []

    def looks() -> bool:
        found.append(job.state())
        return is_so(found[-1])

    eventually(what, looks)
    return found[-1]


def test_a_job_waits_runs_is_requeued_and_ends_as_the_probe_reads_it(
    real_bench: RealSlurm, job: SlurmJob
):
    job.submit(node())
    waiting = job.state()
    name = fresh_name()
    real_bench.join(name)
    real_bench.port.poke([name])
    running = once(job, "it runs", lambda state: bool(state.runs_on))
    is_alone = job.is_alone_on(name)
    job.requeue()
    again = once(job, "it waits", lambda state: state.name == "PENDING")

    # Not for the two minutes that slurmctld holds it.
    time.sleep(1.1)
    real_bench.run("scontrol", "update", f"nodename={name}", "state=resume")
    real_bench.run("scontrol", "update", f"jobid={job.job_id}", "StartTime=now")
    real_bench.port.poke([name])
    ended = once(job, "it ends", lambda state: state.is_over)

    assert (waiting.name, waiting.runs_on, waiting.started_at_s) == ("PENDING", "", None)
    assert (running.runs_on, running.restarts) == (name, 0)
    assert running.started_at_s == pytest.approx(time.time(), abs=60)
    assert is_alone
    assert (again.restarts, again.runs_on) == (1, "")
    assert (ended.name, ended.restarts) == ("COMPLETED", 1)


def test_a_node_with_another_job_is_left_open_to_more(real_bench: RealSlurm, job: SlurmJob):
    name = fresh_name()
    real_bench.join(name)
    job.submit(node())
    real_bench.submit("-w", name)
    real_bench.port.poke([name])
    eventually("both run", lambda: real_bench.run("squeue", "-h", "-t", "R").count("\n") == 1)

    assert not job.is_alone_on(name)
    assert "DRAIN" not in real_bench.node_words(name)


def test_a_cancelled_job_is_gone_though_its_id_was_lost(real_bench: RealSlurm, job: SlurmJob):
    job.submit(node())
    submitted, job.job_id = job.job_id, ""

    job.cancel()

    assert job.job_id == submitted
    assert job.state().is_over
    assert job.is_alone_on("i-0123456789abcdef0")
    job.job_id = "999999"
    assert job.state().is_over
