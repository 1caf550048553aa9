"""Each node in a line: what it is, what it has cost, what would end it and what holds it now."""

from collections.abc import Collection, Mapping

from tidegate.core.explain.answer import boots_for_s
from tidegate.core.explain.idle_checks import checked
from tidegate.core.fleet.do_not_disrupt import kept_because
from tidegate.core.fleet.holds import hold_of
from tidegate.core.fleet.idle_check import asked_on
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.fleet.members import Member, members
from tidegate.core.fleet.node_price import is_billed, usd_per_hour
from tidegate.core.fleet.orphans import orphaned
from tidegate.core.fleet.rollout import goes_on
from tidegate.core.fleet.stopped import KEPT_MAX_S, stands, why_stale
from tidegate.core.fleet.templates import Roll, rollout_of, to_be
from tidegate.core.model.budgets import DisruptionReason
from tidegate.core.model.cluster import Pool
from tidegate.core.model.drain_reason import sentence_of
from tidegate.core.model.durations import clock, moment
from tidegate.core.model.finding import is_reset
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import InterruptionLoss, NodeRecord, Phase
from tidegate.core.model.slurm import Job, asked_by_name
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.departures import Outdated
from tidegate.core.passes.headroom import hold_headroom
from tidegate.core.passes.retire import above_minimum, candidates, how_far, least_nodes
from tidegate.core.passes.rollout import waits_for_check
from tidegate.core.planner import Considered, considered

SECONDS_PER_HOUR = 3600.0

# The stage of a node that Slurm does not know yet.
BOOTING = "booting"
STOPPED = "stopped"  # as EC2 says, by our doing


@frozen
class NodeReport:
    """What a node is, what it costs and what becomes of it.

    `usd`: since its launch, by its price of now. `ends`: what would end it, in a sentence;
    `held`: what holds it, "": nothing. `checked`: when the site's check tested it last, in words;
    "": it has none.
    """

    name: str
    pool: str
    offering: str
    stage: str
    age_s: float
    usd: float
    jobs: tuple[str, ...]
    ends: str
    held: str = ""
    checked: str = ""


@frozen
class Prospect:
    """Whether a node is to go.

    `goes`: why it should go, or does. `held`: what holds it. "": nothing.
    """

    goes: str = ""
    held: str = ""


def node_reports(snapshot: Snapshot) -> tuple[NodeReport, ...]:
    """Every node that EC2 may still bill, if for its disk alone, pool by pool, the oldest first."""
    found = [each for each in members(snapshot) if is_billed(each) or stands(each)]
    found.sort(key=lambda each: (each.pool, each.launched_at_s, each.instance_id))
    ahead = prospects(snapshot)
    return tuple(
        _report(each, tuple(job.job_id for job in each.jobs), snapshot, ahead.get(each.instance_id))
        for each in found
    )


def _report(
    member: Member, jobs: tuple[str, ...], snapshot: Snapshot, ahead: Prospect | None
) -> NodeReport:
    if member.record and stands(member):
        return _stopped(member, member.record, snapshot)
    ends = _ends(member, jobs, snapshot)
    if ahead and ahead.goes and not (member.node and member.node.state.is_drain):
        ends = f"{ahead.goes}{'; leaves when its jobs have ended' if jobs else ''}"
    age_s = max(snapshot.now_s - member.launched_at_s, 0.0)
    usd = usd_per_hour(snapshot, member) if is_billed(member) else 0.0
    usd *= age_s / SECONDS_PER_HOUR
    return NodeReport(
        name=member.instance_id,
        pool=member.pool,
        offering=str(member.offering),
        stage=member.node.state.told if member.node else BOOTING,
        age_s=round(age_s, 1),
        usd=round(usd, 4),
        jobs=jobs,
        ends=ends,
        held=ahead.held if ahead else "",
        checked=checked(member, snapshot),
    )


