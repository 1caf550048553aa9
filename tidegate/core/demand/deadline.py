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

# Beside a deadline and a checkpoint, in the comment: it may be requeued for less money alone.
MOVE_KEY = "tidegate:move"
_MOVE = re.compile(rf"\b{MOVE_KEY}(?![\w=-])")

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
    By its comment alone a job that saved its work in runs before has what it says left to do, or
    maybe little where it does not say.
    """
    least = job.time_min_s or job.time_limit_s
    if job.progress is not None and not job.progress.problem:
        return least * (1.0 - saved(job).part) if least else least
    if job.deadline_s is None and job.is_checkpointed and job.restarts:
        return 0.0
    return least


def says_move(job: Job) -> bool:
    """Whether its user lets it be requeued from a node on which it could stay, to save money."""
    return _MOVE.search(job.comment) is not None


@frozen
class Saved:
    """The part of a job's work that need not be done again, 0 to 1; `may_move`: it may be requeued
    from a node on which it could stay.
    """

    part: float = 0.0
    may_move: bool = False


NOTHING_SAVED = Saved()


def saved(job: Job) -> Saved:
    """What a job with a deadline has saved, as far as it says. One may be moved that asks for it,
    saves its work when it is told, and tells how much: else nobody would know what is left.

    For `--deadline` Slurm wants the whole time limit to fit whatever is saved, and cancels the job
    otherwise.
    """
    found = job.progress
    if found is None or found.problem or due_s(job) is None:
        return NOTHING_SAVED
    is_whole = not (job.het_job_id or job.array_job_id)
    is_able = job.is_checkpointed and job.is_requeueable and is_whole
    part = found.part if job.deadline_s is None else 0.0
    return Saved(part, may_move=is_able and says_move(job))


def unread(job: Job) -> WhyNot | None:
    """Why the deadline in its comment cannot be obeyed; None: it can be read, or there is none."""
    problem = _asked(job.comment).problem if KEY in job.comment else ""
    if not problem:
        return None
    said = f"{problem}; nothing is bought for it"
    return WhyNot(Why.DEADLINE, said, remedy=f"correct it: {REMEDY.format(id=job.job_id)}")
