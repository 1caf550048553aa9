"""What a node tells slurmctld of its CPUs, by the release of its slurmd."""

import os
import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[2] / "userdata" / "node" / "slurmd.sh"
TOLD = (
    "NodeName=ip-10-0-0-1 CPUs=48 Boards=1 SocketsPerBoard=1 CoresPerSocket=24 ThreadsPerCore=2"
    " RealMemory=190000\nUpTime=0-00:01:02\n"
)
SETTINGS = {
    "CPUS": "48",
    "MEMORY_MIB": "186777",
    "POOL": "gpu",
    "INSTANCE_TYPE": "g5.12xlarge",
    "MARKET": "spot",
    "LABELS": "-",
    "WEIGHT": "5",
    "ACCELERATORS": "0",
    "GATE": "",
    "MAY_START": "/run/may-start",
    "WRONG_CONFIGURATION": "78",
}


def conf(folder: Path, release: str, **settings: str) -> tuple[int, str]:
    """Exit code, and the line of `slurmd --conf` or what was said instead."""
    (folder / "told").write_text(TOLD)
    slurmd = folder / "slurmd"
    slurmd.write_text(f"#!/bin/sh\n[ $1 = -C ] && cat {folder}/told || echo {release}\n")
    slurmd.chmod(0o755)
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; source {STAGE}; slurmd_conf"],
        env={"PATH": f"{folder}:{os.environ['PATH']}", **SETTINGS, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout if done.returncode == 0 else done.stderr


@pytest.mark.parametrize(
    "release", ["'slurm-wlm 22.05.8'", "'slurm 23.11.7'", "'slurm 23.11.10'", "'slurm-wlm 24.11.5'"]
)
def test_each_thread_is_given_away_by_itself(tmp_path: Path, release):
    code, told = conf(tmp_path, release)

    assert code == 0
    assert told.startswith("CPUs=48 RealMemory=186777 Feature=gpu,g5.12xlarge,g5,spot Weight=5")


@pytest.mark.parametrize("release", ["'slurm-wlm 23.11.4'", "'slurm 23.11.0'", "'slurm 23.11.6'"])
def test_a_release_that_would_hide_half_of_the_threads_is_told_of_the_cores(tmp_path, release):
    code, told = conf(tmp_path, release)

    assert code == 0
    assert told.startswith(
        "CPUs=48 Boards=1 SocketsPerBoard=1 CoresPerSocket=24 ThreadsPerCore=2 RealMemory=186777 "
    )


def test_a_machine_with_other_cpus_than_its_type_is_refused(tmp_path: Path):
    assert conf(tmp_path, "'slurm-wlm 23.11.4'", CPUS="96") == (
        78,
        "this machine has CPUs=48, g5.12xlarge has 96\n",
    )


SHOWN = (
    "NodeName=i-0fa0 Arch=x86_64 CoresPerSocket=1 CPUAlloc=0 CPUTot=48 State={state} Owner=N/A"
    " Reason=Low RealMemory (reported:150000 < 90.00% of configured:186777) [slurm@2026-11-23]"
)


def stage(folder: Path, line: str, state: str) -> tuple[int, str]:
    """What the stage says of a node that slurmctld shows in this state."""
    scontrol = folder / "scontrol"
    scontrol.write_text(f"#!/bin/sh\necho '{SHOWN.format(state=state)}'\n")
    scontrol.chmod(0o755)
    refuse = 'refuse() { echo "$*"; exit 78; }'
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; {refuse}; source {STAGE}; {line}"],
        env={"PATH": f"{folder}:{os.environ['PATH']}", "INSTANCE_ID": "i-0fa0", **SETTINGS},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("IDLE+DYNAMIC_NORM", 0),
        ("IDLE+DRAIN+DYNAMIC_NORM", 0),
        ("IDLE+DYNAMIC_NORM+INVALID_REG", 1),
        ("IDLE+DYNAMIC_NORM+NOT_RESPONDING", 1),
        ("UNKNOWN+NOT_RESPONDING", 1),
    ],
)
def test_a_node_has_joined_when_slurm_can_use_it(tmp_path: Path, state, code):
    assert stage(tmp_path, "is_registered", state)[0] == code


def test_a_node_with_which_slurm_finds_fault_is_given_up_with_slurm_s_words(tmp_path: Path):
    code, said = stage(tmp_path, "refuse_if_at_fault", "IDLE+DYNAMIC_NORM+INVALID_REG")

    assert code == 78
    assert "Low RealMemory (reported:150000 < 90.00% of configured:186777)" in said
    assert stage(tmp_path, "refuse_if_at_fault", "IDLE+DYNAMIC_NORM") == (0, "")
