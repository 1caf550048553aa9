"""The composition root: which adapter stands behind which port."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tidegate.adapters.bus import AwsBus
from tidegate.adapters.clients import client
from tidegate.adapters.clock import SystemClock
from tidegate.adapters.dynamodb import DynamoLedger
from tidegate.adapters.ec2 import Ec2Compute
from tidegate.core.pool import Cluster
from tidegate.service.control import Control
from tidegate.service.requests import Placement

type Clients = Callable[[str], Any]
"""Makes a boto3 client by service name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """The names of what one cluster owns in AWS."""

    table: str
    bucket: str
    event_bus: str
    look_queue_url: str
    urgent_queue_url: str
    routine_queue_url: str


class AgentSettings(Protocol):
    """What the agent must know to reach the planner."""

    @property
    def cluster(self) -> str: ...
    @property
    def bucket(self) -> str: ...
    @property
    def bus(self) -> str: ...
    @property
    def urgent_queue_url(self) -> str: ...
    @property
    def routine_queue_url(self) -> str: ...


def agent_bus(settings: AgentSettings) -> AwsBus:
    """The head's end of the bus, with the head's own role and region."""
    return AwsBus(
        client("s3"),
        client("events"),
        client("sqs"),
        cluster=settings.cluster,
        bucket=settings.bucket,
        event_bus=settings.bus,
        urgent_queue_url=settings.urgent_queue_url,
        routine_queue_url=settings.routine_queue_url,
    )


def control(
    cluster: Cluster, resources: Resources, placement: Placement, clients: Clients = client
) -> Control:
    """The control loop on AWS."""
    clock = SystemClock()
    bus = AwsBus(
        clients("s3"),
        clients("events"),
        clients("sqs"),
        cluster=cluster.name,
        bucket=resources.bucket,
        event_bus=resources.event_bus,
        urgent_queue_url=resources.urgent_queue_url,
        routine_queue_url=resources.routine_queue_url,
        look_queue_url=resources.look_queue_url,
    )
    return Control(
        cluster=cluster,
        compute=Ec2Compute(clients("ec2"), cluster.name),
        ledger=DynamoLedger(clients("dynamodb"), resources.table, clock),
        bus=bus,
        clock=clock,
        placement=placement,
    )
