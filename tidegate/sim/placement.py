"""What the deployed stack says about where and from what nodes are made, in a simulated cluster."""

from collections.abc import Sequence

from tidegate.core.model.cluster import Cluster, group_key, named_key, reserved_key
from tidegate.core.model.ec2 import FleetRequest, Market, Override, Template
from tidegate.service.requests import Placement


def placement(cluster: Cluster, digest: str = "one-1") -> Placement:
    """One pool has a second subnet in each zone, which goes on when that of the zone is full."""
    zones = {zone for pool in cluster.pools for zone in pool.zones}
    keys = [pool.name for pool in cluster.pools]
    keys += [
        named_key(pool.name, e.target)
        for pool in cluster.pools
        for e in cluster.named_reservations(pool)
    ]
    first = min(cluster.pools, key=lambda pool: pool.name)
    keys += [reserved_key(pool.name) for pool in cluster.pools if Market.RESERVED in pool.markets]
    return Placement(
        {key: Template(f"lt-{key}", digest.rpartition("-")[2], digest) for key in keys},
        {zone: f"subnet-{zone}" for zone in zones},
        {
            group_key(pool.name, zone): f"{pool.name}-{zone}"
            for pool in cluster.pools
            if pool.placement_group
            for zone in pool.zones
        },
        {
            group_key(first.name, zone): (f"subnet-{zone}", f"subnet-{zone}-more")
            for zone in first.zones
        },
    )


def by_priority(request: FleetRequest) -> Sequence[Override]:
    """The order that was asked for."""
    return sorted(request.overrides, key=lambda override: override.priority)
