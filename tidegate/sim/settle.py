"""What a world still waits for once nothing goes wrong any more; written without the planner."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from tidegate.core.demand.demand import demand
from tidegate.core.demand.fit import lacks, satisfies
from tidegate.core.model.cluster import Cluster, Limits, Pool
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.ec2 import InstanceType, Offering
from tidegate.core.model.headroom import Headroom
from tidegate.core.model.ledger import LaunchStatus, Phase
from tidegate.core.model.mig import devices
from tidegate.core.model.plan import Served, Unmet
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why
from tidegate.core.offers.loss import Losses
from tidegate.core.offers.seen_hazards import with_seen_hazards
from tidegate.service.control import Looked
from tidegate.sim.due import due_by_s
from tidegate.sim.kept import most_kept, stopped_of
from tidegate.sim.slurm_parts import SimJob, Submit, caps_over
from tidegate.sim.world import SimWorld

type Spared = frozenset[tuple[str, Offering]]
"""Names of pools, and what of each a job is not bought."""


def waiting_for(world: SimWorld, last: Looked | None) -> str | None:
    """The first thing that is not settled, in a sentence; None when nothing is left to do.

    A job that can never run is settled when the last plan says of it why it is unmet.
    """
    active = world.slurm.table.active
    for job in active.values():
        if job.state != "PENDING":
            return f"job {job.job_id} is {job.state}"
        is_behind = _is_behind(job, world, last) or _depends(job, world, last)
        if not (_waits_for_good(job, world, last) or is_behind):
            return f"job {job.job_id} waits: {_verdict(job, last)}"
        if not _is_unmet(job, last):
            return f"job {job.job_id} can never run, and no plan says why: {_verdict(job, last)}"
    kept, stopped = _kept(world), stopped_of(world)
    for one in world.compute.live():
        if one.instance_id not in kept:
            return f"{one.instance_id} still runs"
    for name, node in world.ledger.all_nodes.items():
        # What stops before a time that AWS named may be a person's, who is told.
        ends_at_s = node.cordon.ends_at_s if node.cordon else None
        if ends_at_s is not None and world.compute.stopped.get(name, -inf) >= ends_at_s:
            return f"{name} is stopped and its disk costs"
    for name in world.slurm.nodes:
        if name not in kept:
            return f"{name} is still a node of Slurm"
    for record in world.ledger.all_launches.values():
        if record.status is LaunchStatus.RECORDED:
            return f"launch {record.launch.launch_id} is still in doubt"
    for node in world.ledger.all_nodes.values():
        if node.phase < Phase.TERMINATED and node.instance_id not in (*kept, *stopped):
            return f"{node.instance_id} is still {node.phase.name} in the ledger"
    return _lacking(world, kept)


def _waits_for_good(job: SimJob, world: SimWorld, last: Looked | None) -> bool:
    return _may_never_run(job, world) or _is_too_late(job, world) or _is_spared(job, world, last)


def _is_too_late(job: SimJob, world: SimWorld) -> bool:
    """No node that boots now would let it end before its deadline."""
    due_s, boot_s = due_by_s(job.submit.comment), max(p.boot_s for p in world.cluster.pools)
    least_s = boot_s + (job.submit.time_limit_s or 0.0)
    return due_s is not None and world.clock.now_s() + least_s > due_s


def _is_behind(job: SimJob, world: SimWorld, last: Looked | None) -> bool:
    """A task of its array that was requeued, and waits for good, takes the array's %limit first."""
    if not job.submit.throttle:
        return False
    tasks = [each for each in world.slurm.table.active.values() if each is not job]
    return any(
        each.array_job_id == job.array_job_id
        and each.requeues
        and _waits_for_good(each, world, last)
        for each in tasks
    )


def _depends(job: SimJob, world: SimWorld, last: Looked | None) -> bool:
    """On a job that waits for good, or on one that depends on such a job."""
    before = [j for j in world.slurm.table.active.values() if job.comes_after((j,))]
    return any(_waits_for_good(j, world, last) or _depends(j, world, last) for j in before)


