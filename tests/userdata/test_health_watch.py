"""The watch over the kernel's log in a storm, with stand-ins for journalctl and Slurm."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.waiting import wait_for
from tests.userdata.findings import NODE_FINDINGS

FOLDER = Path("userdata/node")
LIB = """
RUN_DIR={folder} INSTANCE_ID=i-1 PLACE={place}
console() {{ echo "$*" >>{folder}/console; }}
"""
SLURM = """#!/bin/sh
case $* in
    *update*) echo "$*" >>{folder}/asked ;;
    *notify*) echo "$*" >>{folder}/told ;;
    *) echo "NodeName=i-1 State=MIXED" ;;
esac
"""
QUEUE = """#!/bin/sh
sleep 1
case $* in *"-w i-1 -t R "*) printf '7\\n12\\n' ;; esac
"""
JOURNAL = "#!/bin/sh\nexec tail -n +1 -F {folder}/log\n"
TIMEOUT = "nvme nvme0: I/O {} QID 2 timeout, aborting"
XID = "NVRM: Xid (PCI:0000:00:1e): {}, pid=7, name=x"
FATAL = "critical medium error, dev nvme1n1, sector {} op 0x0:(READ) flags 0x0 phys_seg 1"


@contextmanager
def watching(folder: Path, place: str = "") -> Iterator[None]:
    files = folder / "files"
    if not files.exists():
        shutil.copytree(FOLDER, files)
        shutil.copy(NODE_FINDINGS, files / "findings")
        (folder / "disks").write_text("nvme0 root\nnvme1 store\n")
        (folder / "log").touch()
        (folder / "lib.sh").write_text(LIB.format(folder=folder, place=place))
        stand_ins = (("scontrol", SLURM), ("squeue", QUEUE), ("journalctl", JOURNAL))
        for name, text in stand_ins:
            (folder / name).write_text(text.format(folder=folder))
            (folder / name).chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "TO_TEST": str(folder / "kept" / "to-test")}
    watch = subprocess.Popen(
        ["bash", str(files / "health-watch.sh")], env=env, start_new_session=True
    )
    try:
        yield
    finally:
        os.killpg(watch.pid, 9)
        watch.wait()


def says(folder: Path, *lines: str) -> None:
    with (folder / "log").open("a") as log:
        log.writelines(f"[{n:5}.000000] ip-10 kernel: {line}\n" for n, line in enumerate(lines))


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def test_a_storm_of_what_a_volume_recovers_from_drains_nobody_and_hides_no_fault(
    tmp_path: Path,
) -> None:
    with watching(tmp_path):
        says(tmp_path, *(TIMEOUT.format(number) for number in range(500)))
        assert wait_for(lambda: lines_of(tmp_path / "console"))
        assert not lines_of(tmp_path / "asked")

        says(tmp_path, FATAL.format(8))
        began_s = time.monotonic()
        assert wait_for(lambda: lines_of(tmp_path / "asked"))
        took_s = time.monotonic() - began_s

    (told, found) = lines_of(tmp_path / "console")
    assert (
        told
        == "health: nvme0 (disk of the system): I/O 0 QID 2 timeout, aborting; the node goes on"
    )
    assert "nvme1 (instance store): critical medium error" in found
    (asked,) = lines_of(tmp_path / "asked")
    assert "reason=tidegate-health: nvme: nvme1 (instance store): critical medium error" in asked
    assert took_s < 30, "also on a busy machine"


def test_a_device_that_says_the_same_again_and_again_is_told_to_slurm_once(tmp_path: Path) -> None:
    with watching(tmp_path):
        says(tmp_path, *(FATAL.format(number) for number in range(500)))
        assert wait_for(lambda: len(lines_of(tmp_path / "judged")) == 500)

    assert len(lines_of(tmp_path / "asked")) == 1


def test_whose_jobs_run_there_reads_it_once_and_no_drain_waits_for_that(tmp_path: Path) -> None:
    with watching(tmp_path):
        says(tmp_path, XID.format(79), FATAL.format(8), XID.format(31), XID.format(79))
        assert wait_for(lambda: len(lines_of(tmp_path / "asked")) == 2)
        assert not lines_of(tmp_path / "told")
        assert wait_for(lambda: len(lines_of(tmp_path / "told")) == 4)

    told = [line for line in lines_of(tmp_path / "told") if "Xid 79" in line]
    begins = "Tidegate: node i-1 was found sick, and no new job starts there: xid: Xid 79: GPU"
    assert [line.split(" (")[0] for line in told] == [
        f"notify {job} {begins} has fallen off the bus" for job in (7, 12)
    ]


def test_a_watch_that_is_started_again_repeats_nothing(tmp_path: Path) -> None:
    said = [TIMEOUT.format(1), FATAL.format(8), FATAL.format(9)]
    with watching(tmp_path):
        says(tmp_path, *said)
        assert wait_for(lambda: len(lines_of(tmp_path / "judged")) == 3)

    with watching(tmp_path):
        says(tmp_path, "x", "x", "x", FATAL.format(10))
        assert wait_for(lambda: len(lines_of(tmp_path / "judged")) == 4)

    assert len(lines_of(tmp_path / "asked")) == 2
    assert sum("timeout" in line for line in lines_of(tmp_path / "console")) == 1


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "default:all:us-west-2a:nn-1a:nn-3c:nn-3c-hosts",
            "reset, then a test; below nn-3c)",
        ),
        ("default:all:us-west-2a:nn-1a:nn-2b:cb-4d", "reset, then a test; below nn-2b)"),
        ("default:all:us-west-2a:us-west-2a-unplaced", "reset, then a test)"),
        ("", "reset, then a test)"),
    ],
)
def test_a_drain_says_below_which_network_node_of_ec2_s_it_is(
    tmp_path: Path, place: str, said: str
) -> None:
    with watching(tmp_path, place):
        says(tmp_path, XID.format(48))
        assert wait_for(lambda: lines_of(tmp_path / "asked"))

    (asked,) = lines_of(tmp_path / "asked")
    assert asked.endswith(f"(fatal; NVIDIA's remedy: {said}")


def test_what_only_a_test_shows_to_be_mended_is_noted_for_the_next_boot(tmp_path: Path) -> None:
    noted = tmp_path / "kept" / "to-test"
    with watching(tmp_path):
        says(tmp_path, XID.format(79))
        assert wait_for(lambda: lines_of(tmp_path / "asked"))
        assert not noted.exists()

        says(tmp_path, XID.format(79), XID.format(48))
        assert wait_for(noted.exists)

    assert noted.read_text() == (
        "xid: Xid 48: Double bit ECC error (fatal; NVIDIA's remedy: reset, then a test)\n"
    )
