"""What the ledger says was spent, against what EC2 really ran."""

from collections.abc import Iterable
from math import isclose

from tidegate.core.fleet.node_price import PRICE_CHANGE
from tidegate.core.model.cluster import CLUSTER_SCOPE, Cluster, user_scope
from tidegate.core.model.ec2 import FleetRequest, Instance, Market
from tidegate.core.model.ledger import Bill, NodeRecord
from tidegate.core.model.savings_plans import SavingsPlan
from tidegate.core.offers.spend import day_of
from tidegate.service.control import Looked
from tidegate.sim.chaos import PAUSE_MAX_S
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.ledger import SimLedger

SECONDS_PER_HOUR = 3600.0
MONTH_CHARS = len("2026-11")
COUNTED_LATE_S = 180.0
PAID_SLACK_USD, ROUNDED_USD = 1e-4, 2e-6
STOP_IN_DOUBT_S = 105.0  # so long a node that was told to stop is told again, and not counted


def cost(ledger: SimLedger, node: NodeRecord, until_s: float) -> float:
    """USD of a node until then: its time at each price that the ledger has held for it."""
    return cost_at(node, ledger.all_prices.get(node.instance_id, ()), until_s)


def cost_at(node: NodeRecord, prices: Iterable[tuple[float, float]], until_s: float) -> float:
    """USD of a node until then, `prices`: until when it cost how many before its present one."""
    since_s, usd = node.launched_at_s, 0.0
    for at_s, usd_per_hour in (*prices, (until_s, node.usd_per_hour)):
        usd += max(min(at_s, until_s) - since_s, 0.0) / SECONDS_PER_HOUR * usd_per_hour
        since_s = max(at_s, since_s)
    return usd


def hours(line: Bill) -> float:
    return (line.until_s - line.since_s) / SECONDS_PER_HOUR


