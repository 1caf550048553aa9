"""Looks at the heartbeats of jobs: files of their users, on the file system that all share.

The agent is not root, and yet sees more than a user should learn by it: so it only asks when a
file was changed, follows no link, stays in the shared folder, and believes no file of another user.
It asks in a thread of its own: a file system that is gone makes whoever asks it wait.
"""

import os
import pwd
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.core.interruption.heartbeat import Beat, heartbeat
from tidegate.core.model.slurm import Job

EVERY_S = 5.0
# A look at a file of EFS takes milliseconds; nobody has so many jobs of days.
JOBS_MAX = 1_000


def uid_of(user: str) -> int | None:
    """None: the head knows no such user."""
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None


@dataclass(slots=True)
class Heartbeats:
    """`folder`: where heartbeats may be. Called by the agent with what runs, it answers with what
    the last `step` saw.
    """

    folder: Path
    uid_of: Callable[[str], int | None] = uid_of
    _asked: dict[str, Job] = field(default_factory=dict)
    _seen: dict[str, Beat] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, jobs: Sequence[Job]) -> Mapping[str, Beat]:
        asked = [job for job in jobs if job.is_running and "tidegate:heartbeat=" in job.comment]
        with self._lock:
            self._asked = {job.job_id: job for job in asked[:JOBS_MAX]}
            return {job_id: self._seen[job_id] for job_id in self._asked.keys() & self._seen.keys()}

    def step(self) -> None:
        """Look at each file once."""
        with self._lock:
            asked = dict(self._asked)
        seen = {job_id: self.look(job) for job_id, job in asked.items()}
        with self._lock:
            self._seen = seen

    def look(self, job: Job) -> Beat:
        """When the job's file was last touched, or why that is not asked."""
        asked = heartbeat(job)
        if asked is None:
            return Beat(problem="its comment names no file by its whole path and @SECONDS")
        path = Path(asked.path)
        if self.folder not in path.parents or ".." in path.parts:
            return Beat(problem=f"{path} is not below {self.folder}")
        try:
            found = _stat(self.folder, path.relative_to(self.folder).parts)
        except FileNotFoundError:
            return Beat()
        except PermissionError:
            return Beat(
                problem=f"the head's agent may not look at {path}: chmod o+x its folders, or take "
                "another one"
            )
        except OSError as error:  # ELOOP, ENOTDIR: a link on the way; the file system's own trouble
            return Beat(problem=f"{path} leads over a link or cannot be read: {error.strerror}")
        if not stat.S_ISREG(found.st_mode):
            return Beat(problem=f"{path} is no regular file")
        if found.st_uid != self.uid_of(job.user):
            return Beat(problem=f"{path} does not belong to {job.user}")
        return Beat(found.st_mtime)


def _stat(folder: Path, parts: Sequence[str]) -> os.stat_result:
    """Of the file itself, with no link on the way: none of these folders is opened for reading."""
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        for name in parts[:-1]:
            inner = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        return os.stat(parts[-1], dir_fd=at, follow_symlinks=False)
    finally:
        os.close(at)
