"""What drawn jobs write into their heartbeat files: a step for each second that they work."""

from collections.abc import Iterable

from tidegate.core.interruption.heartbeat import Beat, heartbeat
from tidegate.core.interruption.steps import step
from tidegate.core.model.slurm import Job
from tidegate.sim.slurm import SimSlurm


def told_beats(jobs: Iterable[Job], slurm: SimSlurm) -> dict[str, Beat]:
    """Of those that name one. Whose node has died, or who is suspended, touches nothing."""
    found: dict[str, Beat] = {}
    for row in jobs:
        job = slurm.jobs.get(row.job_id) if heartbeat(row) else None
        if job is None or not job.is_running:
            continue
        nodes = [slurm.nodes[name] for name in job.node_names if name in slurm.nodes]
        if job.state != "RUNNING" or any(node.died_at_s is not None for node in nodes):
            found[row.job_id] = Beat()
            continue
        done_s = job.saved_s + max(0.0, slurm.clock.now_s() - job.unsaved_since_s)
        touched_s = (slurm.head_clock or slurm.clock).now_s()
        found[row.job_id] = Beat(touched_s, step=step(f"step {done_s:.0f}"))
    return found
