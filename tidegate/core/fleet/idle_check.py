"""The site's check of idle nodes: what became of the one that a pool has asked for.

A node that does not pass is checked once more, before all others. Where it fails again, or has no
other check in time, it is drained in the check's own name, as other software would drain it: so it
is believed of a share of the pool only, and the node is rebooted or replaced like any other. A
check that does not run says nothing of the node.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from tidegate.core.fleet.drains import Hand, hand
from tidegate.core.fleet.idle_pairs import (
    MISSED_MAX,
    NOT_KNOWN,
    PAIR_FAILS,
    failed_now,
    long_open,
    with_failed,
    with_passed,
    with_verdict,
)
from tidegate.core.fleet.members import Member
from tidegate.core.model.cluster import Pool
from tidegate.core.model.durations import clock, span
from tidegate.core.model.idle_check import (
    CHECKED_MAX,
    DAY_S,
    FOUND,
    SECONDS_PER_HOUR,
    UNTESTED,
    AskedCheck,
    CheckedNode,
    FailedOnce,
    IdleCheck,
    IdleChecks,
    PairChecks,
    SickNode,
    day_of,
)
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.site_check import FAILED, NOT_RUN, PASSED, REFUSED, CheckJob
from tidegate.core.model.slurm import Node
from tidegate.core.model.snapshot import Snapshot

# Nobody's fault: a job was before it, or the node went. The next may be asked for soon.
OVERTAKEN = frozenset({"DEADLINE", "NODE_FAIL", "PREEMPTED"})

# What of these only a job that has run comes to, though no digest may have shown it running.
# Source: squeue(1), "JOB STATE CODES".
HAS_RUN = frozenset({"NODE_FAIL", "PREEMPTED"})

# What makes Slurm let a job pend while its node idles (squeue(1), "JOB REASON CODES"). To limits of
# the partition the cluster file's own rules see.
KEEPERS = "a limit of its account or QOS, or an #SBATCH line of its script, keeps it"

# Beside its wait and its time limit: digests, KillWait, and the minutes in which Slurm looks.
LATE_S = 300.0

# For how long a node that did not pass is drained again and again until Slurm shows it.
SICK_S = 3600.0

# Of a pool, since its record is bound in its size. Who is forgotten counts as never checked.
SUSPECTS_MAX = 32

# Within which a node that has failed has its other check, else the one counts.
SUSPECT_S = 1800.0

# Due before all that is due by its time.
AT_ONCE_S = 0.0

FAILS, PASSES, MISSES = "idle-check-failed", "idle-check-passed", "idle-check-missed"
FAILS_ONCE = "idle-check-failed-once"


def idle_check_of(snapshot: Snapshot, pool: str) -> IdleCheck | None:
    """What idle nodes of the pool have to pass; None: nothing."""
    check = snapshot.cluster.idle_check
    return check if check and pool in check.pools else None


def asked_on(snapshot: Snapshot, member: Member) -> bool:
    """A check is asked for on it, and waits or runs; for a bounded time."""
    return any(
        each.pool == member.pool
        and each.idle_checks is not None
        and each.idle_checks.asked is not None
        and member.instance_id in each.idle_checks.asked.nodes
        for each in snapshot.pool_history
    )


def gpus_of(snapshot: Snapshot, member: Member) -> int:
    """How many GPUs the node has by its type."""
    found = snapshot.cluster.instance_type(member.offering.instance_type)
    return found.gpus if found else 0


def used_today(snapshot: Snapshot) -> float:
    """GPU-hours of today's budget that are used, with what those that wait or run may still use."""
    check = snapshot.cluster.idle_check
    used = 0.0
    for state in (each.idle_checks for each in snapshot.pool_history):
        if state is not None:
            used += state.used(snapshot.now_s)
            used += most_of(state.asked, check) if check and state.asked else 0.0
    return used


def most_of(asked: AskedCheck, check: IdleCheck) -> float:
    """GPU-hours that it may use."""
    return check.most_gpu_hours(asked.gpus, is_pair=asked.is_pair)


