"""What it did to running jobs that AWS took their nodes back."""

from collections.abc import Collection

from tidegate.core.interruption.save import checkpoint
from tidegate.core.model.ledger import InterruptionLoss, MonthlyLosses
from tidegate.core.model.slurm import Job, Reading
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.spend import ended, month_of

SECONDS_PER_HOUR = 3600.0


def interruption_losses(
    reclaimed: Collection[str],
    dead: Collection[str],
    reading: Reading | None,
    now_s: float,
    *,
    announced: Collection[str] = (),
) -> dict[str, InterruptionLoss]:
    """The interruption loss of each of these nodes, by the last digest.

    A job counts at the first of them, and not again after one of its nodes was `announced`
    before. One that asked for a checkpoint loses nothing where there is time for it.
    """
    found = dict.fromkeys((*reclaimed, *dead), InterruptionLoss())
    for job in reading.jobs if reading else ():
        on = sorted(found.keys() & set(job.node_names))
        if on and job.is_running and set(announced).isdisjoint(job.node_names):
            is_dead = not set(dead).isdisjoint(on)
            found[on[0]] = found[on[0]].plus(_of_job(job, now_s, is_dead=is_dead))
    return found


def _of_job(job: Job, now_s: float, *, is_dead: bool) -> InterruptionLoss:
    request = checkpoint(job)
    is_saved = not is_dead and (request is not None or job.is_requeueable)
    loses = is_dead or request is None
    if not loses or job.started_at_s is None:
        return InterruptionLoss(saved_jobs=int(is_saved))
    gpus = job.shape.gpus * len(job.node_names)
    hours = max(0.0, now_s - job.started_at_s) / SECONDS_PER_HOUR
    return InterruptionLoss(gpus * hours, int(is_saved))


def losses(snapshot: Snapshot) -> MonthlyLosses:
    """Of the present month (UTC): what the ledger counted, and nodes that still end."""
    month = month_of(snapshot.now_s).name
    found = next(
        (each for each in snapshot.losses if each.month == month), MonthlyLosses(month, 0, 0.0, 0)
    )
    for each in snapshot.nodes:
        if each.ended_at_s is None and each.interruption_loss is not None:
            found = found.plus(ended(each, snapshot.now_s))
    return found
