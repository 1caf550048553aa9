"""News of EC2 and AWS Health about our nodes: what cannot wait is ordered at once.

What goes in minutes, or is dead, is drained or deleted before anything else is written.
Replacing the nodes is the next look's work.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from tidegate.core.interruption.loss import interruption_losses
from tidegate.core.interruption.policy import (
    Dead,
    Lift,
    NewsAction,
    Nothing,
    Reclaim,
    action_for,
    strongest,
    tighter,
    when_it_goes_already,
)
from tidegate.core.interruption.save import (
    InterruptionNotice,
    after_loss,
    order_for_nodes,
    orders_for,
    saves,
)
from tidegate.core.model.cluster import Cluster, Rebalance
from tidegate.core.model.drain_reason import DrainReason
from tidegate.core.model.errors import TidegateError
from tidegate.core.model.events import (
    GpuReset,
    News,
    NodeOrphaned,
    RebalanceRecommendation,
    said_at_s,
    subjects,
)
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import NOT_TAKEN, Cordon, InterruptionLoss, NodeRecord, Phase
from tidegate.core.model.orders import Order, OrderKind, PendingOrder, plan_of
from tidegate.core.model.slurm import Reading
from tidegate.ports import Bus, Clock, Ledger
from tidegate.service.boot_failures import boot_failures, late_words, rest_failed

NO_LOSS = InterruptionLoss()


@frozen
class Interrupted:
    """What a batch of news did, by nodes that are ours; `foreign`: how many were not.

    `lifted`: AWS took back why they were cordoned; the next look opens them. `boot_failed`: how
    many offerings rest now because a node of them did not boot.
    `fresh`: those that go or are dead, and of which nobody had heard before;
    `interruption_loss`: theirs.
    `trouble`: why jobs could not be saved at once.
    `plan_ids`: the plans that bought the nodes. `ignored`: those that EC2 recommends to leave,
    where the pool (`rebalance: ignore`) or an earlier notice says not to.
    """

    node_names: tuple[str, ...] = ()
    cordoned: tuple[str, ...] = ()
    lifted: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()
    foreign: int = 0
    boot_failed: int = 0
    fresh: tuple[str, ...] = ()
    interruption_loss: InterruptionLoss = NO_LOSS
    trouble: str = ""
    plan_ids: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(slots=True)
class _Sorted:
    """The answers of a batch, by what they ask for. `over`: ended before their begin has come."""

    notices: list[InterruptionNotice] = field(default_factory=list)
    cordons: dict[str, Cordon] = field(default_factory=dict)
    lifted: dict[str, Cordon] = field(default_factory=dict)
    over: dict[str, Cordon] = field(default_factory=dict)
    dead: dict[str, DrainReason] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    reasons: dict[str, DrainReason] = field(default_factory=dict)


@frozen
class Interruptions:
    """Every step may be repeated: the queue delivers at least once."""

    cluster: Cluster
    ledger: Ledger
    bus: Bus
    clock: Clock

    def handle(self, news: Sequence[News]) -> Interrupted:
        """Errors: Throttled, NotAuthorized; the queue then delivers the batch again."""
        ids = dict.fromkeys(one for each in news for one in subjects(each))
        if not ids:
            return Interrupted()
        records = {record.instance_id: record for record in self.ledger.nodes(list(ids))}
        orphans = _orphans(news, records)
        records |= orphans
        foreign = len(ids) - len(records)
        found = self._sort(news, records)
        failures = boot_failures(news, found.dead, records)
        words = late_words(news, records)
        urgent, draining = self._urgent(found), self._draining(found)
        if urgent:  # before anything else that may fail
            self.bus.send_orders(urgent)
        if draining:
            # Written first: a drain empties the node, and what is let go hears no news any more.
            self._cordon(found.cordons)
            self.bus.send_orders(draining)
        orders = (*urgent, *draining)
        for told in news:
            if isinstance(told, NodeOrphaned | GpuReset) and told.instance_id in records:
                self.ledger.note_told(told)
        now_s, timings = self.clock.now_s(), self.cluster.timings
        failed = rest_failed(self.ledger, failures, words, now_s, timings)
        if not (orders or found.lifted):
            self._cordon(found.over)
            ignored = tuple(found.ignored)
            return Interrupted(foreign=foreign, boot_failed=failed, ignored=ignored)
        reading, trouble = self._reading()
        saving = saves(found.notices, reading, self.clock.now_s(), timings)
        self.bus.send_orders(saving)
        each = self._interruption_losses(found, records, reading)
        gave_up = found.dead.keys() - each.keys()
        self._mark(found, records, orders, dict.fromkeys(gave_up, NOT_TAKEN) | each)
        self.bus.look("EC2 or AWS Health takes nodes away")
        return Interrupted(
            node_names=tuple(sorted(notice.instance_id for notice in found.notices)),
            cordoned=tuple(sorted(found.cordons)),
            lifted=tuple(sorted(found.lifted)),
            dead=tuple(sorted(found.dead)),
            foreign=foreign,
            boot_failed=failed,
            ignored=tuple(found.ignored),
            fresh=tuple(sorted(each)),
            interruption_loss=reduce(InterruptionLoss.plus, each.values(), NO_LOSS),
            trouble=trouble,
            plan_ids=tuple(sorted({plan_of(one.launch_id) for one in records.values()} - {""})),
        )

    def _sort(self, news: Sequence[News], records: Mapping[str, NodeRecord]) -> _Sorted:
        now_s, timings = self.clock.now_s(), self.cluster.timings
        answers: dict[str, NewsAction] = {}
        found = _Sorted()
        for each in news:
            for instance_id in subjects(each):
                record = records.get(instance_id)
                # What we have let go ourselves ends as well: no news.
                if record is None or record.phase >= Phase.RELEASED or _is_of_former(each, record):
                    continue
                answer = action_for(each, self._rebalance(record), now_s, timings)
                if isinstance(each, RebalanceRecommendation) and answer == Nothing():
                    found.ignored.append(instance_id)
                if record.phase is Phase.INTERRUPTED:
                    answer = when_it_goes_already(answer, record.reclaim_at_s, now_s)
                answers[instance_id] = strongest(answers.get(instance_id, Nothing()), answer)
        for instance_id, answer in sorted(answers.items()):
            match answer:
                case Reclaim(at_s=at_s, reason=reason):
                    found.notices.append(InterruptionNotice(instance_id, at_s))
                    found.reasons[instance_id] = reason
                case Dead(reason=reason):
                    found.dead[instance_id] = reason
                case Cordon():
                    before = records[instance_id].cordon
                    if before is None or not _has_been_lifted(before, answer, now_s):
                        holds = before is not None and before.holds(now_s)
                        cordon = tighter(before, answer) if before and holds else answer
                        found.cordons[instance_id] = cordon
                case Lift(over=over):
                    before = records[instance_id].cordon
                    if before and before.about == over.about:
                        lifts_at_s = over.lifts_at_s
                        found.lifted[instance_id] = replace(before, lifts_at_s=lifts_at_s)
                    elif before is None or not before.holds(now_s):
                        found.over[instance_id] = over
                case Nothing():
                    pass
        return found

    def _rebalance(self, record: NodeRecord) -> Rebalance:
        """A mere risk is no news of a node that goes already."""
        pool = self.cluster.pool(record.pool)
        is_going = record.phase is Phase.INTERRUPTED
        return pool.rebalance if pool and not is_going else Rebalance.IGNORE

    def _urgent(self, found: _Sorted) -> tuple[Order, ...]:
        """One order for all nodes of one reason: those that go in minutes, and the dead ones."""
        now_s, timings = self.clock.now_s(), self.cluster.timings
        reclaims: dict[DrainReason, list[InterruptionNotice]] = {}
        for notice in found.notices:
            reclaims.setdefault(found.reasons[notice.instance_id], []).append(notice)
        drains = (
            order
            for reason, notices in sorted(reclaims.items(), key=_by_text)
            for order in orders_for(notices, reason, now_s, timings)
        )
        soon_s = now_s + timings.order_ttl_s
        return (*drains, *_by_reason(OrderKind.DELETE, found.dead, soon_s))

    def _draining(self, found: _Sorted) -> tuple[Order, ...]:
        """Those that take no new job from now on; a node that still boots is drained when it
        joins.
        """
        cordons = {name: cordon.drain_reason for name, cordon in found.cordons.items()}
        joined_by_s = self.clock.now_s() + self.cluster.timings.given_up_s
        return tuple(_by_reason(OrderKind.DRAIN, cordons, joined_by_s))

    def _reading(self) -> tuple[Reading | None, str]:
        """The last digest's queue, or why there is none.

        Whatever is wrong with it must not stop the notice: the next looks save the jobs.
        """
        try:
            received = self.bus.newest_digest()
        except TidegateError as trouble:
            return None, f"the digest cannot be read: {trouble}"
        return (received.digest.reading if received else None), ""

    def _mark(
        self,
        found: _Sorted,
        records: Mapping[str, NodeRecord],
        orders: Sequence[Order],
        interruption_losses: Mapping[str, InterruptionLoss],
    ) -> None:
        now_s = self.clock.now_s()
        reclaim_at_s = {notice.instance_id: notice.reclaim_at_s for notice in found.notices}
        # First: by it the planner tells a node that was taken from one that gave up, and one that
        # is marked may be gone before the queue delivers this again.
        self._rest([records[name] for name in reclaim_at_s])
        self.ledger.interrupt_nodes(
            reclaim_at_s | dict.fromkeys(found.dead, now_s), interruption_losses
        )
        self._cordon(found.lifted | found.over)
        going = {
            name: PendingOrder(order.order_id, order.kind, order.not_after_s)
            for order in orders
            if order.kind is OrderKind.DELETE
            for name in order.names
        }
        if going:
            self.ledger.set_orders(going)

    def _rest(self, taken: Sequence[NodeRecord]) -> None:
        """EC2 takes back where it is short: do not buy there again right away."""
        if not taken:
            return
        offerings = {record.offering for record in taken}
        keys = [(offering, "", "", "", "") for offering in offerings]
        known = {resting.offering: resting for resting in self.ledger.resting(keys)}
        now_s, timings = self.clock.now_s(), self.cluster.timings
        for offering in sorted(offerings):
            if resting := after_loss(offering, known.get(offering), now_s, timings):
                self.ledger.rest(resting)

    def _known(self, names: Collection[str]) -> tuple[NodeRecord, ...]:
        """A interruption loss that is counted twice is better than a notice that is put off."""
        try:
            return self.ledger.nodes(sorted(names)) if names else ()
        except TidegateError:
            return ()

    def _cordon(self, cordons: Mapping[str, Cordon]) -> None:
        for name, cordon in cordons.items():
            self.ledger.cordon_node(name, cordon)

    def _interruption_losses(
        self, found: _Sorted, records: Mapping[str, NodeRecord], reading: Reading | None
    ) -> dict[str, InterruptionLoss]:
        """Of the nodes that are announced for the first time.

        A gang that lost another node before was counted with that one. A node that ended while it
        booted gave up by itself, and one that heard nothing of its head too: AWS took nothing back.
        """
        taken = {notice.instance_id for notice in found.notices}
        in_slurm = {node.name for node in reading.nodes} if reading else set()
        ended = {
            name
            for name in found.dead
            if (records[name].phase > Phase.LAUNCHED or name in in_slurm)
            and not records[name].is_orphan
        }
        fresh = {n for n in taken | ended if records[n].phase < Phase.INTERRUPTED}
        jobs = reading.jobs if reading else ()
        beside = {name for job in jobs if fresh & set(job.node_names) for name in job.node_names}
        known = (*records.values(), *self._known(beside - records.keys()))
        announced = {each.instance_id for each in known if each.phase >= Phase.INTERRUPTED}
        dead = fresh & found.dead.keys()
        return interruption_losses(
            fresh - dead, dead, reading, self.clock.now_s(), announced=announced
        )


def _orphans(news: Sequence[News], records: Mapping[str, NodeRecord]) -> dict[str, NodeRecord]:
    """The records of nodes that say that they end themselves, as they are to be written down."""
    return {
        each.instance_id: replace(records[each.instance_id], silent_s=each.silent_s)
        for each in news
        if isinstance(each, NodeOrphaned) and each.instance_id in records
    }


def _is_of_former(news: News, record: NodeRecord) -> bool:
    """It is about what the node was before it was started again, on another host.

    Source: EC2 user guide, "Instance retirement": a start moves an instance to new hardware.
    """
    at_s = said_at_s(news)
    return record.is_started and at_s is not None and at_s < record.launched_at_s


def _has_been_lifted(before: Cordon, said: Cordon, now_s: float) -> bool:
    """The end of it came first."""
    is_same = before.about == said.about and not before.holds(now_s)
    return is_same and before.lifts_at_s is not None and said.since_s < before.lifts_at_s


def _by_reason(
    kind: OrderKind, reasons: Mapping[str, DrainReason], not_after_s: float
) -> Iterator[Order]:
    """One order for the nodes of each reason. `reasons`: by node."""
    names: dict[DrainReason, list[str]] = {}
    for name, reason in reasons.items():
        names.setdefault(reason, []).append(name)
    for reason, ours in sorted(names.items(), key=_by_text):
        yield from order_for_nodes(kind, ours, reason, not_after_s)


def _by_text[T](pair: tuple[DrainReason, T]) -> str:
    return str(pair[0])
