"""From a planned launch to the exact CreateFleet request that goes into the ledger."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.core.actions import Launch
from tidegate.core.ec2 import (
    CLUSTER_TAG,
    GATE_TAG,
    LAUNCH_TAG,
    POOL_TAG,
    FleetRequest,
    Override,
    client_token,
)


@dataclass(frozen=True, slots=True)
class Template:
    """A launch template at one version; a number, so that a retry buys the same thing."""

    template_id: str
    version: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Where nodes are launched from and into: template by pool, subnet by zone."""

    templates: Mapping[str, Template]
    subnets: Mapping[str, str]


def fleet_request(launch: Launch, cluster: str, placement: Placement) -> FleetRequest:
    """The request for `launch`; per-launch facts travel as tags that the node reads in IMDS."""
    template = placement.templates[launch.pool]
    tags = {CLUSTER_TAG: cluster, LAUNCH_TAG: launch.launch_id, POOL_TAG: launch.pool}
    if launch.gated_for:
        tags[GATE_TAG] = "drain"
    return FleetRequest(
        client_token=client_token(cluster, launch.launch_id),
        launch_template_id=template.template_id,
        launch_template_version=template.version,
        market=launch.offerings[0].market,
        count=launch.count,
        min_count=launch.min_count,
        overrides=tuple(
            Override(o.instance_type, o.zone, placement.subnets[o.zone], priority)
            for priority, o in enumerate(launch.offerings)
        ),
        tags=tuple(sorted(tags.items())),
    )
