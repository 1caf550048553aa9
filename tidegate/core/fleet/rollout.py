"""Roll-outs: a new template on one node, on two, on every tenth, on all, and the way back.

While a pool is on its way, launches are made from its last good template, and as many nodes as
the step allows from the new one. A template that fails touches two nodes at most.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tidegate.core.fleet.drains import Hand, hand
from tidegate.core.fleet.holds import is_held
from tidegate.core.fleet.judge import Judged
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.rollout_alarms import held, watched
from tidegate.core.fleet.site_check import (
    check_of,
    checked,
    fit_nodes,
    lacks_check,
    waits_for,
)
from tidegate.core.model.drain_reason import DrainCode, code_of, sentence_of
from tidegate.core.model.durations import span
from tidegate.core.model.ec2 import TEMPLATE_TAG, Cure, Offering, Template
from tidegate.core.model.ledger import Phase
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting
from tidegate.core.model.rollout import (
    CANARIES_MAX,
    WATCHED_IDLE_S,
    WATCHED_JOBS,
    WATCHED_S,
    Rollout,
    RolloutCode,
    Step,
    fails_more,
)
from tidegate.core.model.snapshot import Snapshot

# Slurm tells ends to the second: what ended in the digest's own second may not be told in full.
SETTLED_S = 2.0

# What a template says is wrong or gone: as often as it is asked for, EC2 says the same. A right
# that is lacking is none of these, it lacks for other templates too.
GONE = (Cure.TEMPLATE, Cure.IMAGE, Cure.DISK, Cure.TERMS)


def on_its_way(history: PoolHistory, newest: Template | None) -> Rollout | None:
    """The pool's roll-out, begun or about to begin; None: there is nothing to roll out.

    A pool that has never had a good node makes all of them from what there is.
    """
    good = history.good
    if newest is None or not newest.digest or good is None or good.digest == newest.digest:
        return None
    known = history.rollout
    if known is not None and known.template.digest == newest.digest:
        return known
    return Rollout(newest, 0.0)


def room(rollout: Rollout, snapshot: Snapshot, ours: Sequence[Member], being_bought: int) -> int:
    """How many more nodes may be made from the new template now. `ours`: the pool's nodes."""
    if rollout.is_stopped or held(rollout, snapshot):
        return 0
    alive = {each.instance_id for each in ours if is_made_from(each, rollout) and _is_there(each)}
    if rollout.step is Step.CANARY:
        alive.update(rollout.tried)
    used = len(alive) + _in_doubt(rollout, snapshot, ours)
    pool_nodes = sum(map(_is_there, ours)) + being_bought
    return max(rollout.most(pool_nodes) - used, 0)


def share_left(rollout: Rollout, snapshot: Snapshot, ours: Sequence[Member]) -> int:
    """How many nodes of older templates may go for it now."""
    going = sum(
        each.node is not None
        and each.node.state.is_drain
        and code_of(each.node.reason) is DrainCode.DRIFTED
        for each in ours
    )
    return max(room(rollout, snapshot, ours, 0) - going, 0)


def resting(rollout: Rollout, pool: str, snapshot: Snapshot) -> frozenset[Offering]:
    """What is not made from it now: EC2 refused that, or what came was no good."""
    names = (rollout.template.name, rollout.template.digest)
    return frozenset(
        each.offering
        for each in snapshot.refused_templates
        if each.stops(pool) and each.template in names and each.until_s > snapshot.now_s
    )


def is_made_from(member: Member, rollout: Rollout) -> bool:
    return member.template == rollout.template.digest


def is_tried(rollout: Rollout, snapshot: Snapshot, ours: Sequence[Member]) -> bool:
    """A first node is there or on its way, or none may come."""
    there = any(is_made_from(each, rollout) and _is_there(each) for each in ours)
    return there or room(rollout, snapshot, ours, 0) == 0


def with_rollout(
    before: PoolHistory,
    newest: Template | None,
    ours: Sequence[Member],
    snapshot: Snapshot,
    news: Iterable[Judged],
) -> PoolHistory:
    """What is remembered once this snapshot was seen. `news`: how the pool's boots came out."""
    rollout = on_its_way(before, newest)
    if rollout is None or newest is None or before.good is None:
        return replace(before, rollout=None) if before.rollout else before
    if _is_gone(before.good, before.pool, snapshot):
        return replace(before, good=None, rollout=None)
    if rollout.asked is RolloutCode.DONE:
        return replace(before, good=newest, rollout=None)
    if before.rollout is None or before.rollout.template.digest != newest.digest:
        rollout = replace(rollout, since_s=snapshot.now_s)
    rollout = replace(rollout.obeying(), template=newest)
    if not rollout.given_up:
        rollout = _counted(_seen(rollout, ours, snapshot, news), ours, snapshot)
        rollout = watched(rollout, snapshot)
    if not rollout.given_up:
        rollout = _judged(rollout, before.pool, snapshot)
        rollout = checked(rollout, before.pool, ours, snapshot)
    is_over = _is_over(rollout, ours, snapshot)
    if is_over and rollout.step is Step.TENTH:
        return replace(before, good=newest, rollout=None)
    if is_over and not lacks_check(rollout, check_of(snapshot, before.pool)):
        begun = replace(rollout, step=Step.TENTH, step_since_s=snapshot.now_s, bad=())
        return replace(before, rollout=begun)
    return replace(before, rollout=rollout)


