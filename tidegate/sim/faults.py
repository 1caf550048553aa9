"""Where a test may break the simulated outside world.

Every simulated port calls its fault hook with `before <method>` and `after <method>`. A hook
that raises before has prevented the effect; one that raises after has lost the answer only.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import batched
from typing import Self

type Faults = Callable[[str], None]


class Killed(BaseException):
    """The process ended here, as a Lambda at its time-out does.

    No `Exception`: a dead process runs no handler, so no `except Exception` may catch it.
    """


def no_faults(point: str) -> None:
    """Let every call pass."""


@dataclass(slots=True)
class KillAt:
    """Kill at the `step`-th point (from 0), and remember every point that was passed.

    `step` None kills never: a first run with it tells how many points there are.
    """

    step: int | None = None
    points: list[str] = field(default_factory=list)

    def __call__(self, point: str) -> None:
        is_last = len(self.points) == self.step
        self.points.append(point)
        if is_last:
            raise Killed(f"killed {point} (step {self.step})")


class effect:  # noqa: N801 - it is used as a word of the `with` statement
    """Offer the fault hook both sides of one call; after one that failed there is nothing."""

    __slots__ = ("_faults", "_method")

    def __init__(self, faults: Faults, method: str) -> None:
        self._faults, self._method = faults, method

    def __enter__(self) -> None:
        if self._faults is not no_faults:
            self._faults("before " + self._method)

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None and self._faults is not no_faults:
            self._faults("after " + self._method)


def calls[T](faults: Faults, method: str, parts: Iterable[T], most: int) -> Iterator[tuple[T, ...]]:
    """The parts, in as many calls as the adapter makes of them."""
    for chunk in batched(parts, most, strict=False):
        with effect(faults, method):
            yield chunk


class Acting:
    """Somebody runs, as the last of `actors`; `was_killed` tells afterwards whether it died.

    `outlives`: its death ends here; otherwise it goes on to whoever called.
    """

    __slots__ = ("_actor", "_actors", "_outlives", "was_killed")

    def __init__(self, actors: list[str], actor: str, *, outlives: bool) -> None:
        self._actors, self._actor, self._outlives = actors, actor, outlives
        self.was_killed = False

    def __enter__(self) -> Self:
        self._actors.append(self._actor)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> bool:
        self._actors.pop()
        self.was_killed = self._outlives and kind is not None and issubclass(kind, Killed)
        return self.was_killed
