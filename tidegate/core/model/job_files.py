"""What a job tells of itself by files that it names in its comment."""

from tidegate.core.model.frozen import frozen


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
