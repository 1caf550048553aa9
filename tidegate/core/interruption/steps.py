"""What a job that was requeued does again, by the steps that its heartbeat file tells.

Between its first and its last step a run is taken to have kept an even pace. Pure.
"""

import re
from dataclasses import replace

from tidegate.core.interruption.heartbeat import Beat
from tidegate.core.interruption.lost_work import gpus_held
from tidegate.core.model.frozen import frozen
from tidegate.core.model.job_files import LostWork, ToldStep
from tidegate.core.model.slurm import Job

# `echo "step $step" >/shared/ada/run/heartbeat`, also before the first step of a run.
CHARS_MAX = 64
_TOLD = re.compile(r"(step|epoch)\s+(\d{1,12}(?:\.\d{1,6})?)", re.ASCII)
SAYS_NONE = "its heartbeat file holds neither `step N` nor `epoch N`"

# The end of a run is seen by the next look; where that comes later than this nobody looked.
LOOKED_S = 60.0
# On a new node containers, data and compilers take longer than on one that had them.
BEGINS_MIN_S, BEGINS_TIMES = 1800.0, 3.0


def step(text: str) -> ToldStep | None:
    """What the file's words say; None: it is empty, as one that is only touched."""
    if not text.strip():
        return None
    found = _TOLD.fullmatch(text.strip())
    return ToldStep(float(found[2]), found[1]) if found else ToldStep(problem=SAYS_NONE)


@frozen
class DoneStep:
    """A step, and when it was done."""

    number: float
    at_s: float


@frozen
class Marks:
    """What is known of one run of a job. `seen_at_s`: when it was last seen to run."""

    restarts: int
    began_at_s: float
    gpus: int
    seen_at_s: float
    beat_at_s: float | None = None
    first_beat_at_s: float | None = None
    unit: str = ""
    first: DoneStep | None = None
    last: DoneStep | None = None
    problem: str = ""

    def after(self, beat: Beat, now_s: float) -> "Marks":
        """With what one look more shows. What was touched before this run says nothing."""
        touched_s = beat.touched_at_s
        if touched_s is None or touched_s <= self.began_at_s:
            return replace(self, seen_at_s=now_s)
        at_s = min(touched_s, now_s)
        known = replace(
            self,
            seen_at_s=now_s,
            beat_at_s=max(at_s, self.beat_at_s or at_s),
            first_beat_at_s=self.first_beat_at_s or at_s,
        )
        if beat.step is None or self.problem:
            return known
        return known._told(beat.step, at_s)

    def _told(self, told: ToldStep, at_s: float) -> "Marks":
        if told.problem:
            return replace(self, problem=told.problem)
        last, mark = self.last, DoneStep(told.number, at_s)
        if last is None:
            return replace(self, unit=told.unit, first=mark, last=mark)
        if told.unit != self.unit:
            return replace(self, problem="its heartbeat tells of steps and of epochs within a run")
        if mark.number < last.number:
            went = f"its {self.unit} went back from {last.number:.12g} to {mark.number:.12g}"
            return replace(self, problem=f"{went} within a run; tell one that only rises")
        return self if mark.number == last.number else replace(self, last=mark)

    @property
    def told(self) -> DoneStep | None:
        """The last step, where its steps can be counted."""
        return None if self.problem else self.last

    def ended(self, restarts: int, now_s: float) -> LostWork:
        """What it lost, as far as that is known before the next run goes on."""
        is_seen = 0.0 <= now_s - self.seen_at_s <= LOOKED_S
        until_s = now_s if is_seen else self.seen_at_s
        last = self.told
        stood_since_s = last.at_s if last else self.beat_at_s
        return LostWork(
            restarts,
            self.gpus,
            until_s,
            until_s if stood_since_s is None else min(stood_since_s, until_s),
            step=last.number if last else None,
            unit=self.unit or "step",
            problem=self.problem,
        )

    def reached_at_s(self, number: float) -> float | None:
        """When this run had done that step; None: its steps are not known."""
        first, last = self.first, self.told
        if first is None or last is None:
            return None
        if number >= last.number:
            return last.at_s
        if last.number == first.number:
            return self.began_at_s  # at what pace it went is not known: all of it is done again
        part = (number - first.number) / (last.number - first.number)
        # Before the first that was seen it went at the same pace, from its start on.
        return max(first.at_s + part * (last.at_s - first.at_s), self.began_at_s)


@frozen
class Work:
    """What is known of a job: of its present run, of the last one before that told anything, and
    what was lost with it. `silent`: the last one that told nothing, after such a run.
    """

    run: Marks | None = None
    before: Marks | None = None
    lost: LostWork | None = None
    silent: Marks | None = None

    def first_beat_within_s(self, silent_s: float) -> float | None:
        """For how long a run may be silent from its start on, by how long the one before took to
        its first beat; None: no run has beaten yet, or this one has.
        """
        before = self.before
        if before is None or before.first_beat_at_s is None or (self.run and self.run.beat_at_s):
            return None
        took_s = before.first_beat_at_s - before.began_at_s
        return max(BEGINS_MIN_S, BEGINS_TIMES * took_s + silent_s)


def began(job: Job, now_s: float) -> Marks:
    """A run of which nothing is known yet."""
    return Marks(job.restarts, job.started_at_s or now_s, gpus_held(job), now_s)


def seen(known: Work, job: Job, beat: Beat, now_s: float) -> Work:
    """With one look more at a job that asks for its heartbeat to be watched."""
    run = known.run
    if run is not None and job.restarts > run.restarts:
        known = _requeued(known, run, job.restarts, now_s)
        run = None
    if run is None and _is_over(known, job):
        return known
    if job.state != "RUNNING" or job.started_at_s is None:
        # A run that is suspended goes on later.
        return known if run is None else replace(known, run=replace(run, seen_at_s=now_s))
    run = (run or began(job, now_s)).after(beat, now_s)
    return _resumed(replace(known, run=run), now_s)


def _is_over(known: Work, job: Job) -> bool:
    """squeue may show a run that was just requeued as running still, with its old start."""
    last = known.silent or known.before
    return last is not None and job.started_at_s == last.began_at_s


def _requeued(known: Work, run: Marks, restarts: int, now_s: float) -> Work:
    """A run that had told nothing yet leaves open what the one before it lost; all of it is lost,
    where that one had told something.
    """
    if run.beat_at_s is None and known.before and known.lost:
        is_open = known.lost.resumed_step is None
        lost = replace(known.lost, restarts=restarts) if is_open else known.lost
        return Work(None, known.before, lost, silent=run)
    return Work(None, run, run.ended(restarts, now_s))


def _resumed(work: Work, now_s: float) -> Work:
    """The first step that a run tells is the one with which it went on."""
    run, before, lost = work.run, work.before, work.lost
    if run is None or before is None or lost is None or lost.resumed_step is not None:
        return work
    if run.told is None or run.first is None or run.restarts != lost.restarts:
        return work
    since_s = before.reached_at_s(run.first.number) if run.unit == before.unit else None
    since_s = None if since_s is None else min(since_s, lost.stood_since_s)
    on = replace(lost, resumed_step=run.first.number, resumed_at_s=now_s, since_s=since_s)
    return replace(work, lost=on)
