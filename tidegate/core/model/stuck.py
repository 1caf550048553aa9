"""Jobs on which money would be spent in a loop, as the ledger remembers them."""

from tidegate.core.model.frozen import frozen

# Longer than the longest back-off and the boot and the passes of the next try.
STUCK_KEPT_S = 3 * 3600.0


@frozen
class Stuck:
    """A job that Slurm leaves waiting beside idle nodes that fit it, since `since_s`; or of which
    nodes become unhealthy before it can start, or come and go while something holds it back.

    `request`: a digest of what it asked and of its limits. `failures`: how often it was passed
    over; the last time until `until_s`. `sick_launches`: those for it of which no node was well;
    `is_sick`: that was why it was passed over the last time. `vain_launches`, `is_vain`: the same
    of those whose nodes ran nothing and were let go while the job still waited.
    """

    job_id: str
    request: str
    since_s: float
    failures: int = 0
    until_s: float = 0.0
    sick_launches: tuple[str, ...] = ()
    is_sick: bool = False
    vain_launches: tuple[str, ...] = ()
    is_vain: bool = False

    @property
    def is_forgotten_at_s(self) -> float:
        """A job that was not seen stuck again for so long starts anew."""
        return max(self.since_s, self.until_s) + STUCK_KEPT_S
