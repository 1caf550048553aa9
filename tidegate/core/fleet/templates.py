"""What nodes are made from: the last good template, until a newer one has shown that it is good."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum, auto

from tidegate.core.fleet import idle_time
from tidegate.core.fleet.findings import NAMED_MAX, doubt, told_reset, with_findings
from tidegate.core.fleet.idle_check import told as told_idle_check
from tidegate.core.fleet.idle_check import untold, with_idle_checks
from tidegate.core.fleet.judge import Judged, Use, judge
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.rollout import (
    is_made_from,
    is_tried,
    on_its_way,
    with_rollout,
)
from tidegate.core.fleet.rollout_alarms import held
from tidegate.core.fleet.rollout_told import remedy, told, why_paused
from tidegate.core.fleet.spot_seen import with_spot_seen
from tidegate.core.model.cluster import Pool
from tidegate.core.model.durations import clock
from tidegate.core.model.ec2 import Template
from tidegate.core.model.plan import COUNTED, GPU_RESET, Learn
from tidegate.core.model.pool_history import FailedLaunch, PoolHistory
from tidegate.core.model.resting import STARTS, Resting
from tidegate.core.model.rollout import Rollout, Step
from tidegate.core.model.slurm import Reading
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.text import some


def newest(snapshot: Snapshot, pool: str) -> Template | None:
    """What the deployed stack makes nodes of the pool from; None: not known here."""
    return next((template for name, template in snapshot.templates if name == pool), None)


def history_of(snapshot: Snapshot, pool: str) -> PoolHistory:
    for each in snapshot.pool_history:
        if each.pool == pool:
            return each
    return PoolHistory(pool)


def rollout_of(snapshot: Snapshot, pool: str) -> Rollout | None:
    """The pool's way from its last good template to the newest; None: it is not on one."""
    return on_its_way(history_of(snapshot, pool), newest(snapshot, pool))


def chosen(snapshot: Snapshot, pool: str) -> Template | None:
    """What new nodes of the pool are made from, but for those by which a roll-out tries a newer
    template; None: as the stack says.
    """
    if rollout_of(snapshot, pool) is None:
        return newest(snapshot, pool)
    return history_of(snapshot, pool).good


def to_be(snapshot: Snapshot, pool: str) -> Template | None:
    """What all nodes of the pool are to be made from in the end; None: as the stack says."""
    rollout = rollout_of(snapshot, pool)
    return chosen(snapshot, pool) if rollout and rollout.given_up else newest(snapshot, pool)


def in_force(snapshot: Snapshot, templates: Mapping[str, Template]) -> tuple[Resting, ...]:
    """The rests without those of a template that its pool does not use any more.

    `templates`: all that are deployed; those of a pool's reservations begin with its name.
    """
    if not any(each.template for each in snapshot.resting):
        return snapshot.resting
    used = {name.partition("/")[0]: set[str]() for name in templates}
    for name, deployed in templates.items():
        pool, slash, _ = name.partition("/")
        template = deployed if slash else chosen(snapshot, pool) or deployed
        used[pool].update((template.name, template.digest))
    launches = (each for each in snapshot.resting if each.template != STARTS)
    return tuple(
        each
        for each in launches
        if not each.template or each.template in used.get(each.pool, {each.template})
    )


def refused(snapshot: Snapshot) -> tuple[Resting, ...]:
    """The rests of templates that roll-outs try: they keep no other launch of their pools."""
    tried = {
        (pool.name, name)
        for pool in snapshot.cluster.pools
        if (rollout := rollout_of(snapshot, pool.name))
        for name in (rollout.template.name, rollout.template.digest)
    }
    return tuple(each for each in snapshot.resting if (each.pool, each.template) in tried)


def in_use(snapshot: Snapshot) -> tuple[PoolHistory, ...]:
    """What was learnt, without failures of templates that their pools do not use any more."""
    return tuple(_in_use(each, snapshot) for each in snapshot.pool_history)


def _in_use(pool_history: PoolHistory, snapshot: Snapshot) -> PoolHistory:
    used = (newest(snapshot, pool_history.pool), chosen(snapshot, pool_history.pool))
    digests = {"", *(template.digest for template in used if template)}
    if digests == {""} or all(each.template in digests for each in pool_history.failed):
        return pool_history
    return replace(
        pool_history, failed=tuple(e for e in pool_history.failed if e.template in digests)
    )


class Roll(Enum):
    """How far a pool may replace nodes that are made from another template."""

    PROVEN = auto()  # a node made from it has joined well
    SHARED = auto()  # its first nodes are good: every tenth node may go for it
    TRIED = auto()  # a first node is on its way
    UNTRIED = auto()  # a first node has to show that it is good
    RESTING = auto()  # it rests where the node is from: one of the old template would come instead
    STOPPED = auto()  # nodes made from it fail and no good template is known, or it is paused


