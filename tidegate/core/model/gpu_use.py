"""What the GPUs of running jobs do, and what becomes of those that do nothing."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from tidegate.core.model.frozen import frozen

# Above it nobody calls a GPU idle, so no more is told of it.
USE_PERCENT_MAX = 50
# Below it a GPU idles, where GPU-hours are counted.
IDLE_PERCENT = 5


@frozen
class GpuUse:
    """How much a run of a job has used its GPUs, all of them on all its nodes together.

    A minute that nobody has seen begins this anew: it is not known, and so not idle. Instants are
    on the head's clock.
    """

    since_s: float  #: from then on no minute is missing, epoch seconds
    #: percent and when that was last reached, falling percents with rising instants; what reached
    #: `USE_PERCENT_MAX` counts as that
    peaks: tuple[tuple[int, float], ...] = ()

    def below_since_s(self, percent: int) -> float:
        """Since when every GPU has been used for less than `percent`, as far as is known."""
        return max([self.since_s, *(at_s for peak, at_s in self.peaks if peak >= percent)])


@frozen
class GpuTime:
    """What nodes told of the GPUs that a run of a job held on one of them, on one day of UTC."""

    node: str
    day: str
    idle_gpu_s: float  #: GPU-seconds in which a GPU was used for less than `IDLE_PERCENT`
    seen_gpu_s: float  #: GPU-seconds of which anything is known


class IdleAction(StrEnum):
    """What becomes of a job whose GPUs idle, after its owner was told."""

    TELL = "tell"
    REQUEUE = "requeue"
    CANCEL = "cancel"


@frozen
class IdleRule:
    """A job whose GPUs were used for less than `use_percent` for `after_s` is told; and ended when
    nothing has changed `warning_s` later.
    """

    action: IdleAction = IdleAction.TELL
    after_s: float = 3600.0
    use_percent: int = 5
    warning_s: float = 900.0


@frozen
class IdleGpus:
    """The rule for all jobs, those of single partitions, and whom none is for."""

    rule: IdleRule = IdleRule()
    partitions: Mapping[str, IdleRule] = field(default_factory=dict)
    exempt_accounts: tuple[str, ...] = ()
    exempt_partitions: tuple[str, ...] = ()
    exempt_qos: tuple[str, ...] = ()


@frozen
class IdleNotice:
    """What was done about one run of a job whose GPUs idle; on the planner's clock."""

    restarts: int  #: names the run
    action: IdleAction  #: what its owner is warned of: tell, requeue or cancel
    asked_at_s: float  #: when he was to be told
    told_at_s: float = 0.0  #: when Slurm had it; 0: not yet
    ended_at_s: float = 0.0  #: when this run, or one before it, was to end; 0: none was
    is_spared: bool = False  #: it was told that it goes on, since too many were ended
