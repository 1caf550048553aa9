"""What a node without a job is for, and when that was so."""

from enum import StrEnum

from tidegate.core.model.frozen import frozen


class IdleUse(StrEnum):
    """What a node in Slurm is for while no job is on it."""

    KEPT = "kept"  # on purpose: a minimum, headroom, a spare one, a reservation, a person's mark
    WAITING = "waiting"  # waits out its idle time, for a job that is to come, or to be let go
    DRAINED = "drained"  # no job can start there: sick, held by a person, AWS takes it away


@frozen
class IdleSpan:
    """For how long a node was for what. Times in epoch seconds of the head's clock."""

    node: str
    since_s: float
    until_s: float
    use: IdleUse
