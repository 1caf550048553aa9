"""Nodes that ended themselves since their head was silent: nobody took them back."""

from tidegate.core.fleet.members import Member
from tidegate.core.model.ledger import Phase
from tidegate.core.model.plan import NOTE, ORPHANED, Mark


def ended_mark(member: Member) -> Mark:
    """What to write down of a node that is gone, with why, where it has said so itself."""
    said, code = "EC2 has ended it", NOTE
    if member.record and member.record.silent_s is not None:
        said, code = orphaned(member.record.silent_s), ORPHANED
    return Mark(member.instance_id, Phase.TERMINATED, said, code=code)


def orphaned(silent_s: float) -> str:
    """What became of a node that heard nothing of its head for so long."""
    return f"it ended itself: it had heard nothing of its head for {silent_s / 60:.0f} min"
