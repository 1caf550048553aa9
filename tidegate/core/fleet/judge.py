"""Three-way comparison of Slurm, EC2 and ledger, node by node: what each node is good for."""

from dataclasses import replace
from enum import Enum, auto

from tidegate.core.fleet.drains import Hand, hand, is_at_gate, told_by
from tidegate.core.fleet.findings import doubt, stopped_by
from tidegate.core.fleet.holds import held_by, is_held, is_hold_over
from tidegate.core.fleet.joins import disappoints, ended_while_booting, record_of, rest
from tidegate.core.fleet.ladder import RepairStep, next_step
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.orphans import ended_mark, sure_end
from tidegate.core.fleet.resume import is_kept
from tidegate.core.fleet.stopped import of_stopped, starting
from tidegate.core.interruption.save import has_outlived, is_announced, reclaim_at_s
from tidegate.core.model.budgets import DisruptionReason
from tidegate.core.model.drain_reason import DrainCode, DrainReason, read, sentence_of
from tidegate.core.model.finding import is_reset
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action, Adopt, Mark, Rest, Terminate
from tidegate.core.model.resting import TAKEN_BACK, BootFailure
from tidegate.core.model.slurm import Node
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.reservations import block_drains_at_s

RELEASED = "released by Slurm"


class Use(Enum):
    """What the planner may do with a node."""

    CAPACITY = auto()  # registered and taking jobs
    GATED = auto()  # registered, drained until its gang is complete
    IN_FLIGHT = auto()  # bought, not yet registered
    LEAVING = auto()  # on its way out: no new job
    LOST = auto()  # reclaimed or dead: its jobs need another place
    NONE = auto()  # nothing to count


@frozen
class Judged:
    """The verdict on one member; `order` is what the head should do with the node, if any.

    `code`, `reason`, `subject`: why, as the drain reason says it. `despite`: what some software
    said that drained it, which does not keep it.

    `disruption`: the order is under the pool's budgets for this reason. `is_good`: how its boot
    came out, told once or again and again; None: nothing to tell. `is_held_back`: a check drained
    it that is believed no more, so it neither goes nor is replaced.
    """

    member: Member
    use: Use
    actions: tuple[Action, ...] = ()
    order: OrderKind | None = None
    code: DrainCode = DrainCode.OTHER
    reason: str = ""
    subject: str = ""
    gated_for: str = ""
    disruption: DisruptionReason | None = None
    is_good: bool | None = None
    is_closed: bool = False
    despite: str = ""
    is_held_back: bool = False

    @property
    def drain_reason(self) -> DrainReason:
        return DrainReason(self.code, self.reason, self.subject)

    @property
    def is_leaving(self) -> bool:
        """It goes as soon as Slurm lets it; not one that a person holds, or that reboots first."""
        return self.use is Use.LEAVING and self.order not in (None, OrderKind.REBOOT)


def judge(member: Member, snapshot: Snapshot, in_doubt: frozenset[str]) -> Judged:
    """What one member is good for now. `in_doubt`: launches whose result is not recorded."""
    settled = _settled(member)
    judged = _despite(_judge(member, snapshot, in_doubt), snapshot)
    is_good = _is_good(judged, snapshot)
    if not settled and is_good is None:
        return judged
    return replace(judged, actions=(*settled, *judged.actions), is_good=is_good)


def _despite(judged: Judged, snapshot: Snapshot) -> Judged:
    """What sends a node away goes past software's word, and past a person's only when their time
    is over.
    """
    node = judged.member.node
    goes = judged.order in (OrderKind.RELEASE, OrderKind.REBOOT)
    if not goes or node is None or not node.state.is_drain:
        return judged
    is_softwares = hand(node, snapshot.cluster.health_reasons) is Hand.SOFTWARE
    is_over = is_softwares or is_hold_over(node, snapshot.now_s)
    return replace(judged, despite=told_by(node)) if is_over else judged


