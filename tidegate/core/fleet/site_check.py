"""The site's own check of a template: when it is asked for, and what its outcome says.

It runs on the template's first nodes. One that fails gives the template up; one that does not run
says nothing of it, so it is asked for once more, and then the roll-out waits for a person.
"""

from collections.abc import Sequence
from dataclasses import replace

from tidegate.core.fleet.judge import judge
from tidegate.core.fleet.members import Member
from tidegate.core.model.digest import Digest
from tidegate.core.model.durations import span
from tidegate.core.model.rollout import BY_CHECK, Rollout, RolloutCode, Step
from tidegate.core.model.site_check import (
    FAILED,
    NOT_RUN,
    PASSED,
    REFUSED,
    Checked,
    CheckJob,
    SiteCheck,
    check_name,
)
from tidegate.core.model.snapshot import Snapshot

# Jobs that may not run one after the other until a person is asked.
MISSED_MAX = 2

# Beside its wait and its time limit: digests, KillWait, and the minutes in which Slurm looks.
LATE_S = 300.0


def check_of(snapshot: Snapshot, pool: str) -> SiteCheck | None:
    """What a new template of the pool has to pass; None: nothing."""
    check = snapshot.cluster.check
    return check if check and (not check.pools or pool in check.pools) else None


def lacks_check(rollout: Rollout, check: SiteCheck | None) -> bool:
    """Whether a check has to pass before more nodes are made from it."""
    return check is not None and rollout.step is Step.CANARY and not rollout.checked.is_passed


def checked(rollout: Rollout, pool: str, ours: Sequence[Member], snapshot: Snapshot) -> Rollout:
    """With what is seen of its check. `ours`: the pool's nodes."""
    check, digest = check_of(snapshot, pool), snapshot.digest
    if check is None or digest is None or not lacks_check(rollout, check) or rollout.is_stopped:
        return rollout
    if rollout.step_since_s is None and rollout.checked.asked_at_s is None:
        return rollout  # no first node has joined well, or they are all bad
    if rollout.checked.asked_at_s is None:
        return _asked_for(rollout, check, ours, snapshot)
    found = _jobs(job_name(rollout, pool), check, digest)
    if not found:
        return _unheard(rollout, check, ours, snapshot)
    return _seen(rollout, check, found, snapshot.now_s)


def job_name(rollout: Rollout, pool: str) -> str:
    """The name of the job that was asked for last."""
    since_s, number = rollout.since_s, rollout.checked.number
    return check_name(pool, rollout.template.digest, since_s, number)


def fit_nodes(rollout: Rollout, ours: Sequence[Member], snapshot: Snapshot) -> list[str]:
    """Its nodes that take jobs and stay, and of which nothing bad is known, in order."""
    return sorted(
        each.instance_id
        for each in ours
        if each.template == rollout.template.digest
        and each.instance_id in rollout.tried
        and each.instance_id not in rollout.bad
        and each.node is not None
        and each.node.state.takes_jobs
        and judge(each, snapshot, snapshot.doubted).order is None
    )


def waits_for(rollout: Rollout, check: SiteCheck, fit: Sequence[str], now_s: float) -> str:
    """What the check waits for, for people."""
    state = rollout.checked
    if state.asked_at_s is not None:
        nodes, ago_s = " and ".join(state.nodes), max(now_s - state.asked_at_s, 0.0)
        return f"the site's check was asked for on {nodes} {span(ago_s)} ago and has not passed"
    needs = f"the site's check needs {check.nodes} nodes made from it at one time"
    return f"{needs}, there is {len(fit) or 'none'}"


