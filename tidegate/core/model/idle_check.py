"""A site's check of idle nodes: a batch job on one idle node, within a budget of GPU-hours."""

import re
from dataclasses import replace

from tidegate.core.model.finding import OUR_CHECKS
from tidegate.core.model.frozen import frozen

PREFIX = "tidegate:idle"

_NAME = re.compile(PREFIX + r":[a-z][a-z0-9_-]{0,30}:i-[0-9a-f]{1,17}:[0-9]{1,12}-[0-9]{1,6}")

# How the reason of a node begins that has not passed. It is a check by its name, so it is believed
# of a share of the pool, and what it finds goes the way of all that software finds.
FOUND = f"{OUR_CHECKS} idle-check"

# By these the script says that it could not test: sysexits' EX_TEMPFAIL, and a shell's words for a
# command that cannot be run or is not there. Source: sysexits.h(3head), bash(1), "EXIT STATUS".
UNTESTED = frozenset({75, 126, 127})

DAY_S = 86_400.0
SECONDS_PER_HOUR = 3600.0


@frozen
class IdleCheck:
    """What idle nodes have to pass every `every_s`: a script of the site's own, run as `user`.

    `gpu_hours_per_day`: what all checks of the cluster may use in a day (UTC). `time_limit_s`: of
    its job; `wait_s`: by when that has to begin. `pools`: whose nodes.
    """

    user: str
    pools: tuple[str, ...]
    gpu_hours_per_day: float
    every_s: float = 7 * DAY_S
    time_limit_s: float = 900.0
    wait_s: float = 600.0

    @property
    def minutes(self) -> int:
        """Its time limit as Slurm has it."""
        return int(-(-self.time_limit_s // 60))

    def most_gpu_hours(self, gpus: int) -> float:
        """What one check of a node with so many GPUs may use."""
        return gpus * self.minutes * 60.0 / SECONDS_PER_HOUR


@frozen
class AskedCheck:
    """The check that a pool has asked for and of which the end is not known."""

    node: str  #: where it is to run
    name: str  #: name of its job
    gpus: int  #: of the node
    asked_at_s: float  #: when it was asked for
    sent_at_s: float  #: when the head was told last
    begun_at_s: float | None = None  #: when it was first seen to run; null: it was not yet


@frozen
class CheckedNode:
    """A node and its last check."""

    instance_id: str  #: the node
    at_s: float  #: when the check ended


@frozen
class SickNode:
    """A node that did not pass, as long as Slurm does not show it drained."""

    instance_id: str  #: the node
    said: str  #: how the check ended
    at_s: float  #: when that was seen
    sent_at_s: float = 0.0  #: when the head was told to drain it last


@frozen
class IdleChecks:
    """The checks of one pool's idle nodes."""

    day: int = 0  #: the day that `gpu_hours` is of, in days since 1970 (UTC)
    gpu_hours: float = 0.0  #: what checks used that ended in it
    number: int = 0  #: how many were asked for
    asked: AskedCheck | None = None  #: the one that waits or runs; null: none
    sick: SickNode | None = None  #: who did not pass and takes jobs still; null: nobody
    missed: int = 0  #: how many in a row did not run, or could not test
    rests_until_s: float = 0.0  #: none is asked for before, since such ones did not run
    said: str = ""  #: why the last one did not run; empty: it did
    nodes: tuple[CheckedNode, ...] = ()  #: who was checked, of the nodes that are there

    def last_s(self, instance_id: str) -> float | None:
        """When the node was checked last; None: it was not."""
        found = (each.at_s for each in self.nodes if each.instance_id == instance_id)
        return next(found, None)

    @property
    def tried_anew(self) -> "IdleChecks":
        """After a person's word: one that did not run may be asked for again at once."""
        return replace(self, missed=0, rests_until_s=0.0, said="")

    def used(self, now_s: float) -> float:
        """GPU-hours of today's checks that have ended."""
        return self.gpu_hours if self.day == day_of(now_s) else 0.0


def day_of(now_s: float) -> int:
    """The day in UTC, counted since 1970."""
    return int(now_s // DAY_S)


def idle_check_name(pool: str, node: str, launched_at_s: float, number: int) -> str:
    """The name of the job: a plan that is made anew after a crash asks for the same one."""
    return f"{PREFIX}:{pool}:{node}:{launched_at_s:.0f}-{number}"


def is_idle_check_name(text: str) -> bool:
    """Whether this can be the name of such a job."""
    return _NAME.fullmatch(text) is not None
