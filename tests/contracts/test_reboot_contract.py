"""`scontrol reboot`, as the planner counts on it (docs/real-slurm.md, l)."""

from local.waiting import eventually
from tests.contracts.test_slurm_contract import (
    bench,
    cluster,
    fresh_name,
    node,
    real_bench,
    running_job,
    state,
)

__all__ = ["bench", "cluster", "real_bench"]


def test_a_node_reboots_when_it_is_empty_keeps_its_reason_and_takes_jobs_when_it_is_back(bench):
    """No job ends by it, and Slurm shows the node DOWN until it is there again."""
    name = fresh_name()
    bench.join(name)
    job_id = running_job(bench, name)
    bench.port.drain([name], "tidegate-health: ecc: 2 errors")

    bench.port.reboot([name, "i-0000000000000dead"])
    bench.pause(4.0)
    asked = node(bench, name)
    runs = state(bench, job_id)
    bench.cancel(job_id)
    eventually("it goes off", lambda: node(bench, name).state.is_rebooting)
    off = node(bench, name)
    bench.boot_again(name)
    eventually("it is back", lambda: node(bench, name).state.takes_jobs)

    assert (asked.state.awaits_reboot, asked.state.is_drain, runs) == (True, True, "RUNNING")
    assert asked.reason == "tidegate-health: ecc: 2 errors"
    assert (off.state.is_down, off.reason) == (True, f"{asked.reason} : reboot issued")
    assert node(bench, name).reason == ""


def test_a_node_that_mends_itself_without_a_reboot_is_opened_by_its_own_word_and_stays_open(bench):
    """Also when its slurmd is started anew, which tells of no start of the machine."""
    name = fresh_name()
    bench.join(name)
    bench.port.drain([name], "tidegate-health: ecc: 2 errors")
    bench.port.reboot([name])
    eventually("it goes off", lambda: node(bench, name).state.is_rebooting)

    bench.mends_itself(name, "tidegate: its GPUs were reset (open)")
    eventually("it is open", lambda: node(bench, name).state.takes_jobs)
    job_id = running_job(bench, name)
    bench.pause(3.0)

    assert state(bench, job_id) == "RUNNING"
    assert node(bench, name).state.is_busy
