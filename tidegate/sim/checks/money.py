"""What the ledger says was spent, against what EC2 really ran."""

from math import isclose

from tidegate.core.ec2 import FleetRequest, Instance
from tidegate.core.pool import CLUSTER_SCOPE
from tidegate.service.control import Looked
from tidegate.sim.checks.witness import Check, Witness

SECONDS_PER_HOUR = 3600.0
MONTH_CHARS = len("2026-11")
COUNTED_LATE_S = 180.0


class SpendIsNodeTime(Check):
    """What is counted as spent is the time of nodes that ended times their price, each once."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self._ended_at_s: dict[str, float] = {}

    def ended(self, instance: Instance) -> None:
        self._ended_at_s[instance.instance_id] = self.witness.now_s

    def looked(self, looked: Looked) -> None:
        ledger, usd = self.world.ledger, 0.0
        for each in ledger.all_nodes.values():
            if each.ended_at_s is None:
                continue
            ended_at_s = self._ended_at_s.get(each.instance_id)
            if ended_at_s is None:
                raise self.broken(f"{each.instance_id} runs and is counted as ended")
            # A planner counts by the moment of its look, and lives a while after it.
            left_s = ended_at_s - each.ended_at_s
            if left_s > self.world.cluster.timings.apply_lease_s and each.reclaim_at_s is None:
                raise self.broken(f"{each.instance_id} ran {left_s:.0f} s more than is counted")
            usd += (each.ended_at_s - each.launched_at_s) / SECONDS_PER_HOUR * each.usd_per_hour
        counted = sum(
            each.usd
            for each in ledger.all_spent.values()
            if each.scope == CLUSTER_SCOPE and len(each.period) == MONTH_CHARS
        )
        if not isclose(counted, usd, rel_tol=1e-9, abs_tol=1e-9):
            raise self.broken(f"{counted:.6f} USD are counted, the nodes cost {usd:.6f}")


class NothingOverBudget(Check):
    """Nothing new is bought minutes after the cluster's budget of the day was spent."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self._ended_at_s: dict[str, float] = {}

    def ended(self, instance: Instance) -> None:
        self._ended_at_s[instance.instance_id] = self.witness.now_s

    def requested(self, request: FleetRequest) -> None:
        record, budget = (
            self.witness.record_of(request),
            self.world.cluster.budgets.get(CLUSTER_SCOPE),
        )
        if budget is None or record is None or not self.witness.is_new(request):
            return
        # What ended while nobody could look, or is not in the ledger yet, counts a little later.
        spent = self._spent(record.created_at_s - COUNTED_LATE_S)
        if budget.usd_per_day is not None and spent > budget.usd_per_day:
            said = (
                f"{spent:.3f} USD of {budget.usd_per_day} were spent {COUNTED_LATE_S:.0f} s before"
            )
            raise self.broken(f"{request.client_token} is asked for, {said}")

    def _spent(self, until_s: float) -> float:
        prices, found = self.world.cluster.prices, 0.0
        for name, one in self.world.compute.everything.items():
            ends_at_s = min(self._ended_at_s.get(name, until_s), until_s)
            hours = max(ends_at_s - one.launched_at_s, 0.0) / SECONDS_PER_HOUR
            found += hours * prices.get(one.offering, 0.0)
        return found
