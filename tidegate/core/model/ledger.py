"""What the ledger remembers: launches, nodes, what they cost, and what rests."""

from dataclasses import replace
from enum import IntEnum, StrEnum

from tidegate.core.model.drain_reason import MARK, DrainCode, DrainReason, read
from tidegate.core.model.ec2 import FleetRequest, Offering, Template
from tidegate.core.model.frozen import frozen
from tidegate.core.model.orders import PendingOrder
from tidegate.core.model.savings_plans import Committed

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
    """No new job on a node, which leaves when it is empty: the word is kubectl's."""

    reason: str  #: what AWS said
    since_s: float  #: since when
    ends_at_s: float | None = None  #: when AWS takes the node away, if it has said so
    #: when the node takes jobs again if it is still there; null: never
    lifts_at_s: float | None = None
    code: str = ""  #: AWS Health's word for it, or rebalance; empty: from version 0.1

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

    lost_gpu_hours: float = 0.0  #: GPU-hours of running jobs without a checkpoint
    saved_jobs: int = 0  #: jobs that were signalled or requeued in time
    #: AWS took it back; false: it ended by itself while it booted
    is_taken: bool = True

    def plus(self, other: "InterruptionLoss") -> "InterruptionLoss":
        return InterruptionLoss(
            self.lost_gpu_hours + other.lost_gpu_hours, self.saved_jobs + other.saved_jobs
        )


NOT_TAKEN = InterruptionLoss(is_taken=False)


@frozen
class NodeRecord:
    """What the ledger remembers of one instance."""

    instance_id: str  #: EC2's id
    launch_id: str  #: the launch that bought it
    pool: str  #: its pool
    offering: Offering  #: instance type, zone and market
    launched_at_s: float  #: when EC2 launched it
    usd_per_hour: float  #: what it costs
    phase: Phase = Phase.LAUNCHED  #: launched, joined, interrupted, released or terminated
    gated_for: str = ""  #: the gang it waits for
    reclaim_at_s: float | None = None  #: when EC2 reclaims it
    order: PendingOrder | None = None  #: an order for it that is on its way
    cordon: Cordon | None = None  #: why it takes no new job, if AWS said that it may not last
    account: str = ""  #: the Slurm account that it was launched for
    ended_at_s: float | None = None  #: when it stopped to cost
    template: str = ""  #: digest of what it is made from; empty: not known
    #: the phase in which AWS took it away or it ended by itself
    interrupted_in: Phase | None = None
    #: what that did to running jobs, if AWS took it away; counted when AWS first said so
    interruption_loss: InterruptionLoss | None = None
    priced_at_s: float | None = None  #: since when it costs that, if not since its launch
    for_jobs: tuple[str, ...] = ()  #: jobs that it was bought for, of many some
    #: for how long it had heard nothing of its head when it ended itself; null: it did not
    silent_s: float | None = None
    reset_said: str = ""  #: what became of the last reset of its GPUs; empty: there was none
    joined_at_s: float | None = None  #: when Slurm first had it; null: not yet
    user: str = ""  #: the user that it was launched for, if he has a budget
    layout: str = ""  #: into which MIG instances its GPUs are cut; empty: as its pool says
    #: since when it is stopped or about to be, to be started again; null: it was not stopped
    stopped_at_s: float | None = None
    is_started: bool = False  #: its launch started it, from a stop; false: its launch bought it
    reservation: str = ""  #: what its launch names of what is paid for, as `Launch` says
    #: the part of its price that a Savings Plan pays; null: none
    committed: Committed | None = None

    @property
    def is_orphan(self) -> bool:
        """It ended itself since its head was silent: AWS took nothing back."""
        return self.silent_s is not None

    @property
    def had_ended(self) -> bool:
        """It had when it was written down; why, EC2 alone knows."""
        return self.phase is Phase.RELEASED and self.interrupted_in is Phase.LAUNCHED

    @property
    def was_taken(self) -> bool:
        """Word came that AWS takes it back, before or after it did."""
        return self.interruption_loss is not None and self.interruption_loss.is_taken

    def is_cordoned(self, now_s: float) -> bool:
        return self.cordon is not None and self.cordon.holds(now_s)


