"""Nodes that no job needs: which a pool keeps, and which go."""

from tidegate.core.actions import OrderKind
from tidegate.core.members import Member
from tidegate.core.reconcile import Use
from tidegate.core.slurm import Node
from tidegate.core.work import Work


def keep_warm(work: Work) -> None:
    """Launch what a pool lacks of its minimum and of its headroom."""


def release_idle(work: Work) -> None:
    """Let go of nodes that no pending job will use and that idled for their pool's time."""
    unused = {b.name for b in work.bins.all if not b.jobs and not b.gated_for}
    by_reason: dict[str, list[str]] = {}
    for each in work.judged:
        node, pool = each.member.node, work.snapshot.cluster.pool(each.member.pool)
        if each.use is not Use.CAPACITY or node is None or not node.state.is_idle:
            continue
        if each.order is OrderKind.UNDRAIN:
            continue
        if each.member.was_told(OrderKind.RELEASE, work.snapshot.now_s):
            continue
        idle_s = _idle_s(work, each.member, node)
        if pool is None:
            reason = f"its pool {each.member.pool} is not in the cluster file any more"
            by_reason.setdefault(reason, []).append(node.name)
        elif node.name in unused and idle_s >= pool.idle_s:
            reason = f"idle for {pool.idle_s:.0f} s and no pending job needs it"
            by_reason.setdefault(reason, []).append(node.name)
    for reason, names in sorted(by_reason.items()):
        work.send(OrderKind.RELEASE, tuple(sorted(names)), f"tidegate: {reason}", only_if=("IDLE",))


def _idle_s(work: Work, member: Member, node: Node) -> float:
    """How long it has been idle, by the head's clock as far as that can be right."""
    written_at_s = work.digest.written_at_s
    if node.last_busy_at_s > written_at_s:  # the clock was put back since then
        return work.snapshot.now_s - member.launched_at_s
    return written_at_s - max(node.last_busy_at_s, member.launched_at_s)
