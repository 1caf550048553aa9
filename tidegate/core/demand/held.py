"""Which pending jobs would not start even if nodes were up."""

from tidegate.core.demand.constraint import Unplannable, read_constraint
from tidegate.core.demand.pending_reasons import held_because
from tidegate.core.model.durations import span
from tidegate.core.model.slurm import Job

# Slurm lets a requeued job begin two minutes after its last run, and says so to the second; the
# agent cuts that short.
REQUEUE_DELAY_S = 130.0


def holds(job: Job, boot_s: float = 0.0, head_now_s: float = 0.0) -> str:
    """Why this pending job would not start even if nodes were up, "" when it would.

    A job whose begin time comes before a node could be there needs the node already.
    `head_now_s`: now on the head's clock, 0: unknown.
    """
    if job.unreadable:
        return job.unreadable
    if job.count <= 0:
        return held_because("JobArrayTaskLimit")
    try:
        read_constraint(job.constraint)
    except Unplannable as problem:
        return str(problem)
    told = held_because(job.reason)
    is_to_begin = job.reason == "BeginTime" or (not told and begins_later(job, head_now_s))
    if is_to_begin and job.begins_at_s and head_now_s:
        wait_s = job.begins_at_s - head_now_s
        boot_s = max(boot_s, REQUEUE_DELAY_S) if job.restarts else boot_s
        return "" if wait_s <= boot_s else f"{held_because('BeginTime')}: {span(wait_s)} left"
    return told


def begins_later(job: Job, head_now_s: float) -> bool:
    """Whether its begin time has not come. Slurm gives that as its reason only once a pass has
    looked at the job; from its submission until then, and after each change of it, the reason is
    that of a job which waits for nodes.

    Source: docs/real-slurm.md, "A job that was just submitted or changed".
    """
    return bool(head_now_s and job.begins_at_s and job.begins_at_s > head_now_s)
