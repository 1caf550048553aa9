"""Nodes that were stopped as they left: what becomes of them until a launch starts them again."""

from collections.abc import Iterator

from tidegate.core.fleet.members import Member
from tidegate.core.fleet.worth import why_not_worth
from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.plan import Action, Mark, Reprice, Stop, Terminate
from tidegate.core.model.snapshot import Snapshot

# Packages and drivers on its disk grow old where no new template ends it.
KEPT_MAX_S = 30 * 24 * 3600.0


def stopped_of(snapshot: Snapshot, pool: str) -> list[NodeRecord]:
    """The stopped nodes of a pool, the one stopped last first."""
    ours = [each for each in snapshot.nodes if each.pool == pool and is_stopped(each)]
    return sorted(ours, key=lambda each: (-(each.stopped_at_s or 0.0), each.instance_id))


def is_stopped(record: NodeRecord) -> bool:
    """It was told to stop, and has neither ended since nor been started."""
    return record.stopped_at_s is not None and record.phase < Phase.TERMINATED


def stands(member: Member) -> bool:
    """It is stopped by our doing, or will be in a moment: no failure, and no capacity."""
    is_known = member.record is not None and is_stopped(member.record)
    return is_known and member.node is None


def starting(snapshot: Snapshot) -> frozenset[str]:
    """Those that launches in doubt start: nobody knows yet whether EC2 was asked."""
    return frozenset(each.launch.starts for each in snapshot.in_doubt if each.launch.starts)


def settled_s(snapshot: Snapshot) -> float:
    """For how long a stopped node is not started: its name comes again, and no order and no digest
    of its former life may be of any account by then.
    """
    timings = snapshot.cluster.timings
    return timings.apply_lease_s + max(timings.order_ttl_s, timings.digest_stale_s)


def of_stopped(member: Member, snapshot: Snapshot) -> tuple[Action, ...]:
    """What to do about a node that was told to stop and has left Slurm."""
    record, instance, name = member.record, member.instance, member.instance_id
    assert record is not None
    assert record.stopped_at_s is not None
    if name in starting(snapshot):
        return ()
    if instance is None:
        why = "EC2 does not show it any more"
        return (Terminate((name,), why), Mark(name, Phase.TERMINATED, why))
    if not (instance.is_alive or instance.is_stopped):
        return (Mark(name, Phase.TERMINATED, "EC2 has ended it while it was stopped"),)
    if instance.is_alive:
        if not is_back(record, snapshot):
            return (Stop((name,), "it is kept stopped, and EC2 shows it running"),)
        return (Terminate((name,), "it was stopped, and runs without a launch that started it"),)
    if why := why_stale(record, snapshot):
        return (Terminate((name,), why),)
    usd = _disk_usd_per_hour(record, snapshot)
    if usd is None:
        return ()
    return (Reprice(name, usd, "it is stopped, and EC2 bills its disk alone"),)


def _disk_usd_per_hour(record: NodeRecord, snapshot: Snapshot) -> float | None:
    """What it costs from now on; None: the ledger has that already."""
    pool = snapshot.cluster.pool(record.pool)
    usd = pool.stopped_usd_per_hour if pool else record.usd_per_hour
    return None if usd == record.usd_per_hour or record.ended_at_s is not None else usd


def is_back(record: NodeRecord, snapshot: Snapshot) -> bool:
    """What EC2 shows running somebody else has started; until then its planner may have died before
    it asked, or EC2 shows it as it was.
    """
    timings, stopped_at_s = snapshot.cluster.timings, record.stopped_at_s or 0.0
    return snapshot.now_s - stopped_at_s > timings.apply_lease_s + timings.describe_lag_s


def why_stale(record: NodeRecord, snapshot: Snapshot) -> str:
    """Why a stopped node is of no more use; "": it is of use."""
    pool = snapshot.cluster.pool(record.pool)
    if pool is None:
        return f"its pool {record.pool} is not in the cluster file any more"
    if not pool.may_have(record.offering):
        return f"pool {pool.name} has no {record.offering} any more"
    if snapshot.now_s - (record.stopped_at_s or 0.0) > KEPT_MAX_S:
        return f"it was stopped for {KEPT_MAX_S / 86400:.0f} days"
    kept = stopped_of(snapshot, pool.name)[: pool.stopped_nodes]
    if record not in kept:
        return f"pool {pool.name} keeps {pool.stopped_nodes} stopped nodes"
    return why_not_worth(record, pool, snapshot) or why_outdated(record, pool, snapshot)


def why_outdated(record: NodeRecord, pool: Pool, snapshot: Snapshot) -> str:
    """Why a node is not what its pool makes now; "": it is, or nobody knows."""
    digests = sorted(_digests(pool, snapshot))
    if not record.template or not digests or record.template in digests:
        return ""
    return f"made from template {record.template}, pool {pool.name} has {digests[0]} now"


def _digests(pool: Pool, snapshot: Snapshot) -> Iterator[str]:
    """Of what the pool's new nodes are made from, during a roll-out also of what it tries."""
    for name, template in snapshot.templates:
        if name == pool.name and template.digest:
            yield template.digest
    for each in snapshot.pool_history:
        if each.pool == pool.name and each.good and each.good.digest:
            yield each.good.digest


def is_startable(member: Member, snapshot: Snapshot) -> bool:
    """It stands still, and nothing of its former life is under way, nor left to be counted."""
    record, instance = member.record, member.instance
    if record is None or instance is None or not is_stopped(record) or member.node is not None:
        return False
    is_settled = snapshot.now_s - (record.stopped_at_s or 0.0) >= settled_s(snapshot)
    order_s = record.order.not_after_s if record.order else 0.0
    return (
        instance.state is InstanceState.STOPPED
        and is_settled
        and order_s < snapshot.now_s
        and member.instance_id not in starting(snapshot)
        and not snapshot.is_start_denied(record.pool)
        and _disk_usd_per_hour(record, snapshot) is None
        and not why_stale(record, snapshot)
    )