class PricesFollowEc2(Check):
    """A look leaves no node that it saw with another price than that by which EC2 bills it, and no
    price counts before EC2 bills by it.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self._priced_at_s: dict[str, float | None] = {}

    def looked(self, looked: Looked) -> None:
        if looked.trouble or not looked.rounds or looked.rounds[-1].outcome.is_stale:
            return
        compute, ledger, snapshot = (
            self.world.compute,
            self.world.ledger,
            looked.rounds[-1].snapshot,
        )
        prices, quoted = snapshot.cluster.prices, snapshot.cluster.quoted
        recorded = {record.instance_id for record in snapshot.nodes}
        for shown in snapshot.instances:
            name = shown.instance_id
            node, one = ledger.all_nodes.get(name), compute.everything[name]
            is_alive = shown.is_alive and compute.is_live(name)
            if node is None or name not in recorded or not is_alive or node.ended_at_s is not None:
                continue
            is_old = snapshot.seen_market != ledger.seen_market
            stopped_s = snapshot.now_s - (node.stopped_at_s or 0.0)
            if stopped_s < STOP_IN_DOUBT_S:
                continue
            if one.offering != shown.offering or snapshot.now_s < compute.billed[name] or is_old:
                continue  # that was while it looked; another look may have noted what was between
            usd = prices.get(one.offering, 0.0) - _saved_usd(node, snapshot.cluster)
            slack = PRICE_CHANGE * node.usd_per_hour if one.offering in quoted else 0.0
            # While nobody says a price, the last that was said is better than a guess.
            is_silence = one.offering in snapshot.cluster.estimates and not slack
            since_s = one.launched_at_s - PAUSE_MAX_S
            known = self.witness.prices_read(one.offering, since_s, snapshot.now_s)
            is_kept = is_silence and node.usd_per_hour in known
            # The ledger rounds what a plan pays, and the rest.
            slack += ROUNDED_USD if node.committed else 0.0
            if abs(node.usd_per_hour - usd) > slack and not is_kept:
                raise self.broken(f"{name} costs {usd}, the ledger holds {node.usd_per_hour}")
            # Another price that came and went between two looks nobody can know of.
            is_new = node.priced_at_s != self._priced_at_s.get(name)
            self._priced_at_s[name] = node.priced_at_s
            since_s = compute.billed[name] - PAUSE_MAX_S if is_new else 0.0
            # From its launch: a plan pays for what nobody knew to be in a reservation before.
            is_from_launch = node.committed and node.priced_at_s == node.launched_at_s
            if node.priced_at_s is not None and node.priced_at_s < since_s and not is_from_launch:
                early_s = compute.billed[name] - node.priced_at_s
                raise self.broken(f"{name} is counted at {usd} USD {early_s:.0f} s too early")


def _saved_usd(node: NodeRecord, cluster: Cluster) -> float:
    """What the node costs less since a Savings Plan pays a part of it."""
    if node.committed is None:
        return 0.0
    of = node.offering.instance_type
    rate = next(e for e in cluster.savings_plans if e.arn == node.committed.plan).rates[of]
    return rate.saved_usd_per_hour * node.committed.usd_per_hour / rate.usd_per_hour


class PlansPayWhatRuns(Check):
    """A look leaves no Savings Plan unused that a node on demand which it saw could use, and none
    that pays more than it commits to.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self._overlapped: set[int] = set()  # looks within which another one began, by depth

    def begun(self) -> None:
        self._overlapped.discard(self.witness.depth)
        self._overlapped.update(range(1, self.witness.depth))

    def looked(self, looked: Looked) -> None:
        if looked.trouble or not looked.rounds or looked.rounds[-1].outcome.is_stale:
            return
        snapshot, ledger = looked.rounds[-1].snapshot, self.world.ledger
        recorded = {record.instance_id for record in snapshot.nodes}
        seen = {
            one.instance_id: one.offering.instance_type
            for one in snapshot.instances
            if one.is_alive and one.offering.market is Market.ON_DEMAND
            if one.instance_id in recorded
        }
        nodes = [node for name in seen if (node := ledger.all_nodes.get(name))]
        nodes = [node for node in nodes if node.ended_at_s is None and node.stopped_at_s is None]
        # What EC2 did not show, or ends by this very look, may have had its part of a plan until
        # then; so has the node of another look that is none of this one's.
        others = (*snapshot.nodes, *(n for n in ledger.all_nodes.values() if n.committed))
        hidden = any(
            each.ended_at_s is None and each.offering.market is Market.ON_DEMAND
            for each in others
            if each.instance_id not in seen
        )
        for plan in snapshot.cluster.savings_plans:
            paid = sum(_paid_usd(plan, each) for each in nodes)
            # Its time may be over since, and another look have noted that.
            active = [plan.is_active(at_s) for at_s in (snapshot.now_s, self.witness.now_s)]
            most = plan.usd_per_hour if any(active) else 0.0
            rates = [plan.rates[of] for of in seen.values() if of in plan.rates]
            if paid > most + PAID_SLACK_USD:
                raise self.broken(f"{plan.name} pays {paid:.4f} USD per hour of {most:.4f}")
            if len(nodes) < len(seen) or hidden or snapshot.in_doubt or not all(active):
                continue  # what ends, is in doubt, or is not shown by EC2 may have used it
            if self.witness.depth > 1 or self.witness.depth in self._overlapped:
                continue  # each of two looks may have noted another node, which the next mends
            could = min(most, sum(rate.usd_per_hour for rate in rates))
            if paid < could - PAID_SLACK_USD:
                raise self.broken(f"{plan.name} pays {paid:.4f} USD per hour, could {could:.4f}")


def _paid_usd(plan: SavingsPlan, node: NodeRecord) -> float:
    paid = node.committed
    return paid.usd_per_hour if paid is not None and paid.plan == plan.arn else 0.0


