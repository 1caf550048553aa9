"""Everything the planner may know, as one value."""

from tidegate.core.model.alarms import SeenAlarms
from tidegate.core.model.calendar import ALWAYS_UP, Wanted
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.digest import Digest
from tidegate.core.model.ec2 import Instance, Template
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Charge, LaunchRecord, LaunchStatus, MonthlyLosses, NodeRecord
from tidegate.core.model.market import NEVER_SEEN, SeenMarket
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.core.model.stuck import Stuck


@frozen
class Epoch:
    """The fence of the control loop: a plan counts only for the epoch it was made in."""

    lineage: str  #: drawn once per ledger, so that no id repeats after a redeployment
    number: int  #: of the last plan

    def __str__(self) -> str:
        return f"{self.lineage}-{self.number}"


@frozen
class Snapshot:
    """One observation."""

    now_s: float  #: now, epoch seconds
    cluster: Cluster  #: as its file says, at the prices of `seen_market`
    epoch: Epoch  #: of the ledger
    digest: Digest | None  #: what the head reported last; null: nothing yet
    digest_age_s: float  #: on the receiver's clock
    instances: tuple[Instance, ...] = ()  #: what EC2 shows of the cluster
    nodes: tuple[NodeRecord, ...] = ()  #: the ledger's nodes
    launches: tuple[LaunchRecord, ...] = ()  #: the ledger's launches
    resting: tuple[Resting, ...] = ()  #: offerings that EC2 refused, or whose nodes did not boot
    wanted: Wanted = ALWAYS_UP  #: what the calendar says
    stuck: tuple[Stuck, ...] = ()  #: jobs that Slurm does not start beside idle nodes
    spent: tuple[Charge, ...] = ()  #: what nodes that ended have cost in this day and month
    losses: tuple[MonthlyLosses, ...] = ()  #: what jobs lost with nodes that AWS took back
    templates: tuple[tuple[str, Template], ...] = ()  #: what new nodes of each pool are made from
    pool_history: tuple[PoolHistory, ...] = ()  #: how launches of each pool fared
    seen_market: SeenMarket = NEVER_SEEN  #: what EC2 asks, as it was read last
    #: what EC2 said of templates that are not used for all nodes yet
    refused_templates: tuple[Resting, ...] = ()
    alarms: SeenAlarms | None = None  #: that roll-outs heed; null: nobody had to ask
    denied_starts: tuple[Resting, ...] = ()  #: pools whose stopped nodes EC2 does not let us start
    #: boot failures that rest nothing: of one bad node, of a kind that comes up
    outweighed: tuple[Resting, ...] = ()
    full_subnets: tuple[Resting, ...] = ()  #: offerings for which a subnet had no free address

    def is_start_denied(self, pool: str) -> bool:
        """Until it is tried again."""
        ours = (each for each in self.denied_starts if each.pool == pool)
        return any(each.until_s > self.now_s for each in ours)

    @property
    def heard(self) -> Digest:
        """The digest, for whoever runs only when there is one."""
        assert self.digest is not None
        return self.digest

    @property
    def head_now_s(self) -> float:
        """The present on the head's clock."""
        return self.heard.written_at_s + self.digest_age_s

    @property
    def in_doubt(self) -> list[LaunchRecord]:
        """Launches of which nobody knows whether EC2 was asked for them, or what it gave."""
        recorded = [each for each in self.launches if each.status is LaunchStatus.RECORDED]
        return sorted(recorded, key=lambda each: each.launch.launch_id)

    @property
    def doubted(self) -> frozenset[str]:
        """Their ids."""
        return frozenset(each.launch.launch_id for each in self.in_doubt)

    @property
    def staleness(self) -> str:
        """Why this digest is too old to act on; "" when it is not."""
        bound_s = self.cluster.timings.digest_stale_s
        if not self.wanted.is_up and self.digest_age_s > bound_s:
            return f"{self.wanted.reason}: its head may be silent"
        if self.digest is None:
            return "the head has not reported yet: nothing is launched or released"
        if self.digest_age_s > bound_s:
            return (
                f"the head was last heard {self.digest_age_s:.0f} s ago (bound {bound_s:.0f} s): "
                "nothing new is launched and nothing busy is touched"
            )
        return ""
