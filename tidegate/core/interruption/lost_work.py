"""What people hear of work that a job lost with a run that was requeued."""

from tidegate.core.model.durations import span
from tidegate.core.model.job_files import LostWork
from tidegate.core.model.slurm import Job


def gpus_held(job: Job) -> int:
    """GPUs, or devices of Neuron, on all nodes of a job that runs."""
    return job.shape.gpus * len(job.node_names) if job.shape.gres in ("gpu", "neuron") else 0


def lost_work(lost: LostWork) -> str:
    """What its last run lost, in a sentence; with the steps where the job tells them."""
    stood = f"stood still for {_held(lost, lost.stood_s)} before it was requeued"
    if lost.step is None:
        why = lost.problem or "it tells no step"
        return f"its last run {stood}; what is done again nobody knows: {why}"
    ended = f"its last run ended at {lost.unit} {lost.step:.12g} and {stood}"
    if lost.resumed_step is None:
        return f"{ended}; where it goes on its next run will tell"
    went_on = f"{ended}; it went on at {lost.unit} {lost.resumed_step:.12g}"
    if lost.since_s is None:
        return f"{went_on}, which cannot be compared"
    again = max(lost.step - lost.resumed_step, 0.0)
    whole_s = lost.stood_s + lost.redone_s
    return (
        f"{went_on}: {again:.12g} {lost.unit}{'s' * (again != 1)} ({_held(lost, lost.redone_s)}) "
        f"are done again, {_held(lost, whole_s)} lost in all"
    )


def _held(lost: LostWork, seconds: float) -> str:
    if not lost.gpus:
        return span(seconds)
    return f"{span(seconds)}, {lost.gpu_hours(seconds):.2f} GPU-hours"