def _stopped(member: Member, record: NodeRecord, snapshot: Snapshot) -> NodeReport:
    """Its age and cost are those of its stop."""
    stopped_at_s = record.stopped_at_s or snapshot.now_s
    age_s = max(snapshot.now_s - stopped_at_s, 0.0)
    ends = f"started when a job comes for its type; ends at {moment(stopped_at_s + KEPT_MAX_S)} UTC"
    return NodeReport(
        name=member.instance_id,
        pool=member.pool,
        offering=str(member.offering),
        stage=STOPPED,
        age_s=round(age_s, 1),
        usd=round(age_s / SECONDS_PER_HOUR * record.usd_per_hour, 4),
        jobs=(),
        ends=why_stale(record, snapshot) or ends,
    )


def _ends(member: Member, jobs: tuple[str, ...], snapshot: Snapshot) -> str:
    record, pool = member.record, snapshot.cluster.pool(member.pool)
    if record and record.silent_s is not None and not record.phase < Phase.INTERRUPTED:
        return orphaned(record.silent_s)
    if record and record.reclaim_at_s is not None:
        return f"EC2 takes it back at {clock(record.reclaim_at_s)}{_interruption_loss(record)}"
    if record and not record.phase.is_alive:
        return "released by Slurm: it is being terminated"
    if record and record.cordon and record.cordon.holds(snapshot.now_s):
        lifts_at_s = record.cordon.lifts_at_s
        until = f", or takes jobs again at {clock(lifts_at_s)}" if lifts_at_s else ""
        return f"leaves when it is empty: {record.cordon.reason}{until}"
    if pool is None:
        return "leaves when it is empty: its pool is not in the cluster file"
    if member.node is None:
        left_s = boots_for_s(member, snapshot) or 0.0
        bound_s = snapshot.cluster.timings.given_up_s
        return f"joins in about {left_s:.0f} s; given up {bound_s:.0f} s after its launch"
    if hold := hold_of(member, snapshot.now_s):
        return f"let go at {moment(hold.until_s)} UTC, when its hold ends"
    if member.node.state.is_rebooting:
        said = sentence_of(member.node.reason)
        does = "resets its GPUs or reboots" if is_reset(said) else "reboots"
        return f"{does}, and is replaced if it does not come back: {said}"
    if member.node.state.is_drain and not member.gated_for:
        return f"drained: {sentence_of(member.node.reason) or 'no reason given'}"
    if member.gated_for:
        return f"kept for job {member.gated_for} until all its nodes are there"
    if member.is_busy:
        return f"its jobs end, and {_patience(pool)} without another"
    return f"{_patience(pool)} idle, when no job needs it and pool {pool.name} has its minimum"


def _interruption_loss(record: NodeRecord) -> str:
    loss = record.interruption_loss
    if loss is None or loss == InterruptionLoss():
        return ""
    return f"; {saved_and_lost(loss.saved_jobs, loss.lost_gpu_hours)}"


def saved_and_lost(jobs: int, gpu_hours: float) -> str:
    """What a reclaim did to jobs. What a job does when it is signalled, nobody counts."""
    told = f"{jobs} job{'' if jobs == 1 else 's'} signalled or requeued in time"
    return f"{told}, {gpu_hours:.1f} GPU-hours lost"


def _patience(pool: Pool) -> str:
    return "as long as a boot costs" if pool.is_idle_auto else f"{pool.idle_s:.0f} s"


