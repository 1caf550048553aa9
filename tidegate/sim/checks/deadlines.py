"""The invariants of deadlines: what is bought, and what waits, before a job is too late."""

from collections.abc import Iterator

from tidegate.core.demand.fit import lacks, satisfies
from tidegate.core.model.cluster import Limits, Pool
from tidegate.core.model.ec2 import FleetRequest, Market
from tidegate.core.model.slurm import Job
from tidegate.core.model.why import Why
from tidegate.service.control import Looked
from tidegate.sim.checks.witness import Check
from tidegate.sim.due import due_by_s

# Until the next look has come, and what it asked for was refused: `docs/deadlines.md`.
LOOKS_S = 120.0


class DeadlinesHeeded(Check):
    """No node is bought for a job that could not end on it before its deadline, nor spot that an
    interruption would make it miss the deadline on while on demand is sold; and no job waits for
    spot with less time to spare than that.
    """

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        digest = self.witness.digests.get(self.witness.depth)
        if record is None or digest is None or not self.witness.is_new(request):
            return
        pool = self.world.cluster.pool(record.launch.pool)
        rows = {job.job_id: job for job in digest.reading.jobs}
        for job_id in dict.fromkeys(record.launch.for_jobs) if pool else ():
            job = rows.get(job_id)
            due_s = due_by_s(job.comment) if job else None
            if job is None or due_s is None or pool is None:
                continue
            spare_s = due_s - record.created_at_s - _work_s(job)
            if spare_s < pool.boot_s:
                raise self.broken(
                    f"{record.launch.launch_id} comes too late for job {job_id}: "
                    f"{spare_s:.0f} s to spare, a boot takes {pool.boot_s:.0f} s"
                )
            is_spot = request.market is Market.SPOT
            if is_spot and spare_s < self._net_s(job) and self._is_steady_sold(job):
                raise self.broken(
                    f"{record.launch.launch_id} is spot for job {job_id}, which has "
                    f"{spare_s:.0f} s to spare; on demand is sold"
                )

    def looked(self, looked: Looked) -> None:
        for done in looked.rounds:
            digest, now_s = done.snapshot.digest, done.snapshot.now_s
            waits = {
                each.job_id
                for each in done.plan.unmet
                if any(why.kind is Why.SPARE_TIME for why in each.why_nots)
            }
            for job in digest.reading.jobs if digest and waits else ():
                due_s = due_by_s(job.comment)
                spare_s = (due_s or 0.0) - now_s - _work_s(job)
                if job.job_id in waits and (due_s is None or spare_s < self._net_s(job)):
                    raise self.broken(f"job {job.job_id} waits with {spare_s:.0f} s to spare")

    def _pools(self, job: Job) -> Iterator[Pool]:
        cluster = self.world.cluster
        for pool in cluster.pools:
            partitions = map(cluster.partition, job.partitions)
            if any(found and pool.name in found.pools for found in partitions):
                yield pool

    def _net_s(self, job: Job) -> float:
        """Two boots, the work that an interruption loses, and the looks between."""
        pools = list(self._pools(job))
        known = [p.checkpoint_s for p in pools if p.checkpoint_s is not None]
        lost_s = 0.0 if job.is_checkpointed else min([_work_s(job), *known])
        return 2 * min(pool.boot_s for pool in pools) + lost_s + LOOKS_S

    def _is_steady_sold(self, job: Job) -> bool:
        """On demand could be bought for it, and nothing has kept the planner from it."""
        cluster, view = self.world.cluster, self.witness.view()
        limits = [cluster.limits, *(pool.limits for pool in cluster.pools)]
        is_limited = any(each != Limits() for each in limits)
        if view is None or is_limited or cluster.budgets or job.het_job_id or job.nodes > 1:
            return False
        now_s = self.witness.viewed_s.get(self.witness.depth, self.witness.now_s)
        rests = {each.offering for each in view.resting if each.until_s > now_s}
        return any(
            not lacks(job.shape, kind)
            and satisfies(job.constraint, pool.features(kind.name, offering.market))
            and pool.min_types == 1
            and offering in cluster.prices
            and offering not in rests
            for pool in self._pools(job)
            for kind, offering in pool.offerings()
            if offering.market is Market.ON_DEMAND
        )


def _work_s(job: Job) -> float:
    """How long it may run; one that goes on from a checkpoint may have nothing left, or what it
    says.
    """
    if job.progress is not None and not job.progress.problem:
        return (job.time_limit_s or 0.0) * (1.0 - job.progress.part)
    return 0.0 if job.is_checkpointed and job.restarts else job.time_limit_s or 0.0
