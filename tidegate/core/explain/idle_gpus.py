"""What people hear of jobs whose GPUs idle, also where the cluster file does nothing about them."""

from collections.abc import Iterator

from tidegate.core.explain.mail import OwnerMails
from tidegate.core.interruption.idle_gpus import GpuJob, gpu_jobs, rule_of
from tidegate.core.model.durations import clock, span
from tidegate.core.model.gpu_use import IdleAction, IdleGpus, IdleNotice, IdleRule
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot

# Of jobs; one screen holds no more.
NAMED_MAX = 5

_WILL = {IdleAction.REQUEUE: "requeued", IdleAction.CANCEL: "cancelled"}


def about_idle_gpus(
    job: Job, snapshot: Snapshot, mails: OwnerMails | None = None
) -> tuple[str, ...]:
    """Of one running job: for how long its GPUs idle, what became of the mail to its owner, and
    what follows. Nothing: they do not. `mails` None: owners get none.
    """
    found = [each for each in _idle(snapshot) if job in each[0].components]
    said = [sentence for each in found for sentence in _sentences(*each, snapshot)]
    if mails:
        said[1:1] = [mails.about(idle.job) for idle, _, _ in found]
    return tuple(said)


def idle_jobs(snapshot: Snapshot) -> Iterator[str]:
    """Of all jobs in one sentence, those that idle longest first."""
    idle = _idle(snapshot)
    if not idle:
        return
    named = [f"{each.job.job_id} of {each.job.user} ({span(idle_s)})" for each, _, idle_s in idle]
    more = f" and {len(named) - NAMED_MAX} more" if len(named) > NAMED_MAX else ""
    kinds = sorted({each.called for each, _, _ in idle})
    gpus = sum(each.gpus for each, _, _ in idle)
    called = " and ".join(f"{each}{'s' * (gpus != 1)}" for each in kinds)
    yield (
        f"{gpus} {called} of running jobs idle: job{'s' * (len(idle) != 1)} "
        f"{', '.join(named[:NAMED_MAX])}{more}; tidegate why JOB says what follows"
    )


def idle_runs(snapshot: Snapshot) -> Iterator[tuple[Job, str, float]]:
    """The jobs whose GPUs idle, how many of what these are, and for how many seconds."""
    return ((each.job, each.many, idle_s) for each, _, idle_s in _idle(snapshot))


def idle_owners(snapshot: Snapshot) -> Iterator[tuple[Job, str]]:
    """The same, with what the owner of each should hear of it."""
    for each, rule, idle_s in _idle(snapshot):
        job = each.job
        said = f"your job {job.job_id} has had {each.many} idle for {span(idle_s)}"
        ends = snapshot.cluster.idle_gpus is not None and rule.action in _WILL
        if rule.action is IdleAction.REQUEUE and not job.is_requeueable:
            ends = False
        if ends:
            when = f"{span(rule.warning_s)} after the warning in its output"
            will = f"it is {_WILL[rule.action]} {when} unless that changes"
            keep = f"scontrol update jobid={job.job_id} comment=tidegate:idle-ok"
            yield job, f"{said}; {will}; to keep it: {keep}"
        else:
            yield job, f"{said}; it goes on; when its work is done: scancel {job.job_id}"


def _idle(snapshot: Snapshot) -> list[tuple[GpuJob, IdleRule, float]]:
    """The jobs, the rule by which they idle, and for how many seconds; the longest first."""
    if snapshot.digest is None:
        return []
    policy = snapshot.cluster.idle_gpus or IdleGpus()
    found: list[tuple[GpuJob, IdleRule, float]] = []
    for each in gpu_jobs(snapshot.digest.reading.jobs):
        rule = rule_of(policy, each.job)
        since_s = each.idle_since_s(rule.use_percent) if rule else None
        idle_s = snapshot.digest.written_at_s - since_s if since_s is not None else 0.0
        if rule and idle_s >= rule.after_s:
            found.append((each, rule, idle_s))
    return sorted(found, key=lambda each: (-each[2], each[0].job.job_id))


def _sentences(idle: GpuJob, rule: IdleRule, idle_s: float, snapshot: Snapshot) -> Iterator[str]:
    yield f"its {idle.called}s have been used for less than {rule.use_percent} % for {span(idle_s)}"
    if snapshot.cluster.idle_gpus is None:
        yield "nothing is done about it: the cluster file has no idle_gpus"
        return
    stuck = next((each for each in snapshot.stuck if each.job_id == idle.job.job_id), None)
    notice = stuck.idle if stuck and stuck.idle else None
    if notice is None or notice.restarts != idle.job.restarts or not notice.told_at_s:
        yield "its owner is told"
        return
    yield f"its owner was told at {clock(notice.told_at_s)}, in its output and its AdminComment"
    yield from _what_follows(idle.job, rule, notice)


def _what_follows(job: Job, rule: IdleRule, notice: IdleNotice) -> Iterator[str]:
    keep = f"; to keep it: scontrol update jobid={job.job_id} comment=tidegate:idle-ok"
    if notice.ended_at_s > notice.told_at_s:
        yield f"it was {_WILL[notice.action]} for that at {clock(notice.ended_at_s)}"
    elif notice.is_spared:
        yield "it goes on: as many jobs as may be were ended for idle GPUs within an hour"
    elif rule.action is IdleAction.REQUEUE and not job.is_requeueable:
        yield "it goes on: it may not be requeued (--no-requeue, or no batch job)"
    elif rule.action in _WILL:
        at = clock(notice.told_at_s + rule.warning_s)
        yield f"it is {_WILL[rule.action]} at {at} unless that changes{keep}"