def due_since_s(
    history: PoolHistory, member: Member, check: IdleCheck, *, is_pair: bool = False
) -> float:
    """When the node's next check is due. A node that was never checked was new at its launch. One
    that has failed its last check, or was rebooted for what only a test shows to be mended, comes
    before all others.
    """
    state = history.idle_checks or IdleChecks()
    last_s = state.last_s(member.instance_id, is_pair=is_pair)
    is_suspect = state.is_suspect(member.instance_id)
    if not is_pair and (is_suspect or _is_doubtful(history, member, last_s)):
        return AT_ONCE_S
    every_s = check.pair.every_s if is_pair and check.pair else check.every_s
    return (member.launched_at_s if last_s is None else last_s) + every_s


def _is_doubtful(history: PoolHistory, member: Member, last_s: float | None) -> bool:
    """It was rebooted for such a finding, and not checked since."""
    return any(
        each.instance_id == member.instance_id
        and each.needs_test
        and each.has_rebooted
        and (last_s is None or last_s < each.at_s)
        for each in history.findings
    )


def with_idle_checks(
    history: PoolHistory, pool: Pool, ours: Sequence[Member], snapshot: Snapshot
) -> PoolHistory:
    """What is remembered once this snapshot was seen. `ours`: the pool's nodes."""
    state, check = history.idle_checks, idle_check_of(snapshot, pool.name)
    if state is None or snapshot.digest is None:
        return history
    if check is None:
        return replace(history, idle_checks=None)  # it was taken out of the cluster file
    there = {each.instance_id: each for each in ours if each.node is not None}
    after = _told_again(_drained(state, there, snapshot), snapshot)
    if after.asked is not None:
        shown = [there[name].node for name in after.asked.nodes if name in there]
        after = _seen(after, after.asked, check, snapshot, [each for each in shown if each])
    known = {each.instance_id for each in ours}
    is_believed = all(each.check != FOUND for each in history.stopped_checks)
    after = replace(
        after,
        nodes=tuple(each for each in after.nodes if each.instance_id in known)[-CHECKED_MAX:],
        failed=tuple(e for e in after.failed if is_believed and e.instance_id in known),
    )
    after = with_verdict(_unproved(after, there, snapshot.now_s), check, known, snapshot.now_s)
    return history if after == state else replace(history, idle_checks=after)


def told(before: PoolHistory, after: PoolHistory) -> tuple[str, str] | None:
    """What has become of the check, as a code and a sentence; None: nothing new."""
    was, now = before.idle_checks or IdleChecks(), after.idle_checks or IdleChecks()
    if now.sick and now.sick.instance_id != (was.sick.instance_id if was.sick else ""):
        return FAILS, f"{now.sick.instance_id} is drained: {now.sick.said}"
    if was.asked is None or now.asked is not None:
        return None
    is_pair, nodes = was.asked.is_pair, " and ".join(was.asked.nodes)
    runs, ran = (now.pairs, was.pairs) if is_pair else (now, was)
    if (runs.said and runs.said != ran.said) or runs.missed > ran.missed:
        return MISSES, f"the idle check on {nodes} did not run: {runs.said}"
    if is_pair and (failed := failed_now(was.pairs, now.pairs)):
        return PAIR_FAILS, f"{nodes} failed the check of pairs: {failed}; {NOT_KNOWN}"
    failure = None if is_pair else now.failure(was.asked.node)
    if failure and not failure.has_passed and failure not in was.failed:
        return FAILS_ONCE, f"{nodes} did not pass: {failure.said}; it is checked once more"
    if now.last_s(was.asked.node, is_pair=is_pair) != was.last_s(was.asked.node, is_pair=is_pair):
        used = f"{now.gpu_hours:.2f} GPU-hours of today's budget are used in the pool"
        passed = "have passed the check of pairs" if is_pair else "has passed the idle check"
        return PASSES, f"{nodes} {passed}; {used}"
    return MISSES, f"the idle check on {nodes} was given up: a job or AWS was before it"


def untold(snapshot: Snapshot) -> Iterator[str]:
    """Pools whose checks did not run again and again, and ask for none now, or found that one of
    two nodes is sick and not for long which.
    """
    for each in sorted(snapshot.pool_history, key=lambda h: h.pool):
        state, name = each.idle_checks, each.pool
        if state is None:
            continue
        for runs, what in ((state, "check of idle nodes"), (state.pairs, "check of pairs")):
            if runs.missed >= MISSED_MAX and runs.rests_until_s > snapshot.now_s:
                yield (
                    f"pool {name}: the {what} did not run: {runs.said}; the next is asked for at "
                    f"{clock(runs.rests_until_s)}, or after: tidegate retry {name}"
                )
        if said := long_open(state.pairs, snapshot.now_s):
            yield f"pool {name}: {said}; to try both again: tidegate retry {name}"


