"""Jobs that count several kinds of nodes (`[a*2&b*4]`): one gang, all of it in one zone.

Slurm 22.05 gives each kind nodes of its own, in the order in which they are written.
"""

from collections.abc import Sequence
from math import inf

from tidegate.core.buy.bins import Bin, Bins, Place, gang_members
from tidegate.core.buy.purchase import Purchase
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.offers.offers import OfferGroups
from tidegate.core.passes.queue import Gang, Part

type Members = list[list[Bin]]
"""For each part of a gang the nodes that it may count on."""


def place_of(fleet: Fleet, names: Sequence[str]) -> Place | None:
    """Pool and zone of the first of these nodes; None when none is known."""
    wanted = set(names)
    for each in fleet.judged if wanted else ():
        if each.member.instance_id in wanted:  # also one that takes no job any more
            return each.member.pool, each.member.offering.zone
    return None


def reservations_of(fleet: Fleet, part: Part) -> frozenset[str]:
    """Those that EC2 shows nodes of the part to be in, and the UltraServers of those it holds."""
    wanted = {each.name for each in part.held if each.offering.market.is_prepaid}
    wanted.update(part.need.beside)
    members = (each.member for each in fleet.judged) if wanted else ()
    found = (each.instance for each in members if each.instance_id in wanted)
    named = {each.capacity_reservation_id for each in found if each}
    return frozenset(named.union(each.ultraserver for each in part.held)) - {""}


def lacks_named(part: Part) -> WhyNot | None:
    """Why nothing is bought beside what it holds: it waits for nodes that exist. None: it does not.

    As many others do not help where a node that it names is not among them. Of a job's kinds any
    may take a node that the job names.
    """
    where = part.need.where
    if where is None:
        return None
    names = {each.name for each in part.held}.union(part.need.beside)
    is_short = bool(where.required - names) and not part.need.is_of_kinds
    is_waiting = bool(part.missing) if where.is_bound else is_short
    return WhyNot(Why.NODES, where.why) if is_waiting else None


def hold_kinds(fleet: Fleet, bins: Bins, gang: Gang) -> None:
    """Count on the existing nodes of one zone: where most stand at its gate, or are there."""
    beside = place_of(fleet, gang.parts[0].need.beside)
    free = list(bins.for_gang(gang.parts[0].need))
    zones = [beside[1]] if beside else sorted({each.offering.zone for each in free})
    _hold(gang, max((_members(gang, free, zone) for zone in zones), key=_worth, default=[]))


def complete_kinds(fleet: Fleet, bins: Bins, purchase: Purchase, gang: Gang) -> Part | None:
    """Buy what the gang lacks, all in one zone; the part that cannot be completed, if one."""
    if all(not part.missing for part in gang.parts):
        return None
    if purchase.stopped:
        return next(part for part in gang.parts if part.missing)
    first: Part | None = None
    for zone in _zones(fleet, purchase.offer_groups, gang):
        before = purchase.builder.num_launches
        for part in gang.parts:
            part.give_back(bins)
        _hold(gang, _members(gang, list(bins.for_gang(gang.parts[0].need)), zone))
        incomplete = next(
            (part for part in gang.parts if not _buy(fleet, purchase, part, zone)), None
        )
        if incomplete is None:
            return None
        purchase.builder.undo(before)
        for part in gang.parts:
            part.bought = []
        first = first or incomplete
    return first or gang.parts[0]


def _buy(fleet: Fleet, purchase: Purchase, part: Part, zone: str) -> bool:
    if part.missing and lacks_named(part):
        return False
    if part.missing:
        place, near = part.place or ("", zone), reservations_of(fleet, part)
        part.bought = purchase.builder.buy_gang(part.need, part.missing, place, near)
    return not part.missing or bool(part.bought)


def _hold(gang: Gang, members: Members) -> None:
    for part, bins in zip(gang.parts, members, strict=False):
        part.hold(bins)


def _members(gang: Gang, bins: Sequence[Bin], zone: str) -> Members:
    """The nodes of one zone that each part may count on; none of them twice.

    A node that would do for several parts is left to the one that finds no other.
    """
    here = [each for each in bins if each.offering.zone == zone and each.is_empty]
    wanted_by = {each: sum(each.takes(part.need) for part in gang.parts) for each in here}
    found: Members = []
    for part in gang.parts:
        taken = {each for members in found for each in members}
        free = (each for each in here if each not in taken)
        found.append(gang_members(free, part.need, wanted_by=wanted_by.__getitem__))
    return found


def _worth(members: Members) -> tuple[int, int]:
    held = [each for of_part in members for each in of_part]
    return sum(bool(each.gated_for) for each in held), len(held)


def _zones(fleet: Fleet, offer_groups: OfferGroups, gang: Gang) -> list[str]:
    """Where to try: beside what it has; else where it holds nodes, then the cheapest."""
    beside = place_of(fleet, gang.parts[0].need.beside)
    if beside:
        return [beside[1]]
    held = {part.place[1] for part in gang.parts if part.place}
    costs = [_by_zone(offer_groups, part) for part in gang.parts]
    zones = held.union(*costs)
    total = {zone: sum(cost.get(zone, inf) for cost in costs) for zone in zones}
    return sorted(zones, key=lambda zone: (zone not in held, total[zone], zone))


def _by_zone(offer_groups: OfferGroups, part: Part) -> dict[str, float]:
    """What the nodes of one part cost in each zone, at the offering to be bought first."""
    found: dict[str, float] = {}
    for option in offer_groups.options(part.need):
        found.setdefault(option.offering.zone, option.cost_usd * part.need.nodes)
    return found
