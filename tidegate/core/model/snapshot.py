"""Everything the planner may know, as one value."""

from tidegate.core.model.calendar import ALWAYS_UP, Wanted
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.digest import Digest
from tidegate.core.model.ec2 import Instance, Template
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Charge, LaunchRecord, LaunchStatus, Losses, NodeRecord
from tidegate.core.model.market import NEVER_SEEN, SeenMarket
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.core.model.stuck import Stuck


@frozen
class Epoch:
    """The fence of the control loop: a plan counts only for the epoch it was made in.

    `lineage` is drawn once per ledger, so that ids never repeat after a redeployment.
    """

    lineage: str
    number: int

    def __str__(self) -> str:
        return f"{self.lineage}-{self.number}"


@frozen
class Snapshot:
    """One observation. `digest_age_s` is measured on the receiver's clock.

    `spent`: what nodes that have ended cost in this day and month, and maybe in earlier ones.
    `losses`: of nodes that AWS took back and that have ended, by month.
    `seen_market`: what EC2 asks now; the cluster's prices are those already.
    `templates`: what new nodes of each pool are made from, by the deployed stack.
    `refused_templates`: what EC2 said of those that their pools do not use for all nodes yet.
    """

    now_s: float
    cluster: Cluster
    epoch: Epoch
    digest: Digest | None
    digest_age_s: float
    instances: tuple[Instance, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    launches: tuple[LaunchRecord, ...] = ()
    resting: tuple[Resting, ...] = ()
    wanted: Wanted = ALWAYS_UP
    stuck: tuple[Stuck, ...] = ()
    spent: tuple[Charge, ...] = ()
    losses: tuple[Losses, ...] = ()
    templates: tuple[tuple[str, Template], ...] = ()
    pool_history: tuple[PoolHistory, ...] = ()
    seen_market: SeenMarket = NEVER_SEEN
    refused_templates: tuple[Resting, ...] = ()

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
