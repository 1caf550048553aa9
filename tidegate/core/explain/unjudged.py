"""Whether somebody judges the queue: a planner that is dead leaves its last verdicts behind."""

from tidegate.core.explain.history import LOOK_DENIED, LookEvent
from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.model.durations import clock, span
from tidegate.core.model.frozen import frozen
from tidegate.core.model.snapshot import Snapshot

# A look follows a report at once; one that is cut off takes 45 s, and the next one begins then.
JUDGED_WITHIN_S = 90.0

# While the head reports every second, no single report waits for long.
SILENT_AFTER_S = 180.0


@frozen
class Unjudged:
    """Nobody judges what the head reports. `since_s`: when somebody last did, None: never.

    `trouble`: what the last look failed by, "": it left no word, like a function that cannot start;
    `is_denied`: a policy forbids it.
    """

    since_s: float | None
    now_s: float
    cluster: str
    trouble: str = ""
    is_denied: bool = False

    @property
    def sentence(self) -> str:
        """Since when, why, and what to do."""
        return f"{self.headline}; {self.remedy}"

    @property
    def headline(self) -> str:
        why = f"looks fail: {self.trouble}" if self.trouble else "no look comes to its end"
        if self.since_s is None:
            return f"nobody has ever judged the queue: {why}"
        ago = span(max(self.now_s - self.since_s, 0.0))
        return f"nobody has judged the queue since {clock(self.since_s)} ({ago} ago): {why}"

    @property
    def remedy(self) -> str:
        look = f"read the planner's log: aws logs tail /tidegate/{self.cluster}/planner --since 30m"
        if self.is_denied:
            return f"give its role the right that is named, or deploy the stack again; {look}"
        return look


def is_judged(snapshot: Snapshot, verdicts: Verdicts | None) -> bool:
    """Whether the head's newest report has its verdicts; also when there is no report."""
    if snapshot.digest is None:
        return True
    return verdicts is not None and _missed(snapshot, verdicts) == 0


def nobody_judges(
    snapshot: Snapshot, verdicts: Verdicts | None, last: LookEvent | None
) -> Unjudged | None:
    """None: the newest report is judged, or will be in a moment.

    `last`: what the newest look failed by, if it did and nobody has judged since.
    """
    if snapshot.digest is None or is_judged(snapshot, verdicts):
        return None
    judged_at_s = verdicts.at_s if verdicts else None
    if last is None:
        before_s = snapshot.digest.stamp.agent_started_at_s if judged_at_s is None else judged_at_s
        is_long = snapshot.now_s - before_s > SILENT_AFTER_S and _missed(snapshot, verdicts) > 1
        if snapshot.digest_age_s <= JUDGED_WITHIN_S and not is_long:
            return None
    return Unjudged(
        judged_at_s,
        snapshot.now_s,
        snapshot.cluster.name,
        trouble=last.sentence if last else "",
        is_denied=last is not None and last.code == LOOK_DENIED,
    )


def _missed(snapshot: Snapshot, verdicts: Verdicts | None) -> int:
    """How many reports came since the one that was judged last."""
    assert snapshot.digest is not None
    stamp = snapshot.digest.stamp
    if verdicts is None or verdicts.agent_started_at_s not in (0.0, stamp.agent_started_at_s):
        return stamp.sequence
    return max(stamp.sequence - verdicts.digest_sequence, 0)
