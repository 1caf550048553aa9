"""Checks about jobs that may start on certain nodes only."""

from tidegate.core.model.ec2 import FleetRequest
from tidegate.core.model.plan import Plan
from tidegate.core.model.snapshot import Snapshot
from tidegate.sim.checks.plans import OfPlans
from tidegate.sim.checks.witness import Check


class NothingForBoundJobs(Check):
    """Nothing is bought for a job that may start only on nodes that exist, or are gone."""

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        for job_id in record.launch.for_jobs if record else ():
            job = self.world.slurm.jobs.get(job_id)
            if job is not None and (job.submit.node_name or job.submit.reservation):
                raise self.broken(f"a node is bought for job {job_id}, which may not use it")


class NothingOnClosed(OfPlans):
    """No job is promised a node that it excludes, or that is reserved and not for it."""

    def planned(self, snapshot: Snapshot, made: Plan) -> None:
        assert snapshot.digest is not None
        reading = snapshot.digest.reading
        reserved = {node.name for node in reading.nodes if node.state.is_reserved}
        jobs = {job.job_id: job for job in reading.jobs if job.excluded_nodes or reserved}
        for each in made.served if jobs else ():
            job = jobs.get(each.job_id)
            if job is None or not job.is_pending or job.reservation:
                continue
            if (job.begins_at_s or 0.0) > snapshot.digest.written_at_s:
                continue  # it may be over when the job begins
            if closed := set(each.by) & (reserved | set(job.excluded_nodes)):
                raise self.broken(f"job {job.job_id} is promised {min(closed)}, closed to it")
