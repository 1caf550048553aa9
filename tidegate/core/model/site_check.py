"""A site's own check of new images: a batch job on the first nodes, and what became of it."""

import re

from tidegate.core.model.frozen import frozen
from tidegate.core.model.idle_check import is_idle_check_name, whole_minutes_s

PREFIX = "tidegate:check"

_NAME = re.compile(PREFIX + r":[a-z][a-z0-9_-]{0,30}:[A-Za-z0-9._-]{1,80}:[0-9]{1,12}-[0-9]{1,6}")

# What is said of a check that Slurm did not take; its other words are Slurm's own.
REFUSED = "REFUSED"
PASSED = "COMPLETED"
# It ran, and what it ran on is no good. Others than these and `PASSED` say nothing of that: it was
# cancelled, a node went, or it had not begun by its deadline.
# Source: squeue(1), "JOB STATE CODES".
FAILED = frozenset({"FAILED", "TIMEOUT", "OUT_OF_MEMORY"})
NOT_RUN = frozenset(
    {REFUSED, "BOOT_FAIL", "CANCELLED", "DEADLINE", "NODE_FAIL", "PREEMPTED", "REVOKED"}
)


@frozen
class SiteCheck:
    """What new templates have to pass: a script of the site's own, run as `user` on as many first
    nodes.

    `time_limit_s`: of its job; `wait_s`: by when that has to begin. `pools`: whose templates, none:
    those of all pools.
    """

    user: str
    nodes: int = 1
    time_limit_s: float = 600.0
    wait_s: float = 3600.0
    pools: tuple[str, ...] = ()

    @property
    def limit_s(self) -> float:
        """The time limit of its job, as Slurm has it."""
        return whole_minutes_s(self.time_limit_s)


@frozen
class CheckJob:
    """A job of a check, as Slurm shows it."""

    name: str  #: name of the job: the pool, the template, and which check it is
    state: str  #: squeue's word, or REFUSED
    job_id: str = ""  #: as scontrol takes it; empty: none
    user: str = ""  #: its user
    exit_code: int | None = None  #: of its script; null: it has not ended
    said: str = ""  #: why sbatch refused it


@frozen
class Checked:
    """How far the check of a template has come."""

    number: int = 0  #: how many jobs were asked for
    missed: int = 0  #: how many of them in a row did not run
    #: since when one may be asked for; null: no node of it has joined well
    since_s: float | None = None
    nodes: tuple[str, ...] = ()  #: where the last one is to run
    asked_at_s: float | None = None  #: when it was asked for; null: none is
    sent_at_s: float = 0.0  #: when the head was told last
    is_passed: bool = False  #: one has passed


def check_name(pool: str, template: str, since_s: float, number: int) -> str:
    """The name of the check's job: by it the job is known, and is submitted once only."""
    return f"{PREFIX}:{pool}:{template}:{since_s:.0f}-{number}"


def is_check_name(text: str) -> bool:
    """Whether this can be the name of a check's job."""
    return _NAME.fullmatch(text) is not None


def is_check(text: str) -> bool:
    """Whether this can be the name of a check's job, of a template or of an idle node."""
    return is_check_name(text) or is_idle_check_name(text)
