"""What a plan may hold: actions, and one verdict for every pending job."""

from collections.abc import Mapping
from dataclasses import field

from tidegate.core.model.ec2 import Cure, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.idle_use import IdleUse
from tidegate.core.model.ledger import Launch, NodeRecord, Phase
from tidegate.core.model.orders import Order
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting, RestKey
from tidegate.core.model.savings_plans import Committed
from tidegate.core.model.stuck import Stuck
from tidegate.core.model.why import WhyNot

# The codes of a `Mark`: nothing but a note; a node that ended itself since its head was silent.
NOTE, ORPHANED = "note", "orphaned"


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
    """Send an order to the head. `is_budgeted`: a budget counts the nodes that it names;
    `opens_for`: the job, or gang, that it opens them for.
    """

    order: Order
    reason: str
    is_budgeted: bool = False
    opens_for: str = ""


@frozen
class Terminate:
    """End instances that nothing needs any more."""

    instance_ids: tuple[str, ...]
    reason: str


@frozen
class Stop:
    """Stop instances that nothing needs now: EC2 bills their disks alone, and a start is sooner
    there than a launch.
    """

    instance_ids: tuple[str, ...]
    reason: str


@frozen
class Mark:
    """Write down what was seen: a node moved to `phase`, or its gate is open.

    `code`: what people should hear of as well, "note": nothing.
    """

    instance_id: str
    phase: Phase
    reason: str
    is_ungated: bool = False
    code: str = NOTE


@frozen
class Reprice:
    """Count what a node has cost so far; from now on it has another price."""

    instance_id: str
    usd_per_hour: float
    reason: str
    committed: Committed | None = None


@frozen
class Adopt:
    """Give a ledger record to an instance that carries our tags and has none."""

    record: NodeRecord
    reason: str


@frozen
class Rest:
    """Do not buy this offering for a pool for a while: what came of it was of no use.

    `template`: the digest of what came; another one may be tried. "": nobody knows. `pool` "": for
    none, since EC2 had no room for what it had taken, in this `reservation` ("": in none).
    `cure`: what it needs, as far as EC2's word of it tells. `instance_id`: the node that is no
    good, and `launched_at_s`: when EC2 launched it.
    """

    offering: Offering
    pool: str
    template: str
    code: str
    reason: str
    reservation: str = ""
    cure: Cure = Cure.NONE
    launched_at_s: float = 0.0
    instance_id: str = ""

    @property
    def key(self) -> RestKey:
        return self.offering, self.pool, self.template, self.reservation, ""

    def is_told(self, known: Resting, now_s: float) -> bool:
        """Its node's failure counts already."""
        return known.tells_of(self.instance_id, self.launched_at_s, now_s)

    @property
    def is_refusal(self) -> bool:
        """It rests as what EC2 refuses does, and says nothing of the pool's template."""
        return not self.pool


@frozen
class Watch:
    """Remember a job that could have started and did not."""

    stuck: Stuck
    reason: str


# What is counted with each look that finds new jobs, and told to nobody.
COUNTED = "counted"
# A node has reset its GPUs, or has not mended them so.
GPU_RESET = "gpu-reset"


@frozen
class Learn:
    """Remember how launches of a pool fare. `code`: what that decides. `instance_ids`: the nodes
    that it was learnt from, of those that are no good.
    """

    pool_history: PoolHistory
    reason: str
    code: str = "learn"
    instance_ids: tuple[str, ...] = ()


type Action = (
    Launch | Resume | Send | Terminate | Stop | Mark | Reprice | Adopt | Rest | Watch | Learn
)


@frozen
class Unmet:
    """A pending job that gets nothing now, and why, in words a user understands.

    `why_nots`: the same, obstacle by obstacle.
    """

    job_id: str
    reason: str
    why_nots: tuple[WhyNot, ...] = ()


@frozen(quick=True)
class Served:
    """A pending job that needs nothing more: capacity exists or is on its way."""

    job_id: str
    by: tuple[str, ...]
    reason: str


@frozen
class Plan:
    """The answer to a look: what to do, and one verdict for every pending job.

    `is_cut`: the plan is as long as a plan may be; making another at once goes on from it.
    `usd_per_hour`: the expected price of the cluster after it. `idle`: what nodes without a job are
    for, by name.
    """

    actions: tuple[Action, ...]
    served: tuple[Served, ...]
    unmet: tuple[Unmet, ...]
    notes: tuple[str, ...] = ()
    is_cut: bool = False
    usd_per_hour: float = 0.0
    idle: Mapping[str, IdleUse] = field(default_factory=dict)
