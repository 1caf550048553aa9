"""What a plan may hold: launches, orders to the head, terminations, and what gets nothing."""

import re
from dataclasses import replace
from enum import IntEnum, StrEnum

from tidegate.core.ec2 import FleetRequest, Offering
from tidegate.core.frozen import frozen
from tidegate.core.learnt import Learnt
from tidegate.core.stuck import Stuck
from tidegate.core.why import WhyNot

# DynamoDB takes 400 KB in an item and 4 MB in a transaction; a job id has at most some 20 bytes.
JOBS_KEPT_MAX = 1_000

_OF_PLAN = re.compile(r"(\w+-\d+)-o?\d+")


class OrderKind(StrEnum):
    """The closed vocabulary of the head's agent."""

    DRAIN = "drain"
    UNDRAIN = "undrain"
    RELEASE = "release"  # drain, see IDLE+DRAIN, delete: one guarded order
    REQUEUE = "requeue"  # and without Slurm's two minutes before the next start
    SIGNAL = "signal"
    COMMENT = "comment"
    WEIGHT = "weight"  # a hint: where Slurm starts jobs first
    DELETE = "delete"  # of a dead node: DOWN, so that Slurm gives up what ran there; delete

    @property
    def is_urgent(self) -> bool:
        return self in (OrderKind.DRAIN, OrderKind.SIGNAL, OrderKind.REQUEUE, OrderKind.DELETE)


def plan_of(own_id: str) -> str:
    """The plan that a launch ("1f0c9a3e-412-0") or an order ("1f0c9a3e-412-o3") is of.

    "": it is of none, like orders after a notice of EC2.
    """
    found = _OF_PLAN.fullmatch(own_id)
    return found[1] if found else ""


@frozen
class Order:
    """An instruction to the head's agent: data, never a command line.

    `names`: nodes, or job ids for requeue, signal and comment. Dropped after `not_after_s`.
    `only_if`: words, one of which a node's state must hold ("IDLE"), or a job's ("RUNNING");
    a delete without them is of a node whose instance is gone.
    `delay_s`: how long the queue keeps it back. `text`: the reason of a drain or delete, the
    signal's name, the comment or the weight; of an undrain, the one drain reason that it lifts
    besides a gate, which has none.
    `on_nodes`: requeue and signal touch only jobs that still run on one of these nodes, so
    that a late repeat cannot hit a job that has long started elsewhere.
    `despite`: what another hand said as it drained (`drains.told_by`): no reason to keep a node.
    """

    order_id: str
    kind: OrderKind
    names: tuple[str, ...]
    not_after_s: float
    only_if: tuple[str, ...] = ()
    text: str = ""
    delay_s: int = 0
    on_nodes: tuple[str, ...] = ()
    despite: str = ""


class OrderOutcome(StrEnum):
    DONE = "done"
    KEPT = "kept"  # the guard said no: a job slipped in, or the state had changed
    EXPIRED = "expired"
    FAILED = "failed"


@frozen
class OrderResult:
    """What became of an order, per name; travels back in the next digest."""

    order_id: str
    kind: OrderKind
    name: str
    outcome: OrderOutcome
    detail: str = ""


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
class PendingOrder:
    """An order on its way; not repeated before it expires or its result is seen."""

    order_id: str
    kind: OrderKind
    not_after_s: float


@frozen
class Cordon:
    """No new job on a node, which leaves when it is empty: the word is kubectl's.

    `ends_at_s`: when AWS takes the node away, if it has said so. `lifts_at_s`: when the node takes
    jobs again if it is still there; None: never.
    """

    reason: str
    since_s: float
    ends_at_s: float | None = None
    lifts_at_s: float | None = None

    def holds(self, now_s: float) -> bool:
        return self.lifts_at_s is None or now_s < self.lifts_at_s


@frozen
class Toll:
    """What running jobs lost with a node that AWS took back, and how many were saved in time."""

    lost_gpu_hours: float = 0.0
    saved_jobs: int = 0
    is_taken: bool = True  # False: it ended by itself while it booted, AWS took nothing back

    def plus(self, other: "Toll") -> "Toll":
        return Toll(self.lost_gpu_hours + other.lost_gpu_hours, self.saved_jobs + other.saved_jobs)


