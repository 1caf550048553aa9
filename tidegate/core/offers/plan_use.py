"""What of each Savings Plan was used, day by day, by the cluster's own bill.

A commitment is by the clock's hour, and what of it nobody uses in that hour is lost. Others of the
account may have used it: AWS's bill says that, and for AWS's own `Unused` all of them count.
"""

from collections import defaultdict
from collections.abc import Iterable

from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Bill
from tidegate.core.model.savings_plans import PlanKind, SavingsPlan
from tidegate.core.offers.spend import SECONDS_PER_HOUR, day_of


@frozen
class PlanUse:
    """USD of the part of a plan's commitment that is this cluster's, on a day of UTC."""

    plan: str
    name: str
    kind: PlanKind
    day: str
    committed_usd: float
    used_usd: float

    @property
    def unused_usd(self) -> float:
        return self.committed_usd - self.used_usd


def plan_use(
    plans: Iterable[SavingsPlan], bills: Iterable[Bill], since_s: float, until_s: float
) -> tuple[PlanUse, ...]:
    """Of each plan and day between two moments on which it held."""
    paid: defaultdict[str, list[Bill]] = defaultdict(list)
    for bill in bills:
        if bill.committed:
            paid[bill.committed.plan].append(bill)
    found: list[PlanUse] = []
    for plan in sorted(plans, key=lambda each: each.arn):
        start_s, end_s = max(since_s, plan.starts_at_s), min(until_s, plan.ends_at_s)
        used = _by_hour(paid[plan.arn], start_s, end_s)
        days: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for hour in range(int(start_s // SECONDS_PER_HOUR), -int(-end_s // SECONDS_PER_HOUR)):
            from_s = max(hour * SECONDS_PER_HOUR, start_s)
            to_s = min((hour + 1) * SECONDS_PER_HOUR, end_s)
            committed_usd = plan.usd_per_hour * (to_s - from_s) / SECONDS_PER_HOUR
            day = days[day_of(from_s).name]
            day[0] += committed_usd
            day[1] += min(used.get(hour, 0.0), committed_usd)
        known = plan.arn, plan.name, plan.kind
        found += [PlanUse(*known, day, *usd) for day, usd in sorted(days.items())]
    return tuple(found)


def _by_hour(bills: Iterable[Bill], start_s: float, end_s: float) -> dict[int, float]:
    """USD of the commitment that nodes used, by the clock's hour since 1970."""
    found: defaultdict[int, float] = defaultdict(float)
    for bill in bills:
        assert bill.committed is not None
        at_s, until_s = max(bill.since_s, start_s), min(bill.until_s, end_s)
        while at_s < until_s:
            hour = int(at_s // SECONDS_PER_HOUR)
            next_s = min((hour + 1) * SECONDS_PER_HOUR, until_s)
            found[hour] += (next_s - at_s) / SECONDS_PER_HOUR * bill.committed.usd_per_hour
            at_s = next_s
    return dict(found)