def prospects(snapshot: Snapshot) -> Mapping[str, Prospect]:
    """By node; nothing while the head is silent, when no node is let go."""
    if snapshot.staleness:
        return {}
    made = considered(snapshot)
    snapshot, fleet = made.snapshot, made.fleet
    should = {each.node.name: each for each in candidates(snapshot, fleet)}
    replaced = {each.node.name for each in made.departures.replacing}
    headroom = hold_headroom(snapshot, made.bins, last=replaced).names
    above = above_minimum(snapshot, made.bins, headroom)
    found: dict[str, Prospect] = {}
    asked = asked_by_name(snapshot.heard.reading.jobs)
    for each in fleet.judged:
        name, pool = each.member.instance_id, snapshot.cluster.pool(each.member.pool)
        if pool is None or each.member.node is None:
            continue
        if each.disruption:
            held = fleet.allowance.held(pool.name, each.disruption, besides=name)
            found[name] = Prospect(each.reason, held)
        elif each.is_held_back or hold_of(each.member, snapshot.now_s):
            found[name] = Prospect(held=each.reason)
        elif each.use is Use.LEAVING and each.order is None:
            found[name] = Prospect(each.reason)
        elif each.use is Use.IN_FLIGHT:
            found[name] = Prospect(held=each.reason)
        elif each.use is Use.CAPACITY:
            outdated = should.get(name)
            held = kept_because(each.member, pool, snapshot.head_now_s)
            held = held or (_why_still(made, outdated) if outdated else "")
            if not held and not outdated and each.member.is_idle:
                held = _why_kept(made, each, pool, above[pool.name], headroom)
            found[name] = Prospect(outdated.why if outdated else "", held)
        if name in asked and not each.member.is_busy and not found.get(name, Prospect()).held:
            goes = found[name].goes if name in found else ""
            found[name] = Prospect(goes, _asked(asked[name]))
    return found


def _asked(job: Job) -> str:
    return f"job {job.job_id} asks for it by name (-w), and Slurm would end it with its node"


def _why_still(made: Considered, each: Outdated) -> str:
    """What holds a node that has had its time."""
    snapshot, fleet = made.snapshot, made.fleet
    pool = each.pool.name
    if any(each.node.name == other.node.name for other in made.departures.replacing):
        return f"a new node of pool {pool} comes first"
    held = fleet.allowance.held(pool, each.reason)
    roll, found = how_far(snapshot, fleet, each), rollout_of(snapshot, pool)
    is_rolled = each.reason is DisruptionReason.DRIFTED and roll is not Roll.PROVEN
    if found and is_rolled and not (held and roll is Roll.SHARED):
        ours = [j.member for j in fleet.judged if j.member.pool == pool]
        goes = "is paused" if found.is_paused else goes_on(found, pool, ours, snapshot)
        if roll is Roll.RESTING:
            goes = f"it has failed in {each.judged.member.offering} and rests there"
        return f"roll-out of template {found.template.digest}: {goes}"
    if roll is Roll.STOPPED:
        return f"new nodes of pool {pool} are no good: nothing is replaced"
    template = to_be(snapshot, pool)
    if roll is not Roll.PROVEN and template:
        return f"a first node made from {template.digest} has to join well before"
    is_free = not any(b.name == each.node.name and b.jobs for b in made.bins.all)
    if is_free and any(other.pool is each.pool for other in made.departures.replacing):
        return f"others of pool {pool} are replaced first: limits leave no room for all at once"
    return held or "a pending job is about to take it"


def _why_kept(
    made: Considered, each: Judged, pool: Pool, above: int, headroom: Collection[str]
) -> str:
    """What holds a node that idles."""
    snapshot = made.snapshot
    if each.member.offering.market.is_kept_idle:
        return "its reservation is paid for"
    if any(b.name == each.member.instance_id and b.jobs for b in made.bins.all):
        return "a pending job is about to take it"
    if each.member.instance_id in headroom:
        return f"pool {pool.name} keeps room for {', '.join(map(str, pool.headroom))}"
    least = least_nodes(snapshot, pool)
    if above <= 0 and (least or pool.headroom_nodes):
        return f"pool {pool.name} keeps {least} nodes, {pool.headroom_nodes} idle"
    if asked_on(snapshot, each.member):
        return "the site's check of idle nodes is asked for there"
    if waits_for_check(snapshot, each.member):
        return "the site's check of its template is to run there"
    pool_type = pool.name, each.member.offering.instance_type
    spares = made.spares.get(pool_type)
    if spares and spares.kept:
        return f"spare, of {spares.kept} {pool_type[1]} that save more waiting than they cost"
    return made.fleet.allowance.held(pool.name, DisruptionReason.EMPTY)
