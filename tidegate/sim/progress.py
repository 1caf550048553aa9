"""What drawn jobs tell of how far they have come: they save their work as they go."""

from collections.abc import Iterable

from tidegate.core.interruption.progress import PROGRESS_KEY, progress
from tidegate.core.model.job_files import Progress
from tidegate.core.model.slurm import Job
from tidegate.sim.slurm import SimSlurm


def told_progress(jobs: Iterable[Job], slurm: SimSlurm) -> dict[str, Progress]:
    """What the files say now of those that name one: rounded down."""
    found: dict[str, Progress] = {}
    for row in jobs:
        job = slurm.jobs.get(row.job_id) if PROGRESS_KEY in row.comment else None
        if job is None:
            continue
        is_alive = all(
            slurm.nodes[name].died_at_s is None for name in job.node_names if name in slurm.nodes
        )
        if job.state == "RUNNING" and is_alive:
            job.save(slurm.clock.now_s())
        per_mille = int(1000.0 * min(job.saved_s / job.submit.duration_s, 1.0))
        found[row.job_id] = progress(f"{per_mille / 1000:.3f}\n")
    return found
