"""Whether what is paid for in advance can be used, and is what a pool counts on."""

from collections.abc import Iterator

from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ultraservers import ULTRASERVERS, is_in_ultraserver
from tidegate.wire.parts import Parts
from tidegate.wire.problems import Problem


def _reservations(parts: Parts) -> Iterator[Problem]:
    """Every reservation has a pool that uses it, and is named once."""
    ids: dict[str, int] = {}
    offered = {
        offering
        for name, pool in parts.pools.items()
        for _, offering in pool.pool(name).offerings()
        if offering.market.is_prepaid
    }
    is_complete = len(parts.pools) == len(parts.all_pools)
    for index, each in parts.reservations.items():
        if each.id in ids:
            text = f"{each.id} is named by reservations[{ids[each.id]}] already"
            yield Problem(("reservations", index, "id"), text)
        ids.setdefault(each.id, index)
        if is_complete and each.reservation().offering not in offered:
            yield Problem(
                ("reservations", index),
                f"no pool has {each.instance_type} in {each.zone} with capacity type {each.kind}: "
                "it would be paid for and never used",
            )


def _prepaid_markets(parts: Parts) -> Iterator[Problem]:
    """A pool with a prepaid capacity type has a reservation to take nodes from. What is sold as
    UltraServers alone may wait for its first one: only a pool's jobs have `tidegate capacity` ask.
    """
    if not parts.is_every_reservation_sound:
        return
    held = {each.reservation().offering for each in parts.reservations.values()}
    for name, pool in parts.pools.items():
        offered = [offering for _, offering in pool.pool(name).offerings()]
        if any(is_in_ultraserver(each.name) for each in pool.selected):
            continue
        for index, market in enumerate(pool.capacity_types):
            is_in_group = market is Market.RESERVED and parts.reservation_groups
            if market.is_prepaid and not is_in_group and not any(_has(held, offered, market)):
                yield Problem(
                    ("pools", name, "capacity_types", index),
                    f"{market}, but no reservation is for its instance types and zones",
                )


def _has(held: set[Offering], offered: list[Offering], market: Market) -> Iterator[bool]:
    return (each in held for each in offered if each.market is market)


def _groups(parts: Parts) -> Iterator[Problem]:
    """Groups are of the file's region, and some pool takes nodes from them.

    Source: EC2 user guide, "Capacity Reservation groups"; Resource Groups are of one region.
    """
    ours: dict[str, int] = {}
    for index, arn in enumerate(parts.reservation_groups):
        _, _, _, region, account, group = [*arn.split(":", 5), *[""] * 6][:6]
        if parts.region and region and region != parts.region:
            text = f"is of {region}, but the cluster is in {parts.region}: EC2 launches nothing"
            yield Problem(("reservation_groups", index), f"{text} into it from here")
        if group in ours and account:
            text = f"has the name of reservation_groups[{ours[group]}]"
            yield Problem(("reservation_groups", index), f"{text}: give it another one")
        ours.setdefault(group, index)
    is_complete = len(parts.pools) == len(parts.all_pools)
    buys = any(Market.RESERVED in pool.capacity_types for pool in parts.pools.values())
    if parts.reservation_groups and is_complete and not buys:
        text = "no pool has the capacity type reserved: what is in them would never be used"
        yield Problem(("reservation_groups",), text)


def _ultraservers(parts: Parts) -> Iterator[Problem]:
    """What is sold as UltraServers is launched into their Capacity Blocks, and nowhere else."""
    block = Market.CAPACITY_BLOCK
    for name, pool in parts.pools.items():
        found = next((e.name for e in pool.selected if is_in_ultraserver(e.name)), "")
        for index, market in enumerate(pool.capacity_types if found else ()):
            if market is not block:
                text = (
                    f"{market}, but EC2 launches {found} into its UltraServer's Capacity Block"
                    f" alone: leave {block} there only"
                )
                yield Problem(("pools", name, "capacity_types", index), text)
    for index, each in parts.reservations.items():
        sold = [one.count for one in ULTRASERVERS if one.instance_type == each.instance_type]
        if sold and each.count > max(sold):
            text = (
                f"{each.count}, but an UltraServer has {max(sold)} instances of this type at most:"
                " each one is a reservation of its own"
            )
            yield Problem(("reservations", index, "count"), text)


RESERVATION_RULES = (_reservations, _prepaid_markets, _groups, _ultraservers)
