"""From environment and cluster file to a function: loud when they are wrong, lazy when right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.cloud_resources import CloudNames
from tests.lambdas.conftest import Context
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.events import SpotInterruption
from tidegate.wire.settings import environment
from tidegate.wiring.function import entry, function
from tidegate.wiring.hours import hours
from tidegate.wiring.interruption import interruptions
from tidegate.wiring.planner import planner
from tidegate.wiring.resources import Clients

DEV = Path(__file__).parents[2] / "clusters" / "dev.yaml"

type Deploy = Callable[[str], dict[str, str]]


@pytest.fixture
def deploy(cloud: LocalCloud, names: CloudNames) -> Deploy:
    """Puts a cluster file into the bucket; returns a function's environment."""

    def put(text: str) -> dict[str, str]:
        cloud.client("s3").put_object(Bucket=names.bucket, Key="cluster.yaml", Body=text.encode())
        return environment(
            templates={"t4": ("lt-1", "3", "aa-3"), "a10g": ("lt-2", "1", "bb-1")},
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

    return put


def watched(clients: Clients, made: list[str]) -> Clients:
    def client(service: str) -> Any:
        made.append(service)
        return clients(service)

    return client


def test_a_function_is_what_its_environment_and_cluster_file_say(
    cloud: LocalCloud,
    deploy: Deploy,
) -> None:
    made = function(planner, deploy(DEV.read_text()), cloud.client)

    control = made.work.control
    assert control.cluster.name == "dev"
    assert control.placement.templates["t4"].version == "3"
    assert control.calendar is not None
    assert control.look().trouble == ""
    assert made.metrics.default_dimensions == {"cluster": "dev"}
    assert made.logger.get_current_keys()["cluster"] == "dev"


def test_the_hours_are_those_of_the_cluster_file(cloud: LocalCloud, deploy: Deploy) -> None:
    made = function(hours, deploy(DEV.read_text()), cloud.client)

    assert made.work.calendar is not None
    assert made.work.cluster.name == "dev"


def test_a_client_is_made_when_it_is_used_and_once(
    cloud: LocalCloud,
    deploy: Deploy,
) -> None:
    services: list[str] = []
    made = function(interruptions, deploy(DEV.read_text()), watched(cloud.client, services))
    first = list(services)

    for _ in range(2):
        made.work.handle([SpotInterruption("i-1", 0.0)])

    assert first == ["s3"]
    assert services == ["s3", "dynamodb"]


def test_a_wrong_cluster_file_is_told_line_by_line(
    cloud: LocalCloud,
    deploy: Deploy,
) -> None:
    wrong = DEV.read_text().replace("weight: 50", "weight: 500").replace("gpus: 8", "gpus: -8")

    with pytest.raises(BadConfig) as raised:
        function(planner, deploy(wrong), cloud.client)

    assert "cluster.yaml: 2 problems" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 3


def test_a_missing_variable_fails_every_invocation_and_names_itself() -> None:
    handler = entry(lambda made, event: {}, planner)

    for _ in range(2):
        with pytest.raises(BadConfig, match="TIDEGATE_TABLE"):
            handler({}, Context())
