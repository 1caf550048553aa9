"""The life of each node: what it is, what it has cost, and what would end it."""

from tidegate.core.explain.answer import boots_for_s
from tidegate.core.explain.overview import is_billed, usd_per_hour
from tidegate.core.explain.prospects import Prospect, prospects
from tidegate.core.fleet.members import Member, members
from tidegate.core.fleet.orphans import orphaned
from tidegate.core.model.cluster import Pool
from tidegate.core.model.durations import clock
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import InterruptionLoss, NodeRecord, Phase
from tidegate.core.model.snapshot import Snapshot

SECONDS_PER_HOUR = 3600.0

# The stage of a node that Slurm does not know yet.
BOOTING = "booting"


@frozen
class Life:
    """What a node is, what it costs and what becomes of it.

    `usd`: since its launch, by its price of now. `ends`: what would end it, in a sentence;
    `held`: what holds it, "": nothing.
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


def lives(seen: Snapshot) -> tuple[Life, ...]:
    """Every node that EC2 may still bill, pool by pool, the oldest first."""
    found = [each for each in members(seen) if is_billed(each)]
    found.sort(key=lambda each: (each.pool, each.launched_at_s, each.instance_id))
    ahead = prospects(seen)
    return tuple(
        _life(each, tuple(job.job_id for job in each.jobs), seen, ahead.get(each.instance_id))
        for each in found
    )


def _life(member: Member, jobs: tuple[str, ...], seen: Snapshot, ahead: Prospect | None) -> Life:
    ends = _ends(member, jobs, seen)
    if ahead and ahead.goes and not (member.node and member.node.state.is_drain):
        ends = f"{ahead.goes}{'; leaves when its jobs have ended' if jobs else ''}"
    age_s = max(seen.now_s - member.launched_at_s, 0.0)
    usd = age_s / SECONDS_PER_HOUR * usd_per_hour(member, seen)
    return Life(
        name=member.instance_id,
        pool=member.pool,
        offering=str(member.offering),
        stage=str(member.node.state) if member.node else BOOTING,
        age_s=round(age_s, 1),
        usd=round(usd, 4),
        jobs=jobs,
        ends=ends,
        held=ahead.held if ahead else "",
    )


def _ends(member: Member, jobs: tuple[str, ...], seen: Snapshot) -> str:
    record, pool = member.record, seen.cluster.pool(member.pool)
    if record and record.silent_s is not None and not record.phase < Phase.INTERRUPTED:
        return orphaned(record.silent_s)
    if record and record.reclaim_at_s is not None:
        return f"EC2 takes it back at {clock(record.reclaim_at_s)}{_interruption_loss(record)}"
    if record and not record.phase.is_alive:
        return "released by Slurm: it is being terminated"
    if record and record.cordon and record.cordon.holds(seen.now_s):
        lifts_at_s = record.cordon.lifts_at_s
        until = f", or takes jobs again at {clock(lifts_at_s)}" if lifts_at_s else ""
        return f"leaves when it is empty: {record.cordon.reason}{until}"
    if pool is None:
        return "leaves when it is empty: its pool is not in the cluster file"
    if member.node is None:
        left_s = boots_for_s(member, seen) or 0.0
        bound_s = seen.cluster.timings.boot_bound_s
        return f"joins in about {left_s:.0f} s; given up {bound_s:.0f} s after its launch"
    if member.node.state.is_drain and not member.gated_for:
        return f"drained: {member.node.reason or 'no reason given'}"
    if member.gated_for:
        return f"kept for job {member.gated_for} until all its nodes are there"
    if member.is_busy:
        return f"its jobs end, and {_patience(pool)} without another"
    return f"{_patience(pool)} idle, when no job needs it and pool {pool.name} has its minimum"


def _interruption_loss(record: NodeRecord) -> str:
    loss = record.interruption_loss
    if loss is None or loss == InterruptionLoss():
        return ""
    return f"; {loss.saved_jobs} jobs saved, {loss.lost_gpu_hours:.1f} GPU-hours lost"


def _patience(pool: Pool) -> str:
    return "as long as a boot costs" if pool.is_idle_auto else f"{pool.idle_s:.0f} s"
