"""What people hear of how far a job is, and of what it lost with its last run."""

from collections.abc import Iterator

from tidegate.core.interruption.lost_work import lost_work
from tidegate.core.model.slurm import Job


def about_steps(job: Job) -> Iterator[str]:
    """Nothing: its heartbeat file says no step, and no run of it was requeued."""
    if job.step and job.step.problem:
        yield f"no step of it is counted: {job.step.problem}"
    elif job.step and job.is_running:
        yield f"its heartbeat says {job.step.unit} {job.step.number:.12g}"
    if job.lost and job.lost.is_known:
        yield lost_work(job.lost)
