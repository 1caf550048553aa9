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
