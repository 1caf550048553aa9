"""Slurm's own deadlines (`--deadline`): what the planner reads, and what slurmctld ends."""

import time

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.test_slurm_contract import (
    cluster,
    fresh_name,
    job,
    real_bench,
    running_job,
    state,
)

__all__ = ["cluster", "real_bench"]

LIMIT_S = 60


def at(instant_s: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(instant_s))


def outcome(bench: RealSlurm, job_id: str) -> str:
    words = bench.run("scontrol", "show", "job", "-o", job_id).split()
    return dict(word.split("=", 1) for word in words if "=" in word)["JobState"]


def test_slurm_ends_a_waiting_job_once_its_limit_no_longer_fits_before_the_deadline(
    real_bench: RealSlurm,
) -> None:
    """Long before the deadline itself; a comment's deadline ends nothing."""
    name = fresh_name()
    real_bench.join(name)
    running_job(real_bench, name, "--exclusive")
    waiting = ("-w", name)
    due_s = time.time() + LIMIT_S + 15
    ends = real_bench.submit(*waiting, "-t1", f"--deadline={at(due_s)}")
    later = f"--deadline={at(due_s + 3 * LIMIT_S)}"
    shorter = real_bench.submit(*waiting, "-t9", "--time-min=1", later)
    stays = real_bench.submit(*waiting, "-t1", f"--comment=tidegate:deadline={due_s:.0f}")

    found = job(real_bench, ends)
    assert (found.state, found.deadline_s) == ("PENDING", float(int(due_s)))
    assert job(real_bench, shorter).time_min_s == LIMIT_S
    eventually("Slurm gives it up", lambda: outcome(real_bench, ends) == "DEADLINE")
    assert time.time() < due_s
    assert state(real_bench, ends) == ""
    assert state(real_bench, shorter) == state(real_bench, stays) == "PENDING"


def test_a_job_that_runs_has_a_time_limit_that_ends_before_its_deadline(
    real_bench: RealSlurm,
) -> None:
    name = fresh_name()
    real_bench.join(name)
    due_s = time.time() + 3 * LIMIT_S
    asked = f"--deadline={at(due_s)}", "-t9", "--time-min=1"

    job_id = running_job(real_bench, name, *asked)

    found = job(real_bench, job_id)
    assert found.time_limit_s is not None
    assert found.time_limit_s <= 3 * LIMIT_S


def test_a_requeued_job_keeps_its_deadline_for_which_its_whole_limit_has_to_fit_again(
    real_bench: RealSlurm,
) -> None:
    name = fresh_name()
    real_bench.join(name)
    due_s = time.time() + 2 * LIMIT_S
    asked = f"--deadline={at(due_s)}", "-t1", "--requeue"
    job_id = running_job(real_bench, name, *asked)

    assert real_bench.port.requeue((job_id,)) == {}

    eventually("it waits again", lambda: real_bench.state(job_id) == "PENDING")
    found = job(real_bench, job_id)
    assert (found.restarts, found.deadline_s) == (1, float(int(due_s)))
    assert found.time_limit_s == LIMIT_S


def test_a_deadline_that_can_never_be_met_is_refused_or_ends_the_job_at_once(
    real_bench: RealSlurm,
) -> None:
    """24.11 and later refuse it, 22.05 takes it and gives it up."""
    soon = f"--deadline={at(time.time() + LIMIT_S / 2)}"
    try:
        job_id = real_bench.submit("-t1", soon)
    except AssertionError as refused:
        assert "Requested time limit is invalid" in str(refused)
    else:
        eventually("Slurm gives it up", lambda: outcome(real_bench, job_id) == "DEADLINE")
        assert real_bench.release == (22, 5)
