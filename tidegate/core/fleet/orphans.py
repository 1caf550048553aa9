"""Nodes that end in their own ways: by themselves since their head was silent, and nobody took them
back, or stopped by EC2 and not ended.
"""

from tidegate.core.fleet.members import Member
from tidegate.core.model.ledger import Phase
from tidegate.core.model.plan import NOTE, ORPHANED, Mark, Terminate


def ended_mark(member: Member) -> Mark:
    """What to write down of a node that is gone, with why, where it has said so itself."""
    said, code = "EC2 has ended it", NOTE
    if member.record and member.record.silent_s is not None:
        said, code = orphaned(member.record.silent_s), ORPHANED
    return Mark(member.instance_id, Phase.TERMINATED, said, code=code)


def orphaned(silent_s: float) -> str:
    """What became of a node that heard nothing of its head for so long."""
    return f"it ended itself: it had heard nothing of its head for {silent_s / 60:.0f} min"


def sure_end(member: Member, now_s: float) -> tuple[Terminate, ...]:
    """Describe may leave out an instance that lives; once forgotten it would run for ever."""
    if member.instance is not None:
        return end_stopped(member, now_s)
    return (Terminate((member.instance_id,), "EC2 does not show it any more"),)


def end_stopped(member: Member, now_s: float) -> tuple[Terminate, ...]:
    """End what EC2 has stopped at the time that AWS Health named, or what was stopped while it
    booted or after we had let it go: nobody starts it, and its disk costs. Another node that
    stops without such a word somebody has stopped, and a person is told.

    Source: EC2 user guide, "Instance retirement": with a root volume on EBS it is stopped.
    """
    if member.instance is None or not member.instance.is_stopped:
        return ()
    cordon = member.record.cordon if member.record else None
    ends_at_s = cordon.ends_at_s if cordon else None
    if ends_at_s is not None and now_s >= ends_at_s:
        return (Terminate((member.instance_id,), "EC2 has stopped it, as AWS Health announced"),)
    if member.is_let_go:
        return (Terminate((member.instance_id,), "it was let go, and stopped before it was ended"),)
    if member.was_booting:
        return (Terminate((member.instance_id,), "it was stopped before it had joined"),)
    return ()
