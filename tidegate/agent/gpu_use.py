"""Reads how much jobs use their GPUs: a small file of each node, on the file system that all share.

The agent owns the folder, and nodes write as its owner, so no user can speak for a node. What is
missing, old, another's or unreadable is not known, and nobody takes it for idle. It is read in a
thread of its own: a file system that is gone makes whoever asks it wait.
"""

import logging
import os
import re
import stat
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tidegate.agent.users import own_folder
from tidegate.core.interruption.gpu_use import SILENT_S, GpuUseSample, seen, use_now
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.gpu_use import USE_PERCENT_MAX, GpuUse
from tidegate.core.model.slurm import Job
from tidegate.core.model.slurm_names import is_instance_id
from tidegate.ports import Clock

FOLDER = Path(".tidegate") / "gpu-use"
EVERY_S = 20.0
# Jobs that use their GPUs say nothing new every minute.
TOLD_AFTER_S = 300.0
# A node of 16 GPUs has 400 bytes.
BYTES_MAX = 16_384
# Of a node that ended.
FORGOTTEN_AFTER_S = 86_400.0

_FIRST = re.compile(r"[0-9]{1,12}", re.ASCII)
_USE = re.compile(r"([0-9]{1,12}) (?:([0-9]{1,3})|-)", re.ASCII)
# Of a job on a node with Neuron devices: the number of each that it computes on, and its percent.
_DEVICES = re.compile(r"([0-9]{1,12}) of((?: [0-5]?[0-9]:[0-9]{1,3})*)", re.ASCII)

logger = logging.getLogger(__name__)

type Run = tuple[str, int, float | None]


@dataclass(slots=True)
class GpuUses:
    """Called by the agent with what runs, it answers with the runs whose GPUs do little.

    `count`: is given all that nodes said, each time.
    """

    shared_dir: Path
    clock: Clock
    count: Callable[[Sequence[Job], Mapping[str, GpuUseSample]], None] = lambda jobs, samples: None
    _asked: tuple[Job, ...] = ()
    _seen: dict[Run, GpuUse] = field(default_factory=dict)
    _looked_at_s: float = 0.0
    _problem: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, jobs: Sequence[Job]) -> Mapping[str, GpuUse]:
        running = tuple(job for job in jobs if job.state == "RUNNING")
        now_s = self.clock.now_s()
        with self._lock:
            self._asked = running
            known = self._seen if abs(now_s - self._looked_at_s) <= SILENT_S else {}
            uses = {job.job_id: use for job in running if (use := known.get(_run(job)))}
        return {
            job_id: use
            for job_id, use in uses.items()
            if now_s - use.below_since_s(USE_PERCENT_MAX) >= TOLD_AFTER_S
        }

    def step(self) -> None:
        """Read what the nodes of running jobs say. A step that comes late begins all anew."""
        with self._lock:
            asked, before = self._asked, self._seen
        try:
            folder = own_folder(self.shared_dir, FOLDER)
        except (OSError, BadConfig) as error:
            self._say_once(f"Nobody sees how much jobs use their GPUs: {error}")
            return
        self._problem = ""
        names = {name for job in asked for name in job.node_names if is_instance_id(name)}
        samples = {name: said for name in sorted(names) if (said := sample(folder / name))}
        self.count(asked, samples)
        now_s = self.clock.now_s()
        _forget(folder, now_s)
        if abs(now_s - self._looked_at_s) > SILENT_S:
            before = {}
        found: dict[Run, GpuUse] = {}
        for job in asked:
            run = _run(job)
            if use := seen(before.get(run), use_now(job, samples, now_s), now_s):
                found[run] = use
        with self._lock:
            self._seen = found
            self._looked_at_s = now_s

    def _say_once(self, problem: str) -> None:
        if problem != self._problem:
            logger.warning("%s", problem)
        self._problem = problem


def _run(job: Job) -> Run:
    return job.job_id, job.restarts, job.started_at_s


def sample(path: Path) -> GpuUseSample | None:
    """What a node says; None: nothing that is to be believed."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if not is_ours or found.st_mode & 0o022:
            return None
        try:
            text = file.read(BYTES_MAX).decode()
        except (OSError, UnicodeDecodeError):
            return None
    return _sample(text)


def _sample(text: str) -> GpuUseSample | None:
    first, *rest = text.splitlines() or [""]
    if not _FIRST.fullmatch(first) or not text.endswith("\n"):
        return None
    uses: list[tuple[str, int | None]] = []
    devices: dict[str, dict[int, int]] = {}
    for line in rest:
        if found := _USE.fullmatch(line):
            uses.append((found[1], int(found[2]) if found[2] else None))
        elif found := _DEVICES.fullmatch(line):
            parts = (each.split(":") for each in found[2].split())
            devices[found[1]] = {int(number): int(percent) for number, percent in parts}
        else:
            return None
    return GpuUseSample(float(first), tuple(uses), devices)


def _forget(folder: Path, now_s: float) -> None:
    """Files of nodes that have long ended."""
    for path in folder.iterdir():
        try:
            if path.lstat().st_mtime < now_s - FORGOTTEN_AFTER_S:
                path.unlink()
        except OSError:
            continue
