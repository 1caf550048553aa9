"""Which job has which GPU, as prolog and epilog tell dcgm-exporter, run by bash."""

import os
import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[2] / "userdata" / "node" / "exporters.sh"


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """The folder that dcgm-exporter reads: a file for each GPU."""
    made = tmp_path / "gpu-jobs"
    made.mkdir()
    return made


def run(jobs: Path, script: str, job_id: str, gpus: str = "", mig: str = "") -> None:
    """Slurm runs the script for a job; one that fails would drain the node."""
    (jobs.parent / "mig").write_text(mig)
    text = subprocess.run(
        ["bash", "-c", f"source {STAGE}; {script}"], capture_output=True, text=True, check=True
    ).stdout
    text = text.replace("/run/tidegate/gpu-jobs", str(jobs))
    text = text.replace("/etc/tidegate/mig", str(jobs.parent / "mig"))
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


def test_no_job_fails_where_the_folder_is_gone(jobs: Path) -> None:
    jobs.rmdir()

    run(jobs, "prolog", "7", "0")
    run(jobs, "epilog", "7")

    assert not jobs.exists()
