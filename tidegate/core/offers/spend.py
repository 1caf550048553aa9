"""What nodes have cost by day and by month, and which budgets that has used up.

Days and months are those of UTC, as on AWS's bill. A node costs its seconds times its price
from its launch, or from when that price began; what nodes have cost that ended, or at a price
that ended, stands in the ledger, what living ones cost is added here.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from tidegate.core.model.cluster import (
    CLUSTER_SCOPE,
    Cluster,
    SpendingBudget,
    payer_scopes,
    pool_scope,
)
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Bill, Charge, NodeRecord, Phase, Stretch
from tidegate.core.model.savings_plans import Committed
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why, WhyNot

SECONDS_PER_HOUR = 3600.0
DAY_S = 86_400.0

# What is older is of no budget's present period.
DAYS_CHARGED_S = 3 * 24 * 3600.0
MONTHS_CHARGED_S = 400 * 24 * 3600.0


@frozen
class Period:
    """A day ("2026-11-21") or a month ("2026-11"), in epoch seconds."""

    name: str
    starts_at_s: float
    ends_at_s: float


@frozen
class Spending:
    """What one scope has spent of one budget. `scope`: cluster, `pool NAME`, `account NAME`,
    `user NAME`. `doubted_usd`: what launches in doubt have cost besides, at most.
    """

    scope: str
    per: str  # day or month
    usd: float
    budget_usd: float
    ends_at_s: float
    doubted_usd: float = 0.0

    @property
    def share(self) -> float:
        return self.usd / self.budget_usd

    @property
    def is_spent(self) -> bool:
        return self.usd >= self.budget_usd

    @property
    def stops(self) -> str:
        """What follows where all of it is spent."""
        until = datetime.fromtimestamp(self.ends_at_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
        return f"{self.of} is spent: nothing is launched for it until {until}"

    @property
    def may_stop(self) -> str:
        """What follows where all of it is spent if launches in doubt have brought all their nodes
        at once.
        """
        doubt = "would be spent by launches of which EC2 has not said yet what they brought"
        return f"{self.of} {doubt}: nothing is launched for it before"

    @property
    def of(self) -> str:
        """The budget in words that do not change while it is being spent."""
        whose = "the cluster" if self.scope == CLUSTER_SCOPE else self.scope
        return f"the budget of {whose}, {self.budget_usd:.2f} USD per {self.per},"


def day_of(at_s: float) -> Period:
    return _day(int(at_s // DAY_S))


def days_between(since_s: float, until_s: float) -> tuple[str, ...]:
    """The names of the days that these two moments and those between lie in."""
    first, last = int(since_s // DAY_S), int(until_s // DAY_S)
    return tuple(_day(number).name for number in range(first, last + 1))


def month_of(at_s: float) -> Period:
    return _month(int(at_s // DAY_S))


@lru_cache(maxsize=64)
def _day(number: int) -> Period:
    start = datetime.fromtimestamp(number * DAY_S, UTC)
    return _period(start, start + timedelta(days=1), "%Y-%m-%d")


@lru_cache(maxsize=64)
def _month(day: int) -> Period:
    start = datetime.fromtimestamp(day * DAY_S, UTC).replace(day=1)
    return _period(start, (start + timedelta(days=32)).replace(day=1), "%Y-%m")


def kept_until_s(period: str) -> float:
    """When nobody asks any more for what was spent in a period."""
    start = datetime.fromisoformat(period if period.count("-") == 2 else f"{period}-01")
    kept_s = DAYS_CHARGED_S if period.count("-") == 2 else MONTHS_CHARGED_S
    return start.replace(tzinfo=UTC).timestamp() + 2 * kept_s


def charges(record: NodeRecord, until_s: float) -> tuple[Charge, ...]:
    """What a node has cost at its price until then: to each scope, in each period."""
    if record.usd_per_hour <= 0:
        return ()
    payers = payer_scopes(record.account, record.user)
    scopes = (CLUSTER_SCOPE, pool_scope(record.pool), *payers)
    found: list[Charge] = []
    since_s = record.launched_at_s if record.priced_at_s is None else record.priced_at_s
    for period in _periods(since_s, until_s):
        starts_at_s = max(since_s, period.starts_at_s)
        hours = (min(until_s, period.ends_at_s) - starts_at_s) / SECONDS_PER_HOUR
        if hours > 0:
            usd = hours * record.usd_per_hour
            found.extend(Charge(period.name, scope, usd) for scope in scopes)
    return tuple(found)


def bill(record: NodeRecord, until_s: float) -> Bill | None:
    """What a node has cost at its present price until then; None: nothing."""
    since_s = record.launched_at_s if record.priced_at_s is None else record.priced_at_s
    if record.usd_per_hour <= 0 or until_s <= since_s:
        return None
    stopped_at_s = record.stopped_at_s
    return Bill(
        record.instance_id,
        record.pool,
        record.offering,
        record.account,
        record.launched_at_s,
        record.joined_at_s,
        since_s,
        until_s,
        record.usd_per_hour,
        # Its price follows its stop.
        is_stopped=stopped_at_s is not None and stopped_at_s <= since_s,
        committed=record.committed,
    )


def ended(record: NodeRecord, now_s: float, *, is_shown: bool = False) -> Stretch:
    """The last stretch of a node that is gone: until its reclaim, if that has come, or now.

    `is_shown`: EC2 shows that it lives: it has outlived its reclaim, and costs until now.
    """
    is_taken = record.reclaim_at_s is not None and not is_shown
    at_s = min(record.reclaim_at_s or now_s, now_s) if is_taken else now_s
    found = charges(record, at_s)
    return Stretch(
        record.instance_id,
        at_s,
        found,
        record.priced_at_s,
        interruption_loss=record.interruption_loss,
        is_orphan=record.is_orphan,
        bill=bill(record, at_s),
    )


def repriced(
    record: NodeRecord,
    usd_per_hour: float,
    snapshot: Snapshot,
    *,
    by_s: float,
    committed: Committed | None = None,
) -> Stretch:
    """The stretch of a living node until it has another price.

    `by_s`: EC2 showed the price by then; its answer is newer than the snapshot's own time.
    `committed`: what a Savings Plan pays of the price.
    """
    at_s = snapshot.now_s
    if _is_first_price(record, committed):
        at_s = _sold_since_s(record, snapshot.cluster, by_s)
    found = charges(record, at_s)
    line = bill(record, at_s)
    return Stretch(
        record.instance_id,
        at_s,
        found,
        record.priced_at_s,
        usd_per_hour,
        bill=line,
        next_committed=committed,
    )


def _is_first_price(record: NodeRecord, committed: Committed | None) -> bool:
    """Asked of a reservation or paid by a Savings Plan, it boots still, and no look has noted a
    price of EC2's.
    """
    is_fresh = record.priced_at_s is None and record.phase is Phase.LAUNCHED
    return is_fresh and (record.offering.market is Market.RESERVED or committed is not None)


def _sold_since_s(record: NodeRecord, cluster: Cluster, by_s: float) -> float:
    """Since when EC2 bills it by the hour: its launch, or the end of the reservation it was in."""
    ends = (r.ends_at_s for r in cluster.reservations if r.offering == record.offering)
    since = (end for end in ends if end is not None and record.launched_at_s < end <= by_s)
    return max(since, default=record.launched_at_s)


def spent(snapshot: Snapshot) -> dict[tuple[str, str], float]:
    """(period, scope) -> USD, of the present day and the present month."""
    present = {day_of(snapshot.now_s).name, month_of(snapshot.now_s).name}
    every = all_spent(snapshot)
    return {(each.period, each.scope): each.usd for each in every if each.period in present}


def all_spent(snapshot: Snapshot) -> tuple[Charge, ...]:
    """What nodes have cost to each scope in each month that the ledger still knows, and in the last
    days, with what those that live have cost until now; the newest period first.

    Of older days the ledger knows a part: a node is charged to the last days of its life alone.
    """
    now_s = snapshot.now_s
    whole_since = day_of(now_s - DAYS_CHARGED_S).name
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    living = (c for each in snapshot.nodes if each.ended_at_s is None for c in charges(each, now_s))
    for each in (*snapshot.spent, *living):
        if len(each.period) != len(whole_since) or each.period >= whole_since:
            found[each.period, each.scope] += each.usd
    ordered = sorted(found.items(), key=lambda item: item[0][1])
    ordered.sort(key=lambda item: item[0][0], reverse=True)
    return tuple(Charge(period, scope, usd) for (period, scope), usd in ordered)


def spending(snapshot: Snapshot) -> tuple[Spending, ...]:
    """Every budget of the cluster file and what is spent of it."""
    if not snapshot.cluster.budgets:
        return ()
    known, doubted = spent(snapshot), _doubted(snapshot)
    return tuple(
        Spending(scope, per, known.get(key, 0.0), usd, period.ends_at_s, doubted.get(key, 0.0))
        for scope, budget in sorted(snapshot.cluster.budgets.items())
        for per, period, usd in _of(budget, snapshot.now_s)
        for key in ((period.name, scope),)
    )


def used_up(snapshot: Snapshot) -> dict[str, WhyNot]:
    """Why nothing is launched for a scope: its budget is spent, or may be by what is in doubt. The
    longest such reason counts.
    """
    found: dict[str, WhyNot] = {}
    for each in sorted(spending(snapshot), key=lambda each: (each.is_spent, each.ends_at_s)):
        if each.usd + each.doubted_usd >= each.budget_usd:
            until_s = each.ends_at_s if each.is_spent else None
            said = each.stops if each.is_spent else each.may_stop
            found[each.scope] = WhyNot(Why.BUDGET, said, until_s=until_s)
    return found


def _doubted(snapshot: Snapshot) -> dict[tuple[str, str], float]:
    """(period, scope) -> USD that launches in doubt have cost at most, since they were recorded:
    all their nodes but those that the ledger has, at the price of the dearest offering.
    """
    noted = Counter(each.launch_id for each in snapshot.nodes)
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for record in snapshot.in_doubt:
        launch = record.launch
        count = max(launch.count - noted[launch.launch_id], 0)
        all_of_it = NodeRecord(
            instance_id=launch.launch_id,
            launch_id=launch.launch_id,
            pool=launch.pool,
            offering=launch.offerings[0],
            launched_at_s=record.created_at_s,
            usd_per_hour=count * launch.usd_per_hour_each,
            account=launch.account,
            user=snapshot.cluster.counted(launch.user),
        )
        for each in charges(all_of_it, snapshot.now_s):
            found[each.period, each.scope] += each.usd
    return found


def _of(budget: SpendingBudget, now_s: float) -> Iterator[tuple[str, Period, float]]:
    if budget.usd_per_day is not None:
        yield "day", day_of(now_s), budget.usd_per_day
    if budget.usd_per_month is not None:
        yield "month", month_of(now_s), budget.usd_per_month


def _periods(start_s: float, until_s: float) -> Iterator[Period]:
    """The days and months between, but for those that no budget asks for any more."""
    for of, charged_s in ((day_of, DAYS_CHARGED_S), (month_of, MONTHS_CHARGED_S)):
        at_s = max(start_s, until_s - charged_s)
        while at_s < until_s:
            period = of(at_s)
            yield period
            at_s = period.ends_at_s


def _period(start: datetime, end: datetime, name: str) -> Period:
    return Period(start.strftime(name), start.timestamp(), end.timestamp())
