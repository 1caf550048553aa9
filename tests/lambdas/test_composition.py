"""From environment and cluster file to a function: loud when they are wrong, lazy when right."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.cloud import LocalCloud
from tests.cloud_resources import CloudNames
from tests.lambdas.conftest import Context
from tidegate.core.errors import BadConfig
from tidegate.core.events import SpotInterruption
from tidegate.wire.settings import environment
from tidegate.wiring import Clients, entry, function

DEV = Path(__file__).parents[2] / "clusters" / "dev.yaml"

type Deploy = Callable[[str], dict[str, str]]


@pytest.fixture
def deploy(cloud: LocalCloud, names: CloudNames) -> Deploy:
    """Puts a cluster file into the bucket; returns a function's environment."""

    def put(text: str) -> dict[str, str]:
        cloud.client("s3").put_object(Bucket=names.bucket, Key="cluster.yaml", Body=text.encode())
        return environment(
            templates={"t4": ("lt-1", "3"), "a10g": ("lt-2", "1")},
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
    made = function(deploy(DEV.read_text()), cloud.client)

    assert made.control.cluster.name == "dev"
    assert made.control.placement.templates["t4"].version == "3"
    assert made.control.calendar is made.hours.calendar
    assert made.control.calendar is not None
    assert made.control.look().trouble == ""
    assert made.metrics.default_dimensions == {"cluster": "dev"}
    assert made.logger.get_current_keys()["cluster"] == "dev"


def test_a_client_is_made_when_it_is_used_and_once(
    cloud: LocalCloud,
    deploy: Deploy,
) -> None:
    services: list[str] = []
    made = function(deploy(DEV.read_text()), watched(cloud.client, services))
    first = list(services)

    for _ in range(2):
        made.control.interrupt([SpotInterruption("i-1", 0.0)])

    assert first == ["s3"]
    assert services == ["s3", "dynamodb"]


def test_a_wrong_cluster_file_is_told_line_by_line(
    cloud: LocalCloud,
    deploy: Deploy,
) -> None:
    wrong = DEV.read_text().replace("weight: 50", "weight: 500").replace("gpus: 8", "gpus: -8")

    with pytest.raises(BadConfig) as raised:
        function(deploy(wrong), cloud.client)

    assert "cluster.yaml: 2 problems" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 3


def test_a_missing_variable_fails_every_invocation_and_names_itself() -> None:
    handler = entry(lambda made, event: {})

    for _ in range(2):
        with pytest.raises(BadConfig, match="TIDEGATE_TABLE"):
            handler({}, Context())
