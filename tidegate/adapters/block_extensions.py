"""Extensions of Capacity Blocks: what EC2 offers, what was bought, and the purchase of one.

PurchaseCapacityBlockExtension has no idempotency token either: it is asked once, and who has no
answer looks at the history first. A block keeps its id, and has one extension at a time whose
payment is pending.
Source: EC2 API reference, DescribeCapacityBlockExtensionOfferings, PurchaseCapacityBlockExtension,
DescribeCapacityBlockExtensionHistory; EC2 user guide, "Extend Capacity Blocks".
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_offer_gone, is_unsold, message_of, tolerating
from tidegate.core.model.capacity import Extension, ExtensionOffer, ExtensionState, Gone
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.frozen import frozen


@frozen
class BlockExtensions:
    """Those of one region. `buyer`: a client that asks once and never again."""

    client: Any
    buyer: Any

    def offers(self, block: Reservation, days: int) -> tuple[ExtensionOffer, ...] | Gone:
        """What EC2 offers now for a block, the earliest end first; Gone: nothing, in its words.

        Errors: Throttled, NotAuthorized, Permanent: EC2 does not know the block.
        """
        with aws_call():
            answer = tolerating(
                lambda: list(self._offered(block.id, days)),
                lambda error: is_unsold(error) or is_offer_gone(error),
            )
        if isinstance(answer, ClientError):
            return Gone(message_of(answer))
        found = (
            ExtensionOffer(
                offer_id=each["CapacityBlockExtensionOfferingId"],
                block=block,
                starts_at_s=each["CapacityBlockExtensionStartDate"].timestamp(),
                ends_at_s=each["CapacityBlockExtensionEndDate"].timestamp(),
                fee=float(each["UpfrontFee"]),
                currency=each["CurrencyCode"],
                asked_days=days,
            )
            for each in answer
        )
        return tuple(sorted(found, key=lambda each: (each.ends_at_s, each.fee, each.offer_id)))

    def _offered(self, reservation_id: str, days: int) -> Iterator[Any]:
        pages = self.client.get_paginator("describe_capacity_block_extension_offerings").paginate(
            CapacityReservationId=reservation_id, CapacityBlockExtensionDurationHours=days * 24
        )
        for page in pages:
            yield from page["CapacityBlockExtensionOfferings"]

    def bought(self, reservation_id: str) -> tuple[Extension, ...]:
        return extensions(self.client, [reservation_id])

    def buy(self, offer: ExtensionOffer) -> Extension | Gone:
        """Pay for it. It cannot be given back.

        Errors: NotAuthorized, Permanent: nothing was bought; Throttled: it may have been.
        """
        with aws_call():
            answer = tolerating(
                lambda: self.buyer.purchase_capacity_block_extension(
                    CapacityBlockExtensionOfferingId=offer.offer_id,
                    CapacityReservationId=offer.block.id,
                ),
                is_offer_gone,
            )
        if isinstance(answer, ClientError):
            return Gone(message_of(answer))
        return _extension(answer["CapacityBlockExtensions"][0])


def extensions(client: Any, reservation_ids: Collection[str]) -> tuple[Extension, ...]:
    """Those that were bought for these blocks, paid for or not. Errors: Throttled, NotAuthorized.

    EC2 refuses a question about an id that it does not know: so it is asked about all.
    """
    pages = client.get_paginator("describe_capacity_block_extension_history").paginate()
    with aws_call():
        return tuple(
            _extension(each)
            for page in pages
            for each in page["CapacityBlockExtensions"]
            if each["CapacityReservationId"] in reservation_ids
        )


def _extension(said: Mapping[str, Any]) -> Extension:
    state = said["CapacityBlockExtensionStatus"]
    is_known = state in set(ExtensionState)
    return Extension(
        offer_id=said["CapacityBlockExtensionOfferingId"],
        reservation_id=said["CapacityReservationId"],
        state=ExtensionState(state) if is_known else ExtensionState.OTHER,
        starts_at_s=said["CapacityBlockExtensionStartDate"].timestamp(),
        ends_at_s=said["CapacityBlockExtensionEndDate"].timestamp(),
    )
