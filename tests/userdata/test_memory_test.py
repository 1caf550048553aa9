"""What is tested after the reboot of a node whose GPUs only a test shows to be mended."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.userdata.findings import NODE_FINDINGS
from tidegate.wire.health_findings import table

FOLDER = Path("userdata/node").resolve()
FOUND = "xid: Xid 48: Double bit ECC error (fatal; NVIDIA's remedy: reset, then a test)"
# Source: DCGM 4.6, dcgm_structs.h and main_dcgmi.cpp: an exit code is the error's number, which is
# negative, of 8 bits. Without nv-hostengine DCGM_ST_CONNECTION_NOT_VALID; where a test has found
# what asks for isolation DCGM_ST_NVVS_ISOLATE_ERROR; where it failed else, or could not run,
# DCGM_ST_NVVS_ERROR.
NO_ENGINE, ISOLATE, FAILED = 235, 205, 226
OTHERS = {each.key for each in table() if each.source in ("gpu", "node")} - {"diag"}
DCGMI = f"""#!/bin/bash
echo "$*" >>calls
if [[ ! -e active ]] || {{ [[ -s later ]] && : >later; }}; then
    echo 'Error: unable to establish a connection to the specified host: localhost'
    exit {NO_ENGINE}
fi
case $* in
    'diag -r memory') echo '| Memory | Fail |'; exit "$(<ends)" ;;
    *) exit 255 ;;
esac
"""
SYSTEMCTL = """#!/bin/bash
case $1 in
    is-active) [[ -e active ]] ;;
    start)
        [[ ! -e unknown ]] || exit 5
        [[ -e active ]] || { echo "$*" >>calls; echo later >later; touch active; }
        ;;
    stop) echo "$*" >>calls; rm active ;;
esac
"""


def outcome(
    folder: Path,
    *,
    ends: int = 0,
    noted: bool = True,
    layout: str = "",
    has_dcgm: bool = True,
    script: str = "source files/checks.sh; check_diag || exit",
) -> tuple[int, list[str], list[str]]:
    """Exit code of the check, what it said, and what DCGM and systemd were asked."""
    smi = "#!/bin/sh\necho 580.65.06, 0, Not Active\n"
    for name, text in (("dcgmi", DCGMI), ("systemctl", SYSTEMCTL), ("nvidia-smi", smi)):
        if name != "dcgmi" or has_dcgm:
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
    (folder / "ends").write_text(f"{ends}\n")
    if noted:
        (folder / "to-test").write_text(f"{FOUND}\n")
    (folder / "files").symlink_to(FOLDER)
    told = 'console() { echo "console: $*"; }; sleep() { :; }'
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; {told}; {script}"],
        cwd=folder,
        env={
            "PATH": f"{folder}:{os.environ['PATH']}",
            "FINDINGS": NODE_FINDINGS,
            "TO_TEST": str(folder / "to-test"),
            "LAYOUT": layout,
            "GPUS": "8",
            "GRES": "gpu",
            "WRONG_CONFIGURATION": "78",
            "HEALTH_ACTIONS": "".join(f"{each} ignore\n" for each in OTHERS),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    calls = folder / "calls"
    asked = calls.read_text().splitlines() if calls.exists() else []
    return done.returncode, done.stdout.splitlines(), asked


def test_a_node_that_was_not_found_sick_is_not_kept_waiting(tmp_path: Path) -> None:
    assert outcome(tmp_path, noted=False) == (0, [], [])


def test_a_gpu_that_passes_is_well_and_not_tested_again(tmp_path: Path) -> None:
    code, said, asked = outcome(tmp_path)

    assert (code, said[-1]) == (
        0,
        f"console: health: dcgmi diag -r memory ended with 0, for {FOUND}",
    )
    assert asked == [
        "start nvidia-dcgm",
        *("diag -r memory", "diag -r memory"),  # it did not listen yet
        "stop nvidia-dcgm",
    ]
    assert not (tmp_path / "to-test").exists()


def test_a_gpu_that_is_to_be_isolated_ends_the_node_whatever_a_second_test_would_say(
    tmp_path: Path,
) -> None:
    (tmp_path / "active").touch()

    code, said, asked = outcome(tmp_path, ends=ISOLATE, script="source files/health.sh; gate")

    assert code == 78
    assert said[-1] == f"dcgmi diag -r memory ended with 205, for {FOUND}"
    assert asked == ["diag -r memory"]
    assert (tmp_path / "to-test").exists(), "a boot that is begun again tests again"


@pytest.mark.parametrize("ends", [FAILED, 1, 124])
def test_a_test_that_could_not_run_says_nothing_of_the_gpus(tmp_path: Path, ends: int) -> None:
    code, said, _ = outcome(tmp_path, ends=ends)

    assert code == 0
    assert f"ended with {ends}" in said[-1]
    assert not (tmp_path / "to-test").exists()


def test_a_monitor_that_runs_already_goes_on(tmp_path: Path) -> None:
    (tmp_path / "active").touch()

    assert outcome(tmp_path)[2] == ["diag -r memory"]
    assert (tmp_path / "active").exists()


@pytest.mark.parametrize(
    ("layout", "has_dcgm"), [("8=1g.5gb:7", True), ("", False)], ids=["MIG", "no DCGM"]
)
def test_where_there_is_no_test_the_node_takes_jobs(
    tmp_path: Path, layout: str, has_dcgm: bool
) -> None:
    """DCGM tests no GPU that is cut into instances (NVIDIA/DCGM issue 31)."""
    code, _, asked = outcome(tmp_path, layout=layout, has_dcgm=has_dcgm)

    assert (code, asked) == (0, [])


def test_an_image_without_the_unit_ends_no_node(tmp_path: Path) -> None:
    (tmp_path / "unknown").touch()

    code, said, asked = outcome(tmp_path)

    assert (code, asked.count("diag -r memory")) == (0, 10)
    assert f"ended with {NO_ENGINE}" in said[-1]
