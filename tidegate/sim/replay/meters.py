"""What a replay has spent of its cluster's budgets, and who bought when one was spent."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tidegate.core.model.cluster import CLUSTER_SCOPE, Cluster, payer_scopes, pool_scope
from tidegate.core.offers.spend import Period, day_of, month_of
from tidegate.sim.replay.state import EPOCH_S, Machine


@dataclass(slots=True)
class Meter:
    """The spending of one scope in the present day or month. Time only goes on."""

    period_of: Callable[[float], Period]
    budget_usd: float
    usd: float = 0.0
    usd_per_hour: float = 0.0
    at_s: float = EPOCH_S

    def run(self, to_s: float) -> None:
        while self.at_s < to_s:
            until_s = min(self.period_of(self.at_s).ends_at_s, to_s)
            self.usd += self.usd_per_hour * (until_s - self.at_s) / 3600.0
            self.at_s = until_s
            if self.period_of(until_s).starts_at_s == until_s:
                self.usd = 0.0

    @property
    def is_spent(self) -> bool:
        return self.usd >= self.budget_usd


def launches_over_budget(machines: Iterable[Machine], cluster: Cluster) -> int:
    """Nodes that were bought while a budget of theirs was spent.

    By the prices that the planner knows. What ends at an instant is gone before what begins.
    """
    meters = dict(_meters(cluster))
    if not meters:
        return 0
    changes: list[tuple[float, int, str, Machine]] = []
    for each in machines:
        assert each.ended_s is not None
        changes += [(each.launched_s, 1, each.name, each), (each.ended_s, -1, each.name, each)]
    found = 0
    for at_s, sign, _, machine in sorted(changes, key=lambda change: change[:3]):
        own = [meter for scope in _scopes(machine) for meter in meters.get(scope, ())]
        for meter in own:
            meter.run(at_s)
        found += sign > 0 and any(meter.is_spent for meter in own)
        for meter in own:
            meter.usd_per_hour += sign * machine.usd_per_hour
    return found


def _meters(cluster: Cluster) -> Iterator[tuple[str, list[Meter]]]:
    for scope, budget in cluster.budgets.items():
        asked = ((day_of, budget.usd_per_day), (month_of, budget.usd_per_month))
        yield scope, [Meter(of, usd) for of, usd in asked if usd is not None]


def _scopes(machine: Machine) -> tuple[str, ...]:
    payers = payer_scopes(machine.account, machine.user)
    return CLUSTER_SCOPE, pool_scope(machine.pool), *payers
