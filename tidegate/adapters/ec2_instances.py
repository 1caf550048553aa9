"""An instance, as DescribeInstances tells it."""

from typing import TYPE_CHECKING

from tidegate.core.model.ec2 import (
    LAUNCH_TAG,
    POOL_TAG,
    TEMPLATE_TAG,
    Instance,
    InstanceState,
    Market,
    Offering,
)

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import InstanceTypeDef


def instance_of(described: "InstanceTypeDef") -> Instance:
    tags, place = tags_of(described), described["Placement"]
    zone = place.get("AvailabilityZone", "")
    return Instance(
        instance_id=described["InstanceId"],
        offering=Offering(described["InstanceType"], zone, _market(described)),
        state=InstanceState(described["State"]["Name"]),
        launched_at_s=described["LaunchTime"].timestamp(),
        launch_id=tags.get(LAUNCH_TAG, ""),
        pool=tags.get(POOL_TAG, ""),
        template=tags.get(TEMPLATE_TAG, ""),
        capacity_reservation_id=described.get("CapacityReservationId", ""),
        placement_group=place.get("GroupName", ""),
        state_reason=described.get("StateReason", {}).get("Code", ""),
    )


def _market(described: "InstanceTypeDef") -> Market:
    """How EC2 bills the instance: by its life cycle, and by the reservation it is in."""
    life = described.get("InstanceLifecycle")
    if life in (Market.SPOT, Market.CAPACITY_BLOCK, Market.INTERRUPTIBLE):
        return Market(life)
    return Market.RESERVED if described.get("CapacityReservationId") else Market.ON_DEMAND


def tags_of(described: "InstanceTypeDef") -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in described.get("Tags", ())}
