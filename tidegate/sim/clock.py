"""A clock that stands still until it is told to move."""

from dataclasses import dataclass

# Any Tuesday will do, as long as it never changes: 2026-01-06 00:00:00 UTC.
START_S = 1_767_657_600.0


@dataclass(slots=True)
class SimClock:
    """Virtual time in epoch seconds; it never goes back."""

    now: float = START_S

    def now_s(self) -> float:
        return self.now

    def set(self, now_s: float) -> None:
        assert now_s >= self.now, f"time goes back from {self.now} to {now_s}"
        self.now = now_s

    def advance(self, seconds: float) -> None:
        self.set(self.now + seconds)


@dataclass(slots=True)
class HeadClock:
    """The head's own clock: it may be wrong, and NTP or a person may step it."""

    true: SimClock
    offset_s: float = 0.0

    def now_s(self) -> float:
        return self.true.now + self.offset_s