@frozen
class NodeRecord:
    """What the ledger remembers of one instance. `gated_for`: the gang it waits for.

    `account`: that of the job it was launched for. `priced_at_s`: since when its price holds if
    not since its launch, `ended_at_s`: when it stopped to cost; what it has cost until then is in
    the ledger's counters.
    `template`: the digest of what it is made from. `interrupted_in`: the phase in which AWS took
    it away or it ended by itself; `toll`: what that did to jobs, counted when AWS first said so.
    `for_jobs`: those that it was bought for, of many some.
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
    toll: Toll | None = None
    priced_at_s: float | None = None
    for_jobs: tuple[str, ...] = ()

    def is_cordoned(self, now_s: float) -> bool:
        return self.cordon is not None and self.cordon.holds(now_s)


@frozen
class Charge:
    """What nodes cost a scope in a period: a day ("2026-11-21") or a month ("2026-11")."""

    period: str
    scope: str
    usd: float


@frozen
class Losses:
    """The tolls of all nodes that AWS took back in a month ("2026-11")."""

    month: str
    nodes: int
    lost_gpu_hours: float
    saved_jobs: int


@frozen
class Stretch:
    """What a node has cost at one price, that of the record of `priced_at_s`, until `until_s`.

    `next_usd_per_hour`: its price from then on; None: it has ended. `toll`: if AWS took it back.
    """

    instance_id: str
    until_s: float
    charges: tuple[Charge, ...]
    priced_at_s: float | None = None
    next_usd_per_hour: float | None = None
    toll: Toll | None = None


@frozen
class Launch:
    """Buy `count` nodes from the first of `offerings` that EC2 gives; one market, ranked.

    `gated_for` names the gang whose members join drained until all are there ("": open), the first
    of `gangs` where equal ones share it. `usd_per_hour_each`: of the dearest offering, by which
    limits are debited. `account`, `user`: of the first of `for_jobs`, whose account pays.
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


@frozen
class Resume:
    """Finish a launch whose planner died between its record and its result.

    `may_buy` False: with what EC2 shows of it, without asking for the rest.
    """

    launch_id: str
    reason: str
    may_buy: bool = True


@frozen
class Send:
    """Send an order to the head. `is_budgeted`: a budget counts the nodes that it names."""

    order: Order
    reason: str
    is_budgeted: bool = False


@frozen
class Terminate:
    """End instances that nothing needs any more."""

    instance_ids: tuple[str, ...]
    reason: str


@frozen
class Mark:
    """Write down what was seen: a node moved to `phase`, or its gate is open."""

    instance_id: str
    phase: Phase
    reason: str
    is_ungated: bool = False


@frozen
class Reprice:
    """Count what a node has cost so far; from now on it has another price."""

    instance_id: str
    usd_per_hour: float
    reason: str


@frozen
class Adopt:
    """Give a ledger record to an instance that carries our tags and has none."""

    record: NodeRecord
    reason: str


@frozen
class Rest:
    """Do not buy this offering for a while: what came of it was of no use."""

    offering: Offering
    code: str
    reason: str


@frozen
class Watch:
    """Remember a job that could have started and did not."""

    stuck: Stuck
    reason: str


@frozen
class Learn:
    """Remember how launches of a pool fare."""

    learnt: Learnt
    reason: str


type Action = Launch | Resume | Send | Terminate | Mark | Reprice | Adopt | Rest | Watch | Learn


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


@frozen
class Unmet:
    """A pending job that gets nothing now, and why, in words a user understands.

    `why_nots`: the same, obstacle by obstacle.
    """

    job_id: str
    reason: str
    why_nots: tuple[WhyNot, ...] = ()


@frozen
class Served:
    """A pending job that needs nothing more: capacity exists or is on its way."""

    job_id: str
    by: tuple[str, ...]
    reason: str


@frozen
class Plan:
    """The answer to a look: what to do, and one verdict for every pending job.

    `is_cut`: the plan is as long as a plan may be; making another at once goes on from it.
    `usd_per_hour`: the expected price of the cluster after it.
    """

    actions: tuple[Action, ...]
    served: tuple[Served, ...]
    unmet: tuple[Unmet, ...]
    notes: tuple[str, ...] = ()
    is_cut: bool = False
    usd_per_hour: float = 0.0
