"""Capacity Blocks for ML: what EC2 offers, what the account has, and the purchase of one.

PurchaseCapacityBlock takes no ClientToken and no DryRun that would hold an offer: a repeat may buy
a second block. So the client that buys asks once, and who has no answer looks by tag first.
Source: EC2 API reference, DescribeCapacityBlockOfferings, PurchaseCapacityBlock; EC2 user guide,
"Capacity Blocks for ML".
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_offer_gone, is_unsold, message_of, tolerating
from tidegate.core.model.capacity import OFFER_TAG, BlockOffer, BlockState, Gone, Holding
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import CLUSTER_TAG, Market
from tidegate.core.model.errors import Throttled
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ultraservers import (
    ULTRASERVERS,
    is_in_ultraserver,
    ultraservers_for,
)

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

        Of a type that is sold as UltraServers those that have so many instances. What cannot be
        launched into says so: dedicated hardware, and blocks of several segments. Errors:
        Throttled, NotAuthorized.
        """
        asked: dict[str, Any] = {
            **_wanted(instance_type, count),
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

        EC2 has no filter by tag for them, and of UltraServers does not say whether their
        reservations have the tags of their block. Errors: Throttled, NotAuthorized.
        """
        found = holdings(self.client, self.cluster)
        untold = {each.reservation.block for each in found if not each.offer_id} - {""}
        offers = self._offers_of_blocks() if untold else {}
        return tuple(
            replace(each, offer_id=each.offer_id or offers.get(each.reservation.block, ""))
            for each in found
        )

    def _offers_of_blocks(self) -> dict[str, str]:
        """As what each block was bought for this cluster, by its id."""
        pages = self.client.get_paginator("describe_capacity_blocks").paginate()
        with aws_call():
            blocks = [each for page in pages for each in page["CapacityBlocks"]]
        return {each["CapacityBlockId"]: _offer_id(each, self.cluster) for each in blocks}

    def buy(self, offer: BlockOffer) -> tuple[Holding, ...] | Gone:
        """Pay for it. It cannot be given back. Of several UltraServers each is a holding.

        Errors: NotAuthorized, Permanent: nothing was bought; Throttled: it may have been.
        """
        tags = {CLUSTER_TAG: self.cluster, OFFER_TAG: offer.offer_id}
        tagged = ["capacity-reservation", *(["capacity-block"] if offer.ultraservers else [])]
        with aws_call():
            answer = tolerating(
                lambda: self.buyer.purchase_capacity_block(
                    CapacityBlockOfferingId=offer.offer_id,
                    InstancePlatform=LINUX,
                    TagSpecifications=[
                        {
                            "ResourceType": each,
                            "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
                        }
                        for each in tagged
                    ],
                ),
                is_offer_gone,
            )
        if isinstance(answer, ClientError):
            return Gone(message_of(answer))
        if bought := tuple(_bought(answer, offer, self.cluster)):
            return bought
        raise Throttled(f"EC2 has sold {offer.offer_id} and names no reservation of it yet")


def _wanted(instance_type: str, count: int) -> dict[str, Any]:
    """Source: EC2 user guide, "Find and purchase Capacity Blocks"."""
    if not is_in_ultraserver(instance_type):
        return {"InstanceType": instance_type, "InstanceCount": count}
    each, many = ultraservers_for(instance_type, count)
    return {"UltraserverType": each.name, "UltraserverCount": many}


def _bought(answer: Mapping[str, Any], offer: BlockOffer, cluster: str) -> Iterator[Holding]:
    """The reservations that EC2 describes, and of UltraServers also those that it only names."""
    described = answer.get("CapacityReservations") or [answer.get("CapacityReservation")]
    known = {each["CapacityReservationId"]: _holding(each, cluster) for each in described if each}
    block_of = {
        name: block["CapacityBlockId"]
        for block in answer.get("CapacityBlocks", ())
        for name in block.get("CapacityReservationIds", ())
    }
    for name in dict.fromkeys([*known, *(block_of if offer.ultraservers else ())]):
        if name in known:
            yield known[name]
            continue
        several = offer.reservations(*block_of)[0]
        made = replace(several, id=name, block=block_of[name])
        yield Holding(made, BlockState.PAYMENT_PENDING, offer.offer_id)


def holdings(client: Any, cluster: str) -> tuple[Holding, ...]:
    """As `CapacityBlocks.holdings` says."""
    pages = client.get_paginator("describe_capacity_reservations").paginate()
    with aws_call():
        return tuple(
            _holding(each, cluster) for page in pages for each in page["CapacityReservations"]
        )


def _offer(said: Mapping[str, Any], days: int) -> BlockOffer:
    name = said.get("UltraserverType", "")
    many = said.get("UltraserverCount", 1) if name else 0
    its = next((each for each in ULTRASERVERS if each.name == name), None)
    return BlockOffer(
        offer_id=said["CapacityBlockOfferingId"],
        # Of several segments each has its own.
        instance_type=said.get("InstanceType") or (its.instance_type if its else ""),
        zone=said.get("AvailabilityZone", ""),
        count=said.get("InstanceCount") or (many * its.count if its else 0),
        starts_at_s=said["StartDate"].timestamp(),
        ends_at_s=said["EndDate"].timestamp(),
        fee=float(said["UpfrontFee"]),
        currency=said["CurrencyCode"],
        asked_days=days,
        unusable=_unusable_offer(said, is_known=its is not None),
        ultraserver=name,
        ultraservers=many,
    )


def _unusable_offer(said: Mapping[str, Any], *, is_known: bool) -> str:
    if (segments := len(said.get("CapacityBlockOfferingSegments", ()))) > 1:
        return f"it is made of {segments} segments"
    if (ultraserver := said.get("UltraserverType")) and not is_known:
        return f"it is of UltraServers that Tidegate does not know ({ultraserver})"
    tenancy = said.get("Tenancy", "default")
    return "" if tenancy == "default" else f"its tenancy is {tenancy}"


def _holding(said: Mapping[str, Any], cluster: str) -> Holding:
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
            block=_block(said),
        ),
        BlockState(state) if state in set(BlockState) else BlockState.OTHER,
        _offer_id(said, cluster),
        free=said.get("AvailableInstanceCount"),
        unusable=_unusable(said),
        is_launchable=said.get("LaunchStatus") != "unlaunchable",
    )


def _offer_id(said: Mapping[str, Any], cluster: str) -> str:
    """As what it was bought for the cluster; "": it was not."""
    tags = {tag["Key"]: tag["Value"] for tag in said.get("Tags", ())}
    return str(tags.get(OFFER_TAG, "")) if tags.get(CLUSTER_TAG) == cluster else ""


def _block(said: Mapping[str, Any]) -> str:
    """Of an UltraServer alone: other blocks are no closer to each other."""
    is_of_ours = is_in_ultraserver(said["InstanceType"])
    return str(said.get("CapacityBlockId", "")) if is_of_ours else ""


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
