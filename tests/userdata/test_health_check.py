"""What Slurm's health program and the gate make of a finding, by the table and a site's word."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.userdata.findings import NODE_FINDINGS

FOLDER = Path("userdata/node")
LIB = """
RUN_DIR={folder} GPUS=0 LAYOUT= EFA=0 GRES=gpu WRONG_CONFIGURATION=78
console() {{ echo "$*" >>{folder}/console; }}
put_file() {{ cat >"$1"; }}
sleep() {{ echo "$1" >>{folder}/slept; }}
"""
# What the root disk has free, in GiB, look by look; the last line goes on.
DF = """#!/bin/sh
sed -n 1p {folder}/free
[ $(wc -l <{folder}/free) = 1 ] || sed -i 1d {folder}/free
"""
# All but the root disk.
OTHERS = ("efa", "shared", "scratch", "owner_rule", "files_rule", "neurons", "clock", "kernel")
IGNORED = "".join(f"{each} ignore\n" for each in OTHERS)


def run(folder: Path, own: str, *command: str) -> subprocess.CompletedProcess[str]:
    files = folder / "files"
    if not files.exists():
        shutil.copytree(FOLDER, files)
        shutil.copy(NODE_FINDINGS, files / "findings")
        (folder / "lib.sh").write_text(LIB.format(folder=folder))
        (folder / "df").write_text(DF.format(folder=folder))
        (folder / "df").chmod(0o755)
    if not (folder / "free").exists():
        has_free(folder, 3)
    path = f"{folder}:{os.environ['PATH']}"
    env = {**os.environ, "HEALTH_ACTIONS": IGNORED + own, "PATH": path}
    return subprocess.run(
        ["bash", *command], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def periodic(folder: Path, own: str) -> tuple[str, str]:
    """What is to be drained for, and what the console was told."""
    sick, console = folder / "sick", folder / "console"
    done = run(folder, own, "files/health-check.sh", "periodic")
    assert (done.returncode, done.stderr) == (0, "")
    return text_of(sick), text_of(console)


def has_free(folder: Path, *looks: int) -> None:
    (folder / "free").write_text("".join(f"{each}G\n" for each in looks))


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


def test_what_the_same_check_does_not_find_again_drains_nobody(tmp_path: Path) -> None:
    has_free(tmp_path, 3, 50)

    sick, console = periodic(tmp_path, "")

    assert sick == ""
    assert console == (
        "health: disk: 3 GiB free on the root disk, of 10 that a node needs (root_gib) (degraded;"
        " remedy: replace), and not 10 s later; the node goes on\n"
    )
    assert text_of(tmp_path / "slept") == "10\n"


def test_what_comes_and_goes_drains_with_its_second_time_in_an_hour(tmp_path: Path) -> None:
    for _ in range(2):
        has_free(tmp_path, 3, 50)
        sick, _ = periodic(tmp_path, "")

    assert sick.startswith("disk: 3 GiB")


def test_after_an_hour_the_same_is_asked_again(tmp_path: Path) -> None:
    for _ in range(2):
        has_free(tmp_path, 3, 50)
        sick, _ = periodic(tmp_path, "")
        passed = tmp_path / "passed-disk"
        os.utime(passed, (passed.stat().st_mtime - 3700,) * 2)

    assert sick == ""


def test_a_retest_that_cannot_tell_mends_nothing(tmp_path: Path) -> None:
    """As one that runs into its time limit, of a GPU that answers no more."""
    run(tmp_path, "", "-c", "true")
    with (tmp_path / "files" / "checks.sh").open("a") as checks:
        checks.write(
            "check_disk() { [[ ! -e asked ]] || return 2; touch asked; echo full; return 1; }"
        )

    sick, _ = periodic(tmp_path, "")

    assert sick.startswith("disk: full")


def test_what_was_found_late_is_told_before_slurm_ends_the_program(tmp_path: Path) -> None:
    """Of the 60 s that it has, 30 are gone, as where a folder does not answer."""
    has_free(tmp_path, 3, 50)
    run(tmp_path, "", "-c", "true")
    with (tmp_path / "lib.sh").open("a") as lib:
        lib.write("SECONDS=30\n")

    sick, _ = periodic(tmp_path, "")

    assert sick.startswith("disk: 3 GiB")


@pytest.mark.parametrize(("looks", "code"), [((3, 50), 0), ((3, 3), 78)])
def test_the_gate_asks_once_more_too(tmp_path: Path, looks: tuple[int, ...], code: int) -> None:
    has_free(tmp_path, *looks)

    done = run(tmp_path, "", "-euc", "source ./lib.sh; source files/health.sh; gate")

    assert done.returncode == code
    assert text_of(tmp_path / "slept") == "10\n"


def test_a_retest_asks_the_gpus_anew(tmp_path: Path) -> None:
    """What was read of them before the first look would find the same for ever."""
    run(tmp_path, "", "-c", "true")
    with (tmp_path / "lib.sh").open("a") as lib:
        lib.write("GPUS=1\n")
    smi = tmp_path / "nvidia-smi"
    smi.write_text(
        "#!/bin/sh\n[ -e asked ] && errors=0 || errors=2\ntouch asked\n"
        'echo "580.65.06, $errors, Not Active"\n'
    )
    smi.chmod(0o755)
    alone = ("disk", "gpus", "rows", "throttle", "fabric", "fabric_state")

    sick, console = periodic(tmp_path, "".join(f"{each} ignore\n" for each in alone))

    assert sick == ""
    assert console.startswith("health: ecc: 2 uncorrected ECC errors")
    assert console.endswith("and not 10 s later; the node goes on\n")


def test_a_retest_of_the_gate_that_cannot_tell_mends_nothing(tmp_path: Path) -> None:
    run(tmp_path, "", "-c", "true")
    with (tmp_path / "files" / "checks.sh").open("a") as checks:
        checks.write("check_disk() { [[ ! -e asked ]] || return 2; touch asked; return 1; }\n")

    done = run(tmp_path, "", "-euc", "source ./lib.sh; source files/health.sh; gate")

    assert done.returncode == 78
