"""What one plan may buy, and what it buys."""

from collections import Counter
from collections.abc import Iterable, Mapping

from tidegate.core.buy.launches import LaunchBuilder
from tidegate.core.buy.refusals import Refusals
from tidegate.core.demand.demand import Need
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.offers.limits import Usage
from tidegate.core.offers.offers import OfferGroups
from tidegate.core.offers.spend import used_up


def bound(need: Need) -> WhyNot | None:
    """Why a new node never helps it; None: one may."""
    where = need.where
    return WhyNot(Why.NODES, where.why) if where and where.is_bound else None


def _in_use(snapshot: Snapshot) -> Mapping[str, int]:
    """MIG instances that running jobs have, by GRES type; {}: no node is cut as jobs ask."""
    types = (of for pool in snapshot.cluster.pools for of in pool.instance_types)
    cut = {each.gpu_type for of in types for each in of.profiles}
    found: Counter[str] = Counter()
    if cut and snapshot.digest:
        for job in snapshot.digest.reading.jobs:
            if job.is_running and job.shape.gpu_type in cut:
                found[job.shape.gpu_type] += job.shape.gpus * job.nodes
    return found


class Purchase:
    """What is for sale to one plan as `offer_groups`, what limits and budgets in money leave of
    it by `usage`, and what is bought, which `builder` collects. `in_use`: devices that running jobs
    have, by GRES type.
    """

    def __init__(self, snapshot: Snapshot, launches_max: int) -> None:
        self.usage = Usage(snapshot.cluster, used_up(snapshot))
        self.offer_groups = OfferGroups(snapshot)
        self.builder = LaunchBuilder(self.offer_groups, self.usage, launches_max)
        self.in_use = _in_use(snapshot)
        self._wanted = snapshot.wanted
        self._refusals = Refusals(snapshot, self.offer_groups, self.usage)

    def shut(self, pool: str, because: WhyNot) -> None:
        """Buy nothing for the pool; to be said before anybody buys."""
        self.offer_groups.shut(pool)
        self._refusals.shut(pool, because)

    def shut_prepaid(self, pool: str, because: WhyNot) -> None:
        """Use nothing that is paid for already for the pool; to be said before anybody buys."""
        self.offer_groups.shut_prepaid(pool)
        self._refusals.shut_prepaid(pool, because)

    @property
    def stopped(self) -> WhyNot | None:
        """Why nothing is bought for anybody; None: the cluster should be up."""
        return None if self._wanted.is_up else WhyNot(Why.STOPPED, self._wanted.reason)

    def barred(self, payers: Iterable[str]) -> WhyNot | None:
        """The spent budget of who would pay, the account before the user; None: there is none."""
        found = (self.usage.used_up.get(scope) for scope in payers)
        return next((why for why in found if why), None)

    def why_not(self, need: Need, nodes: int) -> tuple[WhyNot, ...]:
        """Why `nodes` more nodes were not bought for the job."""
        if barred := bound(need) or self.stopped or self.barred(need.payers):
            return (barred,)
        if self.builder.is_full:
            said = f"a plan holds {self.builder.launches_max} launches, it is in the next one"
            return (WhyNot(Why.NEXT_PLAN, said),)
        return self._refusals.of(need, nodes)