def _asked_for(
    rollout: Rollout, check: SiteCheck, ours: Sequence[Member], snapshot: Snapshot
) -> Rollout:
    """Asks for a job once there are nodes enough; where there are none for long, for a person."""
    state, now_s = rollout.checked, snapshot.now_s
    since_s = now_s if state.since_s is None else state.since_s
    fit = fit_nodes(rollout, ours, snapshot)
    if len(fit) >= check.nodes:
        asked = replace(
            state,
            number=state.number + 1,
            since_s=since_s,
            nodes=tuple(fit[: check.nodes]),
            asked_at_s=now_s,
            sent_at_s=now_s,
        )
        return replace(rollout, checked=asked)
    if now_s > since_s + check.wait_s:
        waited = f"in {span(check.wait_s)} there were never {check.nodes} nodes for it at one time"
        return _put_off(rollout, waited)
    return replace(rollout, checked=replace(state, since_s=since_s))


def _jobs(name: str, check: SiteCheck, digest: Digest) -> list[CheckJob]:
    """Whoever may submit jobs may give them names: only those of the check's user count."""
    return [
        each
        for each in digest.reading.checks
        if each.name == name and (each.state == REFUSED or each.user == check.user)
    ]


def _unheard(
    rollout: Rollout, check: SiteCheck, ours: Sequence[Member], snapshot: Snapshot
) -> Rollout:
    """The order may be lost, or the job's end was told while nobody listened: the head submits a
    job that Slurm knows no second time, and none on a node that Slurm does not know.
    """
    state, now_s = rollout.checked, snapshot.now_s
    assert state.asked_at_s is not None, "there is a job"
    there = {each.instance_id for each in ours if each.node is not None}
    if gone := [name for name in state.nodes if name not in there]:
        return _missed(rollout, f"{' and '.join(gone)}, which it needs, left before it ran", now_s)
    if now_s > state.asked_at_s + check.wait_s + check.time_limit_s + LATE_S:
        since = span(now_s - state.asked_at_s)
        return _missed(rollout, f"nothing was heard of its job in {since}", now_s)
    if now_s > state.sent_at_s + snapshot.cluster.timings.order_ttl_s:
        return replace(rollout, checked=replace(state, sent_at_s=now_s))
    return rollout


def _seen(rollout: Rollout, check: SiteCheck, jobs: Sequence[CheckJob], now_s: float) -> Rollout:
    state = rollout.checked
    if bad := next((each for each in jobs if each.state in FAILED), None):
        return rollout.giving_up(RolloutCode.BAD_CHECK, _failed(bad, check, state))
    if missed := next((each for each in jobs if each.state in NOT_RUN), None):
        return _missed(rollout, _not_run(missed, check), now_s)
    if all(each.state == PASSED for each in jobs):
        return replace(rollout, checked=replace(state, is_passed=True))
    return rollout


def _missed(rollout: Rollout, why: str, now_s: float) -> Rollout:
    """Asks for one more job, or for a person."""
    state = rollout.checked
    if state.missed + 1 >= MISSED_MAX:
        return _put_off(rollout, why)
    again = replace(state, missed=state.missed + 1, since_s=now_s, nodes=(), asked_at_s=None)
    return replace(rollout, checked=again, said=f"the site's check did not run: {why}")


def _put_off(rollout: Rollout, why: str) -> Rollout:
    """Neither good nor bad: no more nodes are made from it until a person says so."""
    anew = Checked(number=rollout.checked.number)
    said = f"the site's check did not run: {why}"
    return replace(rollout, is_paused=True, by=BY_CHECK, said=said, checked=anew)


def _failed(job: CheckJob, check: SiteCheck, state: Checked) -> str:
    how = f"ended with exit code {job.exit_code}"
    if job.state == "TIMEOUT":
        how = f"ran into its time limit of {span(check.time_limit_s)}"
    elif job.state == "OUT_OF_MEMORY":
        how = "ran out of memory"
    return f"the site's check, job {job.job_id} on {' and '.join(state.nodes)}, {how}"


def _not_run(job: CheckJob, check: SiteCheck) -> str:
    if job.state == REFUSED:
        return f"it was not taken: {job.said}"
    if job.state == "DEADLINE":
        return f"job {job.job_id} could not begin within {span(check.wait_s)}"
    return f"job {job.job_id} ended as {job.state}"