def _is_good(judged: Judged, snapshot: Snapshot) -> bool | None:
    """Whether the node came out of its boot as it should; None: that is not news."""
    if not judged.actions:
        return None
    record, rests = judged.member.record, [a for a in judged.actions if isinstance(a, Rest)]
    if any(each.is_refusal for each in rests):
        return None
    if record is None or rests or record.is_orphan:
        return False if rests else None
    marks = {each.phase for each in judged.actions if isinstance(each, Mark)}
    if Phase.JOINED in marks:
        return True
    died_in = record.phase if record.interrupted_in is None else record.interrupted_in
    if Phase.TERMINATED not in marks or died_in is not Phase.LAUNCHED:
        return None
    if record.interruption_loss is not None:  # EC2 has said whether it took it back
        return None if record.was_taken else False
    is_taken = any(r.offering == record.offering and r.code == TAKEN_BACK for r in snapshot.resting)
    return None if is_taken else False


def _settled(member: Member) -> tuple[Action, ...]:
    """Write down what became of the order that was on its way to this node."""
    record, node = member.record, member.node
    if record is None:
        return ()
    marks: list[Action] = []
    if member.was_released and record.phase < Phase.RELEASED:
        marks.append(Mark(member.instance_id, Phase.RELEASED, "Slurm has let it go"))
    if record.gated_for and node is not None and not node.state.is_drain:
        reason = f"open for job {record.gated_for}"
        marks.append(Mark(member.instance_id, record.phase, reason, is_ungated=True))
    return tuple(marks)


def _judge(member: Member, snapshot: Snapshot, in_doubt: frozenset[str]) -> Judged:
    timings, now_s = snapshot.cluster.timings, snapshot.now_s
    seen_at_s = now_s - snapshot.digest_age_s
    if member.record is None:
        return _judge_unrecorded(member, snapshot, in_doubt)
    if member.record.stopped_at_s is not None:
        return _judge_stopped(member, snapshot)
    is_late = seen_at_s - member.launched_at_s > timings.given_up_s
    # Left out by one Describe, an instance may boot all the same; EC2's events tell of its end.
    if member.is_gone(now_s, timings.describe_lag_s) and (is_late or not member.may_boot):
        return _judge_gone(member, snapshot)
    if member.is_let_go:
        return _end(member, snapshot, RELEASED)
    if member.record.phase is Phase.RELEASED:
        if member.node is not None and _is_a_persons(member.node, snapshot):
            return Judged(member, Use.LEAVING, reason=f"drained by others: {member.node.reason}")
        why = DrainCode.UNASKED, "nobody asked for it, and it joined before it was ended"
        return _leaves(member, (), OrderKind.RELEASE, why)
    if member.node is not None:
        return _judge_registered(member, snapshot)
    if member.record.phase is Phase.INTERRUPTED:
        # Its notice may have come before the first digest that shows it, with a job on it.
        is_over = seen_at_s > (member.record.reclaim_at_s or 0.0)
        return _end(member, snapshot, "its notice is over") if is_over else Judged(member, Use.NONE)
    if member.has_joined:
        return _end(member, snapshot, "Slurm no longer knows this node")
    # The digest's own age counts: the node may have registered since it was written.
    if is_late:
        said = f"did not register within {timings.given_up_s:.0f} s"
        blamed = rest(member.record, BootFailure.BOUND, f"a node {said}")
        return _end(member, snapshot, said, blamed)
    return Judged(member, Use.NONE if member.record.is_cordoned(now_s) else Use.IN_FLIGHT)


def _judge_unrecorded(member: Member, snapshot: Snapshot, in_doubt: frozenset[str]) -> Judged:
    """An instance with our tags whose record was lost is taken in; from now on it is known."""
    instance = member.instance
    assert instance is not None
    if not instance.is_alive or instance.launch_id in in_doubt:
        return Judged(member, Use.NONE)
    record = record_of(instance, snapshot.cluster)
    adopted = (Adopt(record, "it carries our tags and no record knows it"),)
    if member.node is not None and member.node.state.takes_jobs and snapshot.wanted.is_up:
        return Judged(member, Use.CAPACITY, adopted)
    return Judged(member, Use.LEAVING if member.node else Use.IN_FLIGHT, adopted)