def roll(snapshot: Snapshot, pool: Pool, judged: Iterable[Judged]) -> Roll:
    """Errors: none; a pool without a known template has nothing to roll."""
    template, pool_history = to_be(snapshot, pool.name), history_of(snapshot, pool.name)
    if template is None:
        return Roll.STOPPED
    rollout = rollout_of(snapshot, pool.name)
    if rollout and not rollout.given_up:
        members = [each.member for each in judged if each.member.pool == pool.name]
        return _roll_out(rollout, snapshot, members)
    failures = pool_history.failures(template)
    if failures >= pool.disruption.roll_back_after:
        return Roll.STOPPED
    if (
        pool_history.good is not None
        and pool_history.good.digest == template.digest
        and not failures
    ):
        return Roll.PROVEN
    ours = (j for j in judged if j.member.pool == pool.name and j.use is Use.IN_FLIGHT)
    is_tried = any(each.member.template == template.digest for each in ours)
    is_tried |= any(each.launch.pool == pool.name for each in snapshot.in_doubt)
    return Roll.TRIED if is_tried else Roll.UNTRIED


def _roll_out(rollout: Rollout, snapshot: Snapshot, ours: Sequence[Member]) -> Roll:
    if rollout.is_paused:
        return Roll.STOPPED
    if rollout.step is Step.TENTH:
        return Roll.SHARED
    return Roll.TRIED if is_tried(rollout, snapshot, ours) else Roll.UNTRIED


def troubles(snapshot: Snapshot) -> Iterator[str]:
    """What people should know of launches that give no good node."""
    stopped = {pool: sentence for pool, _, sentence in stopped_rollouts(snapshot)}
    for pool in snapshot.cluster.pools:
        pool_history, template = history_of(snapshot, pool.name), newest(snapshot, pool.name)
        until_s = pool_history.closed_until_s(snapshot.now_s)
        if until_s:
            failures = len(pool_history.recent(snapshot.now_s))
            said = f"the last {failures} launches gave no good node"
            yield f"pool {pool.name}: {said}, nothing is bought until {clock(until_s)}"
        if pool.name in stopped:
            yield stopped[pool.name]
        elif template and template.digest and (failures := pool_history.failures(template)):
            said = f"template {template.digest} gave no good node in {failures} launches"
            yield f"pool {pool.name}: {said}, nothing is replaced by it"
    yield from untold(snapshot)


def stopped_rollouts(snapshot: Snapshot) -> Iterator[tuple[str, Rollout, str]]:
    """The roll-outs that were given up, are paused or wait for their alarms, with their pools, and
    what that means.
    """
    for pool in snapshot.cluster.pools:
        rollout, good = rollout_of(snapshot, pool.name), history_of(snapshot, pool.name).good
        if rollout is None or good is None:
            continue
        name, why = rollout.template.digest, held(rollout, snapshot)
        if not rollout.is_stopped:
            if why:
                made = f"template {name} waits: {why}; nodes come from {good.digest}"
                yield pool.name, rollout, f"pool {pool.name}: {made}"
            continue
        said = f"is given up: {rollout.said}"
        if rollout.is_paused:
            said = f"is paused{why_paused(rollout)}"
        made = f"template {name} {said}; nodes come from {good.digest}"
        yield pool.name, rollout, f"pool {pool.name}: {made}; {remedy(pool.name, rollout)}"


def drifted(pool: Pool, snapshot: Snapshot) -> Callable[[Judged], str] | None:
    """What tells why a node is not what its pool makes now; None: nobody knows what that is."""
    template = to_be(snapshot, pool.name)
    if template is None or not template.digest:
        return None
    digest = template.digest

    def why(judged: Judged) -> str:
        made_from = judged.member.template
        if made_from in ("", digest):
            return ""
        return f"drifted: made from template {made_from}, pool {pool.name} has {digest} now"

    return why


def given_up(pool: Pool, snapshot: Snapshot) -> Callable[[Judged], str] | None:
    """What tells which nodes are made from a template that was given up; None: none was."""
    rollout = rollout_of(snapshot, pool.name)
    if rollout is None or not rollout.given_up:
        return None
    name, why = rollout.template.digest, rollout.said
    said = f"made from template {name}, which is given up: {why}"
    return lambda judged: said if is_made_from(judged.member, rollout) else ""


def is_to_blame(judged: Judged, snapshot: Snapshot) -> bool:
    """A node that is no good, made from a template that has brought no good one: while another
    has, the fault is the template's and not the offering's.
    """
    good, made_from = history_of(snapshot, judged.member.pool).good, judged.member.template
    return judged.is_good is False and good is not None and made_from not in ("", good.digest)


