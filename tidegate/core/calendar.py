"""What the calendar says about a cluster: up or stopped, and until when."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wanted:
    """What should be now. `until_s`: when that changes, None: never.

    `sentence` is for users: "stopped until Tue 24 Nov 08:00 Asia/Tokyo".
    """

    is_up: bool
    sentence: str
    until_s: float | None = None

    @property
    def reason(self) -> str:
        """Why nothing is bought and no job starts, for users."""
        return f"the cluster is {self.sentence}"


ALWAYS_UP = Wanted(is_up=True, sentence="up: the cluster file has no schedules")