def _judge_stopped(member: Member, snapshot: Snapshot) -> Judged:
    """It may run again, and be a node: by a launch in doubt, or since somebody has started it."""
    if member.node is None or member.instance_id in starting(snapshot):
        return Judged(member, Use.NONE, of_stopped(member, snapshot))
    if member.instance is None or not member.instance.is_alive:
        return _judge_gone(member, snapshot)
    why = DrainCode.UNASKED, "it was stopped, and runs without a launch that started it"
    return _leaves(member, (), OrderKind.RELEASE, why)


def _judge_gone(member: Member, snapshot: Snapshot) -> Judged:
    if member.node is None:
        mark = ended_mark(member)
        rest = ended_while_booting(member, snapshot)
        return Judged(member, Use.NONE, (*sure_end(member, snapshot.now_s), *rest, mark))
    is_announced = _is_announced(member, snapshot)
    looks_alive = member.is_busy and not member.node.state.is_down
    if member.instance is None and looks_alive and not is_announced:
        # One Describe that leaves a node out must not end its jobs: Slurm finds a dead node
        # DOWN by itself after SlurmdTimeout.
        why = DrainCode.GONE, "EC2 does not show its instance"
        return _leaves(member, (), OrderKind.DRAIN, why)
    if member.instance is None and _is_a_persons(member.node, snapshot):
        return Judged(member, Use.LEAVING, reason=f"drained by others: {member.node.reason}")
    # A dead slurmd looks alive for minutes: the node must leave Slurm before a job starts on it,
    # and what seems to run there must run elsewhere. Without EC2's word a job that slipped in
    # since the digest wins, and what is DOWN already has lost its jobs.
    is_sure = member.instance is not None or is_announced
    kind = OrderKind.DELETE if is_sure and not member.node.state.is_down else OrderKind.RELEASE
    return _leaves(member, (), kind, (DrainCode.GONE, "its instance is gone"), use=Use.LOST)


def _is_announced(member: Member, snapshot: Snapshot) -> bool:
    record, pool = member.record, snapshot.cluster.pool(member.pool)
    seen_at_s = snapshot.now_s - snapshot.digest_age_s
    return record is not None and is_announced(record, pool, seen_at_s)


def _is_a_persons(node: Node, snapshot: Snapshot) -> bool:
    """A person looks at it: it waits until Slurm finds it DOWN, or for the end of its hold."""
    is_theirs = hand(node, snapshot.cluster.health_reasons) is Hand.PERSON
    is_lost = node.state.is_down and not is_held(node, snapshot.now_s)
    return node.state.is_drain and not is_lost and is_theirs


