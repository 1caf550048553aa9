"""Capacity Blocks for ML: what EC2 offers, what the account has, and the purchase of one.

PurchaseCapacityBlock takes no ClientToken and no DryRun that would hold an offer: a repeat may buy
a second block. So the client that buys asks once, and who has no answer looks by tag first.
Source: EC2 API reference, DescribeCapacityBlockOfferings, PurchaseCapacityBlock; EC2 user guide,
"Capacity Blocks for ML".
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_offer_gone, is_unsold, message_of, tolerating
from tidegate.core.model.capacity import OFFER_TAG, BlockOffer, BlockState, Gone, Holding
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import CLUSTER_TAG, Market
from tidegate.core.model.frozen import frozen

# What our nodes are launched as: an image of another platform is refused in a block.
LINUX = "Linux/UNIX"
BLOCK_TYPE = "capacity-block"


@frozen
class CapacityBlocks:
    """Those of one region, for one cluster. `buyer`: a client that asks once and never again."""

    client: Any
    buyer: Any
    cluster: str

    def offers(
        self, instance_type: str, count: int, days: int, from_s: float
    ) -> tuple[BlockOffer, ...] | Gone:
        """What EC2 offers now, the first to begin first; Gone: not of this type or so many.

        What cannot be launched into says so: dedicated hardware, UltraServers, and blocks of
        several segments. Errors: Throttled, NotAuthorized.
        """
        asked: dict[str, Any] = {
            "InstanceType": instance_type,
            "InstanceCount": count,
            "CapacityDurationHours": days * 24,
            "StartDateRange": datetime.fromtimestamp(from_s, UTC),
        }
        with aws_call():
            answer = tolerating(lambda: list(self._offered(asked)), is_unsold)
        if isinstance(answer, ClientError):
            return Gone(message_of(answer))
        found = [_offer(each, days) for each in answer]
        return tuple(sorted(found, key=lambda each: (each.starts_at_s, each.fee, each.offer_id)))

    def _offered(self, asked: Mapping[str, Any]) -> Iterator[Any]:
        pages = self.client.get_paginator("describe_capacity_block_offerings").paginate(**asked)
        for page in pages:
            yield from page["CapacityBlockOfferings"]

    def holdings(self) -> tuple[Holding, ...]:
        """All blocks and reservations that the account has here or that are shared with it.

        EC2 has no filter by tag for them. Errors: Throttled, NotAuthorized.
        """
        return holdings(self.client, self.cluster)

    def buy(self, offer: BlockOffer) -> Holding | Gone:
        """Pay for it. It cannot be given back.

        Errors: NotAuthorized, Permanent: nothing was bought; Throttled: it may have been.
        """
        tags = {CLUSTER_TAG: self.cluster, OFFER_TAG: offer.offer_id}
        with aws_call():
            answer = tolerating(
                lambda: self.buyer.purchase_capacity_block(
                    CapacityBlockOfferingId=offer.offer_id,
                    InstancePlatform=LINUX,
                    TagSpecifications=[
                        {
                            "ResourceType": "capacity-reservation",
                            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
                        }
                    ],
                ),
                is_offer_gone,
            )
        if isinstance(answer, ClientError):
            return Gone(message_of(answer))
        return _holding(answer["CapacityReservation"], self.cluster)


def holdings(client: Any, cluster: str) -> tuple[Holding, ...]:
    """As `CapacityBlocks.holdings` says."""
    pages = client.get_paginator("describe_capacity_reservations").paginate()
    with aws_call():
        return tuple(
            _holding(each, cluster) for page in pages for each in page["CapacityReservations"]
        )


def _offer(said: Mapping[str, Any], days: int) -> BlockOffer:
    return BlockOffer(
        offer_id=said["CapacityBlockOfferingId"],
        # Of several segments each has its own.
        instance_type=said.get("InstanceType", ""),
        zone=said.get("AvailabilityZone", ""),
        count=said["InstanceCount"],
        starts_at_s=said["StartDate"].timestamp(),
        ends_at_s=said["EndDate"].timestamp(),
        fee=float(said["UpfrontFee"]),
        currency=said["CurrencyCode"],
        asked_days=days,
        unusable=_unusable_offer(said),
    )


def _unusable_offer(said: Mapping[str, Any]) -> str:
    if (segments := len(said.get("CapacityBlockOfferingSegments", ()))) > 1:
        return f"it is made of {segments} segments"
    if ultraserver := said.get("UltraserverType"):
        return f"it is of UltraServers ({ultraserver})"
    tenancy = said.get("Tenancy", "default")
    return "" if tenancy == "default" else f"its tenancy is {tenancy}"


def _holding(said: Mapping[str, Any], cluster: str) -> Holding:
    tags = {tag["Key"]: tag["Value"] for tag in said.get("Tags", ())}
    ends_at = said.get("EndDate")
    state = said["State"]
    return Holding(
        Reservation(
            id=said["CapacityReservationId"],
            instance_type=said["InstanceType"],
            zone=said["AvailabilityZone"],
            count=said["TotalInstanceCount"],
            market=_market(said),
            # One that began at once has no date for it.
            starts_at_s=(said.get("StartDate") or said["CreateDate"]).timestamp(),
            ends_at_s=ends_at.timestamp() if ends_at else None,
            is_targeted=_market(said) is Market.RESERVED
            and said.get("InstanceMatchCriteria") == "targeted",
        ),
        BlockState(state) if state in set(BlockState) else BlockState.OTHER,
        tags.get(OFFER_TAG, "") if tags.get(CLUSTER_TAG) == cluster else "",
        free=said.get("AvailableInstanceCount"),
        unusable=_unusable(said),
    )


def _market(said: Mapping[str, Any]) -> Market:
    if said.get("ReservationType") == BLOCK_TYPE:
        return Market.CAPACITY_BLOCK
    return Market.INTERRUPTIBLE if said.get("Interruptible") else Market.RESERVED


def _unusable(said: Mapping[str, Any]) -> str:
    """Our launches are of Linux on shared hardware."""
    if (tenancy := said.get("Tenancy", "default")) != "default":
        return f"its tenancy is {tenancy}"
    platform = said.get("InstancePlatform", LINUX)
    return "" if platform == LINUX else f"its platform is {platform}"
