"""Capacity Blocks of UltraServers, which moto lacks: each UltraServer is one, with one reservation
for its instances or several.

What EC2's documents leave open is here as it would be hardest: the tags of a purchase are on the
blocks alone, and its answer describes no reservation, and names them or not even that.
Source: EC2 API reference, PurchaseCapacityBlock, DescribeCapacityBlocks,
DescribeCapacityBlockStatus; EC2 user guide, "Capacity Blocks for ML".
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from moto.core.responses import ActionResult
from moto.ec2.responses import EC2Response

if TYPE_CHECKING:
    from local.blocks import LocalBlocks, Tags


def sell_ultraservers(
    model: "LocalBlocks", found: Mapping[str, Any], tags: "Tags", platform: str
) -> dict[str, Any]:
    """EC2's answer."""
    many = found["UltraserverCount"]
    count, more = divmod(found["InstanceCount"], many * model.parts)
    assert not more, "the parts of an UltraServer are alike here"
    made: list[dict[str, Any]] = []
    for _ in range(many):
        block_id = f"cb-{len(model.blocks) + 1:017x}"
        parts = [model.reserve(found, count, platform) for _ in range(model.parts)]
        for each in parts:
            each |= {"CapacityBlockId": block_id, "Tags": []}
        made.append(
            {
                "CapacityBlockId": block_id,
                "UltraserverType": found["UltraserverType"],
                "AvailabilityZone": found["AvailabilityZone"],
                "CapacityReservationIds": [each["CapacityReservationId"] for each in parts],
                "StartDate": found["StartDate"],
                "EndDate": found["EndDate"],
                "CreateDate": time.time(),
                "Tags": tags.get("capacity-block", []),
            }
        )
        model.blocks.append(made[-1])
    pending: dict[str, Any] = {"State": "payment-pending"}
    if model.is_named_late:
        pending["CapacityReservationIds"] = []
    return {"CapacityBlocks": [each | pending for each in made]}


def install_ultra_blocks(model: "LocalBlocks") -> None:
    """EC2's answers; for every server and mock of this process."""
    responder: Any = EC2Response

    def describe_capacity_blocks(_: Any) -> ActionResult:
        return ActionResult({"CapacityBlocks": _shown(model)})

    def describe_capacity_block_status(_: Any) -> ActionResult:
        found = [
            {
                "CapacityBlockId": each["CapacityBlockId"],
                "InterconnectStatus": model.interconnects.get(each["CapacityBlockId"], "ok"),
            }
            for each in _shown(model)
        ]
        return ActionResult({"CapacityBlockStatuses": found})

    answers: tuple[Callable[[Any], ActionResult], ...] = (
        describe_capacity_blocks,
        describe_capacity_block_status,
    )
    for each in answers:
        setattr(responder, each.__name__, each)


def _shown(model: "LocalBlocks") -> list[dict[str, Any]]:
    """With the state of their reservations, and as late as these."""
    states = {each["CapacityReservationId"]: each["State"] for each in model.shown()}
    return [
        each | {"State": states[each["CapacityReservationIds"][0]]}
        for each in model.blocks
        if each["CapacityReservationIds"][0] in states
    ]
