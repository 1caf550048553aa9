"""Why a job is where it is: one chain from Slurm's word to what the user could change.

Made of what is stored: the head's digest, the ledger, and the verdicts of the last look.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from tidegate.core.buy.refusals import too_small
from tidegate.core.demand.fit import lacks, satisfies
from tidegate.core.explain.advice import advice, meaning
from tidegate.core.explain.doubt import Doubt, doubt
from tidegate.core.explain.idle_gpus import about_idle_gpus
from tidegate.core.explain.lost import SlurmSays, lost_nodes
from tidegate.core.explain.mail import OwnerMails
from tidegate.core.explain.needs import needs, pools_of
from tidegate.core.explain.price import price
from tidegate.core.explain.short import in_short
from tidegate.core.explain.unjudged import Unjudged
from tidegate.core.explain.verdicts import Verdict, Verdicts
from tidegate.core.fleet.cures import words
from tidegate.core.fleet.drains import Hand, hand
from tidegate.core.fleet.members import Member, members
from tidegate.core.model.cluster import Pool
from tidegate.core.model.durations import clock
from tidegate.core.model.frozen import frozen
from tidegate.core.model.resting import BOOT_FAILURES
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.text import some
from tidegate.core.model.why import Why, WhyNot

# Of other rows of an array, of nodes and of advice; one screen holds no more.
SHOWN_MAX, HEADLINE_MAX = 6, 3

NOTHING_TO_BUY = "no node can be bought for it now"


class Status(StrEnum):
    """Where a job stands."""

    RUNNING = "running"
    STARTING = "starting"  # its nodes are up, boot or are being bought
    WAITING = "waiting"
    UNKNOWN = "unknown"


@frozen
class Answer:
    """`headline`: the whole of it in one line. The rest is the chain, each link in sentences."""

    job_id: str
    status: Status
    headline: str
    slurm: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    change: tuple[str, ...] = ()


def answer(
    job_id: str,
    snapshot: Snapshot,
    verdicts: Verdicts | None,
    unjudged: Unjudged | None = None,
    mails: OwnerMails | None = None,
) -> Answer:
    """`verdicts` None: no look has stored any yet. `unjudged`: nobody judges the queue now.
    `mails` None: owners of jobs get none.
    """
    rows = rows_of(job_id, snapshot.digest.reading.jobs) if snapshot.digest else ()
    if not rows:
        return _unknown(job_id, snapshot)
    job = next((row for row in rows if row.is_pending), rows[0])
    slurm = (*_slurm(job, snapshot), *_siblings(job, rows))
    if not job.is_pending:
        idle = about_idle_gpus(job, snapshot, mails)
        return _started(job_id, job, snapshot, slurm, idle)
    verdict = verdicts.of(job.job_id) if verdicts else None
    why_nots = verdict.why_nots if verdict else ()
    ours = _nodes_of(job, snapshot, verdicts)
    doubted = doubt(ours, snapshot) if verdict and verdict.is_served else None
    is_served = verdict is not None and verdict.is_served and not (unjudged or doubted)
    return Answer(
        job_id,
        Status.STARTING if is_served else Status.WAITING,
        f"job {job_id} waits: {unjudged.headline}"
        if unjudged
        else _headline(job_id, verdict, ours, snapshot, doubted),
        slurm,
        needs(job, snapshot, is_served=is_served),
        tuple(_verdict(verdict, verdicts, snapshot, unjudged)),
        tuple(_pools(job, verdict, ours, snapshot)),
        (
            *_shown([*_bought(job, ours, verdicts), *(on_its_way(e, snapshot) for e in ours)]),
            *(price(job, ours, snapshot) if is_served else ()),
        ),
        (unjudged.remedy,)
        if unjudged
        else (doubted.remedy,)
        if doubted and doubted.remedy
        else advice(job, why_nots, _drained(why_nots, snapshot))[:SHOWN_MAX],
    )


def rows_of(job_id: str, jobs: Iterable[Job]) -> tuple[Job, ...]:
    """The rows of the queue that a user means: "7", a task "7_3", a component "7+1".

    A task that has no row of its own is among the rest of its array.
    """
    asked = job_id.partition("+")[0]
    every = list(jobs)
    exact = [each for each in every if each.job_id == asked]
    leader = next((each.het_job_id for each in exact if each.het_job_id), asked)
    components = [each for each in every if each.het_job_id == leader]
    if components:
        return tuple(components)
    if "_" in asked:
        array = asked.partition("_")[0]
        return tuple(exact or [each for each in every if each.job_id == array])
    return tuple(exact + [e for e in every if e.array_job_id == asked and e not in exact])


def _unknown(job_id: str, snapshot: Snapshot) -> Answer:
    if snapshot.digest is None:
        told = snapshot.staleness or "no queue is known"
        return Answer(job_id, Status.UNKNOWN, f"job {job_id}: {told}", (told,))
    said = (
        f"the queue of {snapshot.digest_age_s:.0f} s ago has no job {job_id}: it has ended, was "
        "cancelled, or is younger"
    )
    change = (
        f"see how it ended: scontrol show job {job_id} in the minutes after its end, later sacct -j"
        f" {job_id}, where slurm.accounting is on",
    )
    return Answer(
        job_id, Status.UNKNOWN, f"job {job_id} is not in the queue", (said,), change=change
    )


def _slurm(job: Job, snapshot: Snapshot) -> tuple[str, ...]:
    age = f"seen {snapshot.digest_age_s:.0f} s ago"
    if job.is_pending:
        return (f"{job.state}, {job.reason or 'None'}: {meaning(job.reason or 'None')} ({age})",)
    on = some(job.node_names, SHOWN_MAX)
    return (f"{job.state}{' on ' + on if on else ''} ({age})",)


def _siblings(job: Job, rows: Sequence[Job]) -> Iterator[str]:
    """The other tasks of an array, or the other components of a heterogeneous job."""
    others = [row for row in rows if row is not job]
    if job.count > 1:
        yield f"{job.count} tasks of the array wait like this one"
    by_state: dict[str, list[str]] = {}
    for row in others:
        by_state.setdefault(row.state, []).append(row.job_id)
    kind = "components" if job.het_job_id else "tasks"
    for state, ids in sorted(by_state.items()):
        yield f"other {kind}, {state}: {some(ids, SHOWN_MAX)}"


def _started(
    job_id: str, job: Job, snapshot: Snapshot, slurm: tuple[str, ...], idle: tuple[str, ...]
) -> Answer:
    on = [each for each in members(snapshot) if each.instance_id in job.node_names]
    state = "runs" if job.is_running else f"is {job.state}"
    where = f" on {some(job.node_names, HEADLINE_MAX)}" if job.node_names else ""
    nodes = (*_shown([on_its_way(each, snapshot) for each in on]), *price(job, on, snapshot))
    reclaimed = [e.instance_id for e in on if e.record and e.record.reclaim_at_s is not None]
    warning = f"; EC2 takes {', '.join(reclaimed)} back" if reclaimed else ""
    warning += "".join(f"; {said}" for each in on if (said := _sick(each, snapshot)))
    warning += f"; {idle[0]}" if idle else ""
    headline = f"job {job_id} {state}{where}{warning}"
    asked = needs(job, snapshot, on)
    return Answer(job_id, Status.RUNNING, headline, slurm, asked, verdict=idle, nodes=nodes)


def _sick(member: Member, snapshot: Snapshot) -> str:
    """What a check has found on a node that jobs still run on; "": nothing."""
    node = member.node
    if not node or not node.state.is_drain:
        return ""
    if hand(node, snapshot.cluster.health_reasons) is not Hand.SOFTWARE:
        return ""
    return (
        f"{node.name} was found sick ({node.reason}): the job goes on there, and gets another node "
        f"if it is requeued"
    )


def _drained(why_nots: Sequence[WhyNot], snapshot: Snapshot) -> dict[str, list[str]]:
    """Pool -> nodes that count against its limits and that a person keeps from taking jobs."""
    if not any(each.kind is Why.LIMIT for each in why_nots):
        return {}
    pools = {each.instance_id: each.pool for each in members(snapshot)}
    found: dict[str, list[str]] = {}
    for each in lost_nodes(snapshot):
        if each.cell.slurm is SlurmSays.THEIRS and each.name in pools:
            found.setdefault(pools[each.name], []).append(each.name)
    return found


def _headline(
    job_id: str,
    verdict: Verdict | None,
    ours: Sequence[Member],
    snapshot: Snapshot,
    doubted: Doubt | None,
) -> str:
    if verdict is None:
        return f"job {job_id} waits: {snapshot.staleness or 'no look has judged it yet'}"
    if not verdict.is_served:
        return f"job {job_id} waits: {in_short(verdict)}"
    if doubted:
        return f"job {job_id} waits: {verdict.reason}, but {doubted.sentence}"
    left_s = [s for each in ours if (s := boots_for_s(each, snapshot)) is not None]
    when = f", in about {max(left_s):.0f} s" if left_s else ""
    return f"job {job_id} starts soon: {verdict.reason}{when}"


def _verdict(
    verdict: Verdict | None,
    verdicts: Verdicts | None,
    snapshot: Snapshot,
    unjudged: Unjudged | None,
) -> Iterator[str]:
    if unjudged:
        yield unjudged.headline
    if snapshot.staleness:
        yield snapshot.staleness
    if not snapshot.wanted.is_up and snapshot.wanted.reason not in snapshot.staleness:
        yield snapshot.wanted.reason
    if verdicts is None or verdict is None:
        if not unjudged:
            yield "no look has judged it yet; one follows each report of the head within seconds"
        return
    said = NOTHING_TO_BUY if verdict.why_nots else verdict.reason
    yield f"{said} (plan {verdicts.plan_id}, {max(snapshot.now_s - verdicts.at_s, 0):.0f} s ago)"


def _pools(
    job: Job, verdict: Verdict | None, ours: Sequence[Member], snapshot: Snapshot
) -> Iterator[str]:
    chosen = {each.pool for each in ours}
    why_nots = verdict.why_nots if verdict else ()
    for pool in pools_of(job, snapshot):
        told = _obstacles([each for each in why_nots if each.pool == pool.name], snapshot)
        if pool.name in chosen:
            yield f"{pool.name}: chosen, {_kinds(ours, pool.name)}"
        elif told:
            more = f"; and {len(told) - 3} more" if len(told) > 3 else ""
            yield f"{pool.name}: {'; '.join(told[:3])}{more}"
        else:
            yield f"{pool.name}: {_fit(job, pool) or _unused(verdict, chosen)}"


def _unused(verdict: Verdict | None, chosen: set[str]) -> str:
    """Why a pool that fits has no node for it."""
    if chosen:
        return f"fits; {', '.join(sorted(chosen))} was cheaper or comes first"
    why_nots = verdict.why_nots if verdict else ()
    is_waiting = verdict is not None and not verdict.is_served
    is_held = is_waiting and all(each.kind is Why.NODES for each in why_nots)
    return "fits, but more nodes would not help" if is_held else "fits"


def _kinds(ours: Sequence[Member], pool: str) -> str:
    counts: dict[str, int] = {}
    for each in ours:
        if each.pool == pool:
            counts[str(each.offering)] = counts.get(str(each.offering), 0) + 1
    return ", ".join(f"{count} x {name}" for name, count in sorted(counts.items()))


def _fit(job: Job, pool: Pool) -> str:
    """Why no type of the pool can run it; "" when one can."""
    found = too_small(pool.instance_types, job.shape)
    if found:
        return found.sentence
    meets = any(
        satisfies(job.constraint, pool.features(each.name, market))
        for each in pool.instance_types
        if not lacks(job.shape, each)
        for market in pool.markets
    )
    plain = not set("[]()*") & set(job.constraint)
    return "" if meets or not plain else f"does not meet {job.constraint!r}"


def _obstacles(why_nots: Sequence[WhyNot], snapshot: Snapshot) -> list[str]:
    """The sentences; resting offerings together, with EC2's words and the times of next tries."""
    resting = {(each.pool, str(each.offering), each.until_s): each for each in snapshot.resting}
    told: list[str] = []
    by_words: dict[tuple[bool, str], list[str]] = {}
    for each in why_nots:
        keys = ((pool, each.offering, each.until_s) for pool in (each.pool, ""))
        rest = next((resting[key] for key in keys if key in resting), None)
        if each.kind not in (Why.RESTING, Why.BROKEN, Why.REFUSED) or rest is None:
            told.append(each.sentence)
            continue
        did = "failed" if rest.code in BOOT_FAILURES else "refused"
        until = f"{rest.what} until {clock(rest.until_s)} ({did} {rest.failures}x)"
        by_words.setdefault((rest.code in BOOT_FAILURES, words(rest)), []).append(until)
    for (is_ours, its_words), rests in by_words.items():
        rest_words = some(rests, SHOWN_MAX)
        said = "the last nodes of it failed, " if is_ours else "EC2 said "
        told.append(f"{said}{its_words}; so these rest: {rest_words}")
    return list(dict.fromkeys(told))


