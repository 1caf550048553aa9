"""Jobs on which money or work would be spent in a loop, as the ledger remembers them."""

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
    of those whose nodes ran nothing and were let go while the job still waited. `faults`: how often
    it was requeued, since nodes of its failed, without an hour of good running in between; counted
    up to its restart `fault_restarts`. `held_at_s`: when it was held for that, 0: it was not.
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
    faults: int = 0
    fault_restarts: int = 0
    faulted_at_s: float = 0.0
    fault: str = ""
    held_at_s: float = 0.0

    @property
    def is_forgotten_at_s(self) -> float:
        """A job that was not seen stuck again for so long starts anew."""
        return max(self.since_s, self.until_s, self.faulted_at_s) + STUCK_KEPT_S


def anew(before: Stuck | None, job_id: str, request: str, now_s: float) -> Stuck:
    """What is known of a job that asks for this; of one that asked otherwise its faults alone."""
    if before is None:
        return Stuck(job_id, request, now_s)
    if before.request == request:
        return before
    kept = ("faults", "fault_restarts", "faulted_at_s", "fault", "held_at_s")
    return Stuck(job_id, request, now_s, **{name: getattr(before, name) for name in kept})
