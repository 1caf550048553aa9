"""What Savings Plans pay of a replay's nodes, and what of them nobody uses."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.savings_plans import SavingsPlan
from tidegate.core.offers.savings_plans import totals
from tidegate.sim.replay.state import Machine

HOUR_S = 3600.0
SAVED, UNUSED = "Savings Plans saved", "Savings Plans unused"


def throughout(cluster: Cluster) -> Cluster:
    """A history has days of its own: its Savings Plans hold on all of them."""
    plans = tuple(replace(each, starts_at_s=-inf, ends_at_s=inf) for each in cluster.savings_plans)
    return replace(cluster, savings_plans=plans) if plans else cluster


@frozen
class Span:
    """USD per hour from one moment to another: what nodes cost less than on demand, and what is
    committed to and not used.
    """

    from_s: float
    to_s: float
    saved: float
    unused: float

    def within(self, from_s: float, to_s: float) -> tuple[float, float]:
        """USD of both between two moments."""
        hours = max(min(self.to_s, to_s) - max(self.from_s, from_s), 0.0) / HOUR_S
        return self.saved * hours, self.unused * hours


@frozen
class PlansPaid:
    """What plans paid in a replay; without plans nothing."""

    spans: tuple[Span, ...] = ()

    def usd(self, from_s: float = -inf, to_s: float = inf) -> tuple[float, float]:
        """What was saved, and what was committed to and not used."""
        found = [each.within(from_s, to_s) for each in self.spans]
        return sum(saved for saved, _ in found), sum(unused for _, unused in found)

    def saved_at(self, at_s: float) -> float:
        """USD per hour from this moment on."""
        place = bisect_right(self.spans, at_s, key=lambda span: span.from_s) - 1
        return self.spans[place].saved if place >= 0 and at_s < self.spans[place].to_s else 0.0


def plans_paid(
    machines: Sequence[Machine], plans: Sequence[SavingsPlan], from_s: float, to_s: float
) -> PlansPaid:
    """Of nodes that have ended, between two moments."""
    return PlansPaid(tuple(_spans(machines, plans, from_s, to_s))) if plans else PlansPaid()


def _spans(
    machines: Sequence[Machine], plans: Sequence[SavingsPlan], from_s: float, to_s: float
) -> Iterator[Span]:
    changes: dict[float, Counter[str]] = {from_s: Counter(), to_s: Counter()}
    for each in machines:
        if each.offering.market is Market.ON_DEMAND:
            assert each.ended_s is not None
            of = each.offering.instance_type
            changes.setdefault(each.launched_s, Counter())[of] += 1
            changes.setdefault(each.ended_s, Counter())[of] -= 1
    running: Counter[str] = Counter()
    for at_s, next_s in pairwise(sorted(changes)):
        running.update(changes[at_s])
        found = totals(plans, running)
        yield Span(at_s, next_s, found.saved, found.unused)
