"""What jobs lost with a run that was requeued: told once when it ended, and once more when the
next run says where it goes on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tidegate.core.interruption.lost_work import lost_work
from tidegate.core.model.job_files import LostWork
from tidegate.core.model.plan import Watch
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import STUCK_KEPT_S, Stuck
from tidegate.core.passes.futile import request

# What was told is remembered for longer, and so not told again.
NEWS_S = STUCK_KEPT_S / 2


def tell_lost_work(snapshot: Snapshot, known: Mapping[str, Stuck]) -> Iterator[Watch]:
    """Nothing is done about it; a later look tells the same of no run twice."""
    for job in sorted(snapshot.heard.reading.jobs, key=lambda job: job.job_id):
        before = known.get(job.job_id)
        if job.lost is None or not _is_news(job.lost, before, snapshot.head_now_s):
            continue
        stuck = before or Stuck(job.job_id, request(job, snapshot.heard.reading), 0.0)
        noted = replace(stuck, lost=job.lost, lost_told_at_s=snapshot.now_s)
        yield Watch(noted, _said(job, job.lost))


def _is_news(lost: LostWork, before: Stuck | None, head_now_s: float) -> bool:
    if not lost.is_known or head_now_s - (lost.resumed_at_s or lost.until_s) > NEWS_S:
        return False
    told = before.lost if before else None
    return told is None or (told.restarts, told.resumed_step) != (lost.restarts, lost.resumed_step)


def _said(job: Job, lost: LostWork) -> str:
    return f"job {job.job_id}: {lost_work(lost)}"