def _judge_registered(member: Member, snapshot: Snapshot) -> Judged:
    record, node, now_s = member.record, member.node, snapshot.now_s
    assert record is not None
    assert node is not None
    joined: tuple[Action, ...] = ()
    if record.phase is Phase.LAUNCHED:
        joined = (
            Mark(member.instance_id, Phase.JOINED, "registered with Slurm"),
            *disappoints(node, record, snapshot.cluster),
        )
    if record.phase is Phase.INTERRUPTED or reclaim_at_s(record, now_s) is not None:
        why = DrainCode.TAKEN, "AWS takes it away"
        lives = has_outlived(record, now_s - snapshot.digest_age_s) and not node.state.is_down
        use = Use.LEAVING if lives else Use.LOST
        return _leaves(member, joined, OrderKind.RELEASE, why, use=use)
    block_ends_s = block_drains_at_s(
        snapshot.cluster, record.offering, record.launched_at_s, member.instance
    )
    is_block_over = block_ends_s is not None and now_s >= block_ends_s
    if not is_block_over and (hold := held_by(node)):
        return _judge_hold(member, joined, hold, now_s)
    # Of what leaves by AWS's word no budget is asked, DOWN or not, and it counts for the others.
    is_taken = is_block_over or record.is_cordoned(now_s)
    if node.state.is_rebooting and not is_taken:
        resets = "resets its GPUs, or reboots" if is_reset(node.reason) else "reboots"
        return Judged(member, Use.IN_FLIGHT, joined, reason=f"it {resets}")
    if node.state.is_down and not is_taken:
        reason = f"Slurm finds it {node.state}: {sentence_of(node.reason) or 'no reason given'}"
        return _unhealthy(member, joined, reason, use=Use.LOST)
    if member.has_order(OrderKind.RELEASE, now_s):
        return Judged(member, Use.LEAVING, joined, reason="a release is on its way")
    if record.cordon and record.cordon.holds(now_s):
        why = DrainCode.CORDON, record.cordon.reason
        cordoned = _leaves(member, joined, OrderKind.RELEASE, why)
        return replace(cordoned, subject=record.cordon.about)
    if is_block_over:
        why = DrainCode.BLOCK_ENDS, "its capacity block ends"
        return _leaves(member, joined, OrderKind.RELEASE, why)
    if _is_over(member, node, snapshot):
        why = DrainCode.STOPPED, snapshot.wanted.reason
        return _leaves(member, joined, OrderKind.DELETE, why)
    return _judge_drain(member, node, record, joined, snapshot)


def _judge_drain(
    member: Member,
    node: Node,
    record: NodeRecord,
    joined: tuple[Action, ...],
    snapshot: Snapshot,
) -> Judged:
    """Whether a node that nothing else sends away takes jobs, and who keeps it from that."""
    by = hand(node, snapshot.cluster.health_reasons) if node.state.is_drain else None
    if by is Hand.SOFTWARE:
        if stop := stopped_by(member, snapshot):
            reason = f"held back: {doubt(stop)}"
            return Judged(member, Use.LEAVING, joined, reason=reason, is_held_back=True)
        said = sentence_of(node.reason) or "Slurm gives no reason"
        return _sick(member, joined, f"found unhealthy: {said}", next_step(member, snapshot))
    if by is Hand.PERSON:
        reason = f"drained by an operator: {node.reason}"
        return Judged(member, Use.LEAVING, joined, reason=reason)
    is_gated = bool(record.gated_for) and is_at_gate(node)
    found = read(node.reason) if node.state.is_drain else None
    code = found.code if found else None
    kept = found if code is DrainCode.KEPT else None
    is_closed = code is DrainCode.CLOSED
    if not snapshot.wanted.is_up and (is_gated or kept or is_closed or not node.state.is_drain):
        why = DrainCode.STOPPED, snapshot.wanted.reason
        return _leaves(member, joined, OrderKind.RELEASE, why)
    if node.state.strange:
        reason = f"its state is {node.state}, which nobody knows"
        return Judged(member, Use.LEAVING, joined, reason=reason)
    if node.state.is_unusable:
        reason = f"Slurm starts no job on a node that is {node.state}"
        return _unhealthy(member, joined, reason)
    if is_closed or not node.state.is_drain:
        return Judged(member, Use.CAPACITY, joined, is_closed=is_closed)
    if is_gated:
        return Judged(member, Use.GATED, joined, gated_for=record.gated_for)
    if kept:
        return _judge_kept(member, joined, kept, snapshot)
    if snapshot.wanted.is_up and code is DrainCode.STOPPED:
        reason = snapshot.wanted.reason
        return Judged(member, Use.CAPACITY, joined, order=OrderKind.UNDRAIN, reason=reason)
    if record.cordon and found and record.cordon.is_told_by(found):
        reason = f"it has outlived its warning: {record.cordon.reason}"
        return Judged(member, Use.CAPACITY, joined, order=OrderKind.UNDRAIN, reason=reason)
    # Slurm wants a reason from whoever drains; none: a gate whose owner was forgotten.
    reason = f"drained by us: {sentence_of(node.reason) or 'at its gate'}"
    return _leaves(member, joined, OrderKind.RELEASE, (DrainCode.LEFT, reason))


