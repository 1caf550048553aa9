"""What Savings Plans pay: which nodes they cover, what is left of them, what the next node costs.

AWS shares a plan out anew each hour, over all on-demand use that it covers and whoever's that is:
so no node is in a plan, as one is in a reservation, and beyond the commitment all is billed on
demand. Source: Savings Plans user guide, "How Savings Plans apply to your usage": plans for EC2
instances before those for compute; of use what saves the largest part first, then the lowest rate.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import partial
from math import ceil

from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.durations import span
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import LaunchStatus
from tidegate.core.model.savings_plans import Committed, PlanKind, PlanRate, SavingsPlan
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.reservations import billed_as

# What is left of a commitment costs nothing more. What a node uses of it, and its disk beside,
# count with this part, below any price of spot: of two types that one is cheaper that uses less.
USED_COUNTS = 0.02

# A sum of rates, each with six decimals, may miss the commitment by that.
SLACK_USD = 1e-6

# Of equal discounts floats make shares that differ in their last digits.
SHARE_DIGITS = 9

# A plan that follows is a purchase that somebody has to decide.
ENDS_SOON_S = 14 * 86_400.0


@frozen
class OnDemand:
    """An instance that is billed on demand since a moment."""

    name: str
    instance_type: str
    since_s: float


@frozen
class Coverage:
    """By instance what a plan pays of it; by the ARN of a plan what is left of it, in USD per
    hour.
    """

    committed: Mapping[str, Committed] = field(default_factory=dict)
    left: Mapping[str, float] = field(default_factory=dict)


NOTHING = Coverage()


def cover(plans: Iterable[SavingsPlan], running: Iterable[OnDemand]) -> Coverage:
    """Which of what runs these plans cover. Of a node that is covered in part another plan covers
    nothing.
    """
    committed: dict[str, Committed] = {}
    left: dict[str, float] = {}
    uncovered = list(running)
    for plan in _in_order(plans):
        room = plan.usd_per_hour
        theirs = (each for each in uncovered if each.instance_type in plan.rates)
        for each in sorted(theirs, key=partial(_turn, plan)):
            rate = plan.rates[each.instance_type]
            num, usd = _used(rate, room, 1)
            if not num:
                break
            saved_usd = rate.saved_usd_per_hour * usd / rate.usd_per_hour
            committed[each.name] = Committed(plan.arn, round(usd, 6), saved_usd)
            room -= usd
        left[plan.arn] = room
        uncovered = [each for each in uncovered if each.name not in committed]
    return Coverage(committed, left)


@frozen
class Totals:
    """Of all nodes and plans in USD per hour: what nodes cost less than on demand, and what is
    committed to and not used.
    """

    saved: float = 0.0
    unused: float = 0.0


def totals(plans: Iterable[SavingsPlan], running: Mapping[str, int]) -> Totals:
    """As `cover` does for each node, of so many nodes on demand by instance type."""
    uncovered, saved_usd, unused_usd = dict(running), 0.0, 0.0
    for plan in _in_order(plans):
        room = plan.usd_per_hour
        theirs = (each for each, count in uncovered.items() if count and each in plan.rates)
        for each in sorted(theirs, key=partial(_type_turn, plan)):
            rate = plan.rates[each]
            num, usd = _used(rate, room, uncovered[each])
            uncovered[each] -= num
            saved_usd += rate.saved_usd_per_hour * usd / rate.usd_per_hour
            room -= usd
        unused_usd += room
    return Totals(saved_usd, unused_usd)


def _in_order(plans: Iterable[SavingsPlan]) -> list[SavingsPlan]:
    return sorted(plans, key=lambda each: (each.kind is PlanKind.COMPUTE, each.arn))


def _used(rate: PlanRate, room: float, count: int) -> tuple[int, float]:
    """How many of so many equal nodes the rest of a commitment covers, the last one maybe in part,
    and what they use of it.
    """
    num = min(count, max(ceil((room - SLACK_USD) / rate.usd_per_hour), 0))
    return num, min(num * rate.usd_per_hour, room)


def _turn(plan: SavingsPlan, each: OnDemand) -> tuple[float, float, str, float, str]:
    return *_type_turn(plan, each.instance_type), each.since_s, each.name


def _type_turn(plan: SavingsPlan, instance_type: str) -> tuple[float, float, str]:
    rate = plan.rates[instance_type]
    return -round(rate.saved_share, SHARE_DIGITS), rate.usd_per_hour, instance_type


def covered(snapshot: Snapshot) -> Coverage:
    """What the plans pay of the nodes that EC2 bills on demand now."""
    if not snapshot.cluster.savings_plans:
        return NOTHING
    plans = (each for each in snapshot.cluster.savings_plans if each.is_active(snapshot.now_s))
    return cover(plans, _running(snapshot))


def _running(snapshot: Snapshot) -> Iterator[OnDemand]:
    """One Describe may leave out what lives."""
    shown = set[str]()
    for one in snapshot.instances:
        shown.add(one.instance_id)
        if one.is_alive and one.offering.market is Market.ON_DEMAND:
            yield OnDemand(one.instance_id, one.offering.instance_type, one.launched_at_s)
    for record in snapshot.nodes:
        is_up = record.phase.is_alive and record.stopped_at_s is None
        if is_up and record.instance_id not in shown:
            of = billed_as(record)
            if of.market is Market.ON_DEMAND:
                yield OnDemand(record.instance_id, of.instance_type, record.launched_at_s)


def is_covered_by_any(cluster: Cluster, offering: Offering) -> bool:
    """Whether some plan of the file, over or not, has a rate for it."""
    return offering.market is Market.ON_DEMAND and any(
        offering.instance_type in each.rates for each in cluster.savings_plans
    )


def plan_troubles(cluster: Cluster, now_s: float) -> Iterator[str]:
    """What a person should know of the plans: when they end, nodes cost more from one hour to the
    next.
    """
    for each in cluster.savings_plans:
        left_s = each.ends_at_s - now_s
        if left_s <= 0:
            yield (
                f"{each.name} has ended, and what it covered costs what it does on demand: take it"
                " out of savings_plans, or name the one that follows it"
            )
        elif left_s < ENDS_SOON_S:
            yield (
                f"{each.name} ends in {span(left_s)}, and what it covers costs what it does on"
                " demand from then on: add the one that follows it to savings_plans"
            )


class Commitments:
    """What is left of each plan in this plan of ours, in USD per hour."""

    def __init__(self, snapshot: Snapshot) -> None:
        cluster, now_s = snapshot.cluster, snapshot.now_s
        left = covered(snapshot).left
        # What ends while a planner still acts may not pay for what it buys.
        until_s = now_s + cluster.timings.apply_lease_s
        self._cluster = cluster
        self._plans = {
            each.arn: each
            for each in cluster.savings_plans
            if left.get(each.arn, 0.0) > SLACK_USD and each.is_active(until_s)
        }
        self._left = {arn: left[arn] for arn in self._plans}
        for plan in self._plans.values() if snapshot.in_doubt else ():
            self._left[plan.arn] -= _doubted_usd(snapshot, plan)
        self._at_first = dict(self._left)

    def plans(self, pool: Pool) -> Iterator[str]:
        """Those that something is left of, for a type that the pool buys on demand."""
        if Market.ON_DEMAND in pool.markets:
            for arn, plan in self._plans.items():
                has_room = self._left[arn] > SLACK_USD
                if has_room and any(each.name in plan.rates for each in pool.instance_types):
                    yield arn

    def usd_per_hour(self, arn: str, offering: Offering) -> float | None:
        """What one node costs beyond the plan, and for a choice among equals a little for what it
        uses of it; None: the plan does not cover it, or nobody sells it.
        """
        rate = self._plans[arn].rates.get(offering.instance_type)
        usd = self._cluster.prices.get(offering, 0.0)
        if rate is None or usd <= 0:
            return None
        part = min(self._at_first[arn] / rate.usd_per_hour, 1.0)
        covered_usd = usd - rate.saved_usd_per_hour
        return part * covered_usd * USED_COUNTS + (1 - part) * usd

    def places(self, arn: str, instance_type: str, *, drawn_usd: float = 0.0) -> int:
        """How many such nodes are left of the plan beside what is drawn already; one, of a type
        that all of it would not pay for, as long as nothing else is bought of it.
        """
        rate, left = self._plans[arn].rates[instance_type], self._left[arn] - drawn_usd
        if rate.usd_per_hour > self._at_first[arn] + SLACK_USD:
            return int(left >= self._at_first[arn] - SLACK_USD)
        return int((left + SLACK_USD) / rate.usd_per_hour)

    def rate_usd(self, arn: str, instance_type: str) -> float:
        """What such a node uses of the plan."""
        return self._plans[arn].rates[instance_type].usd_per_hour

    def take(self, instance_type: str, count: int, arn: str = "") -> None:
        """Count what is bought for this plan; `arn` "": for none, and one of them covers it as far
        as it goes.
        """
        covering = (each.arn for each in self._plans.values() if instance_type in each.rates)
        if of := arn or next(covering, ""):
            self._left[of] -= count * self.rate_usd(of, instance_type)

    def why(self, arn: str) -> str:
        """The clause for people; "": of no plan."""
        if not arn:
            return ""
        plan = self._plans[arn]
        return (
            f"{plan.name} has paid for what it uses of {plan.usd_per_hour:.2f} USD per hour, of"
            f" which {self._at_first[arn]:.2f} were unused"
        )


def _doubted_usd(snapshot: Snapshot, plan: SavingsPlan) -> float:
    """What launches in doubt may use of it beside what EC2 shows of them."""
    usd = 0.0
    for record in snapshot.launches:
        launch = record.launch
        rate = plan.rates.get(launch.offerings[0].instance_type)
        is_in_doubt = record.status is LaunchStatus.RECORDED
        if is_in_doubt and rate and launch.offerings[0].market is Market.ON_DEMAND:
            known = {
                each.instance_id for each in snapshot.nodes if each.launch_id == launch.launch_id
            }
            known |= {e.instance_id for e in snapshot.instances if e.launch_id == launch.launch_id}
            usd += max(launch.count - len(known), 0) * rate.usd_per_hour
    return usd
