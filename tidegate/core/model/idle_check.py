"""A site's checks of idle nodes: batch jobs on one or two of them, within a GPU-hour budget."""

import re
from dataclasses import replace

from tidegate.core.model.finding import OUR_CHECKS
from tidegate.core.model.frozen import frozen

PREFIX, PAIR_PREFIX = "tidegate:idle", "tidegate:pair"

_REST = r":[0-9]{1,12}-[0-9]{1,6}"
_NAME = re.compile(PREFIX + r":[a-z][a-z0-9_-]{0,30}:i-[0-9a-f]{1,17}" + _REST)
_PAIR = re.compile(
    PAIR_PREFIX + r":[a-z][a-z0-9_-]{0,30}:i-[0-9a-f]{1,17}\.i-[0-9a-f]{1,17}" + _REST
)

# How the reason of a node begins that has not passed. It is a check by its name, so it is believed
# of a share of the pool, and what it finds goes the way of all that software finds.
FOUND = f"{OUR_CHECKS} idle-check"
# What two nodes have to pass together is a check of its own, and believed of a share of its own.
FOUND_PAIR = f"{FOUND}-pair"

# By these the script says that it could not test: sysexits' EX_TEMPFAIL, and a shell's words for a
# command that cannot be run or is not there. Source: sysexits.h(3head), bash(1), "EXIT STATUS".
UNTESTED = frozenset({75, 126, 127})

# Of a pool, alone and in pairs each, since its record is bound in its size: those that were checked
# last. Who is forgotten counts as never checked.
CHECKED_MAX = 1000

DAY_S = 86_400.0
SECONDS_PER_HOUR = 3600.0


@frozen
class PairCheck:
    """What two idle nodes have to pass together every `every_s`, such as a collective over their
    network. `time_limit_s`: of its job.
    """

    every_s: float = 7 * DAY_S
    time_limit_s: float = 900.0


@frozen
class IdleCheck:
    """What idle nodes have to pass every `every_s`: a script of the site's own, run as `user`.

    `gpu_hours_per_day`: what all checks of the cluster may use in a day (UTC). `time_limit_s`: of
    its job; `wait_s`: by when that has to begin. `pools`: whose nodes. `pair`: what two of them
    have to pass together, None: nothing.
    """

    user: str
    pools: tuple[str, ...]
    gpu_hours_per_day: float
    every_s: float = 7 * DAY_S
    time_limit_s: float = 900.0
    wait_s: float = 600.0
    pair: PairCheck | None = None

    def limit_s(self, *, is_pair: bool = False) -> float:
        """The time limit of its job, or of that of a pair, as Slurm has it: in whole minutes."""
        limit_s = self.pair.time_limit_s if is_pair and self.pair else self.time_limit_s
        return whole_minutes_s(limit_s)

    def most_gpu_hours(self, gpus: int, *, is_pair: bool = False) -> float:
        """What one check may use. `gpus`: of the node, or of both."""
        return gpus * self.limit_s(is_pair=is_pair) / SECONDS_PER_HOUR


@frozen
class AskedCheck:
    """The check that a pool has asked for and of which the end is not known."""

    node: str  #: where it is to run
    name: str  #: name of its job
    gpus: int  #: of the node, or of both
    asked_at_s: float  #: when it was asked for
    sent_at_s: float  #: when the head was told last
    begun_at_s: float | None = None  #: when it was first seen to run; null: it was not yet
    partner: str = ""  #: the other node of a pair; empty: it is of one node

    @property
    def nodes(self) -> tuple[str, ...]:
        return (self.node, self.partner) if self.partner else (self.node,)

    @property
    def is_pair(self) -> bool:
        return bool(self.partner)


@frozen
class CheckedNode:
    """A node and its last check."""

    instance_id: str  #: the node
    at_s: float  #: when the check ended


@frozen
class FailedOnce:
    """A node that did not pass a check. It takes jobs, and is the next to be checked; a second
    failure counts until it has passed twice.
    """

    instance_id: str  #: the node
    said: str  #: how the check ended
    at_s: float  #: when that was seen
    has_passed: bool = False  #: the check after it


