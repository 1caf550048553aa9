"""What is tried with a sick node before it is replaced: a reboot, where that is worth it.

Where nodes are paid for in advance, in a reservation or a capacity block, the replacement may stand
on the same host, and most of what is found ends with a reboot. So a node there is rebooted first,
once, when it is empty; then the health gate of its boot tests it again. What is bought by the hour
is left at once: EC2 gives another host. The findings of a pool remember who was rebooted.

Where the finding asks for it the node resets its GPUs before that, within the same order: whoever
passes the gate then is spared the reboot (userdata/node/gpu-reset.sh).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto

from tidegate.core.fleet.members import Member
from tidegate.core.model.drain_reason import sentence_of
from tidegate.core.model.finding import Finding, is_replaced
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind, OrderOutcome
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.reservations import block_drains_at_s

# For how long a reboot is asked for that is not seen to begin: budgets may hold it back, and orders
# be lost. Then the node is replaced.
REBOOT_WITHIN_S = 1800.0

# Slurm names no remedy of what it finds itself, and no reboot empties a disk. Others name theirs.
_FULL = "SlurmdSpoolDir is full"


class RepairStep(Enum):
    """What comes next for a node that software found unhealthy."""

    REBOOT = auto()
    WAIT = auto()  # Slurm has been asked, and begins as soon as it can
    REPLACE = auto()
    GIVE_UP = auto()  # replaced, since a reboot did not mend it


def next_step(member: Member, snapshot: Snapshot) -> RepairStep:
    """By what is remembered of the node."""
    of_pool = (h.findings for h in snapshot.pool_history if h.pool == member.pool)
    ours = (f for found in of_pool for f in found if f.instance_id == member.instance_id)
    finding = next(ours, None)
    if finding is None or finding.reboot_at_s is None:
        return RepairStep.REPLACE
    if finding.has_rebooted or snapshot.now_s - finding.reboot_at_s > REBOOT_WITHIN_S:
        return RepairStep.GIVE_UP
    if member.node is not None and member.node.state.awaits_reboot:
        return RepairStep.WAIT
    # Its reservation may have ended since it was to be rebooted.
    return RepairStep.REBOOT if member.offering.market.is_prepaid else RepairStep.REPLACE


def with_reboots(
    history: PoolHistory, sick: Mapping[str, Member], ours: Sequence[Member], snapshot: Snapshot
) -> PoolHistory:
    """What is remembered, with who is to be rebooted from now on and who was. `sick`: nodes that
    software has drained, of the pool's, by id.
    """
    known = {each.instance_id: each for each in ours}
    findings = tuple(
        _noted(each, known.get(each.instance_id), sick, snapshot) for each in history.findings
    )
    return history if findings == history.findings else replace(history, findings=findings)


def _noted(
    finding: Finding, member: Member | None, sick: Mapping[str, Member], snapshot: Snapshot
) -> Finding:
    if member and member.record and finding.reboot_at_s is not None:
        finding = replace(finding, reset_said=member.record.reset_said)
    if member is None or member.node is None or finding.has_rebooted:
        return finding
    if finding.reboot_at_s is None:
        is_due = finding.instance_id in sick and _may_reboot(member, snapshot)
        return replace(finding, reboot_at_s=snapshot.now_s) if is_due else finding
    state = member.node.state
    # Between two looks it may have been off, back and found sick again.
    is_over = _was_rebooted(member, snapshot) and not state.awaits_reboot
    is_seen = state.is_rebooting or state.takes_jobs or is_over
    return replace(finding, has_rebooted=True) if is_seen else finding


def _was_rebooted(member: Member, snapshot: Snapshot) -> bool:
    """The head answered that Slurm does so. Whichever order that was: who sent it may have died
    before it wrote that down.
    """
    done = (member.instance_id, OrderKind.REBOOT, OrderOutcome.DONE)
    return any((each.name, each.kind, each.outcome) == done for each in snapshot.heard.results)


def _may_reboot(member: Member, snapshot: Snapshot) -> bool:
    """It is empty, would be bought again from the same place, and has time for a boot."""
    record, node = member.record, member.node
    if record is None or node is None or not member.offering.market.is_prepaid:
        return False
    if record.phase is not Phase.JOINED or record.is_cordoned(snapshot.now_s):
        return False
    said = sentence_of(node.reason)
    if member.is_busy or not snapshot.wanted.is_up or is_replaced(said) or said.startswith(_FULL):
        return False
    ends_at_s = block_drains_at_s(
        snapshot.cluster, record.offering, record.launched_at_s, member.instance
    )
    boots_by_s = snapshot.now_s + snapshot.cluster.timings.boot_bound_s
    return ends_at_s is None or boots_by_s < ends_at_s
