"""Jobs that are moved from on demand to spot while they run: those that say that they may be.

First their new nodes are there, closed for others. Then the old ones are closed, which Slurm keeps
as their drain reason, so that the next run does not begin there. Only then is a job told to save
its work, and requeued. A planner may die between any two of these steps: the next one goes on, or
opens again what is no longer to be left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tidegate.core.buy.purchase import Purchase
from tidegate.core.demand.deadline import MOVE_KEY
from tidegate.core.demand.demand import natural
from tidegate.core.fleet.judge import Judged
from tidegate.core.interruption.save import moved
from tidegate.core.model.budgets import DisruptionReason
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Action, Send
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.gangs import complete, hold
from tidegate.core.passes.moving import (
    SEEN_S,
    Move,
    Moving,
    closed_until_s,
    is_closed_for,
    is_told,
)
from tidegate.core.passes.orders import order
from tidegate.core.passes.queue import Gang, Queue
from tidegate.core.passes.room import Room

# States of a node on which a job runs.
BUSY = ("ALLOCATED", "MIXED")


@dataclass(slots=True)
class Moves:
    """What is done about jobs that go. `gangs`: their next runs, whose nodes nobody else gets."""

    gangs: list[Gang] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)


def move_jobs(snapshot: Snapshot, room: Room, purchase: Purchase) -> Moves:
    """Move what saves more on spot than the move costs; after everybody who waits was served."""
    found = Moves()
    jobs = [
        job
        for job in snapshot.heard.reading.jobs
        if MOVE_KEY in job.comment and job.is_running and job.node_names
    ]
    if not jobs or not snapshot.wanted.is_up:
        return found
    moving = Moving(snapshot, room.fleet, purchase.offer_groups)
    for job in sorted(jobs, key=lambda job: natural(job.job_id)):
        move = moving.about(job)
        gang = None if isinstance(move, str) else _prepared(room, purchase, move)
        if gang is None or isinstance(move, str):
            found.actions += _reopened(snapshot, room, job)
            continue
        found.gangs.append(gang)
        if _is_ready(snapshot, gang):
            found.actions += _step(snapshot, move)
        else:
            found.actions += _reopened(snapshot, room, job)
    return found


def _prepared(room: Room, purchase: Purchase, move: Move) -> Gang | None:
    """Its next run with all its nodes, if budgets let the old ones go; None: not now."""
    allowance, members = room.fleet.allowance, [each.member for each in move.nodes]
    taken = allowance.take_all(members, DisruptionReason.CONSOLIDATABLE)
    if taken is None:
        return None
    gang = hold(room, [move.need])
    # Its verdict is nobody's: the job runs, and stays where it is as long as nothing is there.
    if complete(room, purchase, Queue(), gang):
        return gang
    allowance.give_back(taken)  # else an idle node would wait for one that stays
    return None


def _is_ready(snapshot: Snapshot, gang: Gang) -> bool:
    """All nodes of its next run are up, closed for it, and answer."""
    (part,) = gang.parts
    if not gang.is_there or any(each.gated_for != gang.key for each in part.held):
        return False
    nodes = {node.name: node for node in snapshot.heard.reading.nodes}
    return not any(nodes[each.name].state.is_silent for each in part.held)


def _step(snapshot: Snapshot, move: Move) -> Iterator[Action]:
    """Close the old nodes; once they are, save and requeue the job."""
    job = move.job
    why = f"job {job.job_id} moves to spot, which saves {move.saves_usd:.2f} USD until its end"
    if all(is_closed_for(each, job) for each in move.nodes):
        yield from (Send(each, why) for each in _told(snapshot, move, why))
        return
    names = tuple(
        each.member.instance_id
        for each in move.nodes
        if not is_closed_for(each, job)
        and not each.member.has_order(OrderKind.DRAIN, snapshot.now_s)
    )
    if names:
        due_s = snapshot.now_s + SEEN_S + move.asked.grace_s
        reason = DrainReason(DrainCode.CONSOLIDATABLE, why, job.job_id, due_s)
        yield order(OrderKind.DRAIN, names, reason, only_if=BUSY, is_budgeted=True)


def _told(snapshot: Snapshot, move: Move, why: str) -> tuple[Order, ...]:
    """What the job is told: once for each time until which its old nodes are closed, as they say.
    It is told again only when the head has not said that it was, or it runs on long after.
    """
    job, now_s, timings = move.job, snapshot.now_s, snapshot.cluster.timings
    closed_s = max(closed_until_s(each) for each in move.nodes)

    def told(due_s: float) -> tuple[Order, ...]:
        signal = move.asked.signal
        return moved(job, signal, due_s, now_s, timings=timings, why=why)

    if is_told(move, snapshot):
        return told(now_s)[1:] if now_s > closed_s + timings.order_ttl_s else ()
    return told(max(closed_s, now_s + move.asked.grace_s))


def _reopened(snapshot: Snapshot, room: Room, job: Job) -> Iterator[Action]:
    """Open the nodes again that a job was to leave and does not."""
    closed = [each for each in room.fleet.judged if _is_left_in_vain(each, job, snapshot)]
    for reason in sorted({each.member.node.reason for each in closed if each.member.node}):
        names = _of_reason(closed, reason)
        why = f"job {job.job_id} stays where it is"
        yield order(OrderKind.UNDRAIN, names, reason, only_if=("DRAIN",), why=why)


def _of_reason(closed: Sequence[Judged], reason: str) -> tuple[str, ...]:
    nodes = (each.member.node for each in closed)
    return tuple(sorted(node.name for node in nodes if node and node.reason == reason))


def _is_left_in_vain(judged: Judged, job: Job, snapshot: Snapshot) -> bool:
    member = judged.member
    return (
        judged.is_leaving
        and job in member.jobs
        and is_closed_for(judged, job)
        and not member.has_order(OrderKind.UNDRAIN, snapshot.now_s)
    )
