"""What a node without a job is for, by Slurm's word and the planner's."""

from tidegate.core.fleet.drains import Hand, hand
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.idle_use import IdleUse
from tidegate.core.model.slurm import Node

# Drains of ours after which no job starts there, whatever anybody decides. The others are
# decisions: it waits for a gang or a larger job, or is on its way out.
_LOST = frozenset(
    {
        *(DrainCode.RECLAIM, DrainCode.NOTICED, DrainCode.SAVING, DrainCode.TAKEN),
        *(DrainCode.CORDON, DrainCode.GONE, DrainCode.UNUSABLE, DrainCode.UNHEALTHY),
        *(DrainCode.GIVEN_UP, DrainCode.HELD, DrainCode.HOLD_ENDS),
    }
)


def idle_use(node: Node, judged: str) -> IdleUse | None:
    """None: a job is there, or nobody knows. `judged`: what the planner says of it, "": nothing.

    Slurm's word is the newer one: what the planner kept and what was drained since is drained.
    """
    state = node.state
    if state.is_down or state.is_unusable or state.is_rebooting:
        return IdleUse.DRAINED
    if not state.is_empty:
        return None
    if not state.is_drain:
        if "PLANNED" in state.words:  # Slurm keeps it for a job that starts when others have ended
            return IdleUse.WAITING
        return IdleUse(judged) if judged in _KNOWN else None
    is_ours = hand(node) is Hand.OURS
    is_decided = is_ours and code_of(node.reason) not in _LOST
    return IdleUse.WAITING if is_decided else IdleUse.DRAINED


_KNOWN = frozenset(each.value for each in IdleUse)
