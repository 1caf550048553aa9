"""Events that say the same again, as one."""

from collections.abc import Iterable
from dataclasses import dataclass

from tidegate.core.explain.history import LookEvent
from tidegate.core.model.durations import clock

# What is on its way is decided anew by each look until it is answered or has expired.
AGAIN_WITHIN_S = 120.0


@dataclass(slots=True)
class RepeatedEvent:
    """An event, and how often it came again; `last_s`: when for the last time."""

    event: LookEvent
    last_s: float
    again: int = 0

    @property
    def often(self) -> str:
        """` (3 times more by 08:01:00 UTC)`; "": it came once."""
        if not self.again:
            return ""
        times = "once" if self.again == 1 else f"{self.again} times"
        return f" ({times} more by {clock(self.last_s)})"


def told_once(events: Iterable[LookEvent]) -> list[RepeatedEvent]:
    """The events, oldest first; what comes again within two minutes counts with the first."""
    found: list[RepeatedEvent] = []
    latest: dict[object, RepeatedEvent] = {}
    for each in events:
        key = (each.kind, each.code, each.jobs, each.nodes, each.pools, each.sentence)
        known = latest.get(key)
        if known is None or each.at_s - known.last_s > AGAIN_WITHIN_S:
            known = latest[key] = RepeatedEvent(each, each.at_s)
            found.append(known)
        else:
            known.again, known.last_s = known.again + 1, each.at_s
    return found
