"""Looks at the heartbeats of jobs, and at how far they have come: files of their users.

In a thread of its own: a file system that is gone makes whoever asks it wait.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidegate.agent.shared_files import NotLooked, SharedFiles, uid_of
from tidegate.core.fleet.resume import gang_of
from tidegate.core.interruption.heartbeat import Beat, heartbeat
from tidegate.core.interruption.progress import CHARS_MAX, PROGRESS_KEY, progress, progress_path
from tidegate.core.interruption.steps import CHARS_MAX as STEP_CHARS_MAX
from tidegate.core.interruption.steps import step
from tidegate.core.model.job_files import Progress, ToldStep
from tidegate.core.model.slurm import Job

EVERY_S = 5.0
# A look at a file of EFS takes milliseconds; nobody has so many jobs of days.
JOBS_MAX = 1_000


@dataclass(slots=True)
class Heartbeats:
    """`folder`: where such files may be. Called by the agent with what runs, it answers with what
    the last `step` saw; so it does of progress, also with what waits to go on.
    """

    folder: Path
    uid_of: Callable[[str], int | None] = uid_of
    _beating: dict[str, Job] = field(default_factory=dict)
    _beats: dict[str, Beat] = field(default_factory=dict)
    _telling: dict[str, Job] = field(default_factory=dict)
    _told: dict[str, Progress] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, jobs: Sequence[Job]) -> Mapping[str, Beat]:
        asked = [job for job in jobs if job.is_running and "tidegate:heartbeat=" in job.comment]
        with self._lock:
            self._beating = {job.job_id: job for job in asked[:JOBS_MAX]}
            return {each: self._beats[each] for each in self._beating.keys() & self._beats.keys()}

    def progress(self, jobs: Sequence[Job]) -> Mapping[str, Progress]:
        """How far jobs have come that name a file which says so."""
        asked = [job for job in jobs if PROGRESS_KEY in job.comment]
        with self._lock:
            self._telling = {job.job_id: job for job in asked[:JOBS_MAX]}
            return {each: self._told[each] for each in self._telling.keys() & self._told.keys()}

    def step(self) -> None:
        """Look at each file once."""
        with self._lock:
            beating, telling = dict(self._beating), dict(self._telling)
        beats = {job_id: self.look(job) for job_id, job in beating.items()}
        beats |= _shared(beating, beats)
        told = {job_id: self.read(job) for job_id, job in telling.items()}
        with self._lock:
            self._beats, self._told = beats, told

    def look(self, job: Job) -> Beat:
        """When the job's file was last touched, or why that is not asked."""
        asked = heartbeat(job)
        if asked is None:
            return Beat(problem="its comment names no file by its whole path and @SECONDS")
        try:
            touched_at_s, text = self._files.seen(Path(asked.path), job.user, STEP_CHARS_MAX)
        except FileNotFoundError:
            return Beat()
        except NotLooked as why:
            return Beat(problem=str(why))
        return Beat(touched_at_s, step=step(text))

    def read(self, job: Job) -> Progress:
        """How much of its work the job's checkpoint holds; nothing, as long as no file says so."""
        path = progress_path(job)
        if path is None:
            return Progress(problem="its comment names no progress file by its whole path")
        try:
            return progress(self._files.text(Path(path), job.user, CHARS_MAX))
        except FileNotFoundError:
            return Progress()
        except NotLooked as why:
            return Progress(problem=str(why))

    @property
    def _files(self) -> SharedFiles:
        return SharedFiles(self.folder, self.uid_of)


def _shared(jobs: Mapping[str, Job], beats: Mapping[str, Beat]) -> dict[str, Beat]:
    """A file that several jobs name, as tasks of an array easily do, says no job's step."""
    named: dict[str, set[str]] = {}
    for job in jobs.values():
        if asked := heartbeat(job):
            named.setdefault(asked.path, set()).add(gang_of(job))
    found: dict[str, Beat] = {}
    for job_id, job in jobs.items():
        asked, beat = heartbeat(job), beats[job_id]
        if asked and beat.step and len(named[asked.path]) > 1:
            said = f"jobs {' and '.join(sorted(named[asked.path])[:2])} name one heartbeat file"
            found[job_id] = replace(beat, step=ToldStep(problem=said))
    return found
