"""The invariant of limits, by what EC2 really runs."""

from collections import Counter

from tidegate.core.model.cluster import Limits
from tidegate.core.model.ec2 import Instance, Market
from tidegate.core.offers.savings_plans import totals
from tidegate.sim.chaos import PAUSE_MAX_S
from tidegate.sim.checks.witness import Check

SLACK_USD = 0.002


class LimitsHold(Check):
    """No limit of a pool or of the cluster is exceeded, counted by what EC2 really runs; where the
    market moves, by the prices that were known when it was decided, and where a Savings Plan pays
    for what ran then, by its rates.
    """

    def launched(self, instance: Instance) -> None:
        is_nobodys = self.witness.is_nobodys
        if is_nobodys(instance.instance_id):
            return
        live = tuple(one for one in self.world.compute.live() if not is_nobodys(one.instance_id))
        cluster = self.world.cluster
        pool = cluster.pool(instance.pool)
        self._hold("the cluster", cluster.limits, live, instance)
        if pool is None:
            raise self.broken(f"{instance.instance_id} is of pool {instance.pool!r}")
        here = tuple(one for one in live if one.pool == pool.name)
        self._hold(f"pool {pool.name}", pool.limits, here, instance)

    def _hold(
        self, what: str, limits: Limits, live: tuple[Instance, ...], newest: Instance
    ) -> None:
        cluster = self.world.cluster
        types = [cluster.instance_type(one.offering.instance_type) for one in live]
        gpus = sum(kind.gpus for kind in types if kind)
        if limits.nodes is not None and len(live) > limits.nodes:
            raise self.broken(f"{what} has {len(live)} nodes, its limit is {limits.nodes}")
        if limits.gpus is not None and gpus > limits.gpus:
            raise self.broken(f"{what} has {gpus} GPUs, its limit is {limits.gpus}")
        usd = self._usd_per_hour(live, newest)
        if limits.usd_per_hour is not None and usd > limits.usd_per_hour + SLACK_USD:
            said = f"{usd:.3f} USD per hour, its limit is {limits.usd_per_hour:.2f}"
            raise self.broken(f"{what} spends {said}")

    def _usd_per_hour(self, live: tuple[Instance, ...], newest: Instance) -> float:
        """At the prices of one moment, that of the decision: what rose or fell since is left out.

        Who finishes a launch decides anew. Where the newest is paid for already, and costs nothing
        more, the decision is that for the last of the others.
        """
        if not newest.offering.market.is_prepaid:
            viewed_at_s = self.witness.viewed_s.get(self.witness.depth, 0.0)
            decided_at_s = max(self._recorded_at_s(newest), viewed_at_s)
        else:
            live = tuple(one for one in live if not self._is_left_over(one))
            others = (one for one in live if not one.offering.market.is_prepaid)
            decided_at_s = max(map(self._recorded_at_s, others), default=0.0)
        usd = sum(self._usd_of(one, decided_at_s) for one in live)
        return usd - self._saved_usd(live, newest, decided_at_s)

    def _saved_usd(
        self, live: tuple[Instance, ...], newest: Instance, decided_at_s: float
    ) -> float:
        """What plans save at most of what ran beside the newest, which counts on demand: others of
        another pool may have had none of them. A plan that has ended since the decision is still
        counted: nobody could know, and what ran jumps to its price on demand.
        """
        now_s, running = self.witness.now_s, Counter[str]()
        for one in live:
            if one.instance_id != newest.instance_id and one.offering.market is Market.ON_DEMAND:
                running[one.offering.instance_type] += 1
        moments = decided_at_s - PAUSE_MAX_S, decided_at_s, now_s
        plans = [
            each
            for each in self.world.cluster.savings_plans
            if any(each.is_active(at_s) for at_s in moments)
        ]
        return totals(plans, running).saved

    def _usd_of(self, one: Instance, decided_at_s: float) -> float:
        cluster = self.world.cluster
        if one.offering not in cluster.estimates:
            return cluster.prices.get(one.offering, 0.0)
        at_s = max(decided_at_s, self._recorded_at_s(one))
        return min(self.witness.prices_about(one, at_s - PAUSE_MAX_S, at_s))

    def _recorded_at_s(self, one: Instance) -> float:
        record = self.world.ledger.all_launches.get(one.launch_id)
        return record.created_at_s if record else self.witness.now_s

    def _is_left_over(self, one: Instance) -> bool:
        """EC2 has billed it otherwise since its launch: its reservation has ended. That may be
        over a limit of USD per hour, and what is paid for already costs nothing more beside it.
        """
        return self.world.compute.billed[one.instance_id] > one.launched_at_s