def _drained(state: IdleChecks, there: Mapping[str, Member], snapshot: Snapshot) -> IdleChecks:
    """Forgets who did not pass once Slurm has it drained, by whomever, or it is gone."""
    sick = state.sick
    if sick is None:
        return state
    member = there.get(sick.instance_id)
    node = member.node if member else None
    by = hand(node, snapshot.cluster.health_reasons) if node and node.state.is_drain else Hand.OURS
    is_late = snapshot.now_s > sick.at_s + SICK_S
    return replace(state, sick=None) if node is None or by is not Hand.OURS or is_late else state


def _told_again(state: IdleChecks, snapshot: Snapshot) -> IdleChecks:
    """An order may be lost: the head is told again, which is harmless."""
    before_s = snapshot.now_s - snapshot.cluster.timings.order_ttl_s
    if state.sick and state.sick.sent_at_s < before_s:
        return replace(state, sick=replace(state.sick, sent_at_s=snapshot.now_s))
    return state


def _seen(
    state: IdleChecks,
    asked: AskedCheck,
    check: IdleCheck,
    snapshot: Snapshot,
    shown: Sequence[Node],
) -> IdleChecks:
    """With what Slurm tells of the job that was asked for. `shown`: its nodes that are there."""
    now_s = snapshot.now_s
    jobs = [
        each
        for each in snapshot.heard.reading.checks
        if each.name == asked.name and (each.state == REFUSED or each.user == check.user)
    ]
    if not jobs:
        is_there = len(shown) == len(asked.nodes)
        return _unheard(state, asked, check, snapshot, is_there=is_there)
    # Of several, as of a script that submits an array, the one that has failed.
    job = min(jobs, key=lambda each: (each.state not in FAILED, each.state == PASSED, each.job_id))
    if job.state in FAILED:
        return _failed(state, asked, check, job, now_s)
    if job.state == PASSED:
        ended = _ended(state, asked, check, now_s)
        if asked.is_pair:
            return replace(ended, pairs=with_passed(ended.pairs, asked.nodes, now_s))
        done = CheckedNode(asked.node, now_s)
        others, failure = _without(state, asked.node), state.failure(asked.node)
        passed = [replace(failure, has_passed=True)] if failure and not failure.has_passed else []
        return replace(
            ended,
            nodes=(*others.nodes, done),
            failed=(*passed, *others.failed),
            missed=0,
            said="",
            rests_until_s=0.0,
        )
    if job.state in NOT_RUN:
        said = f"job {job.job_id} ended as {job.state}"
        if job.state == REFUSED:
            said = f"it was not taken: {job.said}"
        is_fault = job.state not in OVERTAKEN
        if job.state == "DEADLINE" and asked.begun_at_s is None and _were_free(shown, asked):
            said = (
                f"job {job.job_id} had not begun by its deadline, though nothing ran on "
                f"{' and '.join(asked.nodes)}: {KEEPERS}"
            )
            is_fault = True
        has_run = job.state in HAS_RUN
        return _missed(state, asked, check, said, now_s, is_fault=is_fault, has_run=has_run)
    if job.state != "PENDING" and asked.begun_at_s is None:
        return replace(state, asked=replace(asked, begun_at_s=now_s))
    return state


def _were_free(shown: Sequence[Node], asked: AskedCheck) -> bool:
    """Nothing has run on its nodes since it was asked for, and nothing is to."""
    return len(shown) == len(asked.nodes) and all(
        each.state.takes_jobs and not each.state.is_busy and each.last_busy_at_s < asked.asked_at_s
        for each in shown
    )


def _unheard(
    state: IdleChecks,
    asked: AskedCheck,
    check: IdleCheck,
    snapshot: Snapshot,
    *,
    is_there: bool,
) -> IdleChecks:
    """The order may be lost, or the agent is another one: the head submits a job that Slurm knows
    no second time.
    """
    now_s = snapshot.now_s
    if not is_there:
        return _missed(state, asked, check, "", now_s, is_fault=False)
    if now_s > asked.asked_at_s + check.wait_s + check.limit_s(is_pair=asked.is_pair) + LATE_S:
        said = f"nothing was heard of its job in {span(now_s - asked.asked_at_s)}"
        return _missed(state, asked, check, said, now_s)
    if now_s > asked.sent_at_s + snapshot.cluster.timings.order_ttl_s:
        return replace(state, asked=replace(asked, sent_at_s=now_s))
    return state


