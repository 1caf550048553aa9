"""Capacity that EC2 sells in advance: offers of Capacity Blocks, and blocks that were bought."""

from collections.abc import Iterable
from enum import StrEnum

from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.frozen import frozen

# On a block that was bought for a cluster: as what it was offered.
OFFER_TAG = "tidegate:offer"

# Source: EC2 API reference, DescribeCapacityBlockOfferings: whole days up to 14, then weeks up to
# 182 days; at most 64 instances in a block.
SINGLE_DAYS_MAX, WEEK_DAYS, DAYS_MAX = 14, 7, 182
BLOCK_INSTANCES_MAX = 64


@frozen
class BlockOffer:
    """A Capacity Block as EC2 offers it. `fee`: all of its price, paid when it is bought.

    `asked_days`: the duration that was asked for; EC2 offers what ends at its hour of the day.
    `unusable`: why our nodes cannot be launched into it, "": they can. `ultraservers`: as many of
    these (`ultraserver`) have its instances, and each is a block; 0: it is of single instances.
    """

    offer_id: str
    instance_type: str
    zone: str
    count: int
    starts_at_s: float
    ends_at_s: float
    fee: float
    currency: str
    asked_days: int = 0
    unusable: str = ""
    ultraserver: str = ""
    ultraservers: int = 0

    @property
    def usd(self) -> float | None:
        """None: it is paid in another currency."""
        return self.fee if self.currency == "USD" else None

    @property
    def hours(self) -> float:
        return (self.ends_at_s - self.starts_at_s) / 3600.0

    @property
    def offering(self) -> Offering:
        return Offering(self.instance_type, self.zone, Market.CAPACITY_BLOCK)

    def reservations(self, *ids: str) -> tuple[Reservation, ...]:
        """What it is once it was bought: its instances in as many equal parts."""
        return tuple(
            Reservation(
                each,
                self.instance_type,
                self.zone,
                self.count // len(ids),
                Market.CAPACITY_BLOCK,
                self.starts_at_s,
                self.ends_at_s,
            )
            for each in ids
        )

    def unnamed(self) -> tuple[Reservation, ...]:
        """The same before EC2 has given them ids."""
        return self.reservations(*(f"cr-{n:017x}" for n in range(max(self.ultraservers, 1))))


class BlockState(StrEnum):
    """EC2's words for the life of a block, as far as they differ for us.

    Source: EC2 API reference, CapacityReservation, `state`.
    """

    PAYMENT_PENDING = "payment-pending"
    PAYMENT_FAILED = "payment-failed"
    ASSESSING = "assessing"
    SCHEDULED = "scheduled"
    PENDING = "pending"
    DELAYED = "delayed"
    ACTIVE = "active"
    EXPIRED = "expired"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"
    OTHER = "other"

    @property
    def is_lost(self) -> bool:
        """It gives no instance, now or later, although it may not have ended."""
        return self in _LOST

    @property
    def gives_nodes(self) -> bool:
        return self in (BlockState.ACTIVE, BlockState.OTHER)


_LOST = frozenset(
    {
        BlockState.PAYMENT_FAILED,
        BlockState.CANCELLING,
        BlockState.CANCELLED,
        BlockState.FAILED,
        BlockState.UNSUPPORTED,
    }
)


@frozen
class Holding:
    """A block or a reservation that the account has.

    `offer_id`: as what a block was bought for this cluster, "": it was not. `free`: how many more
    instances it takes now; None: EC2 does not say. `unusable`: why no launch of ours may go into
    it, "": one may. `is_launchable`: EC2 takes launches into it now, which it says of UltraServers
    alone.
    """

    reservation: Reservation
    state: BlockState
    offer_id: str = ""
    free: int | None = None
    unusable: str = ""
    is_launchable: bool = True

    @property
    def is_over(self) -> bool:
        """It gives no instance any more."""
        return self.state.is_lost or self.state is BlockState.EXPIRED


class ExtensionState(StrEnum):
    """EC2's words for an extension of a block.

    Source: EC2 API reference, CapacityBlockExtension, `capacityBlockExtensionStatus`.
    """

    PAYMENT_PENDING = "payment-pending"
    PAYMENT_FAILED = "payment-failed"
    PAYMENT_SUCCEEDED = "payment-succeeded"
    OTHER = "other"


@frozen
class Extension:
    """An extension of a Capacity Block that was bought: from the block's end to a later one.

    The block ends later only once it is paid for, within 12 hours or 35 minutes before that end.
    Source: EC2 user guide, "Extend Capacity Blocks".
    """

    offer_id: str
    reservation_id: str
    state: ExtensionState
    starts_at_s: float
    ends_at_s: float


@frozen
class ExtensionOffer:
    """A later end of a Capacity Block as EC2 offers it. `fee`: all of its price, paid at once.

    `block`: as it is until then; `asked_days`: the duration that was asked for.
    """

    offer_id: str
    block: Reservation
    starts_at_s: float
    ends_at_s: float
    fee: float
    currency: str
    asked_days: int

    @property
    def usd(self) -> float | None:
        """None: it is paid in another currency."""
        return self.fee if self.currency == "USD" else None

    @property
    def hours(self) -> float:
        return (self.ends_at_s - self.starts_at_s) / 3600.0


# Source: EC2 user guide, "Extend Capacity Blocks".
EXTENDED_BEFORE_S, EXTENDED_AT_MOST_BEFORE_S = 3600.0, 56 * 86400.0


def paid_until_s(holding: Holding, extensions: Iterable[Extension]) -> float | None:
    """When a block ends by what is paid for; None: never.

    EC2 does not say whether it shows the new end before the payment: what is not paid for, or
    failed, begins no sooner than the block ends.
    """
    ends_at_s = holding.reservation.ends_at_s
    if ends_at_s is None:
        return None
    return min((ends_at_s, *(each.starts_at_s for each in unpaid(holding, extensions))))


def unpaid(holding: Holding, extensions: Iterable[Extension]) -> list[Extension]:
    """The block's extensions that are not paid for, the first to begin first.

    One that failed counts no more where a later one of the same end was paid for.
    """
    ours = [each for each in extensions if each.reservation_id == holding.reservation.id]
    paid = {e.starts_at_s for e in ours if e.state is ExtensionState.PAYMENT_SUCCEEDED}
    found = [each for each in ours if each.starts_at_s not in paid]
    return sorted(found, key=lambda each: (each.starts_at_s, each.ends_at_s, each.offer_id))


@frozen
class Gone:
    """An offer that EC2 sells no more, in its words."""

    said: str


@frozen
class Score:
    """How likely a request for spot instances is to be filled, from 1 to 10; None: not known.

    `why`: why it is not known. Source: EC2 API reference, GetSpotPlacementScores.
    """

    value: int | None
    why: str = ""


def days_sold(least_days: float) -> int:
    """The shortest duration that EC2 sells and that is no shorter; the longest one for more."""
    whole = max(-(-least_days // 1), 1)
    if whole > SINGLE_DAYS_MAX:
        whole = -(-whole // WEEK_DAYS) * WEEK_DAYS
    return int(min(whole, DAYS_MAX))