class SpendIsNodeTime(Check):
    """What is counted as spent is the time of nodes that ended, or got another price, at each price
    that they had, each once.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self._ended_at_s: dict[str, float] = {}

    def launched(self, instance: Instance) -> None:
        self._ended_at_s.pop(instance.instance_id, None)  # it was stopped

    def ended(self, instance: Instance) -> None:
        self._ended_at_s[instance.instance_id] = self.witness.now_s

    def looked(self, looked: Looked) -> None:
        ledger, usd = self.world.ledger, 0.0
        for former, prices in ledger.all_former:
            if former.ended_at_s is None:
                raise self.broken(f"{former.instance_id} was started, its stop is not counted")
            usd += cost_at(former, prices, former.ended_at_s)
        for each in ledger.all_nodes.values():
            if each.ended_at_s is None:
                if each.priced_at_s is not None:
                    usd += cost(ledger, each, each.priced_at_s)
                continue
            if each.stopped_at_s is not None:  # it may run again, and is a new node in a moment
                usd += cost(ledger, each, each.ended_at_s)
                continue
            ended_at_s = self._ended_at_s.get(each.instance_id)
            if ended_at_s is None:
                raise self.broken(f"{each.instance_id} runs and is counted as ended")
            # A planner counts by the moment of its look, and lives a while after it.
            left_s = ended_at_s - each.ended_at_s
            if left_s > self.world.cluster.timings.apply_lease_s and each.reclaim_at_s is None:
                raise self.broken(f"{each.instance_id} ran {left_s:.0f} s more than is counted")
            # A node that outlives its reclaim may still get another price.
            usd += cost(ledger, each, max(each.ended_at_s, each.priced_at_s or 0.0))
        counted = sum(
            each.usd
            for each in ledger.all_spent.values()
            if each.scope == CLUSTER_SCOPE and len(each.period) == MONTH_CHARS
        )
        if not isclose(counted, usd, rel_tol=1e-9, abs_tol=1e-9):
            raise self.broken(f"{counted:.6f} USD are counted, the nodes cost {usd:.6f}")
        billed = sum(hours(line) * line.usd_per_hour for line in ledger.all_bills)
        if not isclose(counted, billed, rel_tol=1e-9, abs_tol=1e-9):
            raise self.broken(f"{counted:.6f} USD are counted, {billed:.6f} are on the bill")


class NothingOverBudget(Check):
    """Nothing new is bought minutes after the budget of the day was spent, of the cluster or of the
    user for whose job it would be.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self._ended_at_s: dict[str, float] = {}

    def launched(self, instance: Instance) -> None:
        self._ended_at_s.pop(instance.instance_id, None)  # it was stopped

    def ended(self, instance: Instance) -> None:
        self._ended_at_s[instance.instance_id] = self.witness.now_s

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        if record is None or not self.witness.is_new(request):
            return
        user = record.launch.user
        for scope, whose in ((CLUSTER_SCOPE, None), (user_scope(user), user)):
            budget = self.world.cluster.budgets.get(scope)
            if budget is None or budget.usd_per_day is None:
                continue
            # What ended while nobody could look, or is not in the ledger yet, counts later.
            since_s = day_of(record.created_at_s).starts_at_s
            spent = self._spent(since_s, record.created_at_s - COUNTED_LATE_S, whose)
            if spent > budget.usd_per_day:
                said = f"{spent:.3f} USD of {budget.usd_per_day} of {scope} were spent"
                said += f" {COUNTED_LATE_S:.0f} s before"
                raise self.broken(f"{request.client_token} is asked for, {said}")

    def _spent(self, since_s: float, until_s: float, user: str | None) -> float:
        """By EC2's prices; a new one counts from the look that noted it (`PricesFollowEc2`).

        `user` None: of all nodes, else of those that were launched for his jobs.
        """
        prices, ledger, found = self.world.priced.prices, self.world.ledger, 0.0
        for former, held in ledger.all_former:
            if user in (None, self._user(former.launch_id)):
                ends_at_s = min(former.ended_at_s or until_s, until_s)
                before = cost_at(former, held, min(since_s, ends_at_s))
                found += cost_at(former, held, ends_at_s) - before
        for name, one in self.world.compute.everything.items():
            node = ledger.all_nodes.get(name)
            # Tags of a start are set whatever comes of it.
            if user not in (None, self._user((node or one).launch_id)):
                continue
            ends_at_s = min(self._ended_at_s.get(name, until_s), until_s)
            if node:
                before = cost(ledger, node, min(since_s, ends_at_s))
                found += cost(ledger, node, ends_at_s) - before
            else:
                hours = max(ends_at_s - max(one.launched_at_s, since_s), 0.0) / SECONDS_PER_HOUR
                found += hours * prices.get(one.offering, 0.0)
        return found

    def _user(self, launch_id: str) -> str | None:
        record = self.world.ledger.all_launches.get(launch_id)
        return record.launch.user if record else None
