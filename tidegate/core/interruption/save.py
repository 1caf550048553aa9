"""How the jobs on nodes that AWS takes away are saved, decided from the last digest alone."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import batched

from tidegate.core.model.cluster import Pool, Rebalance, Timings
from tidegate.core.model.drain_reason import DrainReason
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.resting import LOSS, TAKEN_BACK, Resting, rest_s
from tidegate.core.model.slurm import RUNNING_STATES, Job, Reading

# `sbatch --comment=tidegate:ckpt=USR1@20`: send USR1 at once, requeue 20 s later. "B:" before
# the signal: to the script alone; "S:": to its steps alone; else to both, and all processes.
CHECKPOINT = re.compile(r"\btidegate:ckpt=([BS]:)?(?:SIG)?([A-Z][A-Z0-9]{1,9})@(\d{1,4})\b")

# `#SBATCH --signal=B:USR1@20` in its script, as the agent writes it.
ASKED_SIGNAL = re.compile(r"(B:)?([A-Z][A-Z0-9]{1,9})@(\d{1,5})")

TO_STEPS = "S:"

# What one order names at most: with the nodes of its jobs far below the 256 KB of a message.
NAMES_MAX = 1_000

ASK_AGAIN_S = 10.0

RUNS = tuple(sorted(RUNNING_STATES))

# So long before a maintenance that AWS Health announced the jobs are moved.
NEAR_S = 600.0

# Slurm finds a dead node DOWN after its SlurmdTimeout, 120 s; who lives on so long after an end
# that was announced was not ended.
OUTLIVED_S = 300.0

# The stamp of a signal whose requeue is ours to time.
MOVE = "move"

# Why a job is requeued, unless another reason is given.
RECLAIMED = "EC2 reclaims its node"


@frozen
class InterruptionNotice:
    """AWS takes this instance away at `reclaim_at_s`."""

    instance_id: str
    reclaim_at_s: float


@frozen
class Checkpoint:
    """What a job requests: this signal, and so many seconds to save its state.

    `signal`: as an order carries it, "USR1", "B:USR1" or "S:USR1".
    """

    signal: str
    grace_s: float


def checkpoint(job: Job) -> Checkpoint | None:
    """The request in the job's comment, else that of `--signal` in its script; None: there is none.

    USR1 ends a job that does not trap it, so only a job that says so is signalled.
    """
    if found := CHECKPOINT.search(job.comment):
        return Checkpoint(f"{found[1] or ''}{found[2]}", float(found[3]))
    if found := ASKED_SIGNAL.fullmatch(job.signal):
        return Checkpoint(f"{found[1] or TO_STEPS}{found[2]}", float(found[3]))
    return None


def orders_for(
    notices: Collection[InterruptionNotice], reason: DrainReason, now_s: float, timings: Timings
) -> tuple[Order, ...]:
    """Drain all these nodes at once. A notice that comes late is still obeyed.

    Ids follow from the content, so a repeated notice repeats the same orders.
    """
    last_s = max((notice.reclaim_at_s for notice in notices), default=0.0)
    names = [notice.instance_id for notice in notices]
    not_after_s = max(last_s, now_s + timings.order_ttl_s)
    return tuple(order_for_nodes(OrderKind.DRAIN, names, reason, not_after_s))


def order_for_nodes(
    kind: OrderKind, names: Collection[str], reason: DrainReason, not_after_s: float
) -> Iterator[Order]:
    """One order for all nodes, or a few for very many."""
    for chunk in batched(sorted(set(names)), NAMES_MAX, strict=False):
        yield _order(kind, chunk, not_after_s, text=str(reason))


def reclaim_at_s(record: NodeRecord, now_s: float) -> float | None:
    """When AWS takes the node away; the end of a cordon counts when it is near."""
    if record.reclaim_at_s is not None:
        return record.reclaim_at_s
    cordon = record.cordon
    ends_at_s = cordon.ends_at_s if cordon and cordon.holds(now_s) else None
    return ends_at_s if ends_at_s is not None and now_s >= ends_at_s - NEAR_S else None


def is_announced(record: NodeRecord, pool: Pool | None, seen_at_s: float) -> bool:
    """Whether AWS has said that the node ends. One that Slurm still hears of long after has
    outlived that. A spot node may have had but a recommendation where its pool takes that for a
    notice, and AWS may let it live on.
    """
    if record.phase is not Phase.INTERRUPTED:
        return False
    if pool and pool.rebalance is Rebalance.DRAIN and record.offering.market is Market.SPOT:
        return False
    return not has_outlived(record, seen_at_s)


def has_outlived(record: NodeRecord, seen_at_s: float) -> bool:
    """Whether Slurm still hears of it long after AWS was to take it: its jobs run on there."""
    return record.reclaim_at_s is not None and seen_at_s > record.reclaim_at_s + OUTLIVED_S


def after_loss(
    offering: Offering, before: Resting | None, now_s: float, timings: Timings
) -> Resting | None:
    """The rest of an offering that EC2 takes nodes back from; None: it rests long enough.

    All losses within one rest count as one: they are one storm. Each further one doubles it.
    """
    if before is not None and before.until_s > now_s and before.code == TAKEN_BACK:
        return None
    losses = before.failures + 1 if before is not None and before.code == TAKEN_BACK else 1
    until_s = now_s + rest_s(losses, timings)
    if before is not None and before.until_s >= until_s:
        return None
    return Resting(offering, until_s, losses, TAKEN_BACK, LOSS)


def saves(
    notices: Collection[InterruptionNotice],
    reading: Reading | None,
    now_s: float,
    timings: Timings,
    why: str = RECLAIMED,
) -> tuple[Order, ...]:
    """Signals and requeues for the jobs that run on these nodes now.

    A job may start just as its node's notice comes, and is then in no digest yet: every look
    asks again until the reclaim. The agent signals a run once, and a job that was requeued
    runs on none of these nodes any more.
    """
    signals: dict[str, list[_Saving]] = {}
    requeues: dict[int, list[_Saving]] = {}
    jobs = {job.job_id: job for job in reading.jobs} if reading else {}
    by_node = {notice.instance_id: notice.reclaim_at_s for notice in notices}
    for job in sorted(jobs.values(), key=lambda j: j.job_id):
        on = sorted(by_node.keys() & set(job.node_names))
        if not on or not job.is_running:
            continue
        at_s = min(by_node[name] for name in on)
        # Nobody knows how much longer a node lives whose time is over: what it runs is saved still.
        not_after_s = at_s if at_s > now_s else now_s + timings.order_ttl_s
        saving = _Saving(job.job_id, on, at_s, not_after_s)
        # All components are requeued with the first one, whose script is the only one there is.
        request = checkpoint(jobs.get(job.het_job_id, job))
        if request:
            signals.setdefault(request.signal, []).append(saving)
        if job.is_requeueable:
            # Without a request it may use all the time there is.
            latest_s = saving.reclaim_at_s - timings.requeue_margin_s
            due_s = min(now_s + request.grace_s, latest_s) if request else latest_s
            requeues.setdefault(int(max(due_s, now_s)), []).append(saving)
    return (*_signals(signals, now_s), *_requeues(requeues, now_s, why))


@frozen
class _Saving:
    """A job on nodes that go."""

    job_id: str
    on: list[str]
    reclaim_at_s: float
    not_after_s: float


def _signals(by_signal: Mapping[str, list[_Saving]], now_s: float) -> Iterator[Order]:
    # An order that Slurm refused is no use again under its old id.
    period = f"{now_s // ASK_AGAIN_S:.0f}"
    for signal, savings in sorted(by_signal.items()):
        for chunk in batched(savings, NAMES_MAX, strict=False):
            yield _about_jobs(OrderKind.SIGNAL, chunk, text=signal, stamp=period)


def _requeues(by_time: Mapping[int, list[_Saving]], now_s: float, why: str) -> Iterator[Order]:
    for at_s, savings in sorted(by_time.items()):
        for chunk in batched(savings, NAMES_MAX, strict=False):
            order = _about_jobs(OrderKind.REQUEUE, chunk, text=why, stamp=str(at_s))
            yield replace(order, delay_s=max(0, int(at_s - now_s)))


def _about_jobs(kind: OrderKind, savings: Sequence[_Saving], *, text: str, stamp: str) -> Order:
    return _order(
        kind,
        [saving.job_id for saving in savings],
        max(saving.not_after_s for saving in savings),
        text=text,
        on_nodes=sorted({name for saving in savings for name in saving.on}),
        stamp=stamp,
    )


def moved_ending(not_after_s: float) -> str:
    """With which the id of a signal ends that tells a job of its move."""
    return f"-{not_after_s:.0f}-{MOVE}-{OrderKind.SIGNAL.value}"


def moved(
    job: Job, signal: str, due_s: float, now_s: float, *, timings: Timings, why: str
) -> tuple[Order, ...]:
    """A signal now, and at `due_s` a requeue of this very run. Who asks again for the same time
    repeats the same orders.
    """
    saving = _Saving(job.job_id, sorted(job.node_names), due_s, due_s + timings.order_ttl_s)
    told = _about_jobs(OrderKind.SIGNAL, [saving], text=signal, stamp=MOVE)
    (requeue,) = _requeues({int(due_s): [saving]}, now_s, why)
    return tuple(replace(each, restarts=job.restarts) for each in (told, requeue))


def _order(
    kind: OrderKind,
    names: Sequence[str],
    not_after_s: float,
    *,
    text: str,
    on_nodes: Sequence[str] = (),
    stamp: str = "",
) -> Order:
    told = " ".join((text, *names, "on", *on_nodes))
    order_id = f"{sha256(told.encode()).hexdigest()[:16]}-{not_after_s:.0f}{stamp and '-'}{stamp}"
    return Order(
        f"{order_id}-{kind.value}",
        kind,
        tuple(names),
        not_after_s,
        only_if=RUNS if on_nodes else (),
        text=text,
        on_nodes=tuple(on_nodes),
    )
