"""What a cluster file has paid for in advance, as the sandbox plays it."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from local.blocks import LocalBlocks
from tidegate.adapters.capacity_blocks import BLOCK_TYPE, LINUX
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.ec2 import Market

# So that one of a day has more than its last half hour left, in which EC2 ends instances.
LEAST = timedelta(days=2)


def begun(given: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """One that has not begun yet, or is over, has begun today, and lasts as long."""
    starts_at, ends_at = _moment(given["starts_at"]), given.get("ends_at")
    if starts_at <= now and (ends_at is None or now < _moment(ends_at)):
        return dict(given)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    made = dict(given) | {"starts_at": today.isoformat()}
    if ends_at is not None:
        made["ends_at"] = (today + max(_moment(ends_at) - starts_at, LEAST)).isoformat()
    return made


def told(played: Iterable[Mapping[str, Any]], given: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """What the first lines say of them."""
    for each, was in zip(played, given, strict=True):
        moved = "" if each["starts_at"] == was["starts_at"] else ", as if it had begun today"
        what = f"{each['count']} x {each['instance_type']} in {each['zone']}"
        yield f"Paid for: {each['id']} ({each['kind']}), {what}{moved}"


def own(blocks: LocalBlocks, reservations: Iterable[Reservation]) -> None:
    """The local EC2 has them from now on."""
    blocks.others.extend(_shown(each) for each in reservations)


def _shown(each: Reservation) -> dict[str, Any]:
    """In EC2's words. Source: EC2 API reference, CapacityReservation."""
    is_targeted = each.is_targeted or each.market.is_named
    began = datetime.fromtimestamp(each.starts_at_s, UTC)
    ends = None if each.ends_at_s is None else datetime.fromtimestamp(each.ends_at_s, UTC)
    return {
        "CapacityReservationId": each.id,
        "InstanceType": each.instance_type,
        "InstancePlatform": LINUX,
        "AvailabilityZone": each.zone,
        "Tenancy": "default",
        "TotalInstanceCount": each.count,
        "State": "active",
        "StartDate": began,
        "CreateDate": began,
        "EndDateType": "limited" if ends else "unlimited",
        "InstanceMatchCriteria": "targeted" if is_targeted else "open",
        "ReservationType": BLOCK_TYPE if each.market is Market.CAPACITY_BLOCK else "default",
        **({"EndDate": ends} if ends else {}),
        **({"Interruptible": True} if each.market is Market.INTERRUPTIBLE else {}),
    }


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
