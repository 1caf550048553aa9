"""What Savings Plans pay of a replay's nodes, and what of them nobody uses."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.savings_plans import SavingsPlan
from tidegate.core.offers.savings_plans import OnDemand, cover
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
    begins: dict[float, list[OnDemand]] = {from_s: [], to_s: []}
    ends: dict[float, list[str]] = {}
    for each in machines:
        if each.offering.market is Market.ON_DEMAND:
            assert each.ended_s is not None
            one = OnDemand(each.name, each.offering.instance_type, each.launched_s)
            begins.setdefault(each.launched_s, []).append(one)
            ends.setdefault(each.ended_s, []).append(each.name)
    running: dict[str, OnDemand] = {}
    for at_s, next_s in pairwise(sorted({*begins, *ends})):
        running |= {one.name: one for one in begins.get(at_s, ())}
        for name in ends.get(at_s, ()):
            running.pop(name, None)
        found = cover(plans, running.values())
        yield Span(
            at_s,
            next_s,
            sum(each.saved_usd_per_hour for each in found.committed.values()),
            sum(found.left.values()),
        )
