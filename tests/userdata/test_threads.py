"""The stage that takes out second threads, on a folder that stands for the kernel's."""

import os
import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[2] / "userdata" / "node" / "threads.sh"


def boot(folder: Path, control: str, online: str, *, kernel: str = ":", cpus: int = 4) -> str:
    """What the stage says in one try, and what is online then. `kernel`: what it makes of `off`."""
    (folder / "smt").mkdir(exist_ok=True)
    if control:
        (folder / "smt" / "control").write_text(f"{control}\n")
    (folder / "online").write_text(f"{online}\n")
    refuse = f'refuse() {{ echo "$*"; exit 78; }}; echo() {{ builtin echo "$@"; {kernel}; }}'
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; {refuse}; source {STAGE}; check || apply; check"],
        env={
            "PATH": os.environ["PATH"],
            "CPU_DIR": str(folder),
            "CPUS": str(cpus),
            "INSTANCE_TYPE": "c5.2xlarge",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{done.returncode} {done.stdout}{(folder / 'online').read_text()}"


def obeys(folder: Path, left: str) -> str:
    """The kernel takes CPUs out when `off` is written."""
    return f'[[ $* != off ]] || builtin echo {left} >"{folder}/online"'


@pytest.mark.parametrize("left", ["0-3", "0,2,4,6", "0-1,4,6"])
def test_second_threads_are_switched_off_by_the_kernel(tmp_path: Path, left):
    assert boot(tmp_path, "on", "0-7", kernel=obeys(tmp_path, left)) == f"0 {left}\n"
    assert (tmp_path / "smt" / "control").read_text() == "off\n"


def test_nothing_is_done_where_cores_have_one_thread_or_it_was_done_before(tmp_path: Path):
    assert boot(tmp_path, "notsupported", "0-3") == "0 0-3\n"
    assert (tmp_path / "smt" / "control").read_text() == "notsupported\n"


@pytest.mark.parametrize(
    ("control", "said"),
    [("notimplemented", "notimplemented"), ("", "nothing"), ("on", "on")],
)
def test_a_kernel_that_cannot_ends_the_boot_in_words(tmp_path: Path, control, said):
    found = boot(tmp_path, control, "0-7")

    has = "with threads_per_core: 1 c5.2xlarge has 4 CPUs, 8 are there"
    assert found.startswith(f"78 {has}, and of SMT the kernel says '{said}'")
