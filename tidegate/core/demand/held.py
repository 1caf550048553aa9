"""Which pending jobs would not start even if nodes were up."""

from tidegate.core.demand.constraint import Unplannable, read_constraint
from tidegate.core.demand.pending_reasons import held_because
from tidegate.core.model.slurm import Job

# Slurm lets a requeued job begin two minutes after its last run, and says so to the second; the
# agent cuts that short.
REQUEUE_DELAY_S = 130.0


def holds(job: Job, boot_s: float = 0.0, head_now_s: float = 0.0) -> str:
    """Why this pending job would not start even if nodes were up, "" when it would.

    A job whose begin time comes before a node could be there needs the node already.
    """
    if job.unreadable:
        return job.unreadable
    if job.count <= 0:
        return held_because("JobArrayTaskLimit")
    try:
        read_constraint(job.constraint)
    except Unplannable as problem:
        return str(problem)
    if job.reason == "BeginTime" and job.begins_at_s and head_now_s:
        wait_s = job.begins_at_s - head_now_s
        boot_s = max(boot_s, REQUEUE_DELAY_S) if job.restarts else boot_s
        return "" if wait_s <= boot_s else f"{held_because(job.reason)}: {wait_s:.0f} s are left"
    return held_because(job.reason)
