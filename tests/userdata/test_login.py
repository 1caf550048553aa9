"""What people see who log in to the head, run by bash with a stand-in for Slurm."""

import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[2] / "userdata" / "head" / "login.sh"

JOB = """JobId=7 JobName=train
   UserId=ada(1000) JobState=PENDING Reason=Resources
   AdminComment=tidegate: waits: the budget of account nlp is spent
   Power= TresPerNode=gres/gpu:1"""


def run(folder: Path, command: str, *, job: str = JOB, options: str = "-c") -> str:
    """What the login profile and then `command` say."""
    made = subprocess.run(
        ["bash", "-c", f"source {STAGE}; profile"], capture_output=True, text=True, check=True
    )
    (folder / "profile").write_text(made.stdout)
    for name, said in (("scontrol", job), ("squeue", "job 7: PENDING, Slurm says Resources")):
        stand_in = folder / name
        stand_in.write_text(f"#!/bin/sh\ncat <<'E'\n{said}\nE\n")
        stand_in.chmod(0o755)
    path = f"PATH={folder}:$PATH"
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", options, f"{path}; . {folder}/profile; {command}"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_a_job_says_why_it_waits_without_any_right_of_aws(tmp_path: Path) -> None:
    assert run(tmp_path, "why 7") == "job 7 waits: the budget of account nlp is spent\n"


def test_a_job_without_a_note_says_what_slurm_says(tmp_path: Path) -> None:
    bare = JOB.replace("AdminComment=tidegate: ", "Comment=")

    assert run(tmp_path, "why 7", job=bare) == "job 7: PENDING, Slurm says Resources\n"


@pytest.mark.parametrize(("options", "greets"), [("-ic", True), ("-c", False)])
def test_people_are_told_why_sinfo_shows_nothing_and_scripts_are_not(
    tmp_path: Path, options: str, greets: bool
) -> None:
    assert ("sinfo shows none until then" in run(tmp_path, "true", options=options)) is greets
