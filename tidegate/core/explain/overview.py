"""A cluster at a glance: its queue, its pools, what rests, and whether its head is heard."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tidegate.core.explain.block_ends import block_ends
from tidegate.core.explain.idle_checks import IdleChecksNow, idle_checks_now
from tidegate.core.explain.idle_gpus import idle_jobs
from tidegate.core.explain.lost import Gpus, doubtful_checks, gpus, lost_nodes
from tidegate.core.explain.unjudged import Unjudged
from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.fleet.cures import needed
from tidegate.core.fleet.findings import stopped_checks
from tidegate.core.fleet.members import Member, members
from tidegate.core.fleet.node_price import is_billed, usd_per_hour
from tidegate.core.fleet.stopped import stopped_of
from tidegate.core.fleet.templates import troubles
from tidegate.core.interruption.loss import losses
from tidegate.core.model.cluster import CLUSTER_SCOPE, Limits, Pool, pool_scope
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.durations import clock
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import MonthlyLosses
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.limits import Load
from tidegate.core.offers.market import price_troubles
from tidegate.core.offers.places import sick_network_nodes, sick_places, sick_reservations
from tidegate.core.offers.savings_plans import plan_troubles
from tidegate.core.offers.seen_hazards import seen_hazards
from tidegate.core.offers.seen_reservations import reservation_troubles
from tidegate.core.offers.spend import spending, used_up

# A node that is kept from small jobs, or for a gang, runs what it has and opens again.
STAYING = (DrainCode.CLOSED, DrainCode.KEPT)


@frozen
class PoolNow:
    """`limits`: what is used of each limit that the pool has: unit, used, limit. `stopped`: nodes
    that can be started, whose disks cost `stopped_usd_per_hour`; they are none of the others.
    """

    name: str
    up: int
    busy: int
    booting: int
    leaving: int
    usd_per_hour: float
    limits: tuple[tuple[str, float, float], ...]
    stopped: int = 0
    stopped_usd_per_hour: float = 0.0


@frozen
class RestingNow:
    """An offering that EC2 refused, or whose nodes became sick. `pool`: which one it was refused
    to, "": to all. `stops`: nothing of it is bought; false for one bad node of a kind that comes
    up.
    """

    offering: str
    until_s: float
    failures: int
    code: str
    message: str
    pool: str = ""
    stops: bool = True


@frozen
class SpotNow:
    """How often AWS took nodes of a spot offering back in the last weeks, and interruptions per
    node-hour: those that are planned with, and those of the cluster file.
    """

    offering: str
    node_hours: float
    taken: float
    per_hour: float
    file_per_hour: float


@frozen
class BudgetNow:
    """`scope`: cluster, `pool NAME` or `account NAME`; `per`: day or month, of UTC."""

    scope: str
    per: str
    usd: float
    budget_usd: float
    ends_at_s: float


@frozen
class AlarmNow:
    """An alarm of the stack that is firing; `since_s` in epoch seconds."""

    name: str
    says: str
    since_s: float


@frozen
class Overview:
    """`starting`, `waiting`: pending jobs by their verdict; `not_judged`: those without one.

    `agent_age_s` None: the head has never reported. `needs_a_look`: what a person should see to.
    `alarms`: those that fire; None: whoever asks may not read them. `unjudged`: that nobody judges
    the queue, the first of `needs_a_look`; "": somebody does. The ages of prices are those of EC2's
    that are planned with; None: those of the cluster file are. `usd_per_job_hour`: the price of
    waiting of whoever has none of his own. `idle_checks` None: there is no check of idle
    nodes.
    """

    cluster: str
    at_s: float
    calendar: str
    agent_age_s: float | None
    look_age_s: float | None
    running: int
    starting: int
    waiting: int
    not_judged: int
    waits_because: tuple[tuple[str, int], ...]
    pools: tuple[PoolNow, ...]
    gpus: Gpus
    usd_per_hour: float
    limits: tuple[tuple[str, float, float], ...]
    budgets: tuple[BudgetNow, ...]
    losses: MonthlyLosses
    resting: tuple[RestingNow, ...]
    alarms: tuple[AlarmNow, ...] | None
    needs_a_look: tuple[str, ...]
    unjudged: str = ""
    spot_prices_age_s: float | None = None
    on_demand_prices_age_s: float | None = None
    usd_per_job_hour: float = 0.0
    idle_checks: IdleChecksNow | None = None
    spot: tuple[SpotNow, ...] = ()


# Of a budget; the alarm stands at the same share.
BUDGET_WARNS_AT = 0.8

# Of an offering whose nodes become sick: it is no rest, since it is bought where nothing else is.
SICK_PLACE, BOUGHT_LAST = "SickNodes", "its nodes became sick more often than others: bought last"

# Reasons that many jobs share, the most frequent first.
REASONS_MAX = 5


def overview(
    snapshot: Snapshot,
    verdicts: Verdicts | None,
    notes: Sequence[str] = (),
    alarms: Sequence[AlarmNow] | None = (),
    unjudged: Unjudged | None = None,
) -> Overview:
    """`notes`: what had to be dropped to see this, like a digest that cannot be read."""
    dead = unjudged.sentence if unjudged else ""
    every = members(snapshot)
    jobs = snapshot.digest.reading.jobs if snapshot.digest else ()
    pending = [job for job in jobs if job.is_pending]
    judged = [verdicts.of(job.job_id) if verdicts else None for job in pending]
    # Of an array that runs as many tasks as it may none could start, and yet some of it waits.
    tasks = [max(job.count, 1) for job in pending]
    reasons: Counter[str] = Counter()
    for verdict, count in zip(judged, tasks, strict=True):
        if verdict and not verdict.is_served:
            reasons[verdict.reason] += count
    return Overview(
        cluster=snapshot.cluster.name,
        at_s=snapshot.now_s,
        calendar=snapshot.wanted.sentence,
        agent_age_s=snapshot.digest_age_s if snapshot.digest else None,
        look_age_s=max(snapshot.now_s - verdicts.at_s, 0.0) if verdicts else None,
        running=sum(job.is_running for job in jobs),
        starting=sum(n for v, n in zip(judged, tasks, strict=True) if v and v.is_served),
        waiting=reasons.total(),
        not_judged=sum(n for v, n in zip(judged, tasks, strict=True) if v is None),
        waits_because=tuple(reasons.most_common(REASONS_MAX)),
        pools=tuple(_pool(pool, every, snapshot) for pool in snapshot.cluster.pools),
        gpus=gpus(snapshot),
        usd_per_hour=round(
            sum(usd_per_hour(snapshot, each) for each in every if is_billed(each)), 4
        ),
        limits=_limits(snapshot.cluster.limits, every, snapshot),
        budgets=tuple(
            BudgetNow(each.scope, each.per, round(each.usd, 4), each.budget_usd, each.ends_at_s)
            for each in spending(snapshot)
        ),
        losses=losses(snapshot),
        resting=_resting(snapshot),
        alarms=None if alarms is None else tuple(alarms),
        needs_a_look=(
            *([dead] if dead else []),
            *stopped_checks(snapshot, every),
            *notes,
            *_troubles(snapshot),
            *map(_firing, alarms or ()),
        ),
        unjudged=dead,
        spot_prices_age_s=_age_s(snapshot, Market.SPOT, snapshot.seen_market.spot_at_s),
        on_demand_prices_age_s=_age_s(
            snapshot, Market.ON_DEMAND, snapshot.seen_market.on_demand_at_s
        ),
        usd_per_job_hour=snapshot.cluster.waiting.usd_per_job_hour,
        idle_checks=idle_checks_now(snapshot),
        spot=tuple(_spot(snapshot)),
    )


def _spot(snapshot: Snapshot) -> Iterator[SpotNow]:
    for offering, seen in sorted(seen_hazards(snapshot).items()):
        hours, taken = round(seen.node_hours, 1), round(seen.taken, 1)
        per_hour = round(seen.per_hour, 6)
        yield SpotNow(str(offering), hours, taken, per_hour, seen.file_per_hour)


def _age_s(snapshot: Snapshot, market: Market, at_s: float | None) -> float | None:
    is_used = any(each.market is market for each in snapshot.cluster.quoted)
    return max(snapshot.now_s - at_s, 0.0) if is_used and at_s is not None else None


def _usd_per_hour(fleet: Sequence[Member], snapshot: Snapshot) -> float:
    return round(sum(usd_per_hour(snapshot, each) for each in fleet if is_billed(each)), 4)


def is_leaving(member: Member, now_s: float) -> bool:
    """It takes no more jobs, and goes."""
    record, node = member.record, member.node
    if record and (not record.phase.is_alive or record.reclaim_at_s is not None):
        return True
    if record and record.is_cordoned(now_s):
        return True
    if node is None or not node.state.is_drain or member.gated_for:
        return False
    return code_of(node.reason) not in STAYING


def _pool(pool: Pool, every: Sequence[Member], snapshot: Snapshot) -> PoolNow:
    ours = [each for each in every if each.pool == pool.name and is_billed(each)]
    leaving = [each for each in ours if is_leaving(each, snapshot.now_s)]
    up = [each for each in ours if each.node is not None and each not in leaving]
    stopped = stopped_of(snapshot, pool.name)
    return PoolNow(
        name=pool.name,
        up=len(up),
        busy=sum(each.is_busy for each in up),
        booting=len(ours) - len(up) - len(leaving),
        leaving=len(leaving),
        usd_per_hour=round(
            sum(usd_per_hour(snapshot, each) for each in ours if is_billed(each)), 4
        ),
        limits=_limits(pool.limits, ours, snapshot),
        stopped=len(stopped),
        stopped_usd_per_hour=round(sum(each.usd_per_hour for each in stopped), 4),
    )


def limit_used(snapshot: Snapshot) -> float:
    """The share of the limit of a pool or the cluster that is used most; 0 where none is."""
    shares = (is_used / limit for _, _, is_used, limit in limits_used(snapshot))
    return max(shares, default=0.0)


def limits_used(snapshot: Snapshot) -> Iterator[tuple[str, str, float, float]]:
    """Every limit of cluster and pools: scope, unit, what is used of it, the limit."""
    every = members(snapshot)
    scopes = [(CLUSTER_SCOPE, snapshot.cluster.limits, every)]
    for pool in snapshot.cluster.pools:
        ours = tuple(each for each in every if each.pool == pool.name)
        scopes.append((pool_scope(pool.name), pool.limits, ours))
    for scope, limits, ours in scopes:
        for unit, is_used, limit in _limits(limits, ours, snapshot):
            yield scope, unit, is_used, limit


def _limits(
    limits: Limits, ours: Sequence[Member], snapshot: Snapshot
) -> tuple[tuple[str, float, float], ...]:
    billed = [each for each in ours if is_billed(each)]
    load = Load()
    for each in billed:
        found = snapshot.cluster.instance_type(each.offering.instance_type)
        load = load.plus(Load.of(found, usd_per_hour(snapshot, each)), 1)
    used = (
        ("nodes", len(billed), limits.nodes),
        ("GPUs", load.gpus, limits.gpus),
        ("vCPUs", load.vcpus, limits.vcpus),
        ("MiB", load.memory_mib, limits.memory_mib),
        ("USD/h", round(load.usd_per_hour, 4), limits.usd_per_hour),
    )
    return tuple((unit, is_used, limit) for unit, is_used, limit in used if limit is not None)


def _resting(snapshot: Snapshot) -> tuple[RestingNow, ...]:
    both = ((snapshot.resting, True), (snapshot.outweighed, False))
    rests = (
        RestingNow(
            *(each.what, each.until_s, each.failures, each.code, each.message, each.pool), stops
        )
        for found, stops in both
        for each in sorted(found, key=lambda each: (each.until_s, each.key))
        if each.until_s > snapshot.now_s
    )
    sick = (
        RestingNow(str(on), place.until_s, place.found, SICK_PLACE, BOUGHT_LAST)
        for on, place in sorted(sick_places(snapshot).items())
    )
    return (*rests, *sick)


def _firing(alarm: AlarmNow) -> str:
    return f"alarm {alarm.name} since {clock(alarm.since_s)}: {alarm.says}"


def _spent(snapshot: Snapshot) -> Iterator[str]:
    """Budgets that are used up, and those that will be soon."""
    empty = used_up(snapshot)
    yield from (empty[scope].sentence for scope in sorted(empty))
    for each in spending(snapshot):
        if each.scope not in empty and each.share >= BUDGET_WARNS_AT:
            yield f"{each.of} is spent to {100 * each.share:.0f} %"


def _troubles(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.staleness and snapshot.wanted.is_up:
        yield snapshot.staleness
    yield from _spent(snapshot)
    yield from price_troubles(snapshot.cluster, snapshot.seen_market, snapshot.now_s)
    yield from reservation_troubles(
        snapshot.cluster, snapshot.seen_market.reservations, snapshot.now_s
    )
    yield from plan_troubles(snapshot.cluster, snapshot.now_s)
    yield from troubles(snapshot)
    yield from needed(snapshot)
    yield from sick_reservations(snapshot)
    yield from sick_network_nodes(snapshot)
    yield from _partitions_down(snapshot)
    yield from (each.sentence(snapshot.now_s) for each in block_ends(snapshot))
    if snapshot.digest is not None:
        yield from doubtful_checks(snapshot)
        yield from idle_jobs(snapshot)
        yield from (each.sentence for each in lost_nodes(snapshot))


def _partitions_down(snapshot: Snapshot) -> Iterator[str]:
    """Those that jobs wait for, by Slurm's own reason."""
    waiting: Counter[str] = Counter()
    for job in snapshot.digest.reading.jobs if snapshot.digest else ():
        if job.is_pending and job.reason.startswith(("PartitionDown", "PartitionInactive")):
            waiting[",".join(job.partitions)] += job.count
    for name, count in sorted(waiting.items()):
        many = f"{count} jobs wait" if count > 1 else "a job waits"
        up = f"scontrol update PartitionName={name} State=UP"
        yield f"partition {name} takes no jobs and {many} for it; set it up: {up}"
