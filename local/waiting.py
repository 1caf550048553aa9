"""Waiting for what other processes on this computer do."""

import time
from collections.abc import Callable

# What has not happened by then does not happen; a busy machine may be long about it.
PATIENCE_S = 120.0
POLL_S = 0.15  # a look at Slurm is several processes


def wait_for(test: Callable[[], object], patience_s: float = PATIENCE_S) -> bool:
    """Whether it was so before our patience ended."""
    until_s = time.monotonic() + patience_s
    while time.monotonic() < until_s:
        if test():
            return True
        time.sleep(POLL_S)
    return False


def eventually[T](what: str, ask: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """The first true answer of `ask`. Errors: AssertionError, when our patience ended."""
    until_s = time.monotonic() + patience_s
    while not (answer := ask()):
        assert time.monotonic() < until_s, f"not within {patience_s} s: {what}"
        time.sleep(POLL_S)
    return answer
