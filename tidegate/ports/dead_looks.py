"""Where looks go that cannot be read."""

from typing import Protocol


class DeadLooks(Protocol):
    """Where bodies of the look queue go that nothing can read."""

    def keep(self, body: str, *, message_id: str, reason: str) -> None:
        """Keep it for people, with the reason. Errors: Throttled, NotAuthorized, Permanent."""
        ...
