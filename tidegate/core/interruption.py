"""What to do about a spot notice, decided from the last digest alone."""

import re
from dataclasses import dataclass
from hashlib import sha256

from tidegate.core.actions import Order, OrderKind
from tidegate.core.pool import Timings
from tidegate.core.slurm import Job, Reading

# `sbatch --comment=tidegate:ckpt=USR1@20`: send USR1 at once, requeue 20 s later.
CHECKPOINT = re.compile(r"\btidegate:ckpt=(?:SIG)?([A-Z][A-Z0-9]{1,9})@(\d{1,4})\b")


@dataclass(frozen=True, slots=True)
class Notice:
    """EC2 will reclaim this instance at `reclaim_at_s`.

    Source: EventBridge `aws.ec2`, "EC2 Spot Instance Interruption Warning". Best effort: it
    may come late, twice or never.
    """

    instance_id: str
    reclaim_at_s: float


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A job's wish: this signal, and so many seconds to save its state."""

    signal: str
    grace_s: float


def checkpoint(job: Job) -> Checkpoint | None:
    """The wish in the job's comment; None when it has none.

    Slurm 22.05 shows nobody what `--signal` asked, and USR1 ends a job that does not trap it,
    so only a job that says so is signalled.
    """
    found = CHECKPOINT.search(job.comment)
    return Checkpoint(found.group(1), float(found.group(2))) if found else None


def orders_for(
    notices: tuple[Notice, ...], reading: Reading | None, now_s: float, timings: Timings
) -> tuple[Order, ...]:
    """Drain all nodes at once, signal jobs that asked, requeue each before its reclaim.

    Ids follow from instance and time, so a repeated notice repeats the same orders.
    """
    if not notices:
        return ()
    last_s = max(notice.reclaim_at_s for notice in notices)
    names = tuple(sorted({notice.instance_id for notice in notices}))
    stamp = f"{sha256(' '.join(names).encode()).hexdigest()[:16]}-{last_s:.0f}"
    reason = "tidegate: EC2 reclaims this spot instance"
    orders = [Order(f"{stamp}-drain", OrderKind.DRAIN, names, last_s, text=reason)]
    return (*orders, *saves(notices, reading, now_s, timings))


def saves(
    notices: tuple[Notice, ...], reading: Reading | None, now_s: float, timings: Timings
) -> tuple[Order, ...]:
    """Signals and requeues for the jobs that run on these nodes now.

    A job may start just as its node's notice comes, and is then in no digest yet: every look
    asks again until the reclaim. The same job gets the same orders, which the agent carries
    out once.
    """
    orders: list[Order] = []
    by_node = {notice.instance_id: notice.reclaim_at_s for notice in notices}
    for job in sorted(reading.jobs if reading else (), key=lambda j: j.job_id):
        on = tuple(sorted(by_node.keys() & set(job.node_names)))
        if on and job.is_running and job.is_requeueable:
            reclaim_at_s = min(by_node[name] for name in on)
            orders.extend(_save(job, on, reclaim_at_s, now_s, timings))
    return tuple(orders)


def _save(
    job: Job, on: tuple[str, ...], reclaim_at_s: float, now_s: float, timings: Timings
) -> list[Order]:
    """Signal and requeue for one job; without a wish it may use all the time there is."""
    latest_s = reclaim_at_s - timings.requeue_margin_s
    wish = checkpoint(job)
    requeue_at_s = min(now_s + wish.grace_s, latest_s) if wish else latest_s
    stamp = f"{on[0]}-{job.job_id}-{reclaim_at_s:.0f}"
    saving: list[Order] = []
    if wish:
        saving.append(
            Order(
                f"{stamp}-signal",
                OrderKind.SIGNAL,
                (job.job_id,),
                reclaim_at_s,
                only_if=("RUNNING",),
                text=wish.signal,
                on_nodes=on,
            )
        )
    saving.append(
        Order(
            f"{stamp}-requeue",
            OrderKind.REQUEUE,
            (job.job_id,),
            reclaim_at_s,
            only_if=("RUNNING",),
            text="EC2 reclaims its node",
            on_nodes=on,
            delay_s=max(0, int(requeue_at_s - now_s)),
        )
    )
    return saving
