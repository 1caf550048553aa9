"""A bar for who waits."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

# What takes less needs no bar.
PROGRESS_S = 2.0


@contextmanager
def progress(
    what: str, stream: TextIO, after_s: float = PROGRESS_S
) -> Iterator[Callable[[int, int], None]]:
    """Takes how many are done, and shows it on the stream where that is a terminal."""
    if not stream.isatty():
        yield lambda done, of: None
        return
    from rich.console import Console
    from rich.progress import Progress

    # What is printed meanwhile goes above the bar, unless it goes to a file.
    is_beside = sys.stdout.isatty()
    bar = Progress(console=Console(file=stream), transient=True, redirect_stdout=is_beside)
    task = bar.add_task(what)
    began_s = time.monotonic()

    def tell(done: int, of: int) -> None:
        if not bar.live.is_started and time.monotonic() - began_s > after_s:
            bar.start()
        bar.update(task, completed=done, total=of)

    try:
        yield tell
    finally:
        if bar.live.is_started:
            bar.stop()
