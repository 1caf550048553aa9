"""Which job a program on Neuron devices is of, and what the head hears of its devices."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.userdata.neuron import program, report
from userdata.node.neuron_use import Errors, here, metrics, owners, told

NODE = Path(__file__).parents[2] / "userdata" / "node"
STAGE = NODE / "gpu_use.sh"
SLUID = "sDK6GT0QB4X000"


class Machine:
    """A node's jobs and processes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.proc = folder / "neuron-jobs", folder / "proc"
        self.folder.mkdir()

    def slurm(self, script: str, job_id: str, sluid: str = "") -> None:
        """Runs the script for a job; one that fails would drain the node."""
        text = subprocess.check_output(["bash", "-c", f"source {STAGE}; {script}"], text=True)
        text = text.replace("/run/tidegate", str(self.folder.parent))
        given = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": job_id, "SLURM_JOB_SLUID": sluid}
        done = subprocess.run(
            ["bash", "-c", text], env=given, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def runs(self, pid: int, *cgroups: str) -> None:
        (self.proc / str(pid)).mkdir(parents=True)
        (self.proc / str(pid) / "cgroup").write_text("".join(f"{each}\n" for each in cgroups))

    def owners(self, of: dict[str, Any]) -> dict[int, str]:
        return owners(of, here(self.folder), self.proc)

    def told(self, of: dict[str, Any]) -> list[str]:
        at, *lines = told(of, sorted({*here(self.folder).values()}), self.owners(of)).split("\n")
        assert abs(int(at) - time.time()) < 60
        return lines


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.slurm("prolog", "7")
    made.slurm("prolog", "8", SLUID)
    made.runs(70, "0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0")
    made.runs(80, f"0::/system.slice/slurmstepd.scope/{SLUID}/step_batch/user/task_0")
    return made


def test_a_job_is_told_of_what_its_programs_compute_on(machine: Machine) -> None:
    """A program lists all NeuronCores that it sees, with 0 those that it does not use."""
    one = program({0: 12.9, 1: 97.2, 2: 0, 3: 0}, pid=70)
    another = program({0: 0, 1: 0, 2: 3.8, 3: 0.0}, pid=80)

    assert machine.told(report([one, another])) == ["7 of 0:97", "8 of 1:3"]


def test_a_job_without_a_program_computes_on_nothing(machine: Machine) -> None:
    assert machine.told(report(None)) == ["7 of", "8 of"]
    assert machine.told(report([program({0: 0.0, 2: 50.0}, pid=80)])) == ["7 of", "8 of 1:50"]


@pytest.mark.parametrize(
    ("cgroup", "job"),
    [
        ("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", "7"),
        ("0::/system.slice/i-1_slurmstepd.scope/job_7/step_0/user/task_special", "7"),
        ("0::/slurmstepd.scope/job_7/step_batch/user/task_0", "7"),
        (f"0::/system.slice/slurmstepd.scope/{SLUID}/step_0", "8"),
        ("4:devices:/slurm/uid_1000/job_7/step_0/task_0", "7"),
        ("4:devices:/slurm_i-1/uid_1000/job_7/step_batch", "7"),
        ("0::/system.slice/slurmstepd.scope/job_77/step_0", ""),
        ("0::/system.slice/docker-0123.scope", ""),
        ("0::/user.slice/user-1000.slice/user@1000.service/slurm/uid_1/job_7", ""),
        ("0::/user.slice/user-1000.slice/user@1000.service/slurmstepd.scope/job_7", ""),
        ("0::/", ""),
    ],
)
def test_whose_a_program_is_its_cgroup_says(machine: Machine, cgroup: str, job: str) -> None:
    """Source: Slurm's cgroup_v2.c and xcgroup.c, and cgroup.conf(5), CgroupJobIdPaths."""
    machine.runs(90, "12:cpuset:/", cgroup)

    assert machine.owners(report([program({}, pid=90)])) == {90: job}


@pytest.mark.parametrize("pid", [90, 91])
def test_where_nobody_s_program_computes_nothing_is_known(machine: Machine, pid: int) -> None:
    machine.runs(90, "0::/system.slice/docker-0123.scope")  # 91 is gone

    assert machine.told(report([program({0: 3.0}, pid=pid)])) == ["7 -", "8 -"]
    assert machine.told(report([program({0: 0.0}, pid=pid)])) == ["7 of", "8 of"]


def test_what_cannot_be_read_is_no_idleness(machine: Machine) -> None:
    broken = program({}, error="no such process", pid=80)

    assert machine.told(report([program({0: 97.0}, pid=70), broken])) == ["7 -", "8 -"]
    assert machine.told(report(error="no driver")) == ["7 -", "8 -"]
    assert machine.told(report([program({9: 97.0}, pid=70)])) == ["7 -", "8 -"]


def test_a_job_is_there_until_it_ends(machine: Machine) -> None:
    assert here(machine.folder) == {"job_7": "7", "job_8": "8", SLUID: "8", "": "7"}

    machine.slurm("epilog", "8")

    assert set(here(machine.folder).values()) == {"7"}


@pytest.mark.parametrize("script", ["prolog", "epilog"])
def test_no_job_fails_where_the_folder_is_gone(machine: Machine, script: str) -> None:
    for each in machine.folder.iterdir():
        each.unlink()
    machine.folder.rmdir()

    machine.slurm(script, "7")

    assert here(machine.folder) == {}


def test_a_device_s_metrics_have_the_job_that_computes_or_has_data_there(machine: Machine) -> None:
    one, another = program({0: 42.0, 2: 0}, pid=70), program({0: 0, 2: 0}, gib={2: 5}, pid=80)

    two = report([one, another])
    said = metrics(two, Errors(), machine.owners(two))
    shared = report([program({0: 42.0}, pid=70), program({1: 1.0}, pid=80)])
    both = metrics(shared, Errors(), machine.owners(shared))

    assert 'use_ratio{device="0",hpc_job="7"} 0.2100\n' in said
    assert 'use_ratio{device="1",hpc_job="8"} 0.0000\n' in said
    assert 'memory_used_bytes{device="1",hpc_job="8"} 5368709120\n' in said
    assert 'use_ratio{device="0"} 0.2150\n' in both
    assert 'use_ratio{device="1"} 0.0000\n' in both


def test_a_neuron_monitor_that_does_not_tell_how_large_memories_are_is_as_good(
    machine: Machine,
) -> None:
    """That of an inf1.xlarge says how many devices and NeuronCores there are, and no more."""
    of = report([program({0: 42.0}, pid=70)])
    of["neuron_hardware_info"] = {
        "neuron_device_count": 1,
        "neuroncore_per_device_count": 4,
        "error": "",
    }

    said = metrics(of, Errors(), machine.owners(of))

    assert 'use_ratio{device="0",hpc_job="7"} 0.1050\n' in said
    assert "memory_bytes" not in said
    assert machine.told(of) == ["7 of 0:42", "8 of"]


def test_the_head_reads_it_where_it_reads_of_gpus(tmp_path: Path) -> None:
    """The script that writes there is called as it is, with a folder of this test."""
    folder = tmp_path / "shared" / ".tidegate" / "gpu-use"
    jobs = tmp_path / "jobs"
    for each in (folder, jobs, tmp_path / "files"):
        each.mkdir(parents=True)
    (jobs / "7").touch()
    facts = f"RUN_DIR={tmp_path} SHARED_DIR={tmp_path}/shared INSTANCE_ID=i-1\n"
    script = tmp_path / "files" / "gpu-use.sh"
    script.write_text((NODE / "gpu-use.sh").read_text().replace("setpriv", "as_owner"))
    (tmp_path / "lib.sh").write_text(facts + 'as_owner() { "${@:4}"; }\n')
    said = json.dumps(report())
    words = [sys.executable, str(NODE / "neuron_use.py"), str(tmp_path / "x.prom"), str(jobs)]
    # The second job comes in the middle of what the second report is of.
    lines = f"echo '{said}'; sleep 1; touch {jobs}/8; echo '{said}'; sleep 60"

    with subprocess.Popen([*words, str(script), "sh", "-c", lines]) as running:
        until_s = time.monotonic() + 20
        while not list(folder.glob("i-1")):
            assert time.monotonic() < until_s
            time.sleep(0.05)
        running.terminate()

    first, *rest = (folder / "i-1").read_text().splitlines()
    assert abs(int(first) - time.time()) < 60
    assert rest == ["7 of"]
