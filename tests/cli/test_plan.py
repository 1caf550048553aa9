"""`tidegate plan`, as a user meets it: from a file, and from a cluster that is deployed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames, create_launch_template
from tests.contracts.conftest import cloud, names
from tidegate.adapters.ec2 import Ec2Compute
from tidegate.adapters.functions import read_environment
from tidegate.cli.live import live
from tidegate.cli.main import app
from tidegate.core.model.ec2 import FleetRequest, Market, Override
from tidegate.core.model.errors import BadConfig
from tidegate.core.planner import plan
from tidegate.wire.config import load_cluster
from tidegate.wire.settings import environment
from tidegate.wire.snapshot import decode_snapshot, encode_snapshot

__all__ = ["cloud", "names"]

DEV = Path(__file__).parents[2] / "clusters" / "dev.yaml"
NOW_S = 1_800_000_000.0
JOB = {
    "job_id": "7",
    "state": "PENDING",
    "partitions": ["gpu"],
    "nodes": 1,
    "shape": {"gpus": 1, "gpu_type": "t4", "cpus": 2, "memory_mib": 4000},
    "user": "ada",
    "reason": "Resources",
}


def snapshot_of(*jobs: dict[str, Any]) -> dict[str, Any]:
    """A snapshot of clusters/dev.yaml with these jobs in the queue and no node."""
    stamp = {"head_instance_id": "i-0", "agent_started_at_s": NOW_S, "sequence": 1}
    reading = {"version": "23.11.4", "jobs": list(jobs), "nodes": []}
    digest = {"cluster": "dev", "stamp": stamp, "written_at_s": NOW_S, "reading": reading}
    return {"now_s": NOW_S, "digest": digest}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["plan", *map(str, arguments)])


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(snapshot_of(JOB, JOB | {"job_id": "8", "reason": "JobHeldUser"})))
    return path


def test_a_plan_in_words_names_what_is_bought_and_why_others_wait(snapshot: Path) -> None:
    result = run("--cluster", DEV, "--snapshot", snapshot)

    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert lines[0].startswith("launch ")
    assert "job 8 waits: it is held" in lines
    assert lines[-1].startswith("after it the cluster costs at most ")


def test_a_plan_as_json_is_the_same_plan(snapshot: Path) -> None:
    result = run("--cluster", DEV, "--snapshot", snapshot, "--output", "json")

    found = json.loads(result.output)
    assert [each["jobs"] for each in found["actions"] if each["action"] == "launch"] == [["7"]]
    assert [each["job_id"] for each in found["unmet"]] == ["8"]


def test_a_bad_snapshot_lists_its_problems_and_plans_nothing(snapshot: Path) -> None:
    snapshot.write_text(json.dumps(snapshot_of(JOB | {"nodes": -1}, JOB)))

    result = run("--cluster", DEV, "--snapshot", snapshot)

    assert result.exit_code == 1
    assert "digest.reading.jobs[0].nodes  must be at least 0, is -1" in result.output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "either --snapshot FILE or --live"),
        (["--snapshot", "x", "--live"], "either --snapshot FILE or --live"),
        (["--snapshot", "x", "--ec2-dry-run"], "belong to --live"),
        (["--snapshot", "nothere.json"], "nothere.json: there is no such file"),
    ],
)
def test_what_cannot_be_meant_is_said(arguments: list[str], says: str) -> None:
    result = run("--cluster", DEV, *arguments)

    assert result.exit_code != 0
    assert says in " ".join(result.output.replace("\u2502", "").split())


@pytest.mark.parametrize("name", ["cluster", "snapshot", "plan"])
def test_each_format_has_a_schema(name: str) -> None:
    result = CliRunner().invoke(app, ["schema", name])

    assert json.loads(result.output)["type"] == "object"


# -- a cluster that is deployed -----------------------------------------------------------


class Functions:
    """Lambda's client: one function, or none."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.variables = variables

    def get_function_configuration(self, *, FunctionName: str) -> dict[str, Any]:  # noqa: N803
        assert FunctionName == "tidegate-dev-planner"
        return {"Environment": {"Variables": self.variables}}


def variables(names: CloudNames) -> dict[str, str]:
    return environment(
        templates={"t4": ("lt-1", "1", "aa-1")},
        subnets=names.subnets,
        placement_groups={},
        cluster_bucket=names.bucket,
        cluster_key="cluster.yaml",
        table=names.table,
        bucket=names.bucket,
        bus=names.event_bus,
        look_queue_url=names.look_queue_url,
        dead_look_queue_url=names.dead_look_queue_url,
        urgent_queue_url=names.urgent_queue_url,
        routine_queue_url=names.routine_queue_url,
    )


def test_a_live_look_is_a_snapshot_that_can_be_kept(cloud: LocalCloud, names: CloudNames) -> None:
    functions = Functions(variables(names))
    file = load_cluster(DEV)

    found = live(file, lambda name: functions if name == "lambda" else cloud.client(name))

    assert (found.snapshot.cluster, found.snapshot.digest) == (file.cluster, None)
    again = decode_snapshot(encode_snapshot(found.snapshot), file.cluster, "kept").snapshot
    assert plan(again) == plan(found.snapshot)


def test_ec2_is_asked_about_each_launch_of_a_plan(cloud: LocalCloud, names: CloudNames) -> None:
    template = create_launch_template(cloud, f"{names.cluster}-t4", "#!/bin/sh")
    templates = json.dumps({"t4": [template, "1", "aa-1"]})
    deployed = variables(names) | {"TIDEGATE_TEMPLATES": templates}
    functions = Functions(deployed)
    file = load_cluster(DEV)
    found = live(file, lambda name: functions if name == "lambda" else cloud.client(name))
    shape = {"gpus": 1, "gpu_type": "a10g", "cpus": 2, "memory_mib": 4000}
    text = json.dumps(snapshot_of(JOB, JOB | {"job_id": "8", "shape": shape}))
    snapshot = decode_snapshot(text, file.cluster, "snapshot.json").snapshot

    answers = list(replace(found, snapshot=snapshot).dry_run(plan(snapshot)))

    assert all(answer.startswith("EC2 on launch ") for answer in answers)
    assert sorted(answer.partition(": ")[2] for answer in answers) == [
        "it would be taken",
        "pool a10g is not deployed like this yet",
    ]


def test_a_cluster_that_is_not_deployed_is_told(cloud: LocalCloud) -> None:
    assert read_environment(cloud.client("lambda"), "tidegate-dev-planner") is None
    with pytest.raises(BadConfig, match="tidegate-dev-planner in us-east-1: is the cluster depl"):
        live(load_cluster(DEV), cloud.client)


def test_ec2_is_asked_without_buying(cloud: LocalCloud, names: CloudNames) -> None:
    compute = Ec2Compute(cloud.client("ec2"), "dev")
    zone, subnet = next(iter(names.subnets.items()))
    request = FleetRequest(
        client_token="dev-1",
        launch_template_id=create_launch_template(cloud, f"{names.cluster}-t4", "#!/bin/sh"),
        launch_template_version="1",
        market=Market.SPOT,
        count=1,
        min_count=1,
        overrides=(Override("g4dn.xlarge", zone, subnet, 0),),
        tags=(),
    )

    assert compute.dry_run(request) == ""
    assert compute.instances() == ()
