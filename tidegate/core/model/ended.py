"""Jobs that have ended, as far as Slurm still remembers them."""

from tidegate.core.model.frozen import frozen


@frozen
class EndedJob:
    """A job that ended by itself lately, on these nodes; `ended_at_s` is on the head's clock.

    Cancelled jobs and those that ran into their time limit are none: users do that on purpose.
    """

    job_id: str
    node_names: tuple[str, ...]
    ended_at_s: float
    is_failed: bool = False
