"""Invariants of when something is bought."""

from tidegate.core.model.ec2 import FleetRequest
from tidegate.sim.checks.witness import Check
from tidegate.sim.slurm_parts import SimJob


class NothingBeforeItsTime(Check):
    """No node is bought for a job that may begin only after the node would have booted, or after
    another that has not ended. Of a job that was requeued nobody knows when it may.
    """

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        if record is None or not self.witness.is_new(request):
            return
        if not self.witness.chaos.was_calm_since(1.0, "clock"):  # the head told other times
            return
        for_jobs, slurm = set(record.launch.for_jobs), self.world.slurm
        mine = [j for j in slurm.jobs.values() if not for_jobs.isdisjoint(_ids(j))]
        for job in mine:
            if job.job_id in slurm.table.active and job.comes_after(slurm.table.active.values()):
                after = job.submit.after
                raise self.broken(
                    f"{request.client_token} for job {job.job_id}, before {after} ends"
                )
        begins = [0.0 if job.requeues else job.eligible_at_s for job in mine]
        boot_s = max(pool.boot_s for pool in self.world.cluster.pools)
        early_s = min(begins, default=0.0) - record.created_at_s - boot_s
        if early_s > 1.0:
            names = ", ".join(sorted(for_jobs))
            raise self.broken(f"{request.client_token} for job {names} comes {early_s:.0f} s early")


def _ids(job: SimJob) -> tuple[str, str]:
    return job.job_id, job.array_job_id or job.job_id
