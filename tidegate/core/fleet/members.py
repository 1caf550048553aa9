"""The fleet, joined by instance id: what ledger, EC2 and Slurm each say of one node."""

from tidegate.core.demand.where import reserving
from tidegate.core.model.ec2 import Instance, Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind, OrderOutcome, OrderResult
from tidegate.core.model.savings_plans import Committed
from tidegate.core.model.slurm import Job, Node, holders
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.savings_plans import covered

# EC2 takes any on-demand instance into an open reservation that it fits, and out at its end.
BILLED_ALIKE = (Market.RESERVED, Market.ON_DEMAND)


@frozen
class Member:
    """One instance id and its three views; at least `record` or `instance` is there.

    `jobs`: those that have the node, suspended and ending ones too. `reservation`: the one of
    Slurm's that names it, "": none. `committed`: what a Savings Plan pays of it as EC2 bills it
    now.
    """

    instance_id: str
    record: NodeRecord | None
    instance: Instance | None
    node: Node | None
    result: OrderResult | None
    jobs: tuple[Job, ...] = ()
    reservation: str = ""
    committed: Committed | None = None

    @property
    def is_busy(self) -> bool:
        """A job runs, ends, is suspended or is promised there; a DOWN node has lost its jobs."""
        if self.node is None:
            return False
        return self.node.state.is_busy or (bool(self.jobs) and not self.node.state.is_down)

    @property
    def is_idle(self) -> bool:
        return self.node is not None and not self.jobs and self.node.state.is_idle

    @property
    def offering(self) -> Offering:
        """As it was launched; whether an open reservation pays for it now EC2 alone knows."""
        known = self.record or self.instance
        assert known is not None, "a member comes from the ledger or from EC2"
        if self.instance is not None and known.offering.market in BILLED_ALIKE:
            return self.instance.offering
        return known.offering

    @property
    def pool(self) -> str:
        known = self.record or self.instance
        assert known is not None, "a member comes from the ledger or from EC2"
        return known.pool

    @property
    def launched_at_s(self) -> float:
        """When it began to run: the launch that the ledger knows, or a person's start after it."""
        known = [one.launched_at_s for one in (self.record, self.instance) if one is not None]
        assert known, "a member comes from the ledger or from EC2"
        return max(known)

    @property
    def template(self) -> str:
        """The digest of what it is made from; "": nobody knows."""
        found = self.record.template if self.record else ""
        return found or (self.instance.template if self.instance else "")

    @property
    def gated_for(self) -> str:
        return self.record.gated_for if self.record else ""

    def is_gone(self, now_s: float, describe_lag_s: float) -> bool:
        """EC2 has ended it. A fresh instance may be missing from Describe for a while, and one that
        was started a moment ago may still be shown as stopped.
        """
        if self.instance is not None:
            is_late = now_s - self.launched_at_s > describe_lag_s
            return not self.instance.is_alive and (is_late or not self.may_start)
        reclaim_at_s = self.record.reclaim_at_s if self.record else None
        if reclaim_at_s is not None and now_s < reclaim_at_s:
            return False  # one Describe that leaves it out must not cut its notice short
        return now_s - self.launched_at_s > describe_lag_s

    @property
    def may_start(self) -> bool:
        """A launch has started it, and EC2 still shows it stopped, or again."""
        is_started = self.record is not None and self.record.is_started
        is_stopped = self.instance is not None and self.instance.is_stopped
        return is_started and is_stopped and not self.found_no_room

    @property
    def found_no_room(self) -> bool:
        """EC2 took its launch or start, and had no room for it after all."""
        one = self.instance
        return self.was_booting and one is not None and not one.is_alive and one.lacked_room

    @property
    def was_booting(self) -> bool:
        """When the ledger last heard of it, or until EC2 announced its end, it still booted."""
        record = self.record
        if record is None:
            return False
        return Phase.LAUNCHED in (record.phase, record.interrupted_in)

    @property
    def may_boot(self) -> bool:
        """Neither EC2 nor Slurm shows it yet, and nobody has said that it ends."""
        is_launched = self.record is not None and self.record.phase is Phase.LAUNCHED
        return is_launched and self.instance is None and self.node is None

    @property
    def has_joined(self) -> bool:
        """Slurm knew it: it is written down, or that it was told to leave, by a planner that did
        not live to write down more. Drains may be ordered ahead of a node.
        """
        record = self.record
        if record is None:
            return False
        was_told = record.order is not None and record.order.kind is OrderKind.RELEASE
        return record.phase is Phase.JOINED or was_told

    @property
    def was_released(self) -> bool:
        """The head answered that Slurm has let it go."""
        done = (OrderKind.RELEASE, OrderOutcome.DONE)
        return self.result is not None and (self.result.kind, self.result.outcome) == done

    @property
    def is_let_go(self) -> bool:
        """Its instance may end: Slurm has deleted the node, or never knew it.

        What came beyond whole gangs is let go of at once, and may join where its planner died.
        """
        if self.was_released:
            return True
        is_released = self.record is not None and self.record.phase is Phase.RELEASED
        return is_released and self.node is None

    def was_just_ended(self, now_s: float, describe_lag_s: float) -> bool:
        """EC2 took the call that ends it, and may show it alive for a while all the same."""
        at_s = self.record.ended_at_s if self.record else None
        return at_s is not None and now_s - at_s <= describe_lag_s

    def has_order(self, kind: OrderKind, now_s: float) -> bool:
        """An order of this kind is on its way: neither answered nor expired."""
        order = self.record.order if self.record else None
        return (
            order is not None
            and order.kind is kind
            and self.result is None
            and now_s <= order.not_after_s
        )

    def was_told(self, kind: OrderKind, now_s: float) -> bool:
        """An order of this kind went out lately, answered or not: asking again is no use yet."""
        order = self.record.order if self.record else None
        return order is not None and order.kind is kind and now_s <= order.not_after_s

    def opened_for(self, now_s: float) -> str:
        """The job, or gang, that an order of late has opened it for; "": none."""
        if self.record is None or self.record.order is None:
            return ""
        return self.record.order.opens_for if self.was_told(OrderKind.UNDRAIN, now_s) else ""


def members(snapshot: Snapshot) -> tuple[Member, ...]:
    """Every node that is ours, by instance id. Slurm nodes of others are left out."""
    records = {record.instance_id: record for record in snapshot.nodes}
    instances = {instance.instance_id: instance for instance in snapshot.instances}
    digest = snapshot.digest
    nodes = {node.name: node for node in digest.reading.nodes} if digest else {}
    results = {(r.order_id, r.name): r for r in digest.results} if digest else {}
    jobs = holders(digest.reading.jobs) if digest else {}
    reserved = reserving(digest.reading.reservations, digest.written_at_s) if digest else {}
    coverage = covered(snapshot)
    joined: list[Member] = []
    for instance_id in sorted(records.keys() | instances.keys()):
        record = records.get(instance_id)
        order = record.order if record else None
        joined.append(
            Member(
                instance_id=instance_id,
                record=record,
                instance=instances.get(instance_id),
                node=nodes.get(instance_id),
                result=results.get((order.order_id, instance_id)) if order else None,
                jobs=tuple(jobs.get(instance_id, ())),
                reservation=reserved.get(instance_id, ""),
                committed=coverage.committed.get(instance_id),
            )
        )
    return tuple(joined)
