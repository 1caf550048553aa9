"""What the ledger remembers: launches, nodes, what they cost, and what rests."""

from dataclasses import replace
from enum import IntEnum, StrEnum

from tidegate.core.model.drain_reason import MARK, DrainCode, DrainReason, read
from tidegate.core.model.ec2 import FleetRequest, Offering, Template
from tidegate.core.model.frozen import frozen
from tidegate.core.model.orders import PendingOrder

# DynamoDB takes 400 KB in an item and 4 MB in a transaction; a job id has at most some 20 bytes.
JOBS_KEPT_MAX = 1_000


class Phase(IntEnum):
    """The life of a node in the ledger; it only moves forward."""

    LAUNCHED = 0
    JOINED = 1
    INTERRUPTED = 2
    RELEASED = 3
    TERMINATED = 4

    @property
    def is_alive(self) -> bool:
        return self < Phase.RELEASED


@frozen
class Cordon:
    """No new job on a node, which leaves when it is empty: the word is kubectl's.

    `ends_at_s`: when AWS takes the node away, if it has said so. `lifts_at_s`: when the node takes
    jobs again if it is still there; None: never. `code`: AWS Health's word for it, "rebalance", or
    "" from version 0.1.
    """

    reason: str
    since_s: float
    ends_at_s: float | None = None
    lifts_at_s: float | None = None
    code: str = ""

    @property
    def drain_reason(self) -> DrainReason:
        """With which the node is drained."""
        return DrainReason(DrainCode.CORDON, self.reason, self.about)

    @property
    def about(self) -> str:
        """Its code; version 0.1 wrote none, and its sentence holds it."""
        said = None if self.code else read(f"{MARK}: {self.reason}")
        return said.subject if said else self.code or self.reason

    def is_told_by(self, reason: DrainReason) -> bool:
        """Whether a node with this drain reason is drained for this cordon."""
        return reason.code is DrainCode.CORDON and reason.subject == self.about

    def holds(self, now_s: float) -> bool:
        return self.lifts_at_s is None or now_s < self.lifts_at_s


@frozen
class InterruptionLoss:
    """What running jobs lost with a node that AWS took back, and how many were saved in time."""

    lost_gpu_hours: float = 0.0
    saved_jobs: int = 0
    is_taken: bool = True  # False: it ended by itself while it booted, AWS took nothing back

    def plus(self, other: "InterruptionLoss") -> "InterruptionLoss":
        return InterruptionLoss(
            self.lost_gpu_hours + other.lost_gpu_hours, self.saved_jobs + other.saved_jobs
        )


@frozen
class NodeRecord:
    """What the ledger remembers of one instance. `gated_for`: the gang it waits for.

    `account`, `user`: of the job it was launched for. `priced_at_s`: since when its price holds if
    not since its launch, `ended_at_s`: when it stopped to cost; what it has cost until then is in
    the ledger's counters.
    `template`: the digest of what it is made from. `interrupted_in`: the phase in which AWS took
    it away or it ended by itself; `interruption_loss`: what that did to jobs, counted when AWS
    first said so.
    `joined_at_s`: when it was first seen in Slurm, or None. `for_jobs`: those that it was bought
    for, of many some. `silent_s`: for how long it had heard
    nothing of its head when it said that it ends itself; None: it did not.
    """

    instance_id: str
    launch_id: str
    pool: str
    offering: Offering
    launched_at_s: float
    usd_per_hour: float
    phase: Phase = Phase.LAUNCHED
    gated_for: str = ""
    reclaim_at_s: float | None = None
    order: PendingOrder | None = None
    cordon: Cordon | None = None
    account: str = ""
    ended_at_s: float | None = None
    template: str = ""
    interrupted_in: Phase | None = None
    interruption_loss: InterruptionLoss | None = None
    priced_at_s: float | None = None
    for_jobs: tuple[str, ...] = ()
    silent_s: float | None = None
    joined_at_s: float | None = None
    user: str = ""

    @property
    def is_orphan(self) -> bool:
        """It ended itself since its head was silent: AWS took nothing back."""
        return self.silent_s is not None

    def is_cordoned(self, now_s: float) -> bool:
        return self.cordon is not None and self.cordon.holds(now_s)


