"""The invariant of spot: not bought for a job that would lose more there than it saves."""

from tidegate.core.demand.demand import demand
from tidegate.core.model.ec2 import FleetRequest, Market, Offering
from tidegate.core.offers.loss import Losses
from tidegate.sim.checks.witness import Check


class NoLossySpot(Check):
    """No spot is bought for a job that is expected to lose more than it saves on all that is asked
    for. One zone of a type may be dearer than that beside another that is not.
    """

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        digest = self.witness.digests.get(self.witness.depth)
        if record is None or digest is None or not self.witness.is_new(request):
            return
        cluster, launch = self.witness.known(), record.launch
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
