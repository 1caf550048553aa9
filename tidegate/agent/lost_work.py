"""Counts what jobs lose that are requeued, by what their heartbeat files tell of steps.

Looks note it in memory; `step`, in a thread of its own, keeps it in the shared folder, where a new
agent or head finds it, and beside it a file a day of runs that are over, for `tidegate cost`.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidegate.agent.gpu_time import DAY_FILE, KEPT_DAYS
from tidegate.agent.users import own_folder, replace_if_changed
from tidegate.core.interruption.heartbeat import Beat, heartbeat
from tidegate.core.interruption.steps import Marks, Work, seen
from tidegate.core.model.errors import BadConfig, BadEvent
from tidegate.core.model.frozen import frozen
from tidegate.core.model.job_files import LostWork
from tidegate.core.model.slurm import Job
from tidegate.core.offers.spend import DAY_S, day_of
from tidegate.ports import Clock
from tidegate.wire.kind import Kind
from tidegate.wire.records import decode, encode

FOLDER = Path(".tidegate") / "lost-work"
KNOWN = "jobs"
EVERY_S = 5.0
KEEP_EVERY_S = 60.0
NO_BEAT = Beat()
MISSING_S = 60.0

logger = logging.getLogger(__name__)


@frozen
class _Known:
    """What a new agent has to know. `works`: by the job's id."""

    works: dict[str, Work]


_KNOWN = Kind(_Known)


@dataclass(slots=True)
class LostWorks:
    """`shared_dir`: None: it is kept nowhere, and a new agent begins anew.

    What is not read yet of the agent before is missed: until then nothing is counted.
    """

    clock: Clock
    shared_dir: Path | None = None
    stopwatch: Callable[[], float] = time.monotonic
    _works: dict[str, Work] = field(default_factory=dict)
    _missed_s: dict[str, float] = field(default_factory=dict)
    _over: dict[str, dict[tuple[str, int], str]] = field(default_factory=dict)
    _is_read: bool = False
    _kept_at_s: float = 0.0
    _problem: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(
        self, jobs: Sequence[Job], beats: Mapping[str, Beat], now_s: float
    ) -> Mapping[str, LostWork]:
        """What jobs have lost with their last runs. Waits for no file."""
        asked = [job for job in jobs if heartbeat(job) is not None]
        with self._lock:
            if self.shared_dir is not None and not self._is_read:
                return {}
            works = {
                job.job_id: seen(
                    self._works.get(job.job_id, Work()),
                    job,
                    beats.get(job.job_id, NO_BEAT),
                    now_s,
                )
                for job in asked
            }
            for job in asked:
                self._note(job, self._works.get(job.job_id), works[job.job_id])
            self._works = works | self._missing(works, now_s)
            return {job_id: work.lost for job_id, work in works.items() if work.lost}

    def _missing(self, works: Mapping[str, Work], now_s: float) -> dict[str, Work]:
        """Of jobs that squeue left out: it does so of one in the moment in which it is requeued."""
        self._missed_s = {
            job_id: self._missed_s.get(job_id, now_s)
            for job_id in self._works
            if job_id not in works
        }
        return {
            job_id: self._works[job_id]
            for job_id, at_s in self._missed_s.items()
            if abs(now_s - at_s) <= MISSING_S
        }

    def lasting(self, job_id: str, beat: Beat) -> Beat:
        """With what this run has touched before, where its file is gone since, or an old one."""
        work = self._works.get(job_id, Work())
        known_s = work.run.beat_at_s if work.run else None
        if known_s is None or beat.problem or (beat.touched_at_s or 0.0) >= known_s:
            return beat
        return replace(beat, touched_at_s=known_s)

    def begins_within_s(self, job: Job) -> float | None:
        """How long this run may take to its first touch; None: nobody knows."""
        asked, work = heartbeat(job), self._works.get(job.job_id, Work())
        return work.first_beat_within_s(asked.silent_s) if asked else None

    def step(self) -> None:
        """Read what the agent before knew, and keep what has changed. Raises nothing."""
        if self.shared_dir is None:
            return
        watch_s = self.stopwatch()
        try:
            folder = own_folder(self.shared_dir, FOLDER)
            self._read(folder)
            if self._kept_at_s == 0.0 or watch_s >= self._kept_at_s + KEEP_EVERY_S:
                self._keep(folder)
                self._kept_at_s = watch_s
            self._problem = ""
        except (OSError, BadConfig) as error:
            if str(error) != self._problem:
                logger.warning("What requeued jobs lose cannot be written down: %s", error)
            self._problem = str(error)

    def _note(self, job: Job, before: Work | None, after: Work) -> None:
        """The line of a run that is over, anew when the next one has gone on."""
        before = before or Work()
        if after.before and after.lost and after.lost != before.lost:
            self._line(job, after.before, after.lost)
        if (run := after.silent) and run != before.silent:
            ended = run.ended(run.restarts + 1, run.seen_at_s)
            self._line(job, run, replace(ended, stood_since_s=run.began_at_s))

    def _line(self, job: Job, run: Marks, lost: LostWork) -> None:
        day, key = day_of(lost.until_s).name, (job.raw_id or job.job_id, round(run.began_at_s))
        self._over.setdefault(day, {})[key] = _line(key[0], run, lost)

    def _read(self, folder: Path) -> None:
        if self._is_read:
            return
        path, found = folder / KNOWN, dict[str, Work]()
        if path.exists():
            try:
                found = decode(_KNOWN, path.read_text(errors="replace")).works
            except BadEvent as error:
                logger.warning("What is known of jobs' steps begins anew: %s", error)
        with self._lock:
            self._works, self._is_read = found, True

    def _keep(self, folder: Path) -> None:
        """Errors: OSError; then it is written later."""
        with self._lock:
            known = encode(_KNOWN, _Known(self._works))
            over = {day: dict(lines) for day, lines in self._over.items()}
        for day, lines in over.items():
            path = folder / day
            text = path.read_text(errors="replace") if path.exists() else ""
            replace_if_changed(path, "".join(_merged(text.splitlines(), lines.values())))
        replace_if_changed(folder / KNOWN, known)
        now_s = self.clock.now_s()
        today, oldest = day_of(now_s).name, day_of(now_s - KEPT_DAYS * DAY_S).name
        with self._lock:
            self._over = {d: o for d, o in self._over.items() if d == today or o != over.get(d)}
        for path in folder.iterdir():
            if DAY_FILE.fullmatch(path.name) and path.name < oldest:
                with contextlib.suppress(OSError):
                    path.unlink()


def _merged(before: Iterable[str], new: Iterable[str]) -> Iterable[str]:
    """A run's newest line counts."""
    found = {tuple(line.split("|")[:3]): line for line in (*before, *new)}
    return (f"{line}\n" for line in found.values())


def _line(job_id: str, marks: Marks, lost: LostWork) -> str:
    """Whose run it was and when it began; since when its work is lost, since when it stood, its
    end; the step at its end and the one at which the next run went on.
    """
    since_s = lost.stood_since_s if lost.since_s is None else lost.since_s
    moments = (marks.began_at_s, since_s, lost.stood_since_s, lost.until_s)
    reached = "" if lost.step is None else f"{lost.step:.12g}"
    resumed = "" if lost.since_s is None else f"{lost.resumed_step:.12g}"
    return "|".join(
        ("lost", job_id, *(f"{max(each, 0.0):.0f}" for each in moments), reached, resumed)
    )