@frozen
class Charge:
    """What nodes cost a scope in a period: a day ("2026-11-21") or a month ("2026-11")."""

    period: str
    scope: str
    usd: float


@frozen
class Bill:
    """What a node cost at one price: a line of the cluster's own bill, of which a node whose price
    changed has several. Times in epoch seconds; `joined_at_s`: when Slurm had it; None: never.
    `account`: that of the job it was launched for; "": none.
    """

    instance_id: str
    pool: str
    offering: Offering
    account: str
    launched_at_s: float
    joined_at_s: float | None
    since_s: float
    until_s: float
    usd_per_hour: float


@frozen
class Losses:
    """The interruption losses of all nodes that AWS took back in a month ("2026-11").

    `orphans`: nodes that ended themselves in it, since their head was silent.
    """

    month: str
    nodes: int
    lost_gpu_hours: float
    saved_jobs: int
    orphans: int = 0

    def plus(self, stretch: "Stretch") -> "Losses":
        """With what one more node lost."""
        loss = stretch.interruption_loss
        if stretch.is_orphan:
            return replace(self, orphans=self.orphans + 1)
        if loss is None or not loss.is_taken:
            return self
        return replace(
            self,
            nodes=self.nodes + 1,
            lost_gpu_hours=self.lost_gpu_hours + loss.lost_gpu_hours,
            saved_jobs=self.saved_jobs + loss.saved_jobs,
        )


@frozen
class Stretch:
    """What a node has cost at one price, that of the record of `priced_at_s`, until `until_s`.

    `bill`: the same as a line; None: it cost nothing.
    `next_usd_per_hour`: its price from then on; None: it has ended. `interruption_loss`: if AWS
    took it back. `is_orphan`: it ended itself since its head was silent.
    """

    instance_id: str
    until_s: float
    charges: tuple[Charge, ...]
    priced_at_s: float | None = None
    next_usd_per_hour: float | None = None
    interruption_loss: InterruptionLoss | None = None
    is_orphan: bool = False
    bill: Bill | None = None


@frozen
class Launch:
    """Buy `count` nodes from the first of `offerings` that EC2 gives; one market, ranked.

    `gated_for` names the gang whose members join drained until all are there ("": open), the first
    of `gangs` where equal ones share it. `usd_per_hour_each`: of the dearest offering, by which
    limits are debited. `account`, `user`: of the first of `for_jobs`, who pay. `template`: what its
    nodes are made from; None: as the stack says.
    """

    launch_id: str
    pool: str
    offerings: tuple[Offering, ...]
    count: int
    min_count: int
    for_jobs: tuple[str, ...]
    usd_per_hour_each: float
    gated_for: str
    reason: str
    account: str = ""
    user: str = ""
    gangs: tuple[str, ...] = ()
    template: Template | None = None


class LaunchStatus(StrEnum):
    RECORDED = "recorded"  # in doubt: CreateFleet may or may not have been called
    DONE = "done"
    FAILED = "failed"


@frozen
class LaunchRecord:
    """A launch as the ledger knows it, with the whole request: a retry repeats it exactly."""

    launch: Launch
    created_at_s: float
    request: FleetRequest
    status: LaunchStatus = LaunchStatus.RECORDED
    taken_at_s: float | None = None  # when another planner last set out to finish it

    def kept(self) -> "LaunchRecord":
        """What a ledger keeps of it: of many jobs the first, which nothing is decided by."""
        jobs = self.launch.for_jobs[:JOBS_KEPT_MAX]
        return replace(self, launch=replace(self.launch, for_jobs=jobs))
