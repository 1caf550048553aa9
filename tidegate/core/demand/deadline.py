"""When a job must have ended, as Slurm or its comment says it."""

import re
from datetime import UTC, datetime
from functools import lru_cache

from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Job
from tidegate.core.model.why import Why, WhyNot

KEY = "tidegate:deadline="

# `sbatch --comment=tidegate:deadline=$(date -d '+8 hours' +%s)`: in epoch seconds, or ISO 8601
# as `date -Iminutes` prints it, in UTC where it names no zone, as for `tidegate:keep`.
ASKED = re.compile(r"\btidegate:deadline=([^\s,;]*)")
EPOCH_S = re.compile(r"\d{9,11}", re.ASCII)

REMEDY = "scontrol update JobId={id} Comment=tidegate:deadline=$(date -d '+8 hours' +%s)"


@frozen
class _Asked:
    """An instant, or why there is none."""

    at_s: float | None
    problem: str = ""


# Jobs of a long queue share their comments.
@lru_cache(maxsize=4_096)
def _asked(comment: str) -> _Asked:
    found = ASKED.search(comment)
    if found is None:
        return _Asked(None)
    text = found[1]
    if EPOCH_S.fullmatch(text):
        return _Asked(float(text))
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        said = "is no instant: epoch seconds, or like 2027-01-31T18:00"
        return _Asked(None, f"its comment's {KEY}{text[:40]} {said}")
    return _Asked((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())


def due_s(job: Job) -> float | None:
    """The instant by which it must have ended, epoch seconds; None: nobody says one.

    The earlier of Slurm's own (`--deadline`) and that of its comment.
    """
    asked_s = _asked(job.comment).at_s if KEY in job.comment else None
    told = [at_s for at_s in (job.deadline_s, asked_s) if at_s is not None]
    return min(told, default=None)


def least_s(job: Job) -> float | None:
    """The shortest time in which it may end from its next start; None: not known.

    Slurm itself cancels a job whose time limit (`--time-min`) no longer fits before `--deadline`.
    By its comment alone a job that saved its work in runs before may have little left to do.
    """
    if job.deadline_s is None and job.is_checkpointed and job.restarts:
        return 0.0
    return job.time_min_s or job.time_limit_s


def unread(job: Job) -> WhyNot | None:
    """Why the deadline in its comment cannot be obeyed; None: it can be read, or there is none."""
    problem = _asked(job.comment).problem if KEY in job.comment else ""
    if not problem:
        return None
    said = f"{problem}; nothing is bought for it"
    return WhyNot(Why.DEADLINE, said, remedy=f"correct it: {REMEDY.format(id=job.job_id)}")