def _failed(
    state: IdleChecks, asked: AskedCheck, check: IdleCheck, job: CheckJob, now_s: float
) -> IdleChecks:
    if job.state == "FAILED" and job.exit_code in UNTESTED:
        said = f"job {job.job_id} could not test it, it ended with exit code {job.exit_code}"
        return _missed(state, asked, check, said, now_s, has_run=True)
    how = f"ended with exit code {job.exit_code}"
    if job.state == "TIMEOUT":
        how = f"ran into its time limit of {span(check.limit_s(is_pair=asked.is_pair))}"
    elif job.state == "OUT_OF_MEMORY":
        how = "ran out of memory"
    said = f"job {job.job_id} {how}"
    ended = _ended(state, asked, check, now_s)
    if asked.is_pair:
        return replace(ended, pairs=with_failed(ended.pairs, asked.nodes, said, now_s))
    # As if it had never been checked: once it takes jobs again it is the first to be.
    others = _without(state, asked.node)
    ended = replace(ended, nodes=others.nodes, failed=others.failed, missed=0, said="")
    first = state.failure(asked.node)
    if first is None:
        failed = (*others.failed, FailedOnce(asked.node, said, now_s))
        return replace(ended, failed=failed[-SUSPECTS_MAX:])
    return replace(ended, sick=SickNode(asked.node, f"{FOUND}: {first.said}, {said}", now_s, now_s))


def _unproved(state: IdleChecks, there: Collection[str], now_s: float) -> IdleChecks:
    """One failure counts where no second check came: the node is busy, or the day's hours used.
    Who is not `there`, since it is stopped, is drained once it is.
    """
    may_go = {*there} - ({state.asked.node} if state.asked else set())
    late = [
        each
        for each in state.failed
        if now_s > each.at_s + SUSPECT_S and each.instance_id in may_go and not each.has_passed
    ]
    if state.sick or not late:
        return state
    said = f"{FOUND}: {late[0].said}, and no other check in {span(SUSPECT_S)}"
    sick = SickNode(late[0].instance_id, said, now_s, now_s)
    return replace(_without(state, sick.instance_id), sick=sick)


def _without(state: IdleChecks, name: str) -> IdleChecks:
    """With nothing of the node's checks."""
    return replace(
        state,
        nodes=tuple(each for each in state.nodes if each.instance_id != name),
        failed=tuple(each for each in state.failed if each.instance_id != name),
    )


def _missed(
    state: IdleChecks,
    asked: AskedCheck,
    check: IdleCheck,
    said: str,
    now_s: float,
    *,
    is_fault: bool = True,
    has_run: bool = False,
) -> IdleChecks:
    """It tested nothing. `is_fault`: of the check, of which somebody should know. `has_run`: so it
    counts, also where nobody saw it run.
    """
    is_counted = has_run or asked.begun_at_s is not None
    ended = _ended(state, asked, check, now_s) if is_counted else replace(state, asked=None)
    runs = state.pairs if asked.is_pair else ended
    rest_s = check.wait_s
    if is_fault:
        runs = replace(runs, missed=runs.missed + 1, said=said)
        rest_s = DAY_S if runs.missed >= MISSED_MAX else check.wait_s
    runs = replace(runs, rests_until_s=now_s + rest_s)
    return replace(ended, pairs=runs) if isinstance(runs, PairChecks) else runs


def _ended(state: IdleChecks, asked: AskedCheck, check: IdleCheck, now_s: float) -> IdleChecks:
    """Its GPU-hours count in the day of its end; what nobody saw begin has since it was asked."""
    since_s = asked.asked_at_s if asked.begun_at_s is None else asked.begun_at_s
    seen = asked.gpus * max(now_s - since_s, 0.0) / SECONDS_PER_HOUR
    used = min(seen, most_of(asked, check))
    total = round(state.used(now_s) + used, 4)
    return replace(state, asked=None, day=day_of(now_s), gpu_hours=total)
