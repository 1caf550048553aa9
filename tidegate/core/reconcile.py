"""Three-way comparison of Slurm, EC2 and ledger, node by node: what each node is good for."""

from dataclasses import dataclass
from enum import Enum, auto

from tidegate.core.actions import (
    Action,
    Mark,
    OrderKind,
    OrderOutcome,
    Phase,
    Terminate,
)
from tidegate.core.members import Member
from tidegate.core.pool import Timings
from tidegate.core.snapshot import Snapshot

OUR_REASON = "tidegate"


class Use(Enum):
    """What the planner may do with a node."""

    CAPACITY = auto()  # registered and taking jobs
    GATED = auto()  # registered, drained until its gang is complete
    IN_FLIGHT = auto()  # bought, not yet registered
    LEAVING = auto()  # on its way out: no new job
    LOST = auto()  # reclaimed or dead: its jobs need another place
    NONE = auto()  # nothing to count


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdict on one member; `order` is what the head should do with the node, if any."""

    member: Member
    use: Use
    actions: tuple[Action, ...] = ()
    order: OrderKind | None = None
    reason: str = ""


def judge(member: Member, snapshot: Snapshot, in_doubt: frozenset[str]) -> Judged:
    """What one member is good for now. `in_doubt`: launches whose result is not recorded."""
    settled = _settled(member)
    judged = _judge(member, snapshot, in_doubt)
    return Judged(
        member, judged.use, (*settled, *judged.actions), order=judged.order, reason=judged.reason
    )


def _settled(member: Member) -> tuple[Action, ...]:
    """Write down what became of the order that was on its way to this node."""
    record, result, node = member.record, member.result, member.node
    if record is None:
        return ()
    marks: list[Action] = []
    if result is not None:
        is_released = (result.kind, result.outcome) == (OrderKind.RELEASE, OrderOutcome.DONE)
        phase = max(record.phase, Phase.RELEASED if is_released else record.phase)
        said = f"{result.kind} {result.outcome}" + (f": {result.detail}" if result.detail else "")
        marks.append(Mark(member.instance_id, phase, said, is_order_settled=True))
    if record.gated_for and node is not None and not node.state.is_drain:
        reason = f"open for job {record.gated_for}"
        marks.append(Mark(member.instance_id, record.phase, reason, is_ungated=True))
    return tuple(marks)


def _judge(member: Member, snapshot: Snapshot, in_doubt: frozenset[str]) -> Judged:
    timings, now_s = snapshot.cluster.timings, snapshot.now_s
    if member.record is None:
        return _judge_unrecorded(member, timings, now_s, in_doubt)
    if member.is_gone(now_s, timings.describe_lag_s):
        return _judge_gone(member)
    if _is_released(member):
        return _end(member, "released by Slurm")
    if member.node is not None:
        return _judge_registered(member, now_s)
    if member.record.phase is not Phase.LAUNCHED:
        return _end(member, "Slurm no longer knows this node")
    age_s = now_s - member.launched_at_s
    if age_s > timings.boot_bound_s:
        return _end(member, f"did not register within {timings.boot_bound_s:.0f} s")
    return Judged(member, Use.IN_FLIGHT)


def _is_released(member: Member) -> bool:
    record, result = member.record, member.result
    assert record is not None
    return record.phase is Phase.RELEASED or (
        result is not None
        and (result.kind, result.outcome) == (OrderKind.RELEASE, OrderOutcome.DONE)
    )


def _judge_unrecorded(
    member: Member, timings: Timings, now_s: float, in_doubt: frozenset[str]
) -> Judged:
    instance = member.instance
    assert instance is not None
    if not instance.is_alive or instance.launch_id in in_doubt:
        return Judged(member, Use.NONE)
    if member.node is not None:
        if member.node.state.takes_jobs:
            return Judged(member, Use.CAPACITY)
        reason = "no launch record knows it"
        return Judged(member, Use.LEAVING, order=OrderKind.RELEASE, reason=reason)
    if now_s - instance.launched_at_s > timings.boot_bound_s:
        return _end(member, "no launch record knows it and it never registered")
    return Judged(member, Use.IN_FLIGHT)


def _judge_gone(member: Member) -> Judged:
    if member.node is None:
        mark = Mark(member.instance_id, Phase.TERMINATED, "EC2 has ended it")
        return Judged(member, Use.NONE, (mark,))
    if member.instance is None and member.node.state.is_busy and not member.node.state.is_down:
        # One Describe that leaves a node out must not end its jobs: Slurm finds a dead node
        # DOWN by itself after SlurmdTimeout.
        reason = "EC2 does not show its instance"
        return Judged(member, Use.LEAVING, order=OrderKind.DRAIN, reason=reason)
    # A dead slurmd looks IDLE for minutes: the node must leave Slurm before a job starts on it.
    return Judged(member, Use.LOST, order=OrderKind.RELEASE, reason="its instance is gone")


def _judge_registered(member: Member, now_s: float) -> Judged:
    record, node = member.record, member.node
    assert record is not None
    assert node is not None
    joined: tuple[Action, ...] = ()
    if record.phase is Phase.LAUNCHED:
        joined = (Mark(member.instance_id, Phase.JOINED, "registered with Slurm"),)
    if record.phase is Phase.INTERRUPTED:
        reason = "EC2 reclaims it"
        return Judged(member, Use.LOST, joined, order=OrderKind.RELEASE, reason=reason)
    if node.state.is_down:
        reason = f"Slurm finds it {node.state}: {node.reason or 'no reason given'}"
        return Judged(member, Use.LOST, joined, order=OrderKind.RELEASE, reason=reason)
    if member.has_order(OrderKind.RELEASE, now_s):
        return Judged(member, Use.LEAVING, joined, reason="a release is on its way")
    if not node.state.is_drain:
        return Judged(member, Use.CAPACITY, joined)
    if record.gated_for:
        return Judged(member, Use.GATED, joined)
    if node.reason.startswith(OUR_REASON):
        reason = f"drained by us: {node.reason}"
        return Judged(member, Use.LEAVING, joined, order=OrderKind.RELEASE, reason=reason)
    return Judged(member, Use.LEAVING, joined, reason=f"drained by an operator: {node.reason}")


def _end(member: Member, why: str) -> Judged:
    """End the instance; it counts for nothing from now on."""
    alive = member.instance is not None and member.instance.is_alive
    ending = (Terminate((member.instance_id,), why),) if alive else ()
    return Judged(member, Use.NONE, ending)
