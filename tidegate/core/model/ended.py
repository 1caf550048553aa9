"""Jobs that have ended, as far as Slurm still remembers them."""

from tidegate.core.model.frozen import frozen


@frozen
class EndedJob:
    """A job that ended by itself lately.

    Cancelled jobs and those that ran into their time limit are none: users do that on purpose.
    """

    job_id: str  #: as scontrol takes it
    node_names: tuple[str, ...]  #: nodes that it had
    ended_at_s: float  #: when, epoch seconds on the head's clock
    is_failed: bool = False  #: it failed, by Slurm's word