def _is_there(member: Member) -> bool:
    """EC2 or the ledger has it alive."""
    if member.instance is not None and member.instance.is_alive:
        return True
    return member.record is not None and member.record.phase.is_alive


def _in_doubt(rollout: Rollout, snapshot: Snapshot, ours: Sequence[Member]) -> int:
    """Nodes of it that a planner may have bought, and of which nothing is seen yet."""
    shown = Counter(each.instance.launch_id for each in ours if each.instance)
    return sum(
        max(each.launch.count - shown[each.launch.launch_id], 0)
        for each in snapshot.in_doubt
        if (TEMPLATE_TAG, rollout.template.digest) in each.request.tags
    )


def _refusals(rollout: Rollout, pool: str, snapshot: Snapshot) -> list[Resting]:
    """What EC2 said of the template itself, not of an offering."""
    name = rollout.template.name
    found = snapshot.refused_templates
    return [each for each in found if each.template == name and each.stops(pool)]


def _is_gone(good: Template, pool: str, snapshot: Snapshot) -> bool:
    return any(
        each.template == good.name and each.stops(pool) and each.cure in GONE
        for each in snapshot.resting
        if each.until_s > snapshot.now_s
    )


def _seen(
    rollout: Rollout, ours: Sequence[Member], snapshot: Snapshot, news: Iterable[Judged]
) -> Rollout:
    """With what its nodes have shown: which joined, and which are no good."""
    booted = {
        each.member.instance_id: each.is_good
        for each in news
        if is_made_from(each.member, rollout) and each.is_good is not None
    }
    sick = {
        each.instance_id: each.node
        for each in ours
        if is_made_from(each, rollout) and _is_sick(each, snapshot)
    }
    bad = {*rollout.bad, *(name for name, is_good in booted.items() if not is_good), *sick}
    said = rollout.said
    for name in sorted(bad - set(rollout.bad)):
        node = sick.get(name)
        why = sentence_of(node.reason) or "it is DOWN" if node else "it did not join as it should"
        said = f"{name}: {why}"
    tried = rollout.tried
    if rollout.step is Step.CANARY:
        registered = (each.instance_id for each in ours if _has_just_joined(each, rollout))
        tried = tuple(sorted({*tried, *booted, *sick, *registered}))
    since_s = rollout.step_since_s
    if rollout.step is Step.CANARY and bad.issuperset(tried):
        since_s = None
    elif since_s is None and any(booted[name] and name not in bad for name in booted):
        since_s = snapshot.now_s
    return replace(rollout, tried=tried, bad=tuple(sorted(bad)), said=said, step_since_s=since_s)


def _has_just_joined(member: Member, rollout: Rollout) -> bool:
    """Slurm has it, and the ledger does not know that yet, nor may where Describe leaves it out: it
    goes then, and would be forgotten.
    """
    is_new = member.record is not None and member.record.phase is Phase.LAUNCHED
    return is_new and member.node is not None and is_made_from(member, rollout)


def _is_sick(member: Member, snapshot: Snapshot) -> bool:
    """Software has drained it or Slurm finds it DOWN; AWS did not take it, nor a person."""
    node, record = member.node, member.record
    if node is None or record is None or record.phase is not Phase.JOINED:
        return False
    if record.reclaim_at_s is not None or is_held(node, snapshot.now_s):
        return False
    by = hand(node, snapshot.cluster.health_reasons)
    if node.state.is_down:  # where its instance is gone that is EC2's doing
        lives = member.instance is not None and member.instance.is_alive
        return lives and by is not Hand.PERSON
    return node.state.is_drain and by is Hand.SOFTWARE


