"""Extensions of Capacity Blocks, which moto lacks.

A purchase has no token, and the new end is shown before it is paid for.
Source: EC2 API reference, DescribeCapacityBlockExtensionOfferings, PurchaseCapacityBlockExtension,
DescribeCapacityBlockExtensionHistory; EC2 user guide, "Extend Capacity Blocks".
"""

import time
from collections.abc import Callable
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response

from local.blocks import LocalBlocks, at
from tidegate.core.model.capacity import DAYS_MAX, EXTENDED_BEFORE_S, days_sold

PENDING, PAID = "payment-pending", "payment-succeeded"


def install_extensions(model: LocalBlocks) -> None:
    """EC2's answers; for every server and mock of this process."""
    responder: Any = EC2Response

    def describe_capacity_block_extension_offerings(self: Any) -> ActionResult:
        asked = self._get_params()
        block = _extendable(model, asked["CapacityReservationId"])
        hours = int(asked["CapacityBlockExtensionDurationHours"])
        lasts_days = (at(block["EndDate"]) - at(block["StartDate"])) / 86400 + hours / 24
        if hours % 24 or days_sold(hours / 24) * 24 != hours or lasts_days > DAYS_MAX:
            raise EC2ClientError("InvalidParameterValue", f"{hours} hours are not offered.")
        found = [
            {key: value for key, value in each.items() if key != "CapacityReservationId"}
            for each in model.extension_offers
            if each["CapacityReservationId"] == block["CapacityReservationId"]
            and each["CapacityBlockExtensionDurationHours"] == hours
            and at(each["CapacityBlockExtensionStartDate"]) == at(block["EndDate"])
        ]
        return ActionResult({"CapacityBlockExtensionOfferings": found})

    def purchase_capacity_block_extension(self: Any) -> ActionResult:
        asked = self._get_params()
        offer_id = asked["CapacityBlockExtensionOfferingId"]
        block = _extendable(model, asked["CapacityReservationId"])
        offer = next(
            (
                each
                for each in model.extension_offers
                if each["CapacityBlockExtensionOfferingId"] == offer_id
                and each["CapacityReservationId"] == block["CapacityReservationId"]
            ),
            None,
        )
        if offer is None:
            said = f"The Capacity Block offering ID '{offer_id}' is no longer available."
            raise EC2ClientError("InvalidCapacityBlockOfferingIdExpired", said)
        model.extended.append(offer | {"CapacityBlockExtensionPurchaseDate": time.time()})
        return ActionResult({"CapacityBlockExtensions": [_shown(offer, PENDING)]})

    def describe_capacity_block_extension_history(_: Any) -> ActionResult:
        now_s = time.time()
        found = [
            _shown(each, model.payments.get(each["CapacityBlockExtensionOfferingId"], PAID))
            for each in model.extended
            if each["CapacityBlockExtensionPurchaseDate"] + model.shown_after_s <= now_s
        ]
        return ActionResult({"CapacityBlockExtensions": found})

    answers: tuple[Callable[[Any], ActionResult], ...] = (
        describe_capacity_block_extension_offerings,
        purchase_capacity_block_extension,
        describe_capacity_block_extension_history,
    )
    for each in answers:
        setattr(responder, each.__name__, each)


def _extendable(model: LocalBlocks, reservation_id: str) -> dict[str, Any]:
    """The block, if EC2 would extend it now."""
    shown = (each for each in model.shown() if each["ReservationType"] == "capacity-block")
    block = next((e for e in shown if e["CapacityReservationId"] == reservation_id), None)
    if block is None:
        said = f"The Capacity Reservation '{reservation_id}' does not exist."
        raise EC2ClientError("InvalidCapacityReservationId.NotFound", said)
    pending = any(
        each["CapacityReservationId"] == reservation_id
        and model.payments.get(each["CapacityBlockExtensionOfferingId"]) == PENDING
        for each in model.extended
    )
    is_late = at(block["EndDate"]) - time.time() < EXTENDED_BEFORE_S
    if block["State"] not in ("active", "scheduled") or pending or is_late:
        said = f"The Capacity Block '{reservation_id}' cannot be extended now."
        raise EC2ClientError("InvalidCapacityReservationState", said)
    return block


def _shown(offer: dict[str, Any], state: str) -> dict[str, Any]:
    return offer | {"CapacityBlockExtensionStatus": state}
