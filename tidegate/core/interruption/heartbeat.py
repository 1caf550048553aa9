"""Jobs that hang: what they say of their heartbeat, and when it is silent for too long."""

import re

from tidegate.core.model.frozen import frozen
from tidegate.core.model.job_files import Hang, ToldStep
from tidegate.core.model.slurm import Job

# `sbatch --comment=tidegate:heartbeat=/shared/ada/run/heartbeat@300/1800`: the training touches
# this file, and has hung when it was not for so many seconds. Those behind the stroke, which may be
# left out, are for a run that has not touched it yet.
HEARTBEAT = re.compile(r"\btidegate:heartbeat=(/[^\s@]{1,1000})@(\d{1,6})(?:/(\d{1,6}))?\b")

# The agent asks now and then, and file systems tell of a change after some seconds.
SILENT_MIN_S = 30.0
# A first run that has touched nothing is told of once its GPUs were idle for so long. It is not
# ended for that: nobody but its owner knows how long it loads.
FIRST_IDLE_S = 1800.0


@frozen
class Heartbeat:
    """The file that a job touches, and for how long it may be silent. `begins_s`: from the start of
    a run until it first touches it; None: the job does not say.
    """

    path: str
    silent_s: float
    begins_s: float | None = None


@frozen
class Beat:
    """What the head sees of a heartbeat. `touched_at_s` None: it is not there yet, or `problem`
    says why nobody looks. `step`: what stands in it; None: nothing.
    """

    touched_at_s: float | None = None
    problem: str = ""
    step: ToldStep | None = None


def heartbeat(job: Job) -> Heartbeat | None:
    """The request in the job's comment; None: there is none."""
    found = HEARTBEAT.search(job.comment)
    if found is None:
        return None
    begins_s = max(float(found[3]), SILENT_MIN_S) if found[3] else None
    return Heartbeat(found[1], max(float(found[2]), SILENT_MIN_S), begins_s)


def hang(
    job: Job,
    beat: Beat,
    now_s: float,
    *,
    rested_at_s: float = 0.0,
    begins_within_s: float | None = None,
    idle_since_s: float | None = None,
) -> Hang | None:
    """That the job hangs, or why nobody can say; None: it is well, or has not begun to beat.

    What an earlier run has touched says nothing. `rested_at_s`: when it was last seen suspended.
    `begins_within_s`: how long it may take to its first beat, where the job does not say; None: as
    long as it likes. `idle_since_s`: since when its GPUs idle; None: they work, or nobody knows.
    """
    asked = heartbeat(job)
    if asked is None or job.state != "RUNNING":
        return None
    if beat.problem:
        return Hang(asked.path, problem=beat.problem)
    started_at_s = job.started_at_s or 0.0
    if beat.touched_at_s is None or beat.touched_at_s <= started_at_s:
        within_s = asked.begins_s or begins_within_s
        if within_s is not None:
            is_late = now_s - max(started_at_s, rested_at_s) > within_s
            return Hang(asked.path, since_s=started_at_s) if is_late and started_at_s else None
        is_idle = idle_since_s is not None and now_s - max(idle_since_s, rested_at_s) > FIRST_IDLE_S
        return Hang(asked.path, problem=_not_begun(asked)) if is_idle else None
    is_silent = now_s - max(beat.touched_at_s, rested_at_s) > asked.silent_s
    return Hang(asked.path, since_s=beat.touched_at_s) if is_silent else None


def _not_begun(asked: Heartbeat) -> str:
    return (
        "this run has not touched it yet, and its GPUs have done nothing for half an hour: a rank "
        "may be missing; where a run takes an hour at most to its first touch, say "
        f"{asked.path}@{asked.silent_s:.0f}/3600, and it is requeued then"
    )
