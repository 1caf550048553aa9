"""Gangs: all nodes or none, held back from smaller jobs until they can open at once.

Nodes bought for a gang join drained. Nodes that were open already are drained while the
others boot: what Slurm keeps as their drain reason is all that has to be remembered.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from tidegate.core.buy.bins import Bin, BinKind, Bins, gang_members
from tidegate.core.buy.purchase import Purchase
from tidegate.core.demand.demand import Need
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.resume import kept_for
from tidegate.core.model.ec2 import Market
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import told
from tidegate.core.passes.kinds import (
    complete_kinds,
    hold_kinds,
    lacks_named,
    place_of,
    reservations_of,
)
from tidegate.core.passes.orders import order
from tidegate.core.passes.queue import Gang, Part, Queue
from tidegate.core.passes.resume import kept_by_slurm
from tidegate.core.passes.room import Room


def hold(room: Room, needs: Iterable[Need]) -> Gang:
    """Note which existing nodes a gang will count on; nobody of lower priority gets them."""
    gang = Gang([Part(need) for need in needs])
    if gang.is_of_kinds:
        hold_kinds(room.fleet, room.bins, gang)
        return gang
    _hold_parts(room, gang)
    return gang


def _hold_parts(room: Room, gang: Gang) -> None:
    """Who has the fewest nodes to choose from chooses first, or else whose nodes cost the most."""
    _hold_in_order(room, gang, _fewest_choices)
    is_short = any(part.missing for part in gang.parts)
    if is_short and len(gang.parts) > 1 and not _is_bound(gang):
        give_back(room.bins, gang)
        _hold_in_order(room, gang, _dearest)


def _is_bound(gang: Gang) -> bool:
    """Some of it runs on, and the rest has to be beside that."""
    return any(part.need.beside for part in gang.parts)


def _hold_in_order(
    room: Room, gang: Gang, first: Callable[[Room, Part], tuple[float, ...]]
) -> None:
    for part in sorted(gang.parts, key=partial(first, room)) if gang.parts[1:] else gang.parts:
        need, within = part.need, place_of(room.fleet, part.need.beside)
        held = gang_members(room.bins.for_gang(need), need, within, _wanted_by(gang))
        if need.beside and len(held) < need.nodes:
            part.need, held = _moved(room, need) or (need, held)
        part.hold(held)


def _wanted_by(gang: Gang) -> Callable[[Bin], int]:
    """How many components that lack nodes yet a node would do for: one must not take the only node
    of another.

    Whether it is closed to small jobs does not count: what the gang keeps never is, and would come
    after what it does not keep, in each plan anew.
    """
    needs = [part.need for part in gang.parts if part.missing]
    return lambda each: sum(_would_do(each, need) for need in needs) if len(needs) > 1 else 1


def _would_do(each: Bin, need: Need) -> bool:
    return each.holds(need) and not (each.is_lossy and each.is_lossy(need))


def _fewest_choices(room: Room, part: Part) -> tuple[float, ...]:
    """Components for which few nodes would do choose before those for which many would."""
    would_do = sum(
        each.is_empty and each.takes(part.need) for each in room.bins.for_gang(part.need)
    )
    return would_do - part.need.nodes, part.need.nodes


def _dearest(room: Room, part: Part) -> tuple[float, ...]:
    """Where not all are there those whose nodes cost the most choose first: what was bought for a
    large one may do for a small one too, for which a new one is cheaper.
    """
    sold = filter(None, (room.steering.own_node(part.need, market) for market in Market))
    usd_per_hour = min((each.usd_per_hour for each in sold), default=float("inf"))
    return -usd_per_hour, *_fewest_choices(room, part)


def _hold_again(room: Room, gang: Gang) -> None:
    """Choose anew among the nodes that are there: gangs before it in the queue may have held the
    better place for it in vain, or a node that was opened for it a moment ago.
    """
    is_short = any(part.missing for part in gang.parts)
    left = () if gang.is_there else room.bins.opened(gang.key)
    if _is_bound(gang) or not (is_short or any(each.is_empty for each in left)):
        return
    give_back(room.bins, gang)
    _hold_parts(room, gang)


def _hold_more(room: Room, part: Part) -> None:
    """Take also what gangs before it in the queue have held in vain."""
    need, within = part.need, part.place or place_of(room.fleet, part.need.beside)
    together = {each.together(need) for each in part.held}
    bins = (b for b in room.bins.for_gang(need) if not together or b.together(need) in together)
    part.hold(gang_members(bins, need, within, count=part.missing))


def _moved(room: Room, need: Need) -> tuple[Need, list[Bin]] | None:
    """The whole gang, where some of it is on its way to another place; None when none is."""
    whole = replace(need, nodes=need.nodes + len(need.beside), beside=())
    beside = place_of(room.fleet, need.beside)
    gated = (
        each
        for each in room.bins.for_gang(need)
        if each.gated_for and (each.pool, each.offering.zone) != beside
    )
    held = gang_members(gated, whole)
    return (whole, held) if held else None


def complete(room: Room, purchase: Purchase, queue: Queue, gang: Gang) -> bool:
    """Buy what a gang lacks; otherwise give back what it held."""
    before = purchase.builder.num_launches
    if gang.is_of_kinds:
        part = complete_kinds(room.fleet, room.bins, purchase, gang)
    else:
        _hold_again(room, gang)
        part = _first_incomplete(room, purchase, gang)
    if part:
        named = lacks_named(part)
        why_nots = (named,) if named else purchase.why_not(part.need, max(part.missing, 1))
        purchase.builder.undo(before)
        give_back(room.bins, gang)
        for job_id in dict.fromkeys(each.need.job_id for each in gang.parts):
            queue.refuse(job_id, why_nots, told(why_nots))
        return False
    gang.is_complete = True
    _note_served(queue, gang)
    return True


def _first_incomplete(room: Room, purchase: Purchase, gang: Gang) -> Part | None:
    """Complete part by part; the first that cannot be, None: all are."""
    return next((part for part in gang.parts if not _complete(room, purchase, part)), None)


def _note_served(queue: Queue, gang: Gang) -> None:
    is_waiting = not gang.is_there
    for part in gang.parts:
        reason = "nodes that fit are up: Slurm will start it"
        if part.bought:
            reason = "nodes are being bought for it"
        elif is_waiting:
            reason = "nodes are booting for it"
        names = (*(each.name for each in part.held), *part.bought)
        queue.note_served(part.need.job_id, names, reason)


def _complete(room: Room, purchase: Purchase, part: Part) -> bool:
    """All nodes of one need: those that it holds and new ones beside them, or all elsewhere."""
    need = part.need
    if part.missing:
        _hold_more(room, part)
    if lacks_named(part):
        return False
    if not part.missing:
        return True
    if purchase.stopped or purchase.barred(need.payers):
        return False
    within = part.place or place_of(room.fleet, need.beside)
    near = reservations_of(room.fleet, part)
    part.bought = purchase.builder.buy_gang(need, part.missing, within, near)
    if part.bought or within is None or (need.where and need.where.required):
        return bool(part.bought)
    return _goes_elsewhere(room.bins, purchase, part, within)


def _goes_elsewhere(bins: Bins, purchase: Purchase, part: Part, not_here: tuple[str, str]) -> bool:
    """The whole gang in another place, beside what it has there from an earlier attempt; that
    may be all of it.
    """
    need = part.need
    whole = replace(need, nodes=need.nodes + len(need.beside), beside=())
    own = (each for each in bins.for_gang(need) if each.gated_for and each.is_empty)
    places = {(each.pool, each.offering.zone) for each in own} - {not_here}
    for place in (*sorted(places), None):
        held = gang_members(bins.for_gang(whole), whole, place) if place else []
        lacks = whole.nodes - len(held)
        near = frozenset(each.ultraserver for each in held) - {""}
        bought = purchase.builder.buy_gang(whole, lacks, place, near) if lacks else []
        if bought or not lacks:
            part.give_back(bins)
            part.need, part.bought = whole, bought
            part.hold(held)
            return True
    return False


def awaited(snapshot: Snapshot, gangs: Iterable[Gang]) -> list[Gang]:
    """Complete gangs of which some nodes are still to come, so that the others wait for these.

    Not those that Slurm itself keeps: the job could not start on them either.
    """
    by_slurm = kept_by_slurm(snapshot)
    complete = (gang for gang in gangs if gang.is_complete)
    return [gang for gang in complete if not gang.is_there and gang.key not in by_slurm]


def keep_for_gangs(snapshot: Snapshot, fleet: Fleet, waiting: Iterable[Gang]) -> Iterator[Action]:
    """Close open nodes that complete gangs count on while the rest of each is on its way."""
    for gang in waiting:
        held = [each for part in gang.parts for each in part.held]
        yield from _keep(snapshot, fleet, gang, [b for b in held if b.kind is BinKind.EXISTING])


def _keep(
    snapshot: Snapshot, fleet: Fleet, gang: Gang, existing: Sequence[Bin]
) -> Iterator[Action]:
    """Start no other job on open nodes that the gang counts on while the rest boots. Not on what
    was opened a moment ago since no gang had a use for it: one that counts on it open may not do
    so once it is closed, and so on in turn.
    """
    now_s = snapshot.now_s
    members = {each.member.instance_id: each.member for each in fleet.judged}
    names = tuple(
        sorted(
            each.name
            for each in existing
            if not each.gated_for
            and not members[each.name].has_order(OrderKind.DRAIN, now_s)
            and not _was_freed(members[each.name], now_s)
        )
    )
    if names:
        until_s = now_s + snapshot.cluster.timings.given_up_s
        yield order(OrderKind.DRAIN, names, kept_for(gang.key, until_s), only_if=("IDLE",))


def _was_freed(member: Member, now_s: float) -> bool:
    return member.was_told(OrderKind.UNDRAIN, now_s) and not member.opened_for(now_s)


def give_back(bins: Bins, gang: Gang) -> None:
    """Open nodes that the gang held take other jobs again."""
    for part in gang.parts:
        part.give_back(bins)
