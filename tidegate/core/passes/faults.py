"""Jobs whose nodes fail again and again: such a job is not requeued for ever.

What breaks its nodes may be the job itself: its driver calls, its memory, its data. Each fault is
counted once, by the job's restarts; after three retries without an hour of good running between
them the job is held, and somebody has to look.
"""

from collections.abc import Mapping
from dataclasses import replace

from tidegate.core.model.durations import span
from tidegate.core.model.ec2 import Market
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action, Unmet, Watch
from tidegate.core.model.slurm import WAITING_STATES, Fault, Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.offers.cost import SECONDS_PER_HOUR
from tidegate.core.passes.futile import Watched, request
from tidegate.core.passes.orders import order

RETRIES_MAX = 3
GOOD_RUN_S = 3600.0

# How Slurm says that a job is held.
HELD = ("JobHeld", "job requeued in held state")


def watch_faults(snapshot: Snapshot, known: Mapping[str, Stuck]) -> Watched:
    """Count the faults of jobs that were requeued for them, and hold those that had too many."""
    actions: list[Action] = []
    passed_over: dict[str, Unmet] = {}
    for job in sorted(snapshot.heard.reading.jobs, key=lambda job: job.job_id):
        before = known.get(job.job_id)
        if job.fault and _is_news(job.fault, before) and not _is_taken(job.fault, snapshot):
            after = counted(before, job, job.fault, snapshot)
            said = f"job {job.job_id} was requeued{_after(job, job.fault)}: {job.fault.said} "
            said += f"(fault {after.faults})"
            if after.faults > RETRIES_MAX:
                after = replace(after, held_at_s=snapshot.now_s)
            actions.append(Watch(after, said))
            before = after
        if before and before.held_at_s and job.is_pending:
            if _is_released(snapshot, job, before):
                said = f"job {job.job_id} was released: its faults are counted anew"
                actions.append(Watch(replace(before, faults=0, held_at_s=0.0), said))
                continue
            why = told(before)
            passed_over[job.job_id] = Unmet(job.job_id, why, (WhyNot(Why.FAULTS, why),))
            if not job.reason.startswith(HELD):
                waits = tuple(sorted(WAITING_STATES))
                actions.append(order(OrderKind.HOLD, (job.job_id,), why, only_if=waits, why=why))
    return Watched(tuple(actions), passed_over)


def counted(before: Stuck | None, job: Job, fault: Fault, snapshot: Snapshot) -> Stuck:
    """With one fault more; the first again after an hour of good running."""
    now_s = snapshot.now_s
    known = before or Stuck(job.job_id, request(job, snapshot.heard.reading), 0.0)
    ran_s = now_s - known.faulted_at_s if fault.ran_s is None else fault.ran_s
    return replace(
        known,
        faults=1 if ran_s >= GOOD_RUN_S else known.faults + 1,
        fault_restarts=fault.restarts,
        faulted_at_s=now_s,
        fault=fault.said,
    )


def _is_released(snapshot: Snapshot, job: Job, stuck: Stuck) -> bool:
    """Slurm has held it, and somebody has released it since: who does so gives it new retries."""
    ttl_s = snapshot.cluster.timings.order_ttl_s
    return not job.reason.startswith(HELD) and snapshot.now_s > stuck.held_at_s + ttl_s


def told(stuck: Stuck) -> str:
    """Why it is held, and what to do."""
    return (
        f"it is held after {stuck.faults} faults without an hour of good running between them, the "
        f"last one: {stuck.fault}; look at its output, then: scontrol release {stuck.job_id}"
    )


def _after(job: Job, fault: Fault) -> str:
    """How long that run was, and what is lost at most: what was saved of it only its program knows.
    Of a heterogeneous job one component is seen.
    """
    if fault.ran_s is None:
        return ""
    gpus = job.nodes * job.shape.gpus if job.shape.gres in ("gpu", "neuron") else 0
    gpu_hours = fault.ran_s / SECONDS_PER_HOUR * gpus
    held = f" ({gpu_hours:.1f} GPU-hours)" if gpu_hours and not job.het_job_id else ""
    return f" after a run of {span(fault.ran_s)}{held}"


def _is_news(fault: Fault, before: Stuck | None) -> bool:
    return before is None or fault.restarts > before.fault_restarts


def _is_taken(fault: Fault, snapshot: Snapshot) -> bool:
    """A spot node that is gone: EC2 took it back, with a word or without."""
    if not fault.is_gone:
        return False
    markets = {each.instance_id: each.offering.market for each in snapshot.nodes}
    return all(markets.get(name) is Market.SPOT for name in fault.names)
