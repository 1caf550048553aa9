"""Which job has which GPU, and how much it is used, as a node tells it: run by bash."""

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

NODE = Path(__file__).parents[2] / "userdata" / "node"
STAGE = NODE / "gpu_use.sh"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """The folder with a file for each GPU that a job has."""
    made = tmp_path / "gpu-jobs"
    made.mkdir()
    return made


def run(
    jobs: Path, script: str, job_id: str, gpus: str = "", mig: str = "", gres: str = ""
) -> None:
    """Slurm runs the script for a job; one that fails would drain the node."""
    (jobs.parent / "mig").write_text(mig)
    (jobs.parent / "gres").write_text(gres)
    text = subprocess.run(
        ["bash", "-c", f"source {STAGE}; {script}"], capture_output=True, text=True, check=True
    ).stdout
    text = text.replace("/run/tidegate/gpu-jobs", str(jobs))
    text = text.replace("/etc/tidegate/mig", str(jobs.parent / "mig"))
    text = text.replace("/etc/slurm/gres.node.conf", str(jobs.parent / "gres"))
    given = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": job_id, "SLURM_JOB_GPUS": gpus}
    done = subprocess.run(
        ["bash", "-c", text], env=given, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def told(jobs: Path) -> dict[str, str]:
    return {each.name: each.read_text().strip() for each in jobs.iterdir()}


def test_a_job_has_its_gpus_until_it_ends(jobs: Path) -> None:
    run(jobs, "prolog", "7", "0,1")
    run(jobs, "prolog", "8", "3")
    assert told(jobs) == {"0": "7", "1": "7", "3": "8"}

    run(jobs, "epilog", "7")

    assert told(jobs) == {"3": "8"}


def test_the_next_job_keeps_the_gpu_that_the_last_one_s_epilog_finds(jobs: Path) -> None:
    run(jobs, "prolog", "7", "0")
    run(jobs, "prolog", "77", "0")

    run(jobs, "epilog", "7")

    assert told(jobs) == {"0": "77"}


@pytest.mark.parametrize("gpus", ["", "../../etc/passwd", "0-3"])
def test_what_is_no_gpu_is_no_file(jobs: Path, gpus: str) -> None:
    run(jobs, "prolog", "7", gpus)

    assert told(jobs) == {}


def test_parts_of_a_gpu_have_no_number_that_dcgm_knows(jobs: Path) -> None:
    run(jobs, "prolog", "7", "0", mig="MIG-a\n")

    assert told(jobs) == {}


@pytest.mark.parametrize("shared", ["shard Count=4", "mps Count=100 Flags=all_sharing"])
def test_of_gpus_that_jobs_share_nobody_knows_whose_use_it_is(jobs: Path, shared: str) -> None:
    run(jobs, "prolog", "7", "0", gres=f"Name=gpu Type=l4 File=/dev/nvidia0\nName={shared}\n")

    assert told(jobs) == {}


def test_no_job_fails_where_the_folder_is_gone(jobs: Path) -> None:
    jobs.rmdir()

    run(jobs, "prolog", "7", "0")
    run(jobs, "epilog", "7")

    assert not jobs.exists()


# As nvidia-smi(1) says of `dmon -s u`; more columns come with newer drivers.
HEAD = "# gpu     sm    mem    enc    dec    jpg    ofa\n# Idx" + "      %" * 6 + "\n"
ROW = "{:5} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}\n"


class Looks:
    """Ten looks of nvidia-smi at GPUs: those that do nothing, but for what a test says."""

    def __init__(self, folder: Path, minors: tuple[int, ...] = (0, 1)) -> None:
        self.folder = folder
        self.count = len(minors)
        self.listed = [f"{index}, 00000000:{16 + index:02X}:1C.0\n" for index in range(len(minors))]
        self.text, self.ends = "", ""
        for index, minor in enumerate(minors):
            gpu = folder / "proc" / f"0000:{16 + index:02x}:1c.0"
            gpu.mkdir(parents=True)
            (gpu / "information").write_text(
                f"Model: \t\t NVIDIA\nBus Location: \t {gpu.name}\nDevice Minor: \t {minor}\n"
            )

    def look(self, looks: int = 10, **rows: tuple[object, ...]) -> None:
        for number in range(looks):
            self.text += HEAD
            for gpu in range(self.count):
                is_last = number == looks - 1
                self.text += ROW.format(
                    gpu, *(rows.get(f"gpu{gpu}", (0,) * 6) if is_last else (0,) * 6)
                )

    def told(self, while_looking: str = "") -> list[str]:
        """The file that the head reads, without its first line."""
        commands = self.folder / "commands"
        commands.mkdir(exist_ok=True)
        (self.folder / "looks").write_text(self.text)
        (self.folder / "listed").write_text("".join(self.listed))
        (commands / "nvidia-smi").write_text(
            f'#!/bin/bash\n[[ "$1" != --query-gpu=* ]] || {{ cat {self.folder}/listed; exit; }}\n'
            f'[[ "$*" == "dmon -s u -d 5 -c 10" ]] || exit 2\n'
            f"cat {self.folder}/looks\n{while_looking}\n{self.ends}\n"
        )
        (commands / "nvidia-smi").chmod(0o755)
        script = (NODE / "gpu-use.sh").read_text().split("source ./lib.sh")[1]
        script = f"RUN_DIR={self.folder} SHARED_DIR={self.folder}/shared\n{script}"
        at = self.folder / "files" / "gpu-use.sh"
        at.parent.mkdir(exist_ok=True)
        at.write_text(script)
        done = subprocess.run(
            ["bash", "-c", f"source {at}; told"],
            env={
                "PATH": f"{commands}:{os.environ['PATH']}",
                "GPUS_FOUND": str(self.folder / "proc"),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        first, *lines = done.stdout.splitlines()
        assert first.isdigit()
        return sorted(lines)


def hold(jobs: Path, **held: str) -> None:
    for minor, job_id in held.items():
        (jobs / minor.removeprefix("gpu")).write_text(f"{job_id}\n")


def test_the_most_of_all_looks_counts_and_of_all_that_a_gpu_does(jobs: Path) -> None:
    looks = Looks(jobs.parent)
    looks.look(gpu0=(0, 0, 0, 37, 0, 0), gpu1=(3, 1, 0, 0, "-", "-"))
    hold(jobs, gpu0="7", gpu1="8")

    assert looks.told() == ["7 37", "8 3"]


def test_slurm_s_number_is_the_device_file_s_and_not_nvidia_smi_s(jobs: Path) -> None:
    looks = Looks(jobs.parent, minors=(1, 0))
    looks.look(gpu0=(90, 0, 0, 0, 0, 0))
    hold(jobs, gpu0="7", gpu1="8")

    assert looks.told() == ["7 0", "8 90"]


def test_a_gpu_that_nvidia_smi_has_lost_moves_no_other_job_s_gpu(jobs: Path) -> None:
    looks = Looks(jobs.parent, minors=(0, 1, 2))
    looks.listed = ["0, 00000000:10:1C.0\n", "1, 00000000:12:1C.0\n"]
    looks.count = 2
    looks.look(gpu1=(90, 0, 0, 0, 0, 0))
    hold(jobs, gpu0="7", gpu1="8", gpu2="9")

    assert looks.told() == ["7 0", "8 -", "9 90"]


def test_indexes_may_be_in_another_order_than_the_bus(jobs: Path) -> None:
    looks = Looks(jobs.parent)
    looks.listed = ["0, 00000000:11:1C.0\n", "1, 00000000:10:1C.0\n"]
    looks.look(gpu0=(90, 0, 0, 0, 0, 0))
    hold(jobs, gpu0="7", gpu1="8")

    assert looks.told() == ["7 0", "8 90"]


@pytest.mark.parametrize("why", ["MIG", "no driver", "fewer looks", "no look", "another column"])
def test_what_cannot_be_told_is_no_idleness(jobs: Path, why: str) -> None:
    looks = Looks(jobs.parent, minors=() if why == "no driver" else (0,))
    looks.count = 1
    if why != "no look":
        looks.look(9 if why == "fewer looks" else 10, gpu0=("-",) * 6 if why == "MIG" else (0,) * 6)
    if why == "another column":
        looks.text = looks.text.replace("sm ", "gtt")
    hold(jobs, gpu0="7")

    assert looks.told() == ["7 -"]


def test_who_came_or_went_meanwhile_is_told_in_the_next_minute(jobs: Path) -> None:
    looks = Looks(jobs.parent)
    looks.look()
    hold(jobs, gpu0="7", gpu1="8")

    assert looks.told(f"echo 9 >{jobs}/0") == ["8 0"]


def test_without_a_job_the_gpus_are_asked_nothing(jobs: Path) -> None:
    looks = Looks(jobs.parent)

    assert looks.told(f"touch {jobs.parent}/asked") == []
    assert not (jobs.parent / "asked").exists()


def test_the_file_is_written_whole_and_belongs_to_the_folder_s_owner(jobs: Path) -> None:
    looks = Looks(jobs.parent)
    looks.look()
    looks.told()
    with TemporaryDirectory(dir="/tmp") as shared:  # whose folders others may enter
        Path(shared).chmod(0o755)
        folder = Path(shared) / ".tidegate" / "gpu-use"
        folder.mkdir(parents=True)
        if os.geteuid() == 0:
            os.chown(folder, 64_030, 64_030)
        text = (jobs.parent / "files" / "gpu-use.sh").read_text()
        script = jobs.parent / "files" / "put.sh"
        script.write_text(text.replace(f"{jobs.parent}/shared", shared))
        put = f"source {script}; INSTANCE_ID=i-1; put $'12\\n7 0'"

        subprocess.run(["bash", "-c", put], check=True)

        assert [each.name for each in folder.iterdir()] == ["i-1"]
        found = folder / "i-1"
        assert found.read_text() == "12\n7 0\n"
        assert found.stat().st_uid == folder.stat().st_uid
        assert found.stat().st_mode & 0o777 == 0o644


def test_a_clock_that_jumps_keeps_no_node_silent() -> None:
    """Bash has no other clock."""
    script = (NODE / "gpu-use.sh").read_text().split("source ./lib.sh")[1]
    calls = "; ".join(f"rest_s 10000 {now}" for now in (10_000, 10_045, 10_075, 6_400, 99_000))
    done = subprocess.run(
        ["bash", "-c", f"RUN_DIR=/x SHARED_DIR=/x\n{script.split('[[ ${BASH_SOURCE')[0]}\n{calls}"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.split() == ["60", "15", "0", "60", "0"]
