"""Nodes at gates, or on their way to one, whose gang has begun without them.

Slurm starts what comes first in the queue on whatever opens first: of two gangs alike it may start
one on the nodes that came for the other. What was bought for it is the other's then.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidegate.core.demand.deadline import says_move
from tidegate.core.fleet.drains import is_at_gate
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.fleet.resume import gang_of
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot


def with_abandoned(judged: Sequence[Judged], snapshot: Snapshot) -> list[Judged]:
    """The same, where what no gang waits for any more is anybody's: a gate is to open, and what
    boots counts for whoever needs it.
    """
    gates = {each.member.gated_for for each in judged} - {""}
    if not gates or snapshot.digest is None:
        return list(judged)
    left = gates - _waited_for(judged, snapshot.digest.reading.jobs)
    return [_opened(each) if each.member.gated_for in left else each for each in judged]


def _waited_for(judged: Sequence[Judged], jobs: Sequence[Job]) -> set[str]:
    """Gangs that wait for nodes, or may at any moment: all but those that run and lack none."""
    well = {each.member.instance_id for each in judged if _is_well(each)}
    ours = {each.member.instance_id for each in judged}
    found: set[str] = set()
    for job in jobs:
        is_whole = job.is_running and ours.intersection(job.node_names) <= well
        if not is_whole or says_move(job):
            found.update((gang_of(job), job.array_job_id))
    return found


def _is_well(judged: Judged) -> bool:
    node, is_up = judged.member.node, judged.use in (Use.CAPACITY, Use.GATED)
    return is_up and node is not None and not node.state.is_silent


def _opened(judged: Judged) -> Judged:
    record = judged.member.record
    assert record is not None, "who has a gate is in the ledger"
    if judged.use is Use.IN_FLIGHT:
        return replace(judged, member=replace(judged.member, record=replace(record, gated_for="")))
    node = judged.member.node
    if judged.use is not Use.GATED or node is None or not is_at_gate(node):
        return judged
    reason = f"job {record.gated_for} no longer waits for this node"
    return replace(judged, use=Use.CAPACITY, gated_for="", order=OrderKind.UNDRAIN, reason=reason)
