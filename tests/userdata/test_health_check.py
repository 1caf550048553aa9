"""What Slurm's health program and the gate make of a finding, by the table and a site's word."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.userdata.findings import NODE_FINDINGS

FOLDER = Path("userdata/node")
LIB = """
RUN_DIR={folder} GPUS=0 GPU_FACTS= LAYOUT= EFA=0 GRES=gpu WRONG_CONFIGURATION=78
console() {{ echo "$*" >>{folder}/console; }}
put_file() {{ cat >"$1"; }}
"""
# All but the root disk, of which no machine has enough.
OTHERS = ("efa", "shared", "scratch", "owner_rule", "files_rule", "neurons", "clock", "kernel")
IGNORED = "".join(f"{each} ignore\n" for each in OTHERS)


def run(folder: Path, own: str, *command: str) -> subprocess.CompletedProcess[str]:
    files = folder / "files"
    if not files.exists():
        shutil.copytree(FOLDER, files)
        shutil.copy(NODE_FINDINGS, files / "findings")
        (folder / "lib.sh").write_text(LIB.format(folder=folder))
    env = {**os.environ, "HEALTH_ACTIONS": IGNORED + own, "MIN_FREE_GIB": "99999999"}
    return subprocess.run(
        ["bash", *command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def periodic(folder: Path, own: str) -> tuple[str, str]:
    """What is to be drained for, and what the console was told."""
    sick, console = folder / "sick", folder / "console"
    done = run(folder, own, "files/health-check.sh", "periodic")
    assert (done.returncode, done.stderr) == (0, "")
    return text_of(sick), text_of(console)


def text_of(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def test_what_a_check_finds_is_handed_on_with_what_follows(tmp_path: Path) -> None:
    sick, console = periodic(tmp_path, "")

    assert sick.startswith("disk: ")
    assert sick.endswith("(root_gib) (degraded; remedy: replace)\n")
    assert console == ""


def test_a_site_s_remedy_is_named_as_its_own(tmp_path: Path) -> None:
    sick, _ = periodic(tmp_path, "disk reboot")

    assert sick.endswith("(root_gib) (degraded; the cluster file's remedy: reboot)\n")


def test_what_a_site_has_told_is_told_once_and_drains_nobody(tmp_path: Path) -> None:
    periodic(tmp_path, "disk tell")
    sick, console = periodic(tmp_path, "disk tell")

    assert sick == ""
    assert console.startswith("health: disk: ")
    assert console.endswith("(root_gib); the node goes on\n")
    assert console.count("\n") == 1


@pytest.mark.parametrize(
    ("own", "code"), [("", 78), ("disk reset", 78), ("disk tell", 0), ("disk ignore", 0)]
)
def test_the_gate_lets_pass_what_a_site_has_told(tmp_path: Path, own: str, code: int) -> None:
    done = run(tmp_path, own, "-euc", "source ./lib.sh; source files/health.sh; gate")

    assert done.returncode == code
    assert ("GiB free on the root disk" in done.stdout) == (own != "disk ignore")