def _leaves(
    member: Member,
    actions: tuple[Action, ...],
    order: OrderKind,
    why: tuple[DrainCode, str],
    *,
    use: Use = Use.LEAVING,
) -> Judged:
    code, reason = why
    return Judged(member, use, actions, order=order, code=code, reason=reason)


def _unhealthy(
    member: Member, joined: tuple[Action, ...], reason: str, *, use: Use = Use.LEAVING
) -> Judged:
    """It goes when it is empty, within the budget for unhealthy nodes."""
    found = _leaves(member, joined, OrderKind.RELEASE, (DrainCode.UNHEALTHY, reason), use=use)
    return replace(found, disruption=DisruptionReason.UNHEALTHY)


def _sick(member: Member, joined: tuple[Action, ...], reason: str, step: RepairStep) -> Judged:
    resets = is_reset(reason)
    match step:
        case RepairStep.WAIT:
            then = "have it reset its GPUs, or reboot it" if resets else "reboot it"
            return Judged(member, Use.LEAVING, joined, reason=f"{reason}; Slurm is to {then}")
        case RepairStep.REBOOT:
            first = "its GPUs are reset, or it is rebooted," if resets else "it is rebooted"
            found = _unhealthy(member, joined, f"{reason}; {first} before it is replaced")
            return replace(found, order=OrderKind.REBOOT)
        case RepairStep.GIVE_UP:
            is_told = member.record is not None and member.record.reset_said
            tried = "a reset or a reboot" if is_told else "a reboot"
            return _unhealthy(member, joined, f"{reason}; {tried} has not mended it")
        case RepairStep.REPLACE:
            return _unhealthy(member, joined, reason)


def _is_over(member: Member, node: Node, snapshot: Snapshot) -> bool:
    """Its jobs had their time after the cluster's stop, and none is waited for."""
    wanted = snapshot.wanted
    if wanted.is_up or not wanted.ends_all or wanted.jobs_end_at_s is None:
        return False
    is_late = snapshot.now_s >= wanted.jobs_end_at_s
    return is_late and member.is_busy and not _is_a_persons(node, snapshot)


def _judge_kept(
    member: Member, joined: tuple[Action, ...], kept: DrainReason, snapshot: Snapshot
) -> Judged:
    """A node that was open and waits for the rest of a gang, for as long as a boot may take."""
    if is_kept(kept, snapshot):
        return Judged(member, Use.GATED, joined, gated_for=kept.subject)
    reason = f"gang {kept.subject} did not come together"
    return Judged(member, Use.CAPACITY, joined, order=OrderKind.UNDRAIN, reason=reason)


def _judge_hold(
    member: Member, joined: tuple[Action, ...], by: DrainReason, now_s: float
) -> Judged:
    """A node that a person looks into: nothing lets it go before its time, nor keeps it after."""
    if now_s < (by.until_s or 0.0):
        return Judged(member, Use.LEAVING, joined, reason=by.sentence)
    why = DrainCode.HOLD_ENDS, f"its hold is over: it was {by.sentence}"
    return _leaves(member, joined, OrderKind.RELEASE, why)


def _end(member: Member, snapshot: Snapshot, why: str, *also: Action) -> Judged:
    """End the instance, also before EC2 shows it, and once more where EC2 does not follow; it
    counts for nothing from now on.
    """
    may_live = member.instance is None or member.instance.is_alive
    lag_s = snapshot.cluster.timings.describe_lag_s
    is_to_end = may_live and not member.was_just_ended(snapshot.now_s, lag_s)
    ending = (Terminate((member.instance_id,), why),) if is_to_end else ()
    return Judged(member, Use.NONE, (*ending, *also))
