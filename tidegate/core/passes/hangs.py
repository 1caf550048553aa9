"""Jobs that hang: requeued, held after too many times, or told where they may not be requeued.

One order for each run, which it names: its repetition, which comes late, leaves the next run alone.
It is sent again only when the one before has expired.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tidegate.core.interruption.lost_work import gpus_held
from tidegate.core.model.durations import span
from tidegate.core.model.job_files import SECONDS_PER_HOUR, Hang
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action, Watch
from tidegate.core.model.slurm import Fault, Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck
from tidegate.core.passes.faults import RETRIES_MAX, counted, told
from tidegate.core.passes.orders import order

RUNNING = ("RUNNING",)


def requeue_hung(snapshot: Snapshot, known: Mapping[str, Stuck]) -> Iterator[Action]:
    """What to do about each job whose heartbeat is silent, or of which nobody can see it."""
    for job in sorted(snapshot.heard.reading.jobs, key=lambda job: job.job_id):
        if job.hang and job.is_running and job.het_job_id in ("", job.job_id):
            yield from _about(snapshot, job, job.hang, known.get(job.job_id))


def _about(snapshot: Snapshot, job: Job, hang: Hang, before: Stuck | None) -> Iterator[Action]:
    run = job.restarts + 1  # as Slurm will count it when this run has ended
    is_news = before is None or before.fault_restarts < run
    ttl_s = snapshot.cluster.timings.order_ttl_s
    if before and not is_news and snapshot.now_s <= before.faulted_at_s + ttl_s:
        return
    may_end = hang.since_s is not None and job.is_requeueable
    if not (is_news or may_end):
        return  # it was told
    why = _said(job, hang, snapshot.head_now_s)
    after = counted(before, job, Fault(why, job.node_names, run, ran_s=_ran_s(job, hang)), snapshot)
    if not (is_news and may_end):
        after = replace(after, faults=before.faults if before else 0)
    if not may_end:
        yield Watch(after, f"job {job.job_id}: {why}")
        yield order(OrderKind.COMMENT, (job.job_id,), f"tidegate: {why}", only_if=RUNNING)
    elif after.faults > RETRIES_MAX:
        held = replace(after, held_at_s=snapshot.now_s)
        yield Watch(held, f"job {job.job_id}: {why}")
        yield order(
            OrderKind.HOLD, (job.job_id,), told(held), only_if=RUNNING, restarts=job.restarts
        )
    else:
        yield Watch(after, f"job {job.job_id} is requeued: {why} (fault {after.faults})")
        yield order(OrderKind.REQUEUE, (job.job_id,), why, only_if=RUNNING, restarts=job.restarts)


def _ran_s(job: Job, hang: Hang) -> float | None:
    """How long this run went well."""
    if job.started_at_s is None or hang.since_s is None:
        return None
    return hang.since_s - job.started_at_s


def _said(job: Job, hang: Hang, head_now_s: float) -> str:
    if hang.since_s is None:
        return f"nobody watches its heartbeat: {hang.problem}"
    silent_s = max(0.0, head_now_s - hang.since_s)
    said = f"it hangs: its heartbeat {hang.path} was last touched {span(round(silent_s))} ago"
    if hang.since_s == job.started_at_s:
        began = "has not been touched since it began"
        said = f"it hangs: its heartbeat {hang.path} {began} {span(round(silent_s))} ago"
    if not job.het_job_id and (gpus := gpus_held(job)):  # of several components one is seen
        said += f" ({gpus * silent_s / SECONDS_PER_HOUR:.2f} GPU-hours)"
    if job.is_requeueable:
        return said
    return f"{said}; it may not be requeued (--no-requeue, or no batch job)"
