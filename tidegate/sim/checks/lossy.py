"""The invariant of spot: not bought for a job that would lose more there than it saves."""

from math import inf

from tidegate.core.demand.demand import demand
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import FleetRequest, Market, Offering
from tidegate.core.model.market import NEVER_SEEN
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.loss import Losses
from tidegate.core.offers.market import at_market
from tidegate.core.offers.seen_hazards import with_seen_hazards
from tidegate.sim.checks.witness import Check, Witness


class NoLossySpot(Check):
    """No spot is bought for a job that is expected to lose more than it saves on all that is asked
    for. One zone of a type may be dearer than that beside another that is not.
    """

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        digest = self.witness.digests.get(self.witness.depth)
        if record is None or digest is None or not self.witness.is_new(request):
            return
        cluster, launch = as_known(self.witness), record.launch
        pool = cluster.pool(launch.pool)
        if request.market is not Market.SPOT or pool is None or not launch.for_jobs:
            return
        head_now_s = self.witness.head_s.get(self.witness.depth, digest.written_at_s)
        needs, _ = demand(digest.reading, cluster, frozenset(), head_now_s)
        losses = Losses(cluster)
        asked = [
            Offering(each.instance_type, each.zone, request.market) for each in request.overrides
        ]
        for need in (need for need in needs if need.job_id in launch.for_jobs):
            if all(losses.is_lossy(pool, each, need) for each in asked):
                least = min(losses.ratio(need, pool, each) for each in asked)
                raise self.broken(
                    f"launch {launch.launch_id} asks for {asked[0]} for job {need.job_id}, to "
                    f"which it counts {least:.1f} times what it costs elsewhere"
                )


def as_known(witness: Witness) -> Cluster:
    """The cluster at the prices that the planner which acts now has read, and with the hazards that
    it has learnt.
    """
    view, at_s = witness.view(), witness.viewed_s.get(witness.depth, witness.now_s)
    if view is None:
        return at_market(witness.world.cluster, NEVER_SEEN, at_s)
    cluster = at_market(witness.world.cluster, view.seen_market, at_s)
    nodes, history = view.nodes, view.pool_history
    read = Snapshot(at_s, cluster, view.epoch, None, inf, nodes=nodes, pool_history=history)
    return with_seen_hazards(read).cluster
