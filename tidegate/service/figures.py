"""One look as figures for CloudWatch: metric name -> value."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from statistics import median

from tidegate.core.explain.block_ends import block_ends
from tidegate.core.explain.history import LookEvent
from tidegate.core.explain.lost import gpus, lost_nodes
from tidegate.core.explain.overview import limit_used
from tidegate.core.model.ec2 import RefusalKind
from tidegate.core.model.ledger import Phase
from tidegate.core.model.notice import MailEnd
from tidegate.core.model.plan import Mark, Rest
from tidegate.core.model.resting import BOOT_FAILURES
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why
from tidegate.core.offers.spend import spending
from tidegate.service.control import Looked, Round

# A head that was started this long ago reports by now.
HEAD_START_S = 900.0

# An age that CloudWatch takes for a head that was never heard.
DIGEST_AGE_MAX_S = 86_400.0

# From here on a wait is told: EC2 is often short of something for less.
LONG_WAIT_S = 480.0

# EC2 gives nothing of what fits, or Slurm starts nothing on nodes that do.
NOBODY_SERVES = frozenset({Why.RESTING, Why.NEXT_PLAN, Why.FUTILE})
# The job waits for something else as well, which is as the file says, or has an alarm of its own.
WAITS_FOR_MORE = frozenset(
    {Why.LIMIT, Why.BUDGET, Why.BROKEN, Why.FAILING, Why.DOUBTED, Why.STOPPED, Why.HELD}
)

# A node that takes this many times as long as its pool's nodes do may not come at all.
LATE_FACTOR = 1.5

REFUSED = {
    RefusalKind.CAPACITY: "RefusedCapacity",
    RefusalKind.QUOTA: "RefusedQuota",
    RefusalKind.SUBNET: "RefusedSubnet",
    RefusalKind.OTHER: "RefusedOther",
    RefusalKind.THROTTLED: "RefusedOther",
}


def look_figures(looked: Looked) -> dict[str, float]:
    """What the look did and saw. Each name costs by the hour that has a value: what did not
    happen has none. Rounds that lost their race did nothing and count for nothing.
    """
    figures = {"LookFailed": 1.0 if looked.trouble else 0.0}
    figures |= {name: value for name, value in _done(looked).items() if value}
    if known := looked.last_known:
        figures |= dict(_seen(known))
        if late := late_boots(known.snapshot):
            figures["BootFailed"] = figures.get("BootFailed", 0.0) + late
    if looked.rounds:
        last = looked.rounds[-1]
        figures["DigestAge"] = _digest_age_s(last)
        figures |= _spent(last.snapshot)
    return figures


def mail_figures(mails: Iterable[LookEvent]) -> dict[str, float]:
    """How many mails to owners of jobs SES took, and how many it did not; not those that wait."""
    ends = Counter(each.code == MailEnd.SENT for each in mails if each.code != MailEnd.LATER)
    figures = {"MailsSent": float(ends[True]), "MailsNotSent": float(ends[False])}
    return {name: count for name, count in figures.items() if count}


def _done(looked: Looked) -> dict[str, float]:
    done = [each for each in looked.rounds if not each.outcome.is_stale]
    refused = Counter(REFUSED[one.kind] for each in done for one in each.outcome.refused)
    rests = (a for each in done for a in each.plan.actions if isinstance(a, Rest))
    return {
        "Launched": float(sum(len(each.outcome.launched) for each in done)),
        "Terminated": float(sum(len(each.outcome.ended) for each in done)),
        "Refused": float(refused.total()),
        "BootFailed": float(sum(each.code in BOOT_FAILURES for each in rests)),
        "BootTime": max((one for each in done for one in _boots_s(each)), default=0.0),
        **{name: float(count) for name, count in refused.items()},
    }


def _boots_s(done: Round) -> Iterator[float]:
    """From launch to the first report of a node, as seen by looks."""
    launched = {each.instance_id: each.launched_at_s for each in done.snapshot.nodes}
    for action in done.plan.actions:
        is_join = isinstance(action, Mark) and action.phase is Phase.JOINED
        if isinstance(action, Mark) and is_join and not action.is_ungated:
            yield done.snapshot.now_s - launched[action.instance_id]


def _seen(known: Round) -> Iterator[tuple[str, float]]:
    """Capacity, where there is some."""
    snapshot = known.snapshot
    found = gpus(snapshot)
    if lost := len(lost_nodes(snapshot)):
        yield "LostNodes", float(lost)
    if ends := len(list(block_ends(snapshot))):
        yield "BlockEnds", float(ends)
    if stopped := sum(len(each.stopped_checks) for each in snapshot.pool_history):
        yield "StoppedChecks", float(stopped)
    if found.configured:
        yield "GpusConfigured", float(found.configured)
        yield "GpusUsable", float(found.usable)
        yield "GpusBusy", float(found.busy)
    if found.usable:
        yield "GpuUse", round(100 * found.busy / found.usable, 1)
    if used := limit_used(snapshot):
        yield "LimitUsed", round(100 * used, 1)
    if known.plan.usd_per_hour:
        yield "UsdPerHour", known.plan.usd_per_hour
    if unmet := len(known.plan.unmet):
        yield "UnmetJobs", float(unmet)
    if starting := len(known.plan.served):
        yield "StartingJobs", float(starting)
    yield from _waits(snapshot)
    if (oldest_s := oldest_wait_s(known)) >= LONG_WAIT_S:
        yield "OldestWait", oldest_s
    jobs = snapshot.digest.reading.jobs if snapshot.digest else ()
    if running := sum(job.is_running for job in jobs):
        yield "RunningJobs", float(running)


def _waits(snapshot: Snapshot) -> Iterator[tuple[str, float]]:
    """How long jobs that may start have been waiting, by the head's clock; an array counts once."""
    if snapshot.digest is None:
        return
    now_s = snapshot.digest.written_at_s
    waits_s = [
        now_s - job.begins_at_s
        for job in snapshot.digest.reading.jobs
        if job.is_pending and job.begins_at_s is not None and job.begins_at_s <= now_s
    ]
    if waits_s:
        yield "LongestWait", max(waits_s)
        yield "MedianWait", median(waits_s)