def _kept(world: SimWorld) -> dict[str, str]:
    """Nodes that their pools keep without a job, no more than those, and those in a reservation
    that does not end; with the pool of each.
    """
    found: dict[str, str] = {}
    for pool in world.cluster.pools:
        nodes = [
            one.instance_id
            for one in world.compute.live()
            if one.pool == pool.name
            and (node := world.slurm.nodes.get(one.instance_id))
            and not (node.is_down or node.died_at_s)
            # A spare one may be closed to small jobs.
            and (not node.is_drain or code_of(node.reason) is DrainCode.CLOSED)
        ]
        held = world.compute.prepaid.held
        nodes.sort(key=lambda name: name in held)  # which may be of no use for what is kept
        found.update(dict.fromkeys(nodes[: most_kept(world, pool)], pool.name))
        paid_for = [name for name in nodes if name in held and held[name].ends_at_s is None]
        found.update(dict.fromkeys(paid_for, pool.name))
    return found


def _lacking(world: SimWorld, kept: dict[str, str]) -> str | None:
    """A pool without the nodes that it keeps, where nothing limits it."""
    overrides = tuple(world.ledger.all_overrides.values())
    is_up = world.calendar.wanted(world.clock.now_s(), overrides).is_up
    if not is_up or world.cluster.budgets:
        return None
    for pool in world.cluster.pools:
        most = max(pool.min_nodes, pool.headroom_nodes)
        has = sum(name == pool.name for name in kept.values())
        if has < most and pool.limits == world.cluster.limits == Limits():
            return f"pool {pool.name} keeps {most} nodes and has {has}"
        for each in pool.headroom if pool.limits == world.cluster.limits == Limits() else ():
            if not _has_room(world, each, [name for name in kept if kept[name] == pool.name]):
                return f"pool {pool.name} has no room for {each}"
    return None


