"""What the owner of a capacity reservation does with it, which moto lacks.

Source: EC2 API reference, CreateCapacityReservationBySplitting, MoveCapacityReservationInstances,
CancelCapacityReservation; EC2 user guide, "Split off capacity from an existing Capacity
Reservation", "Move capacity between Capacity Reservations".
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response

from local.blocks import LocalBlocks

# What two reservations have to share before anything is moved between them.
ALIKE = (
    *("InstanceType", "InstancePlatform", "AvailabilityZone", "Tenancy"),
    *("PlacementGroupArn", "EndDate"),
)


def install_changes(model: LocalBlocks) -> None:
    """EC2's answers; for every server and mock of this process."""
    responder: Any = EC2Response

    def create_capacity_reservation_by_splitting(self: Any) -> ActionResult:
        asked = self._get_params()
        source = _active(model, asked["SourceCapacityReservationId"])
        count = int(asked["InstanceCount"])
        if not 0 < count < source["TotalInstanceCount"]:
            raise EC2ClientError("InvalidParameterValue", f"{count} instances cannot be split off.")
        name = f"cr-{len(model.others) + 1:08x}{source['CapacityReservationId'][-9:]}"
        made = {
            **{key: value for key, value in source.items() if key != "Tags"},
            "CapacityReservationId": name,
            "CreateDate": time.time(),
            "TotalInstanceCount": 0,
            "AvailableInstanceCount": 0,
        }
        model.others.append(made)
        return _moved(source, made, count)

    def move_capacity_reservation_instances(self: Any) -> ActionResult:
        asked = self._get_params()
        source = _active(model, asked["SourceCapacityReservationId"])
        to = _active(model, asked["DestinationCapacityReservationId"])
        other = [key for key in ALIKE if source.get(key) != to.get(key)]
        if other:
            raise EC2ClientError("InvalidParameterValue", f"{', '.join(other)} must be the same.")
        return _moved(source, to, int(asked["InstanceCount"]))

    def cancel_capacity_reservation(self: Any) -> ActionResult:
        of = _active(model, self._get_params()["CapacityReservationId"])
        of |= {"State": "cancelled", "AvailableInstanceCount": 0}
        return ActionResult({"Return": True})

    answers: tuple[Callable[[Any], ActionResult], ...] = (
        create_capacity_reservation_by_splitting,
        move_capacity_reservation_instances,
        cancel_capacity_reservation,
    )
    for each in answers:
        setattr(responder, each.__name__, each)


def _active(model: LocalBlocks, name: str) -> dict[str, Any]:
    """The reservation. A block is none that anybody may change."""
    found = next((e for e in model.others if e["CapacityReservationId"] == name), None)
    if found is None:
        said = f"The capacity reservation '{name}' does not exist."
        raise EC2ClientError("InvalidCapacityReservationId.NotFound", said)
    if found["State"] != "active" or found["ReservationType"] == "capacity-block":
        said = f"The capacity reservation '{name}' cannot be changed now."
        raise EC2ClientError("InvalidCapacityReservationState", said)
    return found


def _moved(source: dict[str, Any], to: dict[str, Any], count: int) -> ActionResult:
    """Free places first, then running instances, between open reservations alone."""
    free = min(count, source["AvailableInstanceCount"])
    is_open = all(each["InstanceMatchCriteria"] == "open" for each in (source, to))
    if count > source["TotalInstanceCount"] or (free < count and not is_open):
        said = f"{count} instances are more than can be moved."
        raise EC2ClientError("InvalidParameterValue", said)
    for each, sign in ((source, -1), (to, 1)):
        each["TotalInstanceCount"] += sign * count
        each["AvailableInstanceCount"] += sign * free
    if not source["TotalInstanceCount"]:
        source["State"] = "cancelled"
    answer: Mapping[str, Any] = {
        "SourceCapacityReservation": source,
        "DestinationCapacityReservation": to,
        "InstanceCount": count,
    }
    return ActionResult(answer)