@frozen
class SickNode:
    """A node that failed the idle check and is to be drained, until Slurm shows it so."""

    instance_id: str  #: the node
    said: str  #: how the check ended
    at_s: float  #: when that was seen
    sent_at_s: float = 0.0  #: when the head was told to drain it last


@frozen
class TriedPair:
    """A pair that was tried while it is not known which node is sick."""

    first: str  #: a node
    second: str  #: the other
    at_s: float  #: when the check ended
    said: str = ""  #: how it failed; empty: both passed

    @property
    def nodes(self) -> tuple[str, str]:
        return self.first, self.second


@frozen
class PairChecks:
    """The checks of pairs of one pool's idle nodes."""

    missed: int = 0  #: how many in a row did not run, could not test, or said nothing
    rests_until_s: float = 0.0  #: none is asked for before
    said: str = ""  #: why; empty: the last one ran
    nodes: tuple[CheckedNode, ...] = ()  #: who passed with another, of the nodes that are there
    tried: tuple[TriedPair, ...] = ()  #: what was tried since a pair failed, until it is known why


@frozen
class IdleChecks:
    """The checks of one pool's idle nodes."""

    day: int = 0  #: the day that `gpu_hours` is of, in days since 1970 (UTC)
    gpu_hours: float = 0.0  #: what checks used that ended in it
    number: int = 0  #: how many were asked for
    asked: AskedCheck | None = None  #: the one that waits or runs; null: none
    failed: tuple[FailedOnce, ...] = ()  #: who did not pass lately; until it has passed twice
    sick: SickNode | None = None  #: who did not pass and takes jobs still; null: nobody
    missed: int = 0  #: how many in a row did not run, or could not test
    rests_until_s: float = 0.0  #: none is asked for before, since such ones did not run
    said: str = ""  #: why the last one did not run; empty: it did
    nodes: tuple[CheckedNode, ...] = ()  #: who was checked, of the nodes that are there
    pairs: PairChecks = PairChecks()  #: the same of pairs

    def failure(self, instance_id: str) -> FailedOnce | None:
        """That counts of it; None: it passed its last two checks, or never failed."""
        return next((each for each in self.failed if each.instance_id == instance_id), None)

    def is_suspect(self, instance_id: str) -> bool:
        """Its last check failed."""
        failure = self.failure(instance_id)
        return failure is not None and not failure.has_passed

    def last_s(self, instance_id: str, *, is_pair: bool = False) -> float | None:
        """When the node was checked last, alone or with another; None: it was not."""
        nodes = self.pairs.nodes if is_pair else self.nodes
        return next((each.at_s for each in nodes if each.instance_id == instance_id), None)

    @property
    def tried_anew(self) -> "IdleChecks":
        """After a person's word: one that did not run may be asked for again at once, and what
        pairs left open is forgotten.
        """
        pairs = replace(self.pairs, missed=0, rests_until_s=0.0, said="", tried=())
        return replace(self, missed=0, rests_until_s=0.0, said="", pairs=pairs)

    def used(self, now_s: float) -> float:
        """GPU-hours of today's checks that have ended."""
        return self.gpu_hours if self.day == day_of(now_s) else 0.0


def whole_minutes_s(limit_s: float) -> float:
    """A time limit as the head's program gives it to sbatch, which knows no shorter ones."""
    return float(-(-limit_s // 60)) * 60.0


def day_of(now_s: float) -> int:
    """The day in UTC, counted since 1970."""
    return int(now_s // DAY_S)


def idle_check_name(
    pool: str, node: str, launched_at_s: float, number: int, partner: str = ""
) -> str:
    """The name of the job: a plan that is made anew after a crash asks for the same one."""
    of = f"{PAIR_PREFIX}:{pool}:{node}.{partner}" if partner else f"{PREFIX}:{pool}:{node}"
    return f"{of}:{launched_at_s:.0f}-{number}"


def is_pair_check_name(text: str) -> bool:
    """Whether this can be the name of such a job of two nodes."""
    return _PAIR.fullmatch(text) is not None


def is_idle_check_name(text: str) -> bool:
    """Whether this can be the name of such a job, of one node or two."""
    return _NAME.fullmatch(text) is not None or is_pair_check_name(text)