def _nodes_of(job: Job, snapshot: Snapshot, verdicts: Verdicts | None) -> list[Member]:
    """The nodes that serve it: named by the verdict, bought for it, or held at its gate."""
    if verdicts is None:
        return []
    by = set(verdicts.by.get(job.job_id, ()))
    launches = {each.launch_id for each in verdicts.launches if job.job_id in each.jobs}
    gates = {job.job_id, job.het_job_id} - {""}
    return [
        each
        for each in members(snapshot)
        if each.instance_id in by
        or each.gated_for in gates
        # Of a launch that gangs share only its own nodes are at its gate.
        or (each.record and each.record.launch_id in launches and not each.gated_for)
    ]


def _bought(job: Job, ours: Sequence[Member], verdicts: Verdicts | None) -> Iterator[str]:
    """Launches for it of which no node is known yet."""
    shown = {each.record.launch_id for each in ours if each.record}
    for each in verdicts.launches if verdicts else ():
        if job.job_id in each.jobs and each.launch_id not in shown:
            shared = f" for {len(each.jobs)} jobs" if len(each.jobs) > 1 else ""
            yield f"asked of EC2: {each.count} x {each.offering}{shared} (launch {each.launch_id})"


def boots_for_s(member: Member, snapshot: Snapshot) -> float | None:
    """How much longer a node is expected to boot; None: it has joined, or its pool is gone."""
    pool = snapshot.cluster.pool(member.pool)
    if member.node is not None or pool is None:
        return None
    is_started = member.record is not None and member.record.is_started
    return max(pool.up_in_s(is_started=is_started) - (snapshot.now_s - member.launched_at_s), 0.0)


def on_its_way(member: Member, snapshot: Snapshot) -> str:
    """One node: how far it is."""
    name = f"{member.instance_id} {member.offering}"
    gate = f", waits for the other nodes of job {member.gated_for}" if member.gated_for else ""
    if member.record and member.record.reclaim_at_s is not None:
        return f"{name}: EC2 takes it back at {clock(member.record.reclaim_at_s)}"
    if member.node is not None:
        return f"{name}: in Slurm, {member.node.state.told}{gate}"
    age_s = snapshot.now_s - member.launched_at_s
    state = member.instance.state.value if member.instance else "not shown by EC2 yet"
    left_s = boots_for_s(member, snapshot)
    when = "" if left_s is None else f", joins in about {left_s:.0f} s"
    if left_s == 0:
        when = f", late: given up after {snapshot.cluster.timings.given_up_s:.0f} s"
    return f"{name}: boots for {age_s:.0f} s, EC2 says {state}{when}{gate}"


def _shown(lines: Sequence[str]) -> tuple[str, ...]:
    more = len(lines) - SHOWN_MAX
    return (*lines[:SHOWN_MAX], *([f"and {more} more"] if more > 0 else []))
