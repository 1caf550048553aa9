"""What is not asked of EC2 for a while: it was refused, or what came of it was no good."""

from tidegate.core.model.cluster import OPEN, Timings
from tidegate.core.model.codes import Coded
from tidegate.core.model.ec2 import Cure, Offering, Refusal
from tidegate.core.model.frozen import frozen

# The code of an offering's rest after EC2 took a node back.
TAKEN_BACK = "spot interruption"
LOSS = "EC2 reclaims instances here"


class BootFailure(Coded):
    """Why an offering rests that EC2 gave: what came of it was no good."""

    STAGE = (
        "BootstrapFailed",
        "a stage of a node's boot failed",
        "`tidegate node log NODE` has its last words; mend what it names, then `tidegate retry`",
    )
    ENDED = (
        "EndedWhileBooting",
        "a node ended itself before it joined",
        "`tidegate node log NODE` has its last words",
    )
    BOUND = (
        "BootBoundExceeded",
        "a node did not register with Slurm within timings.boot_bound_s",
        "`tidegate node log NODE` shows how far it came; an image that boots slowly needs more",
    )
    DOWN = (
        "NodeJoinedDown",
        "a node registered with Slurm, which set it DOWN",
        "see its reason: sinfo -R; then `tidegate retry`",
    )
    TOO_SMALL = (
        "NodeTooSmall",
        "a node joined with less than its type has: GPUs, CPUs or memory",
        "take an image in which Slurm sees all of it (driver), then `tidegate retry`",
    )


BOOT_FAILURES = frozenset(BootFailure)
# In the place of a template: the pool's stopped nodes are not started, and are kept.
STARTS = "starts"

# A refusal costs nothing, a node that is no good costs a boot: 24 min, 48 min, ... 4 h.
BROKEN_REST_FACTOR = 8.0
# Of EC2's LaunchTime.
LAUNCH_TIME_STEP_S = 1.0
DOUBLINGS_MAX = 32  # far past any rest, and far from an overflow


type RestKey = tuple[Offering, str, str, str, str]
"""What rests: an offering, for which pool ("": for all), of which of its templates ("": of all), in
which reservation ("": in all), in which subnet ("": in all).
"""


@frozen
class Resting:
    """An offering that EC2 refused, or whose nodes do not boot: it is not tried for a while."""

    offering: Offering  #: instance type, zone and market
    until_s: float  #: not tried before
    failures: int  #: refusals in a row
    code: str  #: EC2's error code
    message: str  #: EC2's message
    cure: Cure = Cure.NONE  #: what it needs that waiting does not bring; empty: nothing
    pool: str = ""  #: the one that does not try it; empty: all
    #: what the pool may not try: `id:version` of what was refused, the digest of what did not boot;
    #: a pool that has another one now may try; empty: any
    template: str = ""
    #: what EC2 was asked to take it from (`Launch.reservation`); empty: all
    reservation: str = ""
    subnet: str = ""  #: the subnet that had no free address for it; empty: it lay in none
    since_s: float = 0.0  #: when it was last refused, or a node of it last failed; 0: not known
    instance_id: str = ""  #: the node that failed, if one did

    @property
    def key(self) -> RestKey:
        return self.offering, self.pool, self.template, self.reservation, self.subnet

    @property
    def what(self) -> str:
        """For people."""
        into = f" in {self.reservation}" if self.reservation not in ("", OPEN) else ""
        return f"{self.offering}{into}"

    def stops(self, pool: str) -> bool:
        return self.pool in ("", pool)

    def tells_of(self, instance_id: str, launched_at_s: float, now_s: float) -> bool:
        """The failure of this node, launched then, counts already: a first one counts for all that
        were on their way with it. EC2 tells whole seconds: what came after it may seem older.
        """
        is_failure = self.code in BOOT_FAILURES and self.until_s > now_s
        is_older = launched_at_s <= self.since_s - LAUNCH_TIME_STEP_S
        return is_failure and (is_older or instance_id == self.instance_id)


def rest_s(failures: int, timings: Timings) -> float:
    """How long it rests after so many refusals in a row: each doubles it, up to a bound."""
    doubled_s = timings.rest_min_s * 2.0 ** min(failures - 1, DOUBLINGS_MAX)
    return min(doubled_s, timings.rest_max_s)


def rested(
    refusal: Refusal,
    before: Resting | None,
    now_s: float,
    timings: Timings,
    *,
    factor: float = 1.0,
) -> Resting:
    """The rest of a refused offering, the longer the more often it was."""
    failures = (before.failures if before else 0) + 1
    until_s, said = now_s + factor * rest_s(failures, timings), refusal.message
    return Resting(
        *(refusal.offering, until_s, failures, refusal.code, said, refusal.cure),
        pool=refusal.pool,
        template=refusal.template,
        reservation=refusal.reservation,
        subnet=refusal.subnet,
        since_s=now_s,
    )
