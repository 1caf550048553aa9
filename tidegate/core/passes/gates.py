"""Gates: which nodes that wait for a gang open, all of it in one command, and which are freed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tidegate.core.buy.bins import Bin, BinKind, Bins
from tidegate.core.fleet.drains import is_at_gate
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.resume import gang_of
from tidegate.core.model.drain_reason import DrainCode, DrainReason, code_of
from tidegate.core.model.orders import OrderKind, PendingOrder
from tidegate.core.model.plan import Action
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck
from tidegate.core.passes.orders import order
from tidegate.core.passes.queue import Gang
from tidegate.core.passes.resume import ending_runs, kept_by_slurm, waiting_for_nodes


def open_gangs(
    snapshot: Snapshot, fleet: Fleet, bins: Bins, gangs: Sequence[Gang], known: Mapping[str, Stuck]
) -> Iterator[Action]:
    """Undrain the members of each complete gang in one command; free those of gone gangs.

    A gang that lost nodes keeps its good ones also while nothing can be bought, until their time
    is over.
    """
    gated = _shut(snapshot, bins, gangs)
    if not gated:
        return
    waiting = _by_key(gang for gang in gangs if gang.is_complete)
    ready = _by_key(startable(snapshot, fleet, gangs))
    ending, resuming = ending_runs(snapshot), waiting_for_nodes(snapshot, fleet, known)
    kept, by_slurm = _kept(snapshot), kept_by_slurm(snapshot)
    running = _running(snapshot)
    for key, held in sorted(gated.items()):
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


def _shut(snapshot: Snapshot, bins: Bins, gangs: Iterable[Gang]) -> dict[str, list[Bin]]:
    """The nodes that wait for each gang: its own, and those at the gate of one that has begun
    elsewhere, which another holds now.
    """
    at_gates = {node.name for node in snapshot.heard.reading.nodes if is_at_gate(node)}
    found = {key: list(held) for key, held in bins.gated()}
    for gang in gangs:
        held = (each for part in gang.parts for each in part.held) if gang.is_complete else ()
        for each in held:
            if each.name in at_gates and not each.gated_for:
                found.setdefault(gang.key, []).append(each)
    return found


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
    return {node.name for node in shut if node.state.is_silent}


def _open(snapshot: Snapshot, names: Sequence[str], why: DrainReason) -> Iterator[Action]:
    """One command for all that share a drain reason; gates have none and go with any."""
    nodes = {node.name: node for node in snapshot.heard.reading.nodes}
    reasons = sorted({nodes[name].reason for name in names} - {""})
    for reason in reasons or [""] if names else []:
        with_gates = ("", reason) if reason in ("", *reasons[:1]) else (reason,)
        chosen = tuple(name for name in names if nodes[name].reason in with_gates)
        text, gang = reason or why, why.subject if why.code is DrainCode.COMPLETE else ""
        said = why.sentence
        yield order(OrderKind.UNDRAIN, chosen, text, only_if=("DRAIN",), why=said, opens_for=gang)


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
