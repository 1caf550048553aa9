"""What one cluster owns in AWS, and the adapters of the ports that all functions share."""

from collections.abc import Callable
from typing import Any

from tidegate.adapters.bus import AwsBus
from tidegate.core.model.cluster import group_key
from tidegate.core.model.ec2 import Template
from tidegate.core.model.frozen import frozen
from tidegate.service.requests import Placement
from tidegate.wire.config import ClusterFile
from tidegate.wire.settings import FunctionSettings

type Clients = Callable[[str], Any]
"""Makes a boto3 client by service name."""


@frozen(kw_only=True)
class Resources:
    """The names of what one cluster owns in AWS."""

    table: str
    bucket: str
    event_bus: str
    look_queue_url: str
    urgent_queue_url: str
    routine_queue_url: str


def resources_of(settings: FunctionSettings) -> Resources:
    return Resources(
        table=settings.table,
        bucket=settings.bucket,
        event_bus=settings.bus,
        look_queue_url=settings.look_queue_url,
        urgent_queue_url=settings.urgent_queue_url,
        routine_queue_url=settings.routine_queue_url,
    )


def placement_of(settings: FunctionSettings, file: ClusterFile) -> Placement:
    """Subnets that pools name for themselves are read from the file: an environment has 4 KB."""
    templates = {pool: Template(*pair) for pool, pair in settings.templates.items()}
    own = {
        group_key(pool, zone): ids
        for pool, by_zone in file.pool_subnets.items()
        for zone, ids in by_zone.items()
    }
    return Placement(templates, settings.subnets, settings.placement_groups, own)


def planner_bus(cluster: str, resources: Resources, clients: Clients) -> AwsBus:
    """The functions' end of the bus of the cluster of this name."""
    return AwsBus(
        clients("s3"),
        clients("events"),
        clients("sqs"),
        cluster=cluster,
        bucket=resources.bucket,
        event_bus=resources.event_bus,
        urgent_queue_url=resources.urgent_queue_url,
        routine_queue_url=resources.routine_queue_url,
        look_queue_url=resources.look_queue_url,
    )
