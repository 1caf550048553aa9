"""Waiting for what other processes on this computer do."""

import time
from collections.abc import Callable

# What has not happened by then does not happen; a busy machine may be long about it.
PATIENCE_S = 120.0
# A look at Slurm is several processes: what takes long is asked for less and less often.
POLL_S = 0.15
LONGEST_POLL_S = 0.5


def wait_for(test: Callable[[], object], patience_s: float = PATIENCE_S) -> bool:
    """Whether it was so before our patience ended."""
    began_s = time.monotonic()
    while time.monotonic() < began_s + patience_s:
        if test():
            return True
        _pause(began_s)
    return False


def eventually[T](what: str, ask: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """The first true answer of `ask`. Errors: AssertionError, when our patience ended."""
    began_s = time.monotonic()
    while not (answer := ask()):
        assert time.monotonic() < began_s + patience_s, f"not within {patience_s} s: {what}"
        _pause(began_s)
    return answer


def _pause(began_s: float) -> None:
    """For a sixteenth of what was waited already, within the bounds."""
    waited_s = time.monotonic() - began_s
    time.sleep(min(max(POLL_S, waited_s / 16), LONGEST_POLL_S))
