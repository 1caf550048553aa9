"""Steering: new jobs fill nodes that will live, and leave alone nodes that should empty.

Weights are hints to Slurm: of the nodes that are open, it fills first the one where one more
job costs least. A weight refuses nothing, so a dear node on which jobs would start that belong
on cheaper ones is closed, drained with a reason of our own, and opened for a job that is worth
it. Nothing that runs is touched.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import log2

from tidegate.core.buy.bins import Bin, BinKind
from tidegate.core.buy.steering import Steering, outlasts_s
from tidegate.core.demand.demand import natural
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.node_price import marginal_usd_per_hour
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.ec2 import Market
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action, Send
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.cost import UNKNOWN_S
from tidegate.core.passes.gates import startable
from tidegate.core.passes.orders import ANY_STATE, Guard, order
from tidegate.core.passes.queue import Gang
from tidegate.core.passes.room import Room

# No job starts there until one comes that is worth it.
CLOSED = DrainReason(DrainCode.CLOSED, "kept for larger jobs")

# No agent tells of a weight that it has set before its next digest, and nobody remembers which were
# ordered: the looks that come with a digest order them, and not each one until the next digest.
WEIGH_WITHIN_S = 5.0

# A closed node opens again only where the loss is so much smaller: no to and fro.
REOPEN = 0.5


def steer(
    snapshot: Snapshot, room: Room, gangs: Sequence[Gang], decided: Iterable[Action]
) -> Iterator[Action]:
    """Close, open and weigh nodes after all that the plan has decided already."""
    fleet, steering = room.fleet, room.steering
    ordered = {n for a in decided if isinstance(a, Send) for n in a.order.names}
    steered = [
        each
        for each in fleet.judged
        if each.order is None
        and each.member.instance_id not in ordered
        and not _has_any_order(each.member, snapshot.now_s)
    ]
    num_open = sum(each.use is Use.CAPACITY for each in steered)
    if not steered or (num_open < 2 and not steering.is_mixed):
        return
    kept = _kept_pools(snapshot, fleet)
    if steering.is_mixed:
        bins = {b.name: b for b in room.bins.all if b.kind is not BinKind.FREEING}
        paired = [(e, b) for e in steered if (b := bins.get(e.member.instance_id))]
        starting = {id(each) for each in startable(snapshot, fleet, gangs)}
        waiting = [each for each in gangs if id(each) not in starting]
        yield from _open(steering, waiting, paired, kept)
        yield from _close(steering, gangs, paired, kept)
    if num_open > 1 and snapshot.digest_age_s <= WEIGH_WITHIN_S:
        yield from _weigh(snapshot, steering, gangs, steered, kept)


def _has_any_order(member: Member, now_s: float) -> bool:
    order = member.record.order if member.record else None
    return order is not None and member.has_order(order.kind, now_s)


def _kept_pools(snapshot: Snapshot, fleet: Fleet) -> set[str]:
    """Pools that have no more nodes than they keep anyway: a job costs nothing there."""
    counts = {pool.name: -pool.min_nodes - pool.headroom_nodes for pool in snapshot.cluster.pools}
    for each in fleet.judged:
        if each.use in (Use.CAPACITY, Use.GATED, Use.IN_FLIGHT) and each.member.pool in counts:
            counts[each.member.pool] += 1
    return {name for name, above in counts.items() if above <= 0}


type Pairs = Sequence[tuple[Judged, Bin]]


def _open(
    steering: Steering, gangs: Sequence[Gang], paired: Pairs, kept: Container[str]
) -> Iterator[Send]:
    """Undrain closed nodes that a job is worth, or that no job would keep at a loss any more; none
    of those that the `gangs` hold, or have from a run that ends, which cannot start yet.
    """
    held = {name for gang in gangs for name in gang.counts_on}
    gang_of = {need.job_id: need.gang for need in steering.needs}
    by_why: dict[tuple[str, str, str], list[str]] = {}
    for each, found in paired:
        node = each.member.node
        if node is None or not each.is_closed or found.name in held:
            continue
        job_id = ""
        if found.jobs and _may_start(steering, found):
            # A component of a heterogeneous job starts with all of it, by its leader's name.
            why, job_id = "a job is worth it", gang_of.get(found.jobs[0], found.jobs[0])
        elif found.pool in kept:
            why = f"pool {found.pool} keeps it in any case"
        elif each.member.offering.market is Market.RESERVED and found.is_empty:
            why = "a reservation pays for it now"
        elif found.is_empty or _may_lose(steering, found):
            continue
        else:
            why = "its jobs need it for long enough"
        by_why.setdefault((why, node.reason, job_id), []).append(found.name)
    for (why, reason, job_id), names in sorted(by_why.items()):
        guard = Guard(only_if=("DRAIN",))
        yield order(OrderKind.UNDRAIN, tuple(names), reason, why=why, opens_for=job_id, **guard)


def _may_start(steering: Steering, found: Bin) -> bool:
    """Not only when jobs there have ended: opened before, it would be closed again until then."""
    return found.name in steering.claimed or found.name not in steering.awaited


def _may_lose(steering: Steering, found: Bin) -> bool:
    return steering.lets_in(found) or steering.is_threatened(found, REOPEN)


def _close(
    steering: Steering, gangs: Iterable[Gang], paired: Pairs, kept: Container[str]
) -> Iterator[Send]:
    """Drain dear nodes before jobs start there that belong elsewhere, also while they boot."""
    there = {n for gang in gangs if gang.is_complete for n in gang.held_names}
    waiting = {need.gang for need in steering.needs}
    closing: list[str] = []
    booting: list[str] = []
    for each, found in paired:
        # Slurm takes some seconds to use what has opened, and another look may give the job for
        # which it did another node: both are there.
        is_used = found.name in steering.claimed or found.name in there
        is_used |= bool(found.gated_for) or found.opened_for in waiting
        if each.is_closed or is_used or found.pool in kept:
            continue
        if each.use is Use.IN_FLIGHT and (found.jobs or _joins_closed(each.member, steering)):
            continue
        if each.use in (Use.CAPACITY, Use.IN_FLIGHT) and steering.is_threatened(found):
            (closing if each.use is Use.CAPACITY else booting).append(found.name)
    if closing:
        yield order(OrderKind.DRAIN, tuple(closing), CLOSED, only_if=ANY_STATE)
    if booting:
        # No guard: such a drain lasts, and meets the node as it joins.
        yield order(OrderKind.DRAIN, tuple(booting), CLOSED)


def _joins_closed(member: Member, steering: Steering) -> bool:
    """Its drain lasts until it joins, though the answer was that Slurm does not know it yet. Asked
    again in each look, each answer would lead to the next look.
    """
    return member.was_told(OrderKind.DRAIN, steering.snapshot.now_s)


def _weigh(
    snapshot: Snapshot,
    steering: Steering,
    gangs: Iterable[Gang],
    steered: Sequence[Judged],
    kept: Container[str],
) -> Iterator[Send]:
    """Tell Slurm what one more job would cost on each open node, where that has changed."""
    kinds = steering.about
    count = sum(kind.count for kind in kinds)
    mean_s = sum(kind.total_s for kind in kinds) / count if count else UNKNOWN_S
    wanted: dict[str, int] = {}
    weights: dict[str, int] = {}
    for each in steered:
        node, member = each.member.node, each.member
        if each.use is Use.CAPACITY and node is not None and not each.is_closed:
            usd = 0.0 if member.pool in kept else marginal_usd_per_hour(snapshot, member)
            cost = usd * outlasts_s(mean_s, steering.lives_s(node.name))
            wanted[node.name], weights[node.name] = weight_of(cost), node.weight
    for gang in gangs:
        if gang.is_there and len(gang.parts) > 1 and not gang.is_of_kinds:
            _part_by_part(gang, wanted)
    if _is_in_order(wanted, weights):
        return
    by_weight: dict[int, list[str]] = {}
    for name, weight in wanted.items():
        if weight != weights[name]:
            by_weight.setdefault(weight, []).append(name)
    for weight, names in sorted(by_weight.items()):
        why = f"its weight follows what one more job would cost there ({weight})"
        yield order(OrderKind.WEIGHT, tuple(names), str(weight), why=why)


def _part_by_part(gang: Gang, wanted: dict[str, int]) -> None:
    """Make nodes of later components of a heterogeneous job heavier than those of earlier ones.

    Slurm's backfill gives each component in turn the lightest nodes that the ones before it have
    left, and starts none when the last finds none: a modest first component must not find the
    only nodes of a particular one lighter than its own. Source: `_het_job_start_now` in
    backfill.c.
    """
    if all(each.holds(part.need) for part in gang.parts for each in _held_before(gang)):
        return  # whoever takes which, the others find one
    highest = 0
    in_turn = sorted(gang.parts, key=lambda p: (-p.need.priority, natural(p.need.job_id)))
    for part in in_turn:
        names = [each.name for each in part.held if each.name in wanted]
        for name in names:
            wanted[name] = max(wanted[name], highest + 1)
        highest = max((wanted[name] for name in names), default=highest)


def _held_before(gang: Gang) -> list[Bin]:
    """The nodes of a gang as they were without it."""
    return [each for part in gang.parts for each in part.before]


def _is_in_order(wanted: Mapping[str, int], weights: Mapping[str, int]) -> bool:
    """Whether Slurm already takes each node before those that should come after it."""
    highest = -1
    for _, group in groupby(sorted(wanted, key=lambda name: wanted[name]), wanted.__getitem__):
        names = list(group)
        if min(weights[name] for name in names) <= highest:
            return False
        highest = max(weights[name] for name in names)
    return True


def weight_of(cost: float) -> int:
    """1 for what costs next to nothing, two more for each doubling: few numbers, few commands.

    `cost`: USD per hour times seconds.
    """
    return round(2 * log2(cost)) + 1 if cost > 1.0 else 1