def _counted(rollout: Rollout, ours: Sequence[Member], snapshot: Snapshot) -> Rollout:
    """With the jobs that have ended since, on its nodes and on the pool's others."""
    if snapshot.digest is None:
        return rollout
    until_s = snapshot.digest.written_at_s - SETTLED_S
    new = {each.instance_id for each in ours if is_made_from(each, rollout)}
    others = {each.instance_id for each in ours} - new
    jobs, beside = rollout.jobs, rollout.jobs_beside
    checks = {each.job_id for each in snapshot.digest.reading.checks}
    for each in snapshot.digest.reading.ended:
        if each.job_id in checks or not rollout.counted_until_s < each.ended_at_s <= until_s:
            continue
        if not new.isdisjoint(each.node_names):
            jobs = jobs.plus(failed=each.is_failed)
        elif not others.isdisjoint(each.node_names):
            beside = beside.plus(failed=each.is_failed)
    if (jobs, beside) == (rollout.jobs, rollout.jobs_beside):
        return rollout
    return replace(rollout, jobs=jobs, jobs_beside=beside, counted_until_s=until_s)


def _judged(rollout: Rollout, pool: str, snapshot: Snapshot) -> Rollout:
    """Given up when what it has shown is bad enough."""
    found = snapshot.cluster.pool(pool)
    most = found.disruption.roll_back_after if found else CANARIES_MAX
    most = min(most, CANARIES_MAX) if rollout.step is Step.CANARY else most
    refusals = _refusals(rollout, pool, snapshot)
    if sum(each.failures for each in refusals) >= most:
        said = f"EC2 refuses it: {refusals[-1].code}: {refusals[-1].message}"
        return rollout.giving_up(RolloutCode.NOT_SOLD, said)
    if len(rollout.bad) >= most:
        said = f"{len(rollout.bad)} of its nodes are no good, the last is {rollout.said}"
        return rollout.giving_up(RolloutCode.BAD_NODES, said)
    if fails_more(rollout.jobs, rollout.jobs_beside):
        jobs, beside = rollout.jobs, rollout.jobs_beside
        said = (
            f"{jobs.failed} of {jobs.ended} jobs failed on its nodes, "
            f"{beside.failed} of {beside.ended} on others"
        )
        return rollout.giving_up(RolloutCode.BAD_JOBS, said)
    return rollout


def _is_over(rollout: Rollout, ours: Sequence[Member], snapshot: Snapshot) -> bool:
    """The step has shown what it can. Where jobs failed time alone shows nothing, and where none
    has run it shows little.
    """
    if rollout.is_stopped or rollout.step_since_s is None or held(rollout, snapshot):
        return False
    has_worked = rollout.jobs.ended >= WATCHED_JOBS
    if rollout.step is Step.CANARY and has_worked:
        return True
    is_doubtful = rollout.jobs.failed > 0 and not has_worked
    watched_s = WATCHED_S if _is_met(rollout, ours) else WATCHED_IDLE_S
    return snapshot.now_s >= rollout.step_since_s + watched_s and not is_doubtful


def _is_met(rollout: Rollout, ours: Sequence[Member]) -> bool:
    """A job has met it, or none can: no node of it is left, and the step makes no more. After the
    first step none needs to: the site's check, or a day, has ended that.
    """
    if rollout.step is Step.TENTH or rollout.checked.is_passed or rollout.jobs.ended > 0:
        return True
    there = [each for each in ours if is_made_from(each, rollout) and _is_there(each)]
    is_left = bool(there) or len(rollout.tried) < CANARIES_MAX
    return not is_left or any(each.is_busy for each in there)


def goes_on(rollout: Rollout, pool: str, ours: Sequence[Member], snapshot: Snapshot) -> str:
    """What its step waits for, for people."""
    if why := held(rollout, snapshot):
        return why
    if rollout.step_since_s is None:
        return "a first node made from it has to join well"
    if (failed := rollout.jobs.failed) and rollout.jobs.ended < WATCHED_JOBS:
        return f"{failed} of {rollout.jobs.ended} jobs failed there, {WATCHED_JOBS} have to end"
    check, now_s = check_of(snapshot, pool), snapshot.now_s
    if check is not None and lacks_check(rollout, check):
        return waits_for(rollout, check, fit_nodes(rollout, ours, snapshot), now_s)
    if not _is_met(rollout, ours):
        left_s = max(rollout.step_since_s + WATCHED_IDLE_S - now_s, 0.0)
        return (
            f"no job has run there yet, one is waited for, {span(left_s)} more at most; "
            f"or go on without: tidegate rollout finish {pool}"
        )
    left_s = max(rollout.step_since_s + WATCHED_S - now_s, 0.0)
    jobs = f" or until {WATCHED_JOBS} jobs have ended there"
    return f"watched for {span(left_s)} more{jobs if rollout.step is Step.CANARY else ''}"
