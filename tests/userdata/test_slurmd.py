"""What a node tells slurmctld of its CPUs, by the release of its slurmd."""

import os
import socket
import subprocess
from collections.abc import Iterator
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
    "TOLD_GRES": "",
    "GATE": "",
    "MAY_START": "/run/may-start",
    "WRONG_CONFIGURATION": "78",
    "SHARED_DIR": "/nowhere",
}


def conf(folder: Path, release: str, told: str = TOLD, **settings: str) -> tuple[int, str]:
    """Exit code, and the line of `slurmd --conf` or what was said instead."""
    (folder / "told").write_text(told)
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


def test_a_node_with_one_thread_for_each_core_tells_its_cores(tmp_path: Path):
    one = TOLD.replace("CPUs=48", "CPUs=24").replace("ThreadsPerCore=2", "ThreadsPerCore=1")

    _, told = conf(tmp_path, "'slurm-wlm 23.11.4'", told=one, CPUS="24")
    _, by_number = conf(tmp_path, "'slurm-wlm 24.11.5'", told=one, CPUS="24")

    assert told.startswith("CPUs=24 Boards=1 SocketsPerBoard=1 CoresPerSocket=24 ThreadsPerCore=1 ")
    assert by_number.startswith("CPUs=24 RealMemory=186777 ")


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
    program(folder / "scontrol", f"echo '{SHOWN.format(state=state)}'")
    return run(folder, line)


def program(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def run(folder: Path, line: str, **settings: str) -> tuple[int, str]:
    """Exit code and words of a line of shell behind the stage."""
    refuse = 'refuse() { echo "$*"; exit 78; }'
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; {refuse}; source {STAGE}; {line}"],
        env={
            "PATH": f"{folder}:{os.environ['PATH']}",
            "INSTANCE_ID": "i-0fa0",
            **SETTINGS,
            **settings,
        },
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


@pytest.fixture
def port() -> Iterator[int]:
    """Somebody listens there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


# What real ones print (tests/contracts/test_releases.py).
DEAF = "echo 'scontrol: fatal: Could not establish a configuration source' >&2; exit 1"
HEARS = "[ $SLURM_CONF_SERVER ] && echo 'Slurmctld(primary) at head is UP'"


def joining(
    folder: Path, head: str, port: int, scontrol: str = DEAF, own: str = "26.05.5"
) -> tuple[int, str]:
    """How a node fares whose head has said that it runs this Slurm; "" where it said nothing."""
    program(folder / "slurmd", f"echo slurm-wlm {own}")
    program(folder / "scontrol", scontrol)
    program(folder / "sleep", f"echo $1 >>{folder}/slept")
    (folder / ".tidegate").mkdir()
    if head:
        (folder / ".tidegate" / "slurm.version").write_text(f"{head}\n")
    where = {"SHARED_DIR": str(folder), "HEAD": f"127.0.0.1:{port}"}
    return run(folder, "refuse_if_not_understood", **where)


@pytest.mark.parametrize(("head", "own"), [("24.11.5", "26.05.5"), ("24.11.5", "22.05.8")])
def test_a_slurmd_that_slurmctld_does_not_understand_ends_the_node_at_once(
    tmp_path: Path, port, head, own
):
    code, said = joining(tmp_path, head, port, own=own)

    assert code == 78
    assert f"slurmctld {head} on the head does not understand slurmd {own} of this image" in said
    assert "give the pool an image with Slurm 24.11" in said


def test_another_release_that_is_understood_joins(tmp_path: Path, port):
    assert joining(tmp_path, "26.05.5", port, HEARS, own="24.11.5") == (0, "")


def test_a_slurmctld_that_only_starts_again_is_asked_again(tmp_path: Path, port):
    """It hears, and answers a while later: no word on its release."""
    later = f"[ -e $0.asked ] || {{ touch $0.asked; {DEAF}; }}; {HEARS}"

    assert joining(tmp_path, "26.05.5", port, later, own="24.11.5") == (0, "")


def test_a_slurmctld_too_busy_to_answer_has_not_refused_the_release(tmp_path: Path, port):
    program(tmp_path / "timeout", '[ "$2" = scontrol ] && exit 124; shift; exec "$@"')

    assert joining(tmp_path, "26.05.5", port, own="24.11.5") == (0, "")


def test_what_is_refused_was_asked_three_times_within_ten_seconds(tmp_path: Path, port):
    assert joining(tmp_path, "24.11.5", port)[0] == 78

    assert (tmp_path / "slept").read_text().split() == ["3", "6"]


@pytest.mark.parametrize("head", ["26.05.1", ""])
def test_nothing_is_asked_where_the_release_is_the_same_or_unknown(tmp_path: Path, port, head):
    assert joining(tmp_path, head, port, "touch $0.asked; exit 1") == (0, "")
    assert not (tmp_path / "scontrol.asked").exists()


def test_a_head_that_is_down_is_waited_for_whatever_its_release(tmp_path: Path, port):
    with socket.create_server(("127.0.0.1", 0)) as gone:
        nobody = gone.getsockname()[1]

    assert joining(tmp_path, "24.11.5", nobody) == (0, "")
