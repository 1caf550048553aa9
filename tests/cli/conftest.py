"""A cluster in the local cloud whose head reports, whose planner looks, and whom people ask."""

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lambdas.planner import on_looks
from local.cloud import IMAGE_ID, LocalCloud
from local.cloud_resources import CloudNames, create_launch_template
from tests.adapters.test_head_shell import SESSION, SUDO
from tests.contracts.conftest import cloud, names
from tests.lambdas.conftest import messages
from tidegate.adapters.bus import AwsBus
from tidegate.cli.main import app
from tidegate.core.model.digest import Digest, Stamp
from tidegate.core.model.ec2 import CLUSTER_TAG, HEAD_ROLE, ROLE_TAG
from tidegate.core.model.slurm import Job, Node, Reading
from tidegate.wire.events import encode_look, parse_schedule
from tidegate.wire.settings import environment
from tidegate.wiring.function import function
from tidegate.wiring.planner import planner

__all__ = ["cloud", "names"]

DEV = Path(__file__).parents[2] / "clusters" / "dev.yaml"


@dataclass
class Town:
    """A cluster of its own name, without hours, and everybody who meets it."""

    cloud: LocalCloud
    names: CloudNames
    file: Path
    started_at_s: float = field(default_factory=time.time)
    sequence: int = 0
    invoked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        text = DEV.read_text().replace("name: dev", f"name: {self.names.cluster}")
        lines = [line for line in text.splitlines() if not line.startswith("schedules:")]
        self.file.write_text("\n".join(lines))
        self.cloud.client("s3").put_object(
            Bucket=self.names.bucket, Key="cluster.yaml", Body=self.file.read_bytes()
        )
        names = self.names
        templates = {
            pool: (
                create_launch_template(self.cloud, f"{names.cluster}-{pool}", "#!/bin/sh"),
                "1",
                "aa-1",
            )
            for pool in ("t4", "a10g")
        }
        self.variables = environment(
            templates=templates,
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
        self.planner = function(planner, self.variables, self.cloud.client)

    def client(self, service: str) -> Any:
        return self if service == "lambda" else self.cloud.client(service)

    def invoke(self, *, FunctionName: str, InvocationType: str, Payload: bytes) -> None:  # noqa: N803
        assert (FunctionName, InvocationType) == (
            f"tidegate-{self.names.cluster}-schedule",
            "Event",
        )
        self.invoked.append(parse_schedule(json.loads(Payload)))

    def get_function_configuration(self, *, FunctionName: str) -> dict[str, Any]:  # noqa: N803
        assert FunctionName == f"tidegate-{self.names.cluster}-planner"
        return {"Environment": {"Variables": self.variables}}

    def report(self, jobs: Sequence[Job] = (), nodes: Sequence[Node] = ()) -> None:
        self.sequence += 1
        stamp = Stamp("i-head", self.started_at_s, self.sequence)
        reading = Reading("23.11.4", tuple(jobs), tuple(nodes))
        bus = self.planner.work.control.bus
        assert isinstance(bus, AwsBus)
        bus.put_digest(Digest(self.names.cluster, stamp, time.time(), reading))

    def look(self) -> None:
        body = encode_look("a test", look_id="1", at="2026-01-06T00:00:00+00:00")
        on_looks(self.planner, messages(body))

    def ask(self, *arguments: str) -> Result:
        """Run a command of `tidegate` about this cluster."""
        words = [*arguments, "--cluster", str(self.file)]
        return CliRunner().invoke(app, words, obj=self.client)

    def ask_json(self, *arguments: str) -> Any:

        return json.loads(self.ask(*arguments, "--output", "json").output)


@pytest.fixture
def town(cloud: LocalCloud, names: CloudNames, tmp_path: Path) -> Town:
    return Town(cloud, names, tmp_path / "cluster.yaml")


@pytest.fixture
def counted(town: Town, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Town:
    """A cluster with accounting and a head, whose sacct prints what the file `runs` holds."""
    town.file.write_text(
        town.file.read_text().replace('{version: "23.11"}', '{version: "23.11", accounting: true}')
    )
    tags = {CLUSTER_TAG: town.names.cluster, ROLE_TAG: HEAD_ROLE}
    made: Any = town.cloud.client("ec2").run_instances(
        ImageId=IMAGE_ID,
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[
            {
                "ResourceType": "instance",
                "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
            }
        ],
    )
    session = SESSION.replace("eu-west-1", "us-east-1")
    session = session.replace('"i-1"', f'"{made["Instances"][0]["InstanceId"]}"')
    sacct = f"#!/bin/sh\ncat {tmp_path}/runs\n"
    for name, text in (("aws", session), ("sudo", SUDO), ("sacct", sacct)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "runs").write_text("")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return town
