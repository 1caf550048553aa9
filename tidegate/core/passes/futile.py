"""Jobs that Slurm does not start although nodes that fit them stand idle.

Whatever keeps such a job waiting is not in the digest. Money spent on it would be spent again
and again, so after three scheduling passes it is passed over for 5, then 15, then 60 minutes,
or until its request or its limits change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from hashlib import sha256

from tidegate.core.demand.accounting import covers
from tidegate.core.demand.constraint import with_feature
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.plan import Action, Served, Unmet, Watch
from tidegate.core.model.slurm import Job, Reading, holders
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.stuck import Stuck, anew
from tidegate.core.model.why import PASSED_OVER, PASSES_MAX, Why, WhyNot

# Slurm's main scheduler tries at least once a minute (sched_interval).
PASS_S = 60.0

BACK_OFF_S = (300.0, 900.0, 3600.0)

# Each is a write to the ledger; more can wait for the next look.
WATCHES_MAX = 20


@frozen
class Watched:
    """What is noted of jobs and done about them, and which of them get nothing in this plan."""

    actions: tuple[Action, ...] = ()
    passed_over: Mapping[str, Unmet] = field(default_factory=dict)


def held_back(snapshot: Snapshot) -> dict[str, Unmet]:
    """The jobs that get nothing now, because the last nodes for them were of no use."""
    now_s = snapshot.now_s
    resting = {each.job_id: each for each in snapshot.stuck if each.until_s > now_s}
    if not resting or snapshot.digest is None:
        return {}
    reading = snapshot.digest.reading
    found: dict[str, Unmet] = {}
    for job in reading.jobs:
        stuck = resting.get(job.job_id)
        if stuck and job.is_pending and stuck.request == request(job, reading):
            found[job.job_id] = passed_over(stuck, now_s)
    return found


def passed_over(stuck: Stuck, now_s: float) -> Unmet:
    """What a job hears for which nothing is bought for a while."""
    kind = Why.SICK if stuck.is_sick else Why.VAIN if stuck.is_vain else Why.FUTILE
    said = f"{PASSED_OVER[kind]}: nothing is bought for it for {stuck.until_s - now_s:.0f} s more"
    return Unmet(stuck.job_id, said, (WhyNot(kind, said, until_s=stuck.until_s),))


def watch_waiting(
    snapshot: Snapshot, served: Mapping[str, Served], known: Mapping[str, Stuck]
) -> Sequence[Action]:
    """Note which served jobs Slurm leaves waiting beside nodes that have been idle for long."""
    now_s, held = snapshot.now_s, holders(snapshot.heard.reading.jobs)
    idle = {
        node.name
        for node in snapshot.heard.reading.nodes
        if node.state.is_empty  # also PLANNED: for a job that Slurm could start there, and does not
        and node.state.takes_jobs
        and node.name not in held
        and snapshot.heard.written_at_s - node.last_busy_at_s >= PASSES_MAX * PASS_S
    }
    if not idle:
        return ()
    jobs = {job.job_id: job for job in snapshot.heard.reading.jobs if job.is_pending}
    watches: list[Watch] = []
    for job_id in sorted(served):
        if job_id in jobs and idle.issuperset(served[job_id].by):
            asked = request(jobs[job_id], snapshot.heard.reading)
            watch = _watch(known.get(job_id), job_id, asked, now_s)
            if watch is not None:
                watches.append(watch)
    return watches[:WATCHES_MAX]


def _watch(before: Stuck | None, job_id: str, asked: str, now_s: float) -> Watch | None:
    """What to write down about a job that could have started; None: nothing new."""
    if before is None or before.request != asked or not before.since_s:
        reason = f"job {job_id} waits although nodes that fit it are idle"
        known = anew(before, job_id, asked, now_s)
        return Watch(replace(known, since_s=now_s), reason)
    if now_s - max(before.since_s, before.until_s) < PASSES_MAX * PASS_S:
        return None
    rest_s = back_off_s(before.failures)
    reason = f"job {job_id} is passed over for {rest_s:.0f} s: Slurm does not start it"
    until_s = now_s + rest_s
    failures = before.failures + 1
    stuck = replace(
        before, since_s=now_s, failures=failures, until_s=until_s, is_sick=False, is_vain=False
    )
    return Watch(stuck, reason)


def back_off_s(failures: int) -> float:
    """How long nothing is bought for a job whose nodes were of no use so often before."""
    return BACK_OFF_S[min(failures, len(BACK_OFF_S) - 1)]


def request(job: Job, reading: Reading) -> str:
    """What a change of makes it worth another try: what the job asks, and its limits."""
    caps = sorted(repr(each) for each in reading.associations if covers(each, job))
    asked = (
        job.partitions,
        job.nodes,
        job.shape,
        # Whether or not it was kept off spot since: that is our doing, and cures nothing.
        with_feature(job.constraint, Market.ON_DEMAND.feature) or job.constraint,
        job.time_limit_s,
        job.account,
        job.qos,
        job.licences,
        job.licence_choices,
        job.count,
        caps,
        *_place(job),
    )
    return sha256(repr(asked).encode()).hexdigest()[:16]


def _place(job: Job) -> tuple[tuple[object, ...], ...]:
    """Nothing for most jobs, as before jobs told of it: what is noted of them stays."""
    place = job.required_nodes, job.excluded_nodes, job.reservation
    return (place,) if any(place) else ()
