"""What a job tells of itself by files that it names in its comment."""

from tidegate.core.model.frozen import frozen

SECONDS_PER_HOUR = 3600.0


@frozen
class Hang:
    """The heartbeat of a running job, which was touched too long ago, or nobody can tell when."""

    path: str  #: the file that it touches
    since_s: float | None = None  #: when it was last touched, epoch seconds; null: not known
    problem: str = ""  #: why nobody looks at it


@frozen
class Progress:
    """How much of its work a job has saved, as the file says that it names."""

    part: float = 0.0  #: what its newest checkpoint holds of all, 0 to 1
    problem: str = ""  #: why nobody knows; then nothing counts as saved


@frozen
class ToldStep:
    """How far a job is, as its heartbeat file says."""

    number: float = 0.0  #: the step or epoch that it has done
    unit: str = "step"  #: step or epoch
    problem: str = ""  #: why nobody knows; then no step is counted


@frozen
class LostWork:
    """What a job lost with its last run, which was requeued, as its heartbeat file tells.

    Instants are on the head's clock, in epoch seconds.
    """

    restarts: int  #: how often the job was requeued by then
    gpus: int  #: GPUs that the run held
    until_s: float  #: when the run ended
    stood_since_s: float  #: its last sign of progress
    step: float | None = None  #: the last step that it told; null: none
    unit: str = "step"  #: step or epoch
    resumed_step: float | None = None  #: where the next run went on; null: it has not said so
    resumed_at_s: float | None = None  #: when the next run said so
    #: when the run had come to where the next one went on; null: not known
    since_s: float | None = None
    problem: str = ""  #: why its steps are not known

    @property
    def stood_s(self) -> float:
        """For how long the run held its GPUs after its last sign of progress."""
        return max(0.0, self.until_s - self.stood_since_s)

    @property
    def redone_s(self) -> float:
        """For how long it had worked on what is done again."""
        return max(0.0, self.stood_since_s - self.since_s) if self.since_s is not None else 0.0

    @property
    def is_known(self) -> bool:
        """Whether there is anything to say of it: a run may have been too short for that."""
        return self.step is not None or bool(self.problem) or self.stood_s >= 1.0

    def gpu_hours(self, seconds: float) -> float:
        """So many seconds of all GPUs that the run held."""
        return seconds * self.gpus / SECONDS_PER_HOUR
