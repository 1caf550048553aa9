"""Trouble on demand: calls that the local cloud refuses, delays or answers into the void.

cloud.trouble(Trouble("dynamodb:Query", Fault.THROTTLED, times=3))
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Event, Lock
from typing import Any

type Environ = dict[str, Any]
type App = Callable[[Environ, Any], Iterable[bytes]]


class Fault(StrEnum):
    """What becomes of a call."""

    THROTTLED = "throttled"
    SERVER_ERROR = "server error"
    SLOW = "slow"  # carried out and answered, `wait_s` later
    LOST_REQUEST = "lost request"  # never carried out; the connection ends after `wait_s`
    LOST_ANSWER = "lost answer"  # carried out at once; the connection ends after `wait_s`


class ConnectionLost(ConnectionError):
    """The server drops the connection when it meets this."""


@dataclass(slots=True)
class Trouble:
    """The next `times` calls of a name, such as "s3:GetObject", meet a fault.

    `about`: only those whose path or body contains it. `left`: how many are still to come.
    """

    call: str
    fault: Fault
    times: int = 1
    wait_s: float = 0.0
    about: str = ""
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.times


@dataclass(slots=True)
class Troubles:
    """What is going to happen, the oldest first. Threads may share it."""

    _waiting: list[Trouble] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _is_over: Event = field(default_factory=Event)

    def add(self, trouble: Trouble) -> None:
        with self._lock:
            self._waiting.append(trouble)

    def end(self) -> None:
        """Whoever waits does so no longer."""
        self._is_over.set()

    def take(self, call: str, text: Callable[[], str]) -> Trouble | None:
        """The trouble that this call meets; `text`: its path and body."""
        with self._lock:
            for trouble in self._waiting:
                is_it = trouble.call == call and (not trouble.about or trouble.about in text())
                if trouble.left and is_it:
                    trouble.left -= 1
                    return trouble
        return None

    def delay(self, trouble: Trouble) -> None:
        self._is_over.wait(trouble.wait_s)