def oldest_wait_s(known: Round) -> float:
    """For how long the job has waited that has waited longest of those that a pool could serve.

    By the head's clock, from when the job might have begun.
    """
    digest = known.snapshot.digest
    if digest is None:
        return 0.0
    begins_at_s = {job.job_id: job.begins_at_s for job in digest.reading.jobs}
    return max(
        (
            digest.written_at_s - begins
            for each in known.plan.unmet
            if _waits_for_ec2({one.kind for one in each.why_nots})
            and (begins := begins_at_s.get(each.job_id)) is not None
        ),
        default=0.0,
    )


def _waits_for_ec2(kinds: Set[Why]) -> bool:
    return bool(kinds & NOBODY_SERVES) and not kinds & WAITS_FOR_MORE


def late_boots(snapshot: Snapshot) -> int:
    """Nodes that are paid for and take so long to join that they may not: they are ended later.

    A node may have joined since the digest was written. One that is ended has failed.
    """
    seen_at_s = snapshot.now_s - snapshot.digest_age_s
    late_s = {pool.name: LATE_FACTOR * pool.boot_s for pool in snapshot.cluster.pools}
    return sum(
        each.phase is Phase.LAUNCHED
        and late_s.get(each.pool, math.inf)
        < seen_at_s - each.launched_at_s
        <= snapshot.cluster.timings.given_up_s
        for each in snapshot.nodes
    )


def _spent(snapshot: Snapshot) -> dict[str, float]:
    """Percent of the budget that is used most; nothing where the file has none."""
    share = max((each.share for each in spending(snapshot)), default=0.0)
    return {"BudgetUsed": round(100 * share, 1)} if share else {}


def _digest_age_s(last: Round) -> float:
    """How long the head has been silent that should not be: 0 while it is, or just was, stopped."""
    snapshot = last.snapshot
    since_s = snapshot.wanted.since_s
    had_time = since_s is None or snapshot.now_s - since_s >= HEAD_START_S
    is_due = snapshot.wanted.is_up and had_time
    return min(snapshot.digest_age_s, DIGEST_AGE_MAX_S) if is_due else 0.0
