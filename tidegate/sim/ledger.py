"""The ledger in memory, with the conditions that DynamoDB would check."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidegate.core.model.calendar import OVERRIDE_KEPT_S, ScheduleOverride
from tidegate.core.model.digest import SEEN_COUNTS_S, Stamp, supersedes
from tidegate.core.model.errors import Throttled
from tidegate.core.model.events import GpuReset, NodeOrphaned
from tidegate.core.model.ledger import (
    Bill,
    Charge,
    Cordon,
    InterruptionLoss,
    LaunchRecord,
    LaunchStatus,
    MonthlyLosses,
    NodeRecord,
    Phase,
    Stretch,
)
from tidegate.core.model.market import NEVER_SEEN, SeenMarket
from tidegate.core.model.orders import PendingOrder
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting, RestKey
from tidegate.core.model.snapshot import Epoch
from tidegate.core.model.stuck import Stuck
from tidegate.core.offers.spend import day_of, month_of
from tidegate.ports import COMMIT_MAX, NO_LOSSES, NO_ORDERS, Clock, Finished, LedgerView
from tidegate.sim.faults import Faults, calls, effect, no_faults

# A refusal is remembered this long after its time, so that the next one rests longer.
RESTING_KEPT_S = 3600.0

# DynamoDB takes 100 items in a transaction; a planner may die between two.
WRITES_MAX, STRETCHES_MAX = 100, 40


@dataclass(slots=True)
class SimLedger:
    """One cluster's ledger, shared by all its planners.

    A commit repeated by the planner that made it answers False here. DynamoDB answers True
    when it can still tell; a planner must live with either. `on_commit` hears each answer.
    `all_prices`: node -> until when it cost how many USD per hour, for prices that ended;
    `all_former`: what nodes were until they were started again, with theirs.
    """

    clock: Clock
    lineage: str = "5eed0001"
    faults: Faults = no_faults
    epoch_number: int = 0
    digest_seen: tuple[Stamp, float] | None = None
    all_nodes: dict[str, NodeRecord] = field(default_factory=dict)
    all_launches: dict[str, LaunchRecord] = field(default_factory=dict)
    all_resting: dict[RestKey, Resting] = field(default_factory=dict)
    all_stuck: dict[str, Stuck] = field(default_factory=dict)
    all_overrides: dict[str, ScheduleOverride] = field(default_factory=dict)
    all_spent: dict[tuple[str, str], Charge] = field(default_factory=dict)
    all_prices: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    all_former: list[tuple[NodeRecord, tuple[tuple[float, float], ...]]] = field(
        default_factory=list
    )
    all_bills: list[Bill] = field(default_factory=list)
    all_losses: dict[str, MonthlyLosses] = field(default_factory=dict)
    all_pool_history: dict[str, PoolHistory] = field(default_factory=dict)
    seen_market: SeenMarket = NEVER_SEEN
    all_markets: list[tuple[float, SeenMarket]] = field(default_factory=list)
    on_view: list[Callable[[LedgerView], None]] = field(default_factory=list)
    on_commit: list[Callable[[bool], None]] = field(default_factory=list)

    @property
    def epoch(self) -> Epoch:
        return Epoch(self.lineage, self.epoch_number)

    def view(self) -> LedgerView:
        with effect(self.faults, "view"):
            now_s = self.clock.now_s()
            view = LedgerView(
                epoch=self.epoch,
                digest_seen=self._digest_seen(),
                nodes=tuple([n for n in self.all_nodes.values() if n.phase < Phase.TERMINATED]),
                launches=tuple(
                    [r for r in self.all_launches.values() if r.status is LaunchStatus.RECORDED]
                ),
                resting=self._resting(),
                stuck=tuple([s for s in self.all_stuck.values() if now_s < s.is_forgotten_at_s]),
                overrides=tuple(
                    [o for o in self.all_overrides.values() if now_s < o.until_s + OVERRIDE_KEPT_S]
                ),
                spent=tuple(self.all_spent.values()),
                losses=tuple(self.all_losses.values()),
                pool_history=tuple(self.all_pool_history.values()),
                seen_market=self.seen_market,
            )
        for tell in self.on_view:
            tell(view)
        return view

    def _resting(self) -> tuple[Resting, ...]:
        since_s = self.clock.now_s() - RESTING_KEPT_S
        return tuple([one for one in self.all_resting.values() if one.until_s > since_s])

    def nodes(self, instance_ids: Collection[str]) -> tuple[NodeRecord, ...]:
        with effect(self.faults, "nodes"):
            wanted = dict.fromkeys(instance_ids)
            found = tuple(self.all_nodes[one] for one in wanted if one in self.all_nodes)
        return found

    def commit(
        self,
        epoch: Epoch,
        launches: Sequence[LaunchRecord],
        going: Mapping[str, PendingOrder] = NO_ORDERS,
    ) -> bool:
        with effect(self.faults, "commit"):
            assert len(launches) + len(going) <= COMMIT_MAX
            ids = [record.launch.launch_id for record in launches]
            assert len(set(ids)) == len(ids), f"launch ids repeat: {ids}"
            is_first = epoch == self.epoch and not any(one in self.all_launches for one in ids)
            if is_first:
                self.epoch_number += 1
                self.all_launches.update((r.launch.launch_id, r.kept()) for r in launches)
                for name, order in going.items():
                    self.all_nodes[name] = replace(self.all_nodes[name], order=order)
        for tell in self.on_commit:
            tell(is_first)
        return is_first

    def take_launch(self, launch_id: str) -> bool:
        with effect(self.faults, "take_launch"):
            record = self.all_launches.get(launch_id)
            is_open = record is not None and record.status is LaunchStatus.RECORDED
            if record and is_open:
                self.all_launches[launch_id] = replace(record, taken_at_s=self.clock.now_s())
        return is_open

    def finish_launches(self, *finished: Finished) -> None:
        writes: list[NodeRecord | Finished] = []
        for each in finished:
            writes += [*each.nodes, each]
        for chunk in calls(self.faults, "finish_launches", writes, WRITES_MAX):
            for part in chunk:
                if isinstance(part, NodeRecord):
                    self._note(part)
                else:
                    self._close(part)

    def _note(self, node: NodeRecord) -> None:
        known = self.all_nodes.get(node.instance_id)
        if known and node.is_started and known.stopped_at_s is not None:
            if known.launch_id != node.launch_id:
                prices = tuple(self.all_prices.pop(node.instance_id, ()))
                self.all_former.append((known, prices))
                self.all_nodes[node.instance_id] = node
        elif known is None:
            self.all_nodes[node.instance_id] = node

    def _close(self, finished: Finished) -> None:
        record = self.all_launches.get(finished.launch_id)
        if record and record.status is LaunchStatus.RECORDED:
            self.all_launches[finished.launch_id] = replace(record, status=finished.status)

    def advance_nodes(self, phases: Mapping[str, Phase]) -> None:
        for node in self._known("advance_nodes", phases):
            phase = phases[node.instance_id]
            if node.phase < phase:
                moved = replace(node, phase=phase)
                if phase is Phase.JOINED:
                    moved = replace(moved, joined_at_s=self.clock.now_s())
                self.all_nodes[node.instance_id] = moved

    def stop_nodes(self, instance_ids: Collection[str]) -> None:
        for node in self._known("stop_nodes", instance_ids):
            if node.phase <= Phase.RELEASED and node.stopped_at_s is None:
                stopped = replace(node, phase=Phase.RELEASED, stopped_at_s=self.clock.now_s())
                self.all_nodes[node.instance_id] = stopped

    def charge(self, stretches: Sequence[Stretch]) -> None:
        for chunk in calls(self.faults, "charge", stretches, STRETCHES_MAX):
            for each in chunk:
                self._count(each)

    def _count(self, each: Stretch) -> None:
        node = self.all_nodes.get(each.instance_id)
        usd_per_hour = each.next_usd_per_hour
        if node is None or node.ended_at_s is not None:
            return
        if node.priced_at_s != each.priced_at_s:
            if usd_per_hour is None:
                raise Throttled(f"{each.instance_id} has another price than was read")
            return
        if usd_per_hour is None:
            node = replace(node, ended_at_s=each.until_s)
        else:
            prices = self.all_prices.setdefault(each.instance_id, [])
            prices.append((each.until_s, node.usd_per_hour))
            node = replace(
                node,
                usd_per_hour=usd_per_hour,
                priced_at_s=each.until_s,
                committed=each.next_committed,
            )
        self.all_nodes[each.instance_id] = node
        if each.bill:
            self.all_bills.append(each.bill)
        for one in each.charges:
            key = one.period, one.scope
            before = self.all_spent.get(key)
            usd = one.usd + (before.usd if before else 0.0)
            self.all_spent[key] = Charge(*key, usd)
        none = MonthlyLosses(month_of(each.until_s).name, 0, 0.0, 0)
        before_it = self.all_losses.get(none.month, none)
        if (after_it := before_it.plus(each)) != before_it:
            self.all_losses[none.month] = after_it

    def bills(self, days: Collection[str]) -> tuple[Bill, ...]:
        return tuple(one for one in self.all_bills if day_of(one.until_s).name in days)

    def interrupt_nodes(
        self,
        reclaim_at_s: Mapping[str, float],
        interruption_losses: Mapping[str, InterruptionLoss] = NO_LOSSES,
    ) -> frozenset[str]:
        with effect(self.faults, "interrupt_nodes"):
            known = {name: self.all_nodes.get(name) for name in reclaim_at_s}
            noted = {
                name: node
                for name, node in known.items()
                if node is not None and node.phase <= Phase.INTERRUPTED
            }
            for name, node in noted.items():
                first_in = node.phase if node.interrupted_in is None else node.interrupted_in
                self.all_nodes[name] = replace(
                    node,
                    phase=Phase.INTERRUPTED,
                    reclaim_at_s=reclaim_at_s[name],
                    interrupted_in=first_in,
                    interruption_loss=node.interruption_loss
                    or interruption_losses.get(name, InterruptionLoss()),
                )
        return frozenset(noted)

    def note_told(self, told: NodeOrphaned | GpuReset) -> None:
        for node in self._known("note_told", [told.instance_id]):
            match told:
                case NodeOrphaned(silent_s=silent_s):
                    self.all_nodes[told.instance_id] = replace(node, silent_s=silent_s)
                case GpuReset():
                    self.all_nodes[told.instance_id] = replace(node, reset_said=told.sentence)

    def cordon_node(self, instance_id: str, cordon: Cordon) -> bool:
        with effect(self.faults, "cordon_node"):
            node = self.all_nodes.get(instance_id)
            is_staying = node is not None and node.phase < Phase.INTERRUPTED
            if node is not None and is_staying:
                self.all_nodes[instance_id] = replace(node, cordon=cordon)
        return is_staying

    def set_orders(self, orders: Mapping[str, PendingOrder | None]) -> None:
        for node in self._known("set_orders", orders):
            self.all_nodes[node.instance_id] = replace(node, order=orders[node.instance_id])

    def ungate(self, instance_ids: Collection[str]) -> None:
        for node in self._known("ungate", instance_ids):
            self.all_nodes[node.instance_id] = replace(node, gated_for="")

    def _known(self, method: str, instance_ids: Collection[str]) -> Iterator[NodeRecord]:
        """Those that there are, in as many writes as DynamoDB would need."""
        for chunk in calls(self.faults, method, instance_ids, WRITES_MAX):
            yield from (self.all_nodes[one] for one in chunk if one in self.all_nodes)

    def resting(self, keys: Collection[RestKey]) -> tuple[Resting, ...]:
        with effect(self.faults, "resting"):
            return tuple(one for one in self._resting() if one.key in keys)

    def rest(self, *resting: Resting) -> None:
        for chunk in calls(self.faults, "rest", resting, WRITES_MAX):
            self.all_resting.update((each.key, each) for each in chunk)

    def lift(self, *resting: Resting) -> None:
        with effect(self.faults, "lift"):
            for each in resting:
                self.all_resting.pop(each.key, None)

    def watch(self, stuck: Stuck) -> None:
        with effect(self.faults, "watch"):
            self.all_stuck[stuck.job_id] = stuck

    def override_hours(self, override: ScheduleOverride) -> None:
        with effect(self.faults, "override_hours"):
            self.all_overrides[override.override_id] = override

    def learn(self, pool_history: PoolHistory) -> bool:
        with effect(self.faults, "learn"):
            pool, noted = pool_history.pool, pool_history.noted
            known = self.all_pool_history.get(pool)
            is_newest = noted == (known.noted if known else 0)
            if is_newest:
                self.all_pool_history[pool] = replace(pool_history, noted=noted + 1)
        return is_newest

    def see_market(self, seen: SeenMarket) -> None:
        with effect(self.faults, "see_market"):
            self.seen_market = seen
            self.all_markets.append((self.clock.now_s(), seen))

    def see_digest(self, stamp: Stamp) -> None:
        with effect(self.faults, "see_digest"):
            if supersedes(stamp, self._digest_seen()):
                self.digest_seen = (stamp, self.clock.now_s())

    def _digest_seen(self) -> Stamp | None:
        stamp, seen_s = self.digest_seen or (None, 0.0)
        return stamp if self.clock.now_s() - seen_s <= SEEN_COUNTS_S else None
