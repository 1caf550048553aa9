"""Jobs whose nodes fail again and again: such a job is not requeued for ever.

What breaks its nodes may be the job itself: its driver calls, its memory, its data. Each fault is
counted once, by the job's restarts; after three retries without an hour of good running between
them the job is held, and somebody has to look.
"""

from collections.abc import Iterator
from dataclasses import replace

from tidegate.core.model.durations import span
from tidegate.core.model.ec2 import Market
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action, Unmet, Watch
from tidegate.core.model.slurm import WAITING_STATES, Fault, Job
from tidegate.core.model.stuck import Stuck
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.passes.futile import request
from tidegate.core.passes.work import Work

RETRIES_MAX = 3
GOOD_RUN_S = 3600.0

# How Slurm says that a job is held.
HELD = ("JobHeld", "job requeued in held state")


def watch_faults(work: Work) -> Iterator[Action]:
    """Count the faults of jobs that were requeued for them, and hold those that had too many."""
    known = work.stuck
    for job in sorted(work.digest.reading.jobs, key=lambda job: job.job_id):
        before = known.get(job.job_id)
        if job.fault and _is_news(job.fault, before) and not _is_taken(job.fault, work):
            after = counted(before, job, job.fault, work)
            said = f"job {job.job_id} was requeued{_after(job.fault)}: {job.fault.said} "
            said += f"(fault {after.faults})"
            if after.faults > RETRIES_MAX:
                after = replace(after, held_at_s=work.snapshot.now_s)
            yield Watch(after, said)
            before = after
        if before and before.held_at_s:
            yield from _hold(work, job, before)


def counted(before: Stuck | None, job: Job, fault: Fault, work: Work) -> Stuck:
    """With one fault more; the first again after an hour of good running."""
    now_s = work.snapshot.now_s
    known = before or Stuck(job.job_id, request(job, work.digest.reading), 0.0)
    ran_s = now_s - known.faulted_at_s if fault.ran_s is None else fault.ran_s
    return replace(
        known,
        faults=1 if ran_s >= GOOD_RUN_S else known.faults + 1,
        fault_restarts=fault.restarts,
        faulted_at_s=now_s,
        fault=fault.said,
    )


def _hold(work: Work, job: Job, stuck: Stuck) -> Iterator[Action]:
    """Hold it until Slurm says so; from then on whoever releases it gives it new retries."""
    if not job.is_pending:
        return
    is_held = job.reason.startswith(HELD)
    ttl_s = work.snapshot.cluster.timings.order_ttl_s
    if not is_held and work.snapshot.now_s > stuck.held_at_s + ttl_s:
        said = f"job {job.job_id} was released: its faults are counted anew"
        yield Watch(replace(stuck, faults=0, held_at_s=0.0), said)
        return
    why = told(stuck)
    why_nots = (WhyNot(Why.FAULTS, why),)
    work.queue.passed_over[job.job_id] = Unmet(job.job_id, why, why_nots)
    if not is_held:
        waits = tuple(sorted(WAITING_STATES))
        yield work.order(OrderKind.HOLD, (job.job_id,), why, only_if=waits, why=why)


def told(stuck: Stuck) -> str:
    """Why it is held, and what to do."""
    return (
        f"it is held after {stuck.faults} faults without an hour of good running between them, the "
        f"last one: {stuck.fault}; look at its output, then: scontrol release {stuck.job_id}"
    )


def _after(fault: Fault) -> str:
    return "" if fault.ran_s is None else f" after a run of {span(fault.ran_s)}"


def _is_news(fault: Fault, before: Stuck | None) -> bool:
    return before is None or fault.restarts > before.fault_restarts


def _is_taken(fault: Fault, work: Work) -> bool:
    """A spot node that is gone: EC2 took it back, with a word or without."""
    if not fault.is_gone:
        return False
    markets = {each.instance_id: each.offering.market for each in work.snapshot.nodes}
    return all(markets.get(name) is Market.SPOT for name in fault.names)
