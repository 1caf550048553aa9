"""One look as samples for Prometheus: the head's agent reads them beside the verdicts."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator

from tidegate.core.explain.lost import SlurmSays, cell_of, gpus, lost_nodes
from tidegate.core.explain.overview import is_leaving, limits_used
from tidegate.core.explain.short import told_first
from tidegate.core.fleet.members import Member, members
from tidegate.core.fleet.node_price import is_billed, usd_per_hour
from tidegate.core.interruption.loss import losses
from tidegate.core.model import prometheus as metrics
from tidegate.core.model.cluster import CLUSTER_SCOPE, pool_scope
from tidegate.core.model.prometheus import Sample
from tidegate.core.model.resting import BOOT_FAILURES, TAKEN_BACK, Resting
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why
from tidegate.core.offers.spend import day_of, month_of, spending, spent
from tidegate.service.control import Round
from tidegate.service.figures import NOBODY_SERVES, WAITS_FOR_MORE, late_boots

# The verdict codes of jobs that get what they need, and of those without an obstacle by name.
STARTING, OTHER = "starting", "other"

# What a node that is paid for may be; a pool says each, so that no line of a graph ends.
STATES = ("booting", "idle", "busy", "leaving", "drained", "unhealthy")
REASONS = ("refused", "interrupted", "boot-failed")
SECONDS_PER_HOUR = 3600.0


def look_samples(known: Round) -> tuple[Sample, ...]:
    """`known`: a round that knew the queue."""
    snapshot = known.snapshot
    lost = losses(snapshot)
    return (
        *_jobs(known),
        *_nodes(snapshot),
        *_gpus(snapshot),
        *_money(snapshot),
        *(
            metrics.LIMIT_USED.of(used / limit, scope=scope, resource=resource)
            for scope, resource, used, limit in limits_used(snapshot)
        ),
        *_resting(snapshot),
        *_failed(snapshot),
        metrics.NODES_LATE.of(late_boots(snapshot)),
        metrics.NODES_LOST.of(len(lost_nodes(snapshot))),
        metrics.INTERRUPTED.of(lost.nodes),
        metrics.LOST_GPU_HOURS.of(lost.lost_gpu_hours * SECONDS_PER_HOUR),
    )


def code_of(kinds: Collection[Why]) -> str:
    """The one code of a verdict that counts for alerts: what people decided before EC2's answers.

    A job that a limit holds back is no sign that EC2 has no capacity, also where it has none.
    """
    for group in (WAITS_FOR_MORE, NOBODY_SERVES):
        if found := [kind for kind in kinds if kind in group]:
            return found[0].value
    return next((kind.value for kind in kinds), OTHER)


def _jobs(known: Round) -> Iterator[Sample]:
    digest = known.snapshot.digest
    assert digest is not None, "the round knew the queue"
    jobs = {job.job_id: job for job in digest.reading.jobs}
    codes = {each.job_id: STARTING for each in known.plan.served}
    for each in known.plan.unmet:
        codes[each.job_id] = code_of([one.kind for one in told_first(each.why_nots)])
    counts = Counter(dict.fromkeys((STARTING, OTHER, *(why.value for why in Why)), 0))
    oldest_s: dict[str, float] = dict.fromkeys(counts, 0.0)
    for job_id, code in codes.items():
        if (job := jobs.get(job_id)) is None:
            continue
        counts[code] += job.count
        if job.begins_at_s is not None:
            wait_s = digest.written_at_s - job.begins_at_s
            oldest_s[code] = max(oldest_s[code], wait_s)
    for code, count in counts.items():
        yield metrics.JOBS_WAITING.of(count, verdict=code)
        yield metrics.JOBS_OLDEST_WAIT.of(oldest_s[code], verdict=code)


def _nodes(snapshot: Snapshot) -> Iterator[Sample]:
    counts: Counter[tuple[str, str, str]] = Counter()
    usd: defaultdict[tuple[str, str], float] = defaultdict(float)
    for pool in snapshot.cluster.pools:
        for market in pool.markets:
            usd[pool.name, market.value] = 0.0
            counts.update(dict.fromkeys(((pool.name, market.value, each) for each in STATES), 0))
    for each in members(snapshot):
        if is_billed(each):
            place = each.pool, each.offering.market.value
            counts[*place, _state(each, snapshot)] += 1
            usd[place] += usd_per_hour(snapshot, each)
    for (pool_name, market_name, state), count in counts.items():
        yield metrics.NODES.of(count, pool=pool_name, capacity_type=market_name, state=state)
    for (pool_name, market_name), price in usd.items():
        yield metrics.PRICE.of(price, pool=pool_name, capacity_type=market_name)


def _state(member: Member, snapshot: Snapshot) -> str:
    says = cell_of(member, snapshot).slurm
    if says in (SlurmSays.SICK, SlurmSays.DOWN):
        return "unhealthy"
    if is_leaving(member, snapshot.now_s):
        return "drained" if says is SlurmSays.THEIRS else "leaving"
    if member.node is None:
        return "booting"
    return "busy" if member.is_busy else "idle"


def _gpus(snapshot: Snapshot) -> Iterator[Sample]:
    found = gpus(snapshot)
    yield metrics.GPUS.of(found.configured, state="paid")
    yield metrics.GPUS.of(found.usable, state="usable")
    yield metrics.GPUS.of(found.busy, state="busy")
    yield metrics.GPUS.of(found.lost, state="lost")


def _money(snapshot: Snapshot) -> Iterator[Sample]:
    """Of cluster and pools, and of every scope that has a budget: accounts may be many."""
    known, now_s = spent(snapshot), snapshot.now_s
    budgets = spending(snapshot)
    pools = (pool_scope(pool.name) for pool in snapshot.cluster.pools)
    scopes = dict.fromkeys((CLUSTER_SCOPE, *pools, *(each.scope for each in budgets)))
    for per, period in (("day", day_of(now_s)), ("month", month_of(now_s))):
        for scope in scopes:
            usd = known.get((period.name, scope), 0.0)
            yield metrics.SPENT.of(usd, scope=scope, period=per)
    for each in budgets:
        yield metrics.BUDGET.of(each.budget_usd, scope=each.scope, period=each.per)


def _resting(snapshot: Snapshot) -> Iterator[Sample]:
    counts = Counter(dict.fromkeys(REASONS, 0))
    counts.update(_reason(each) for each in snapshot.resting if each.until_s > snapshot.now_s)
    for reason, count in counts.items():
        yield metrics.RESTING.of(count, reason=reason)


def _reason(resting: Resting) -> str:
    if resting.code in BOOT_FAILURES:
        return "boot-failed"
    return "interrupted" if resting.code == TAKEN_BACK else "refused"


def _failed(snapshot: Snapshot) -> Iterator[Sample]:
    known = {each.pool: len(each.recent(snapshot.now_s)) for each in snapshot.pool_history}
    for pool in snapshot.cluster.pools:
        yield metrics.POOL_FAILED.of(known.get(pool.name, 0), pool=pool.name)
