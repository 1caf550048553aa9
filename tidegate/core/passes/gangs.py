"""Gangs: all nodes or none, held back from smaller jobs until they can open at once.

Nodes bought for a gang join drained. Nodes that were open already are drained while the
others boot: what Slurm keeps as their drain reason is all that has to be remembered.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from tidegate.core.buy.bins import Bin, BinKind, Bins, gang_members
from tidegate.core.buy.purchase import Purchase
from tidegate.core.demand.demand import Need
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.resume import gang_of, kept_for
from tidegate.core.model.drain_reason import DrainCode, DrainReason, code_of
from tidegate.core.model.ec2 import Market
from tidegate.core.model.orders import OrderKind, PendingOrder
from tidegate.core.model.plan import Action
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck
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
from tidegate.core.passes.resume import ending_runs, waiting_for_nodes
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
    part.hold(gang_members(room.bins.for_gang(need), need, within, count=part.missing))


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
        bought = purchase.builder.buy_gang(whole, lacks, place) if lacks else []
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
    by_slurm = _kept_by_slurm(snapshot)
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
    """Start no other job on open nodes that the gang counts on while the rest boots."""
    now_s = snapshot.now_s
    members = {each.member.instance_id: each.member for each in fleet.judged}
    names = tuple(
        sorted(
            each.name
            for each in existing
            if not each.gated_for and not members[each.name].has_order(OrderKind.DRAIN, now_s)
        )
    )
    if names:
        until_s = now_s + snapshot.cluster.timings.given_up_s
        yield order(OrderKind.DRAIN, names, kept_for(gang.key, until_s), only_if=("IDLE",))


def give_back(bins: Bins, gang: Gang) -> None:
    """Open nodes that the gang held take other jobs again."""
    for part in gang.parts:
        part.give_back(bins)


def open_gangs(
    snapshot: Snapshot, fleet: Fleet, bins: Bins, gangs: Sequence[Gang], known: Mapping[str, Stuck]
) -> Iterator[Action]:
    """Undrain the members of each complete gang in one command; free those of gone gangs.

    A gang that lost nodes keeps its good ones also while nothing can be bought, until their time
    is over.
    """
    gated = list(bins.gated())
    if not gated:
        return
    waiting = _by_key(gang for gang in gangs if gang.is_complete)
    ready = _by_key(startable(snapshot, fleet, gangs))
    ending, resuming = ending_runs(snapshot), waiting_for_nodes(snapshot, fleet, known)
    kept, by_slurm = _kept(snapshot), _kept_by_slurm(snapshot)
    running = _running(snapshot)
    for key, held in gated:
        own = waiting.get(key, ())
        shut = [each for each in held if each.kind is BinKind.EXISTING]
        if own or key in resuming:  # its run is to end first
            shut = [each for each in shut if (key, each.name) not in running]
        if key in by_slurm:
            said = f"Slurm itself keeps it for job {key}"
            names = tuple(sorted(each.name for each in shut if each.name in kept))
            yield from _open(snapshot, names, DrainReason(DrainCode.FREED, said, key))
        if not own and key in ending:
            continue
        if key in by_slurm:
            shut = [each for each in shut if each.name not in kept]
        elif not own and key in resuming:
            shut = [each for each in shut if each.name not in kept or _is_of_no_use(gangs, each)]
        names, why = _to_open(own, ready.get(key, ()), key, shut)
        if not _is_opening(snapshot, names):
            yield from _open(snapshot, names, why)


def startable(snapshot: Snapshot, fleet: Fleet, gangs: Iterable[Gang]) -> list[Gang]:
    """Complete gangs that Slurm starts once those of their nodes that are shut are open: before
    that any one which opens would be a lesser job's.
    """
    there = [gang for gang in gangs if gang.is_complete and gang.is_there]
    early, silent = _too_early(snapshot), _silent(snapshot)
    return [
        gang
        for gang in there
        if gang.key not in early
        and silent.isdisjoint(gang.held_names)
        and not _is_closing(snapshot, fleet, gang)
    ]


def _by_key(gangs: Iterable[Gang]) -> dict[str, list[Gang]]:
    """The tasks of an array under one key."""
    found: dict[str, list[Gang]] = {}
    for gang in gangs:
        found.setdefault(gang.key, []).append(gang)
    return found


def _too_early(snapshot: Snapshot) -> set[str]:
    """Gangs that Slurm would not start yet, and another job would take the nodes: the run before
    has not ended, or Slurm still keeps the job from the next one.
    """
    jobs = snapshot.heard.reading.jobs
    return {gang_of(j) for j in jobs if j.is_running or j.reason.startswith("BeginTime")}


def _is_of_no_use(gangs: Iterable[Gang], kept: Bin) -> bool:
    """Its gang would not start there any more: it asks something else by now, like no spot."""
    needs = [p.need for g in gangs if g.key == kept.gated_for for p in g.parts]
    return bool(needs) and not any(kept.holds(need) for need in needs)


def _running(snapshot: Snapshot) -> set[tuple[str, str]]:
    """Gangs, each with a node on which its run has not ended: no room is there for its next one."""
    jobs = snapshot.heard.reading.jobs
    return {(gang_of(job), name) for job in jobs if not job.is_pending for name in job.node_names}


def _kept(snapshot: Snapshot) -> set[str]:
    """Nodes that are drained for the rest of a gang, and not at a gate since they joined."""
    nodes = snapshot.heard.reading.nodes
    return {node.name for node in nodes if code_of(node.reason) is DrainCode.KEPT}


def _silent(snapshot: Snapshot) -> set[str]:
    """Drained nodes, at a gate or kept, that do not answer: Slurm would not start the gang there,
    and would give the others to whoever waits. An open one may do so for a moment.
    """
    shut = (node for node in snapshot.heard.reading.nodes if node.state.is_drain)
    return {node.name for node in shut if "NOT_RESPONDING" in node.state.words}


def _kept_by_slurm(snapshot: Snapshot) -> set[str]:
    """The gangs of which Slurm keeps the good nodes (`--requeue=expedite`)."""
    return {gang_of(job) for job in snapshot.heard.reading.jobs if job.is_expediting}


def _open(snapshot: Snapshot, names: Sequence[str], why: DrainReason) -> Iterator[Action]:
    """One command for all that share a drain reason; gates have none and go with any."""
    nodes = {node.name: node for node in snapshot.heard.reading.nodes}
    reasons = sorted({nodes[name].reason for name in names} - {""})
    for reason in reasons or [""] if names else []:
        with_gates = ("", reason) if reason in ("", *reasons[:1]) else (reason,)
        chosen = tuple(name for name in names if nodes[name].reason in with_gates)
        text, gang = reason or why, why.subject if why.code is DrainCode.COMPLETE else ""
        said = why.sentence
        yield order(OrderKind.UNDRAIN, chosen, text, only_if=("DRAIN",), why=said, for_gang=gang)


def _is_closing(snapshot: Snapshot, fleet: Fleet, gang: Gang) -> bool:
    """A drain of one of its open nodes is on its way: the others would open without it."""
    opened = {each.name for part in gang.parts for each in part.held if not each.gated_for}
    return any(
        each.member.instance_id in opened and each.member.has_order(OrderKind.DRAIN, snapshot.now_s)
        for each in (fleet.judged if opened else ())
    )


def _to_open(
    gangs: Sequence[Gang], there: Sequence[Gang], key: str, gated: Sequence[Bin]
) -> tuple[tuple[str, ...], DrainReason]:
    """Which of the gated nodes open now, and why. `gangs`: the one, or the tasks of an array;
    `there`: those of which all nodes are.

    Nodes of two tasks that both lack one are not enough for either: they stay shut.
    """
    names = tuple(sorted(b.name for b in gated))
    ready = {name for gang in there for name in gang.held_names}
    opening = tuple(name for name in names if name in ready)
    if opening:
        said = f"all {gangs[0].nodes} nodes of job {key} are there"
        return opening, DrainReason(DrainCode.COMPLETE, said, key)
    used = {name for gang in gangs for name in gang.counts_on}
    freed = DrainReason(DrainCode.FREED, f"job {key} no longer waits for this node", key)
    return tuple(n for n in names if n not in used), freed


def _is_opening(snapshot: Snapshot, names: Sequence[str]) -> bool:
    """An undrain of one of them is on its way: neither answered nor expired."""
    records = {record.instance_id: record for record in snapshot.nodes}
    orders = [records[name].order for name in names if name in records]
    return any(o and o.kind is OrderKind.UNDRAIN and _is_open(snapshot, o) for o in orders)


def _is_open(snapshot: Snapshot, undrain: PendingOrder) -> bool:
    answered = any(r.order_id == undrain.order_id for r in snapshot.heard.results)
    return not answered and snapshot.now_s <= undrain.not_after_s
