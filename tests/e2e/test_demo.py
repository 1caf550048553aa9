"""The two demos, as a user starts them; every figure of the report is there."""

import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from rich.console import Console

from local.demo import __main__ as demo
from local.demo.cluster import write_cluster_file
from local.demo.sim_stage import SimStage
from local.namespaces import can_enter
from tests.stack.rights import UNUSED
from tidegate.sim.clock import SimClock
from tidegate.wire.config import load_cluster

REPOSITORY = Path(__file__).parents[2]
PATIENCE_S = 300.0
DURATIONS = (
    "submit_to_launch_s",
    "launch_to_registered_s",
    "registered_to_running_s",
    "notice_to_drained_s",
    "idle_to_terminated_s",
)

# Beginnings of rights that the real demo need not use -> why.
UNUSED_IN_DEMO = UNUSED | {
    "HeadRole elasticfilesystem:": "/shared is a folder of this computer, no EFS is mounted",
    "NodesRole elasticfilesystem:": "/shared is a folder of this computer, no EFS is mounted",
    **{
        f"{role} {service}:": "Session Manager's agent does not run in local machines"
        for role in ("HeadRole", "NodesRole")
        for service in ("ssm", "ssmmessages", "ec2messages")
    },
    "BackupsRole ": "AWS's own policy for AWS Backup, which does not exist locally",
    "HeadRole s3:ListBucket": "the planner may look before the head's first notes",
    "FunctionsPlannerRole dynamodb:BatchGetItem": "every node of it boots",
    "FunctionsPlannerRole s3:ListBucket": "the head may report before the first look",
    "FunctionsReconcileRole dynamodb:PutItem": "the planner meets the new ledger first",
    # Whichever of the two comes first when the head can be stopped or started does it.
    "FunctionsReconcileRole dynamodb:UpdateItem": "the cron stopped the head",
    "FunctionsReconcileRole ec2:StopInstances": "the cron stopped the head",
    "FunctionsScheduleRole ec2:StartInstances": "reconcile started the head",
}


def play(where: Path, slurm: str) -> tuple[subprocess.CompletedProcess[str], dict[str, object]]:
    """Run the demo in an empty folder; its output and its report. One that hangs says where."""
    argv = [sys.executable, "-m", "local.demo"]
    told = {"SLURM": slurm, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "200"}
    with subprocess.Popen(
        argv,
        cwd=where,
        env={**os.environ, **told, "PYTHONFAULTHANDLER": "1"},
        stdout=PIPE,
        stderr=PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGABRT)  # at which Python tells where it is
            output = process.communicate(timeout=PATIENCE_S)
    done = subprocess.CompletedProcess(argv, process.returncode, *output)
    report = where / "demo-report.json"
    return done, json.loads(report.read_text()) if report.exists() else {}


def check(done: subprocess.CompletedProcess[str], report: dict[str, object], slurm: str) -> None:
    assert done.returncode == 0, why_it_failed(done)
    assert re.fullmatch(slurm, str(report["slurm"]))
    assert report["jobs_submitted"] == report["jobs_completed"] == 10
    assert report["jobs_requeued"] == 1
    assert report["instances_left"] == 0
    assert report["instances_launched"] in range(6, 13)
    for key in DURATIONS:
        assert report[key], f"{key} holds no value"
    assert "limited to 4 nodes" in done.stdout
    assert "Requested node configuration is not available" in done.stdout


def why_it_failed(done: subprocess.CompletedProcess[str]) -> str:
    """All that it said; first what did not happen and what was decided, as logs are cut short."""
    story, mark, failure = done.stdout.partition("The demo failed:")
    return f"{mark}{failure}\n{done.stderr}\n{story}"


def test_the_simulated_demo_tells_the_whole_story(tmp_path: Path) -> None:
    done, report = play(tmp_path, "sim")

    check(done, report, "sim")


def test_the_real_demo_tells_the_whole_story(tmp_path: Path) -> None:
    why_not = can_enter()
    if why_not:
        pytest.skip(f"real path: {why_not}")

    done, report = play(tmp_path, "real")

    check(done, report, r"\d+\.\d+\.\d+")
    assert report["resources_in_template"] == report["resources_deployed"]
    assert report["resources_in_template"]
    assert report["denied_calls"] == []
    assert report["function_errors"] == []
    assert isinstance(report["unused_rights"], list)
    assert [
        right for right in report["unused_rights"] if not right.startswith(tuple(UNUSED_IN_DEMO))
    ] == []


class Stuck(SimStage):
    """No job ever completes, and a machine has something to say."""

    def completed(self, job_id: str) -> int:
        return 0

    def last_words(self) -> list[str]:
        return ["i-1: stage slurmd failed (exit 1)"]


def test_a_story_that_does_not_happen_ends_with_the_last_words_of_the_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = load_cluster(write_cluster_file(tmp_path, SimClock().now_s()))
    assert file.schedules
    told = io.StringIO()

    code = demo.play(Stuck(file.cluster, file.schedules), Console(file=told), slurm="sim")

    assert code == 1
    assert told.getvalue().endswith("\ni-1: stage slurmd failed (exit 1)\n")


def test_an_unknown_world_is_refused_with_what_is_expected(tmp_path: Path) -> None:
    done, report = play(tmp_path, "marvin")

    assert done.returncode == 2
    assert "SLURM must be real, sim or auto, is 'marvin'" in done.stdout
    assert report == {}