def _has_room(world: SimWorld, headroom: Headroom, names: Sequence[str]) -> bool:
    """Whether these empty nodes hold one kind of headroom, if nothing else has to be on them."""
    shape, fitting = headroom.shape, Counter[str]()
    for name in names:
        offering = world.compute.everything[name].offering
        of = world.cluster.instance_type(offering.instance_type)
        if of is not None and of.profiles:  # who names no instance takes any
            record = world.ledger.all_nodes.get(name)
            cut = devices(record.layout if record else "", of.profiles)
            of = replace(of, gpus=sum(count for _, count in cut), profiles=())
        if of is not None and not lacks(shape, of):
            gpus = of.gpus // shape.gpus if shape.gpus else of.cpus
            shares = min(gpus, of.cpus // shape.cpus)
            fitting[offering.zone] += 1 if headroom.nodes > 1 else shares
    return sum(count // headroom.nodes for count in fitting.values()) >= headroom.jobs


def never_runs(asked: Submit, world: SimWorld, kept_from: Spared = frozenset()) -> bool:
    """Whether no empty cluster within all limits could ever start this job, without the offerings
    of pools that it is `kept_from`.

    Nodes that a pool keeps may stand within a limit for ever, and a budget may be spent, so that
    it says yes there as well.
    """
    if asked.is_held or world.cluster.budgets or _keeps_within_limits(world.cluster):
        return True
    table = world.slurm.table
    if asked.shape.gpus and any(_is_over(asked, cap) for cap in _caps(asked, world)):
        return True
    if asked.licences > table.licences:
        return True
    partition = world.cluster.partition(table.partition(asked))
    pools = [p for p in world.cluster.pools if partition and p.name in partition.pools]
    return not any(
        _holds(asked, pool, kind, offering, world.priced)
        for pool in pools
        for kind, offering in pool.offerings()
        if (pool.name, offering) not in kept_from
    )


def _may_never_run(job: SimJob, world: SimWorld) -> bool:
    """Components of which each could run by itself may not fit within a limit together, and all
    wait for one that cannot run.
    """
    cluster = world.cluster
    limits = [cluster.limits, *(pool.limits for pool in cluster.pools)]
    is_limited = bool(job.het_job_id) and any(each != Limits() for each in limits)
    parts = (job, *world.slurm.table.beside(job))
    return is_limited or any(never_runs(each.submit, world) for each in parts)


def _is_spared(job: SimJob, world: SimWorld, last: Looked | None) -> bool:
    """Whether some spot would lose its work again and again, as the plan says, and limits keep it
    from all the rest: other spot too.
    """
    done = last.rounds[-1] if last and last.rounds else None
    if done is None or done.snapshot.digest is None:
        return False
    unmet = [each for each in done.plan.unmet if each.job_id in _names(job)]
    is_spared = any(why.kind is Why.LOSSY for each in unmet for why in each.why_nots)
    return is_spared and never_runs(job.submit, world, _lossy(job, world, done.snapshot))


def _lossy(job: SimJob, world: SimWorld, snapshot: Snapshot) -> Spared:
    """The spot that would, by the planner's own formula (`tidegate.core.offers.loss`) and what it
    has learnt, also while others hold all places under a cap.
    """
    cluster = with_seen_hazards(replace(snapshot, cluster=world.priced)).cluster
    reading = snapshot.heard.reading
    alone = tuple(each for each in reading.jobs if each.job_id in _names(job))
    free = replace(reading, jobs=alone, associations=(), licences=())
    needs, _ = demand(free, world.cluster, frozenset())
    losses = Losses(cluster)
    return frozenset(
        (pool.name, offering)
        for need in needs
        for pool in world.cluster.pools
        for _, offering in pool.offerings()
        if losses.is_lossy(pool, offering, need)
    )


def _keeps_within_limits(cluster: Cluster) -> bool:
    is_keeping = any(pool.min_nodes or pool.keeps_free for pool in cluster.pools)
    limits = [cluster.limits, *(pool.limits for pool in cluster.pools)]
    return is_keeping and any(each != Limits() for each in limits)


def _holds(
    asked: Submit, pool: Pool, kind: InstanceType, offering: Offering, cluster: Cluster
) -> bool:
    price = cluster.prices.get(offering)
    is_sold = price is not None and not offering.market.is_prepaid  # which ends, or is taken
    is_fitting = is_sold and not lacks(asked.shape, kind)
    if not is_fitting or not satisfies(asked.constraint, pool.features(kind.name, offering.market)):
        return False
    return all(
        _is_within(limits, asked.nodes, asked.nodes * kind.gpus, asked.nodes * (price or 0.0))
        for limits in (pool.limits, cluster.limits)
    )


def _is_within(limits: Limits, nodes: int, gpus: int, usd: float) -> bool:
    return (
        (limits.nodes is None or nodes <= limits.nodes)
        and (limits.gpus is None or gpus <= limits.gpus)
        and (limits.usd_per_hour is None or usd <= limits.usd_per_hour)
    )


def _caps(asked: Submit, world: SimWorld) -> list[int]:
    """The GPU counts that accounting allows this job alone."""
    found: list[int] = []
    for cap in caps_over(world.slurm.table.associations, asked):
        limits = (cap.in_all, cap.per_job, cap.per_user)
        found.extend(limit for limit in limits if limit is not None)
    return found


def _is_over(asked: Submit, cap: int) -> bool:
    return asked.nodes * asked.shape.gpus > cap


def _verdict(job: SimJob, last: Looked | None) -> str:
    names = _names(job)
    for done in last.rounds[-1:] if last else ():
        verdicts: tuple[Served | Unmet, ...] = (*done.plan.served, *done.plan.unmet)
        for each in verdicts:
            if each.job_id in names:
                return each.reason
    return f"no plan speaks of it, Slurm says {job.reason}"


def _names(job: SimJob) -> tuple[str, str]:
    return job.job_id, job.array_job_id


def _is_unmet(job: SimJob, last: Looked | None) -> bool:
    names = _names(job)
    plans = [done.plan for done in last.rounds[-1:]] if last else []
    return any(each.job_id in names for made in plans for each in made.unmet)