@frozen
class Charge:
    """What nodes cost a scope in a period."""

    period: str  #: a day like 2026-11-21, or a month like 2026-11, in UTC
    scope: str  #: cluster, pool NAME, account NAME or user NAME
    usd: float  #: what nodes that have ended cost it in that time


@frozen
class Bill:
    """What a node cost at one price: a line of the cluster's own bill, of which a node whose price
    changed has several. Times in epoch seconds.
    """

    instance_id: str
    pool: str
    offering: Offering
    account: str  #: that of the job it was launched for; empty: none
    launched_at_s: float
    joined_at_s: float | None  #: when Slurm first had it; null: never
    since_s: float
    until_s: float
    usd_per_hour: float
    is_stopped: bool = False  #: it stood still, and its disk alone was billed
    committed: Committed | None = None  #: the part of the price that a Savings Plan paid


@frozen
class MonthlyLosses:
    """The interruption losses of all nodes that AWS took back in a month."""

    month: str  #: a month like 2026-11, in UTC
    nodes: int  #: nodes that AWS took back and that have ended
    lost_gpu_hours: float  #: GPU-hours of running jobs without a checkpoint
    saved_jobs: int  #: jobs that were signalled or requeued in time
    orphans: int = 0  #: nodes that ended themselves, having heard nothing of their head

    def plus(self, stretch: "Stretch") -> "MonthlyLosses":
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
    """What a node has cost at one price, that of the record of `priced_at_s`, until `until_s`."""

    instance_id: str
    until_s: float
    charges: tuple[Charge, ...]
    priced_at_s: float | None = None
    next_usd_per_hour: float | None = None  #: its price from then on; null: it has ended
    interruption_loss: InterruptionLoss | None = None  #: if AWS took it back
    is_orphan: bool = False  #: it ended itself since its head was silent
    bill: Bill | None = None  #: the same as a line; null: it cost nothing
    #: the part of its next price that a Savings Plan pays; null: none
    next_committed: Committed | None = None


@frozen
class Launch:
    """Buy `count` nodes from the first of `offerings` that EC2 gives; one market, ranked."""

    launch_id: str  #: its id
    pool: str  #: the pool
    offerings: tuple[Offering, ...]  #: in the order in which EC2 shall try them
    count: int  #: nodes
    min_count: int  #: with fewer none is kept
    for_jobs: tuple[str, ...]  #: job ids, as scontrol takes them
    usd_per_hour_each: float  #: price of the dearest offering, by which limits are debited
    #: the gang whose nodes join drained until all are there, the first of `gangs`; empty: open
    gated_for: str
    reason: str  #: why, in words
    account: str = ""  #: the Slurm account that pays for it, that of the first job
    user: str = ""  #: whose job that is
    gangs: tuple[str, ...] = ()  #: equal gangs that share it, of min_count nodes each
    template: Template | None = None  #: what its nodes are made from; null: what the stack says
    layout: str = ""  #: into which MIG instances its GPUs are cut; empty: as its pool says
    data: str = ""  #: the data sets that its nodes load while they boot, with blanks between them
    starts: str = ""  #: the stopped instance that it starts; empty: it buys new ones
    #: the reservation, block or group that it goes into; `reserved`: an open one; empty: none
    reservation: str = ""


class LaunchStatus(StrEnum):
    RECORDED = "recorded"  # in doubt: CreateFleet may or may not have been called
    DONE = "done"
    FAILED = "failed"


@frozen
class LaunchRecord:
    """A launch as the ledger knows it, with the whole request: a retry repeats it exactly."""

    launch: Launch  #: what was planned
    created_at_s: float  #: when it was recorded
    request: FleetRequest  #: the whole CreateFleet request
    status: LaunchStatus = LaunchStatus.RECORDED  #: recorded (in doubt), done or failed
    taken_at_s: float | None = None  #: when another planner last set out to finish it

    def kept(self) -> "LaunchRecord":
        """What a ledger keeps of it: of many jobs the first, which nothing is decided by."""
        jobs = self.launch.for_jobs[:JOBS_KEPT_MAX]
        return replace(self, launch=replace(self.launch, for_jobs=jobs))
