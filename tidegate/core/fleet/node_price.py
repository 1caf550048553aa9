"""What an hour of a node costs now: for whoever decides by it, and whoever shows it."""

from tidegate.core.fleet.members import Member
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ledger import NodeRecord
from tidegate.core.model.savings_plans import Committed
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.market import DIGITS
from tidegate.core.offers.savings_plans import is_covered_by_any

# A running node's price is noted anew where it changed by more.
PRICE_CHANGE = 0.02


def is_billed(member: Member) -> bool:
    """EC2 shows it alive, or is still about to show it."""
    if member.instance is not None:
        return member.instance.is_alive
    return member.record is not None and member.record.phase.is_alive


def usd_per_hour(snapshot: Snapshot, member: Member) -> float:
    """What an hour of the node costs; nothing where it is paid for in advance, and where a Savings
    Plan covers it the plan's rate.
    """
    record, offering = member.record, member.offering
    if record and member.instance is None:  # EC2 does not say how it bills it now
        return record.usd_per_hour
    if offering.market.is_prepaid:
        return 0.0
    if is_covered_by_any(snapshot.cluster, offering) or (record and record.committed):
        return _beside_plans(snapshot, member)
    is_as_bought = record and record.priced_at_s is None and record.offering == offering
    if record and (is_as_bought or offering.market is Market.SPOT):
        return _market_usd(snapshot.cluster, record)
    return snapshot.cluster.prices.get(offering, record.usd_per_hour if record else 0.0)


def marginal_usd_per_hour(snapshot: Snapshot, member: Member) -> float:
    """What an hour less of the node saves: what a Savings Plan pays of it is paid all the same."""
    paid = committed(member)
    return max(usd_per_hour(snapshot, member) - (paid.usd_per_hour if paid else 0.0), 0.0)


def _market_usd(cluster: Cluster, record: NodeRecord) -> float:
    """EC2 bills a running instance at the price of now, which for a node bought before the market
    was read was a guess. Small changes make no record.

    Source: EC2 user guide, "Billing for Spot Instances".
    """
    known = record.usd_per_hour
    if record.offering not in cluster.quoted:
        return known
    now = cluster.prices[record.offering]
    return now if abs(now - known) > PRICE_CHANGE * known else known


def committed(member: Member) -> Committed | None:
    """The part of that which a Savings Plan pays; None: none."""
    if member.instance is None:
        return member.record.committed if member.record else None
    return member.committed


def _beside_plans(snapshot: Snapshot, member: Member) -> float:
    """On demand, less what a plan saves of it now. Small changes of the market make no record."""
    record, paid = member.record, member.committed
    known = record.usd_per_hour if record else 0.0
    usd = _on_demand_usd(snapshot.cluster, member)
    if paid:
        usd = max(usd - paid.saved_usd_per_hour, paid.usd_per_hour)
    assert usd >= 0, f"{member.instance_id} costs {usd} USD per hour"
    is_as_noted = record is not None and record.committed == paid
    is_near = abs(usd - known) <= PRICE_CHANGE * known
    return known if is_as_noted and is_near else round(usd, DIGITS)


def _on_demand_usd(cluster: Cluster, member: Member) -> float:
    """Without a plan. What no pool buys any more has no price: then it costs what it does in
    another zone, or did when its price was noted.
    """
    of = member.offering
    if of in cluster.prices:
        return cluster.prices[of]
    elsewhere = [
        usd
        for each, usd in cluster.prices.items()
        if (each.instance_type, each.market) == (of.instance_type, of.market)
    ]
    record = member.record
    saved_usd = record.committed.saved_usd_per_hour if record and record.committed else 0.0
    return min(elsewhere, default=record.usd_per_hour + saved_usd if record else 0.0)
