"""The clock that schedules are evaluated on."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(slots=True)
class VirtualClock:
    """Real time, and ahead of it by as much as was jumped over. It never goes back."""

    offset_s: float = 0.0

    def now_s(self) -> float:
        return time.time() + self.offset_s

    def jump_to(self, when: datetime) -> None:
        """Let it be `when` now; a moment that is past already changes nothing."""
        self.offset_s = max(self.offset_s, when.timestamp() - time.time())


def iso(at_s: float) -> str:
    """As EventBridge writes instants: UTC, whole seconds."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
