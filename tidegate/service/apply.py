"""Carrying out a plan, so that a crash between any two calls loses and doubles nothing.

The order of calls is the design: the epoch and every launch record are written in one
transaction before EC2 is asked for anything; a planner that lost that race stops there.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.core.actions import (
    Action,
    Adopt,
    Launch,
    LaunchRecord,
    LaunchStatus,
    Learn,
    Mark,
    NodeRecord,
    Order,
    OrderKind,
    PendingOrder,
    Phase,
    Plan,
    Reprice,
    Rest,
    Resting,
    Resume,
    Send,
    Stretch,
    Terminate,
    Watch,
)
from tidegate.core.ec2 import FleetResult, Instance, Offering, Refusal, RefusalKind
from tidegate.core.errors import Permanent, Transient
from tidegate.core.frozen import frozen
from tidegate.core.pool import Timings
from tidegate.core.reservations import block_of, in_reservations
from tidegate.core.slurm_names import ABOUT_JOBS
from tidegate.core.snapshot import Snapshot
from tidegate.core.spend import ended, repriced
from tidegate.core.templates import chosen
from tidegate.ports import COMMIT_MAX, Bus, Compute, Ledger
from tidegate.service.requests import Placement, fleet_request

# A refusal costs nothing, a node that is no good costs a boot: 24 min, 48 min, ... 4 h.
BROKEN_REST_FACTOR = 8.0
DOUBLINGS_MAX = 16  # far past rest_max_s, and far from an overflow


@dataclass(slots=True)
class Outcome:
    """What became of a plan. `is_stale`: another planner was faster, nothing was done."""

    is_stale: bool = False
    launched: list[Instance] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    trouble: list[str] = field(default_factory=list)


@frozen
class Applier:
    """Does what a plan says, and nothing else."""

    compute: Compute
    ledger: Ledger
    bus: Bus
    placement: Placement

    def apply(self, plan: Plan, snapshot: Snapshot) -> Outcome:
        """Errors: Throttled, NotAuthorized of the ports; what was done until then stays done."""
        outcome = Outcome()
        if not plan.actions:
            return outcome
        records = {r.launch.launch_id: r for r in self._records(plan.actions, snapshot)}
        going = self._going(plan.actions, snapshot, COMMIT_MAX - len(records))
        if not self.ledger.commit(snapshot.epoch, tuple(records.values()), going):
            outcome.is_stale = True
            return outcome
        for action in plan.actions:
            if isinstance(action, Adopt):  # first, so that an order can be noted on it
                self._adopt(action)
            elif isinstance(action, Learn):  # before the record that it was learnt from is closed
                self.ledger.learn(action.learnt)
        self._send(plan.actions, going)
        for action in plan.actions:
            match action:
                case Terminate():
                    self.compute.terminate(action.instance_ids)
                    self._charge(action.instance_ids, snapshot)
                    outcome.ended.extend(_seen(action.instance_ids, snapshot))
                case Rest():
                    self._rest_broken(action, snapshot)
                case Watch():
                    self.ledger.watch(action.stuck)
                case Launch():
                    self._launch(records[action.launch_id], snapshot, outcome)
                case Resume():
                    self._resume(action, snapshot, outcome)
                case Send() | Adopt() | Learn() | Mark() | Reprice():
                    pass  # done above, or below
        marks = [action for action in plan.actions if isinstance(action, Mark)]
        # A node that is forgotten is never counted, so that comes first.
        gone = [mark.instance_id for mark in marks if mark.phase is Phase.TERMINATED]
        self._charge(gone, snapshot)
        self._reprice(plan.actions, snapshot)
        for mark in marks:
            self._mark(mark)
        return outcome

    def _records(self, actions: Iterable[Action], snapshot: Snapshot) -> list[LaunchRecord]:
        cluster, now_s = snapshot.cluster, snapshot.now_s
        held = in_reservations(snapshot) if cluster.reservations else Counter[Offering]()
        return [
            LaunchRecord(
                action,
                now_s,
                fleet_request(
                    action,
                    cluster.name,
                    self.placement,
                    block_of(cluster, action.offerings[0], now_s, held[action.offerings[0]]),
                    chosen(snapshot, action.pool),
                ),
            )
            for action in actions
            if isinstance(action, Launch)
        ]

    def _going(
        self, actions: Iterable[Action], snapshot: Snapshot, most: int
    ) -> dict[str, PendingOrder]:
        """The orders that budgets count, for the commit: so that no planner can read its epoch
        and not them, and choose nodes beside these.
        """
        known = {record.instance_id for record in snapshot.nodes}
        orders = [each.order for each in actions if isinstance(each, Send) and each.is_budgeted]
        pairs = [(name, _pending(order)) for order in orders for name in order.names]
        return dict([pair for pair in pairs if pair[0] in known][:most])

    def _send(self, actions: Iterable[Action], going: Collection[str]) -> None:
        """Orders go first, then the note that they went: a repeat is harmless, a gap is not.

        Where a budget counts the nodes it is the other way round: a gap costs a minute. Nodes
        `going` have been noted with the commit.
        """
        sends = [action for action in actions if isinstance(action, Send)]
        if not sends:
            return
        self._note((send.order for send in sends if send.is_budgeted), besides=going)
        self.bus.send_orders([send.order for send in sends])
        self._note(send.order for send in sends if not send.is_budgeted)

    def _note(self, orders: Iterable[Order], besides: Collection[str] = ()) -> None:
        for order in orders:
            # A hint must not take the place of a release that is on its way.
            if order.kind not in ABOUT_JOBS and order.kind is not OrderKind.WEIGHT:
                for name in order.names:
                    if name not in besides:
                        self.ledger.set_order(name, _pending(order))

    def _charge(self, instance_ids: Iterable[str], snapshot: Snapshot) -> None:
        """Count what these nodes have cost; those that were counted before are left out."""
        ours = set(instance_ids)
        stretches: list[Stretch] = []
        for record in snapshot.nodes if ours else ():
            if record.instance_id in ours and record.ended_at_s is None:
                stretches.append(ended(record, snapshot.now_s))
        if stretches:
            self.ledger.charge(stretches)

    def _reprice(self, actions: Iterable[Action], snapshot: Snapshot) -> None:
        prices = {a.instance_id: a.usd_per_hour for a in actions if isinstance(a, Reprice)}
        if prices:
            self.ledger.charge(
                [
                    repriced(record, prices[record.instance_id], snapshot)
                    for record in snapshot.nodes
                    if record.instance_id in prices
                ]
            )

    def _mark(self, mark: Mark) -> None:
        self.ledger.advance_node(mark.instance_id, mark.phase)
        if mark.is_ungated:
            self.ledger.ungate(mark.instance_id)

    def _adopt(self, adopt: Adopt) -> None:
        self.ledger.finish_launch(adopt.record.launch_id, LaunchStatus.DONE, (adopt.record,))

    def _launch(self, record: LaunchRecord, snapshot: Snapshot, outcome: Outcome) -> None:
        """Ask EC2; an offering refused earlier in this plan is not tried again in it."""
        refused = {refusal.offering for refusal in outcome.refused}
        if refused.issuperset(record.launch.offerings):
            self.ledger.finish_launch(record.launch.launch_id, LaunchStatus.FAILED, ())
            return
        self._buy(record, snapshot, outcome)

    def _resume(self, action: Resume, snapshot: Snapshot, outcome: Outcome) -> None:
        """The tag tells what the dead planner bought; unless all of it shows, ask again.

        The identical request under the same token buys nothing twice even when EC2 has the
        instances and does not show them yet.
        """
        record = next(r for r in snapshot.launches if r.launch.launch_id == action.launch_id)
        bought = tuple(i for i in snapshot.instances if i.launch_id == action.launch_id)
        if len(bought) >= record.launch.count or not action.may_buy:
            self._finish(record, FleetResult(bought, ()), snapshot, outcome)
        # Another planner may have closed it meanwhile, and nobody counts on it any more.
        elif self.ledger.take_launch(action.launch_id):
            self._buy(record, snapshot, outcome, known=bought)

    def _buy(
        self,
        record: LaunchRecord,
        snapshot: Snapshot,
        outcome: Outcome,
        known: tuple[Instance, ...] = (),
    ) -> None:
        """Ask EC2. `known`: what this launch is seen to have brought already.

        Trouble with one launch is told and leaves the others alone: a broken template of one
        pool must not stop the rest. What may pass is tried again after the lease.
        """
        try:
            result = self.compute.create_fleet(record.request)
        except Transient as trouble:
            outcome.trouble.append(f"launch {record.launch.launch_id} has to wait: {trouble}")
            return
        except Permanent as trouble:
            outcome.trouble.append(f"launch {record.launch.launch_id} given up: {trouble}")
            code, said = type(trouble).__name__, str(trouble)
            result = FleetResult(
                (),
                tuple(
                    Refusal(each, RefusalKind.OTHER, code, said) for each in record.launch.offerings
                ),
            )
        instances = {one.instance_id: one for one in (*known, *result.instances)}
        whole = FleetResult(tuple(instances.values()), result.refusals)
        if not instances and not result.refusals:
            launch_id = record.launch.launch_id
            outcome.trouble.append(f"launch {launch_id}: EC2 gave nothing and said nothing")
        self._finish(record, whole, snapshot, outcome)

    def _finish(
        self, record: LaunchRecord, result: FleetResult, snapshot: Snapshot, outcome: Outcome
    ) -> None:
        launch = record.launch
        prices = snapshot.cluster.prices
        nodes = [_node_record(launch, instance, prices) for instance in result.instances]
        status = LaunchStatus.DONE if nodes else LaunchStatus.FAILED
        self._rest(result.refusals, snapshot)
        self.ledger.finish_launch(launch.launch_id, status, nodes)
        outcome.launched.extend(result.instances)
        outcome.refused.extend(result.refusals)

    def _rest_broken(self, rest: Rest, snapshot: Snapshot) -> None:
        refusal = Refusal(rest.offering, RefusalKind.OTHER, rest.code, rest.reason)
        before = next((one for one in snapshot.resting if one.offering == rest.offering), None)
        self.ledger.rest(
            rested(
                refusal,
                before,
                snapshot.now_s,
                snapshot.cluster.timings,
                factor=BROKEN_REST_FACTOR,
            )
        )

    def _rest(self, refusals: Sequence[Refusal], snapshot: Snapshot) -> None:
        known = {resting.offering: resting for resting in snapshot.resting}
        for refusal in {r.offering: r for r in refusals}.values():
            self.ledger.rest(
                rested(
                    refusal, known.get(refusal.offering), snapshot.now_s, snapshot.cluster.timings
                )
            )


def _pending(order: Order) -> PendingOrder:
    return PendingOrder(order.order_id, order.kind, order.not_after_s)


def _seen(instance_ids: Sequence[str], snapshot: Snapshot) -> list[str]:
    """Those that EC2 showed: only they end by our doing."""
    shown = {one.instance_id for one in snapshot.instances}
    return [name for name in instance_ids if name in shown]


def rested(
    refusal: Refusal,
    before: Resting | None,
    now_s: float,
    timings: Timings,
    *,
    factor: float = 1.0,
) -> Resting:
    """How long a refused offering rests: twice as long with each refusal, up to a bound."""
    failures = (before.failures if before else 0) + 1
    doubled_s = timings.rest_min_s * 2 ** min(failures - 1, DOUBLINGS_MAX)
    rest_s = factor * min(doubled_s, timings.rest_max_s)
    return Resting(refusal.offering, now_s + rest_s, failures, refusal.code, refusal.message)


def _node_record(
    launch: Launch, instance: Instance, prices: Mapping[Offering, float]
) -> NodeRecord:
    return NodeRecord(
        instance_id=instance.instance_id,
        launch_id=launch.launch_id,
        pool=launch.pool,
        offering=instance.offering,
        launched_at_s=instance.launched_at_s,
        usd_per_hour=prices.get(instance.offering, launch.usd_per_hour_each),
        gated_for=launch.gated_for,
        account=launch.account,
        template=instance.template,
    )
