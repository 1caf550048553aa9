"""Jobs on which money or work would be spent in a loop, as the ledger remembers them."""

from tidegate.core.model.frozen import frozen
from tidegate.core.model.gpu_use import IdleNotice
from tidegate.core.model.job_files import LostWork

# Longer than the longest back-off and the boot and the passes of the next try.
STUCK_KEPT_S = 3 * 3600.0


@frozen
class Stuck:
    """A job that Slurm leaves waiting beside idle nodes that fit it, since `since_s`; or of which
    nodes become unhealthy before it can start, or come and go while something holds it back.
    """

    job_id: str  #: as Slurm says it
    request: str  #: a digest of what it asked and of its limits
    since_s: float  #: when it was first seen beside an idle node
    failures: int = 0  #: how often it was passed over
    until_s: float = 0.0  #: nothing is bought for it before
    sick_launches: tuple[str, ...] = ()  #: launches for it of which no node was well
    is_sick: bool = False  #: whether that was why it was passed over the last time
    #: launches for it whose nodes ran nothing and were let go while it still waited
    vain_launches: tuple[str, ...] = ()
    is_vain: bool = False  #: whether that was why it was passed over the last time
    #: how often it was requeued since nodes of its failed, without an hour of good running between
    faults: int = 0
    fault_restarts: int = 0  #: its restarts when the last of these was counted
    faulted_at_s: float = 0.0  #: when that was
    fault: str = ""  #: what was said of it
    held_at_s: float = 0.0  #: when it was held for them; 0: it was not
    idle: IdleNotice | None = None  #: what was done since its GPUs idle; null: nothing
    lost: LostWork | None = None  #: what was told last of work that it lost; null: nothing
    lost_told_at_s: float = 0.0  #: when that was

    @property
    def is_forgotten_at_s(self) -> float:
        """A job that was not seen stuck again for so long starts anew."""
        idle = self.idle
        noted_s = max(idle.asked_at_s, idle.told_at_s, idle.ended_at_s) if idle else 0.0
        of_faults_s = max(self.faulted_at_s, self.lost_told_at_s)
        return max(self.since_s, self.until_s, of_faults_s, noted_s) + STUCK_KEPT_S


def anew(before: Stuck | None, job_id: str, request: str, now_s: float) -> Stuck:
    """What is known of a job that asks for this; of one that asked otherwise its faults, what it
    lost by them, and what was done since its GPUs idle.
    """
    if before is None:
        return Stuck(job_id, request, now_s)
    if before.request == request:
        return before
    kept = (
        *("faults", "fault_restarts", "faulted_at_s", "fault", "held_at_s", "idle"),
        *("lost", "lost_told_at_s"),
    )
    return Stuck(job_id, request, now_s, **{name: getattr(before, name) for name in kept})