def lessons(snapshot: Snapshot, fleet: Sequence[Member]) -> tuple[Learn, ...]:
    """What this snapshot says of launches and of checks that nobody has noted yet."""
    in_doubt = snapshot.doubted
    booted = [each for each in fleet if each.was_booting]
    judged = (judge(member, snapshot, in_doubt) for member in booted)
    news = [each for each in judged if each.is_good is not None]
    found: list[Learn] = []
    for pool in snapshot.cluster.pools:
        before = history_of(snapshot, pool.name)
        ours = [each for each in fleet if each.pool == pool.name]
        its_news = [each for each in news if each.member.pool == pool.name]
        rollout = rollout_of(snapshot, pool.name)
        after = with_findings(before, ours, snapshot)
        after = with_idle_checks(after, pool, ours, snapshot)
        after = with_spot_seen(after, ours, snapshot)
        for each in its_news:
            # What a roll-out tries and fails closes no pool that has a good template beside it.
            if not (rollout and is_made_from(each.member, rollout)):
                after = _after(after, each, snapshot)
        after = with_rollout(after, newest(snapshot, pool.name), ours, snapshot, its_news)
        if pool.is_idle_auto and snapshot.digest:
            after = _after_use(after, pool, snapshot, snapshot.digest.reading)
        if after != before:
            found.append(_learn(before, after, its_news))
    return tuple(found)


def with_lessons(snapshot: Snapshot, learns: Sequence[Learn]) -> Snapshot:
    """The snapshot as if they had been noted before."""
    if not learns:
        return snapshot
    pool_history = {each.pool: each for each in snapshot.pool_history}
    pool_history.update({each.pool_history.pool: each.pool_history for each in learns})
    return replace(
        snapshot, pool_history=tuple(pool_history[pool] for pool in sorted(pool_history))
    )


def _after(pool_history: PoolHistory, judged: Judged, snapshot: Snapshot) -> PoolHistory:
    member, now_s = judged.member, snapshot.now_s
    if not judged.is_good:
        launch_id = member.record.launch_id if member.record else member.instance_id
        failed = FailedLaunch(launch_id, member.launched_at_s, now_s, member.template)
        return pool_history.after_failure(failed)
    template = newest(snapshot, pool_history.pool)
    return pool_history.after_join(member.template, template, now_s)


def _after_use(
    pool_history: PoolHistory, pool: Pool, snapshot: Snapshot, reading: Reading
) -> PoolHistory:
    """When jobs came and nodes became free."""
    ours = {
        each.instance_id: each.launched_at_s for each in snapshot.nodes if each.pool == pool.name
    }
    return replace(
        pool_history,
        taken_at_s=idle_time.newest(
            pool_history.taken_at_s, idle_time.arrivals(pool, ours, reading.jobs)
        ),
        freed_at_s=idle_time.newest(pool_history.freed_at_s, idle_time.frees(reading.nodes, ours)),
    )


def _learn(before: PoolHistory, after: PoolHistory, news: Iterable[Judged]) -> Learn:
    if rolled := told(before, after):
        return Learn(after, f"pool {after.pool}: {rolled[1]}", rolled[0])
    if checked := told_idle_check(before, after):
        return Learn(after, f"pool {after.pool}: {checked[1]}", checked[0])
    if reset := told_reset(before, after):
        said = "; ".join(f"{name}: {each}" for name, each in reset.items())
        return Learn(after, f"pool {after.pool}: {said}", GPU_RESET, tuple(reset))
    if replace(after, spot=before.spot) == before:
        return Learn(after, f"pool {after.pool}: how long spot nodes ran until they ended", COUNTED)
    if len(after.failed) > len(before.failed):
        last = after.failed[-1]
        bad = tuple(sorted(each.member.instance_id for each in news if not each.is_good))
        said = f"launch {last.launch_id} gave a node that is no good"
        return Learn(after, f"pool {after.pool}: {said}: {some(bad, NAMED_MAX)}", instance_ids=bad)
    sick = tuple(each.instance_id for each in after.findings if each not in before.findings)
    return Learn(after, _told(before, after), instance_ids=sick)


def _told(before: PoolHistory, after: PoolHistory) -> str:
    if stops := [each for each in after.stopped_checks if each not in before.stopped_checks]:
        return f"pool {after.pool}: {doubt(stops[-1])}"
    if lifted := [each for each in before.stopped_checks if each.is_lifted]:
        return f"pool {after.pool}: by a person's word the check `{lifted[-1].check}` counts again"
    if sick := [each for each in after.findings if each not in before.findings]:
        return f"pool {after.pool}: {sick[-1].check} found {sick[-1].instance_id} unhealthy"
    if (after.good, after.failed) == (before.good, before.failed):
        return f"pool {after.pool}: when jobs came and nodes became free"
    good = f", template {after.good.digest} is good" if after.good else ""
    return f"pool {after.pool}: a node has joined well{good}"
