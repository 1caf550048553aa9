"""Jobs that are told something and then end: the real slurmctld and the simulated."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tests.contracts.sim_slurm import SimBench

NODE = "i-00000000000000d1e"
# As long as the planner's warning with the longest job id.
SAID = (
    "tidegate: its GPUs have been used for less than 50 % for 119 min; unless that changes it is "
    "cancelled in 119 min; to keep it: scontrol update jobid=4294967295_4294967295 "
    "comment=tidegate:idle-ok"
)
LOOP = "for i in $(seq 3000); do sleep 0.1; done"


@pytest.fixture(scope="module")
def real_bench() -> Iterator[RealSlurm]:
    with slurm_of_its_own() as slurm:
        slurm.join(NODE, gpus=4)
        yield slurm


@pytest.fixture(params=["simulated", "real"])
def bench(request: pytest.FixtureRequest) -> RealSlurm | SimBench:
    if request.param == "real":
        real: RealSlurm = request.getfixturevalue("real_bench")
        return real
    made = SimBench()
    made.join(NODE, gpus=4)
    return made


def states(bench: RealSlurm | SimBench) -> dict[str, str]:
    return {job.job_id: job.state for job in bench.port.read().jobs}


def test_a_running_job_ends_for_good_and_a_task_of_an_array_alone(bench) -> None:
    plain = bench.submit("--gres=gpu:t4:1")
    array = bench.submit("--gres=gpu:t4:1", "--array=0-1%2")
    tasks = [f"{array}_{task}" for task in (0, 1)]
    eventually("all run", lambda: all(states(bench).get(j) == "RUNNING" for j in (plain, *tasks)))

    assert bench.port.tell(plain, "told") == ""
    assert bench.port.tell(tasks[0], "told") == ""
    assert bench.port.scancel([plain, tasks[0]]) == {}

    over = ("COMPLETING", "")
    eventually("both end", lambda: {states(bench).get(j, "") for j in (plain, tasks[0])} <= {*over})
    assert states(bench)[tasks[1]] == "RUNNING"
    assert bench.port.scancel([tasks[1]]) == {}


def test_what_is_over_is_told_nothing_and_has_ended(bench) -> None:
    assert bench.port.tell("999999", "told")
    assert bench.port.scancel(["999999"]) == {}


def test_only_a_batch_job_may_be_requeued(real_bench: RealSlurm) -> None:
    batch = real_bench.submit("--gres=gpu:t4:1")
    argv = [*real_bench.prefix, "salloc", "--gres=gpu:t4:1", "sleep", "300"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as salloc:
        eventually("both run", lambda: [*states(real_bench).values()].count("RUNNING") == 2)
        found = {job.job_id: job.is_requeueable for job in real_bench.port.read().jobs}
        (interactive,) = found.keys() - {batch}
        refused = real_bench.port.requeue([interactive])
        real_bench.port.scancel([batch, interactive])
        salloc.kill()

    assert found == {batch: True, interactive: False}
    assert "Only batch jobs" in refused[interactive]


def test_the_whole_warning_stands_in_a_job_s_output(real_bench: RealSlurm) -> None:
    with TemporaryDirectory(dir="/tmp") as folder:
        out = Path(folder) / "out"
        job_id = real_bench.submit("--gres=gpu:t4:1", "-o", str(out), script=f"echo on; {LOOP}")
        eventually("it runs", lambda: out.exists() and "on\n" in out.read_text())

        assert real_bench.port.tell(job_id, SAID) == ""

        eventually("it stands there", lambda: SAID in out.read_text(), patience_s=10.0)
        real_bench.port.scancel([job_id])
