"""Wakes the agent when slurmctld writes to its log, or when another thread asks for it.

slurmctld has no hook for "something changed" that needs no configuration; its log grows within
milliseconds of a submission, a job's end or a node's registration.
"""

import contextlib
import os
import select
from pathlib import Path
from typing import Self

from inotify_simple import INotify, flags  # type: ignore[import-untyped]

_FOLDER_EVENTS = flags.CREATE | flags.MOVED_TO
_GONE = flags.DELETE_SELF | flags.MOVE_SELF | flags.IGNORED


class Waker:
    """Waits for the log, for `wake`, or for the time-out. Use it as a context.

    The log may be absent, be rotated and come back: the folder is watched for it, and looked
    for again at every wait when the folder itself is missing.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._inotify = INotify(nonblocking=True)
        self._wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._folder_watch: int | None = None
        self._log_watch: int | None = None
        self._poll = select.poll()
        self._poll.register(self._inotify.fileno(), select.POLLIN)
        self._poll.register(self._wakes, select.POLLIN)
        self._watch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._inotify.close()
        os.close(self._wakes)

    def wake(self) -> None:
        """Wake the waiting thread; safe from any thread and from signal handlers."""
        os.eventfd_write(self._wakes, 1)

    def wait(self, timeout_s: float) -> bool:
        """Wait at most so long; whether anything happened. Earlier calls of `wake` count."""
        self._watch()
        happened = bool(self._poll.poll(max(0.0, timeout_s) * 1000))
        self.clear()
        return happened

    def clear(self) -> None:
        """Forget what has happened so far: whoever looks now sees it."""
        with contextlib.suppress(BlockingIOError):  # nobody called `wake`
            os.eventfd_read(self._wakes)
        for event in self._inotify.read(timeout=0):
            if event.wd == self._folder_watch and event.mask & _GONE:
                self._folder_watch = None
            elif event.wd == self._folder_watch and event.name == self._log.name:
                # Rotated: the name now means another file.
                self._log_watch = None
            elif event.wd == self._log_watch and event.mask & flags.IGNORED:
                self._log_watch = None
        self._watch()

    def _watch(self) -> None:
        # DELETE_SELF and MOVE_SELF of the folder: a later folder of this name is a new one.
        if self._folder_watch is None:
            self._folder_watch = self._add(
                self._log.parent, _FOLDER_EVENTS | flags.DELETE_SELF | flags.MOVE_SELF
            )
        if self._log_watch is None:
            self._log_watch = self._add(self._log, flags.MODIFY)

    def _add(self, path: Path, mask: int) -> int | None:
        try:
            return int(self._inotify.add_watch(path, mask))
        except OSError:
            # Absent, or not ours to read: the slow poll of the loop still notices changes.
            return None
