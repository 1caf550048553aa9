"""What people should be told without having asked: what is so now, whether told before or not."""

from collections.abc import Iterator
from itertools import islice

from tidegate.core.explain.block_ends import block_ends
from tidegate.core.explain.idle_gpus import idle_owners, idle_runs
from tidegate.core.explain.mail import run_of
from tidegate.core.explain.overview import BUDGET_WARNS_AT
from tidegate.core.fleet.findings import doubted_checks
from tidegate.core.fleet.holds import holds
from tidegate.core.fleet.members import members
from tidegate.core.fleet.templates import stopped_rollouts
from tidegate.core.model.durations import span
from tidegate.core.model.notice import Notice, NoticeCode
from tidegate.core.model.plan import Plan
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why
from tidegate.core.offers.spend import spending

# Those that have waited, or idled, longest: none of them leaves its place to another. All that
# were told of are remembered in one record, which DynamoDB bounds to 400 KB; of a run that idles it
# holds two keys and what became of the mail.
WAITS_MAX, IDLE_MAX = 2000, 1000

# Somebody wants the job to wait: the calendar; or, where no obstacle is ours, its user, an operator
# or a limit, as squeue says.
WANTED = frozenset({Why.HELD, Why.STOPPED})


def notices(snapshot: Snapshot, plan: Plan, *, wait_s: float) -> tuple[Notice, ...]:
    """All that is so now. `wait_s`: from so long a wait on a job is told of."""
    return (
        *_waits(snapshot, plan, wait_s),
        *_budgets(snapshot),
        *_checks(snapshot),
        *_holds(snapshot),
        *_rollouts(snapshot),
        *_blocks(snapshot),
        *_idle(snapshot),
        *_own_idle(snapshot),
    )


def _waits(snapshot: Snapshot, plan: Plan, wait_s: float) -> Iterator[Notice]:
    """By the head's clock, from when the job might have begun; an array counts once."""
    if snapshot.digest is None:
        return
    now_s = snapshot.digest.written_at_s
    jobs = {job.job_id: job for job in snapshot.digest.reading.jobs}
    long = [
        (now_s - begins_at_s, job, unmet.reason)
        for unmet in plan.unmet
        if (job := jobs.get(unmet.job_id)) is not None
        and (begins_at_s := job.begins_at_s) is not None
        and now_s - begins_at_s >= wait_s
        and not WANTED.issuperset(each.kind for each in unmet.why_nots)
    ]
    long.sort(key=lambda each: (-each[0], each[1].job_id))
    for waited_s, job, reason in long[:WAITS_MAX]:
        said = f"job {job.job_id} of {job.user} has waited for {span(waited_s)}: {reason}"
        sentence = f"{said}; tidegate why {job.job_id} says what would help"
        yield Notice(NoticeCode.JOB_WAITS, job.job_id, sentence)


def _budgets(snapshot: Snapshot) -> Iterator[Notice]:
    for each in spending(snapshot):
        cause = f"{each.scope}/{each.per}/{each.ends_at_s:.0f}"
        if each.usd >= each.budget_usd:
            sentence = f"{each.stops}; raise it in the cluster file and deploy, or wait"
            yield Notice(NoticeCode.BUDGET_SPENT, cause, sentence)
        elif each.share >= BUDGET_WARNS_AT:
            spent = f"{each.of} is spent to {100 * each.share:.0f} %"
            sentence = f"{spent}; at 100 % nothing more is launched for it: tidegate cost --spent"
            yield Notice(NoticeCode.BUDGET_NEARLY_SPENT, cause, sentence)


def _checks(snapshot: Snapshot) -> Iterator[Notice]:
    for pool, stop, sentence in doubted_checks(snapshot, members(snapshot)):
        cause = f"{pool}/{stop.check}/{stop.since_s:.0f}"
        yield Notice(NoticeCode.CHECK_DOUBTED, cause, sentence)


def _holds(snapshot: Snapshot) -> Iterator[Notice]:
    """Who runs the cluster pays for it; a hold that is made longer is another one."""
    for hold in holds(members(snapshot), snapshot.now_s):
        cause = f"{hold.instance_id}/{hold.until_s:.0f}"
        yield Notice(NoticeCode.NODE_HELD, cause, hold.sentence)


def _rollouts(snapshot: Snapshot) -> Iterator[Notice]:
    for pool, rollout, sentence in stopped_rollouts(snapshot):
        how = rollout.given_up or ("paused" if rollout.is_paused else "held")
        cause = f"{pool}/{rollout.template.digest}/{rollout.since_s:.0f}/{how}"
        yield Notice(NoticeCode.ROLLOUT_STOPPED, cause, sentence)


def _blocks(snapshot: Snapshot) -> Iterator[Notice]:
    for each in block_ends(snapshot):
        sentence = each.sentence(snapshot.now_s)
        yield Notice(NoticeCode.BLOCK_ENDS, each.reservation.id, sentence)


def _idle(snapshot: Snapshot) -> Iterator[Notice]:
    for job, many, idle_s in islice(idle_runs(snapshot), IDLE_MAX):
        said = f"job {job.job_id} of {job.user} has had {many} idle for {span(idle_s)}"
        sentence = f"{said}; tidegate why {job.job_id} says what follows"
        yield Notice(NoticeCode.GPUS_IDLE, run_of(job), sentence)


def _own_idle(snapshot: Snapshot) -> Iterator[Notice]:
    for job, sentence in islice(idle_owners(snapshot), IDLE_MAX):
        yield Notice(NoticeCode.OWN_GPUS_IDLE, run_of(job), sentence, job.user)
