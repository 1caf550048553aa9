"""Carrying out a plan, so that a crash between any two calls loses and doubles nothing.

The order of calls is the design: the epoch and every launch record are written in one
transaction before EC2 is asked for anything; a planner that lost that race stops there.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import inf

from tidegate.core.fleet.rests import rests_of
from tidegate.core.model.drain_reason import code_of
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import (
    Launch,
    LaunchRecord,
    LaunchStatus,
    NodeRecord,
    Phase,
    Stretch,
)
from tidegate.core.model.orders import OrderKind, PendingOrder
from tidegate.core.model.plan import (
    Action,
    Adopt,
    Learn,
    Mark,
    Plan,
    Reprice,
    Rest,
    Resume,
    Send,
    Stop,
    Terminate,
    Watch,
)
from tidegate.core.model.resting import Resting
from tidegate.core.model.slurm_names import ABOUT_JOBS
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.spend import ended, repriced
from tidegate.ports import COMMIT_MAX, Bus, Clock, Compute, Finished, Ledger
from tidegate.service.launching import Launching
from tidegate.service.outcome import Outcome
from tidegate.service.requests import Placement, fleet_request


@frozen
class Applier:
    """Does what a plan says, and nothing else."""

    compute: Compute
    ledger: Ledger
    bus: Bus
    placement: Placement
    clock: Clock

    def apply(self, plan: Plan, snapshot: Snapshot, until_s: float = inf) -> Outcome:
        """`until_s`: after this time EC2 is asked for nothing more.

        Errors: Throttled, NotAuthorized of the ports; what was done until then stays done.
        """
        outcome = Outcome()
        if not plan.actions:
            return outcome
        records = {r.launch.launch_id: r for r in self._records(plan.actions, snapshot)}
        going = self._going(plan.actions, snapshot, COMMIT_MAX - len(records))
        if not self.ledger.commit(snapshot.epoch, tuple(records.values()), going):
            outcome.is_stale = True
            return outcome
        self._adopt([each for each in plan.actions if isinstance(each, Adopt)])
        # Before the record that it was learnt from is closed.
        if not self._learn([each for each in plan.actions if isinstance(each, Learn)]):
            outcome.is_stale = True
            return outcome
        for action in plan.actions:
            if isinstance(action, Watch):  # before the nodes leave that it was seen by
                self.ledger.watch(action.stuck)
        marks = [action for action in plan.actions if isinstance(action, Mark)]
        joined, later = _ordered_first(marks, plan.actions)
        self._mark(joined)
        self._send(plan.actions, going)
        for action in plan.actions:
            if isinstance(action, Terminate):
                snapshot = self._count_overdue(action.instance_ids, snapshot)
                self.compute.terminate(action.instance_ids)
                self._charge(action.instance_ids, snapshot, self.clock.now_s())
                outcome.ended.extend(_seen(action.instance_ids, snapshot))
            if isinstance(action, Stop):
                self._stop(action.instance_ids, snapshot)
        launching = Launching(self.compute, self.ledger, self.clock, snapshot, until_s, outcome)
        resumed = [action for action in plan.actions if isinstance(action, Resume)]
        launching.launch(tuple(records.values()), resumed)
        self._remember(plan.actions, snapshot)
        # A node that is forgotten is never counted, so that comes first.
        gone = [mark.instance_id for mark in marks if mark.phase is Phase.TERMINATED]
        self._charge(gone, snapshot, snapshot.now_s)
        self._reprice(plan.actions, snapshot)
        self._mark(later)
        return outcome

    def _stop(self, instance_ids: Collection[str], snapshot: Snapshot) -> None:
        """Noted before: what stands still and is not known to would be taken for a person's."""
        self.ledger.stop_nodes(instance_ids)
        self.compute.stop(tuple(instance_ids))
        at_s = self.clock.now_s()
        pools = {pool.name: pool.stopped_usd_per_hour for pool in snapshot.cluster.pools}
        stretches = [
            repriced(each, pools[each.pool], replace(snapshot, now_s=at_s), by_s=at_s)
            for each in snapshot.nodes
            if each.instance_id in instance_ids and each.ended_at_s is None and each.pool in pools
            if each.usd_per_hour != pools[each.pool]
        ]
        if stretches:
            self.ledger.charge(stretches)

    def _records(self, actions: Iterable[Action], snapshot: Snapshot) -> list[LaunchRecord]:
        name, now_s = snapshot.cluster.name, snapshot.now_s
        full = [each for each in snapshot.full_subnets if each.until_s > now_s]
        return [
            LaunchRecord(action, now_s, fleet_request(action, name, self.placement, full))
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
        sends = [each for each in actions if isinstance(each, Send) and each.is_budgeted]
        pairs = [(name, _pending(each)) for each in sends for name in each.order.names]
        return dict([pair for pair in pairs if pair[0] in known][:most])

    def _send(self, actions: Iterable[Action], going: Collection[str]) -> None:
        """Orders go first, then the note that they went: a repeat is harmless, a gap is not.

        Where a budget counts the nodes it is the other way round: a gap costs a minute. Nodes
        `going` have been noted with the commit.
        """
        sends = [action for action in actions if isinstance(action, Send)]
        if not sends:
            return
        self._note((send for send in sends if send.is_budgeted), besides=going)
        self.bus.send_orders([send.order for send in sends])
        self._note(send for send in sends if not send.is_budgeted)

    def _note(self, sends: Iterable[Send], besides: Collection[str] = ()) -> None:
        # What changes no node must not take the place of a release that is on its way.
        hints = {*ABOUT_JOBS, OrderKind.WEIGHT, OrderKind.CHECK}
        about = [each for each in sends if each.order.kind not in hints]
        pairs = [(name, _pending(each)) for each in about for name in each.order.names]
        noted = {name: pending for name, pending in pairs if name not in besides}
        if noted:
            self.ledger.set_orders(noted)

    def _count_overdue(self, instance_ids: Collection[str], snapshot: Snapshot) -> Snapshot:
        """Count until now what has outlived its reclaim, before it ends: if this planner dies, the
        next does not see that it did. The answer holds what was counted.
        """
        shown = {each.instance_id for each in snapshot.instances if each.is_alive}
        overdue = [
            each
            for each in snapshot.nodes
            if each.instance_id in shown.intersection(instance_ids)
            and each.ended_at_s is None
            and each.reclaim_at_s is not None
            and each.reclaim_at_s < snapshot.now_s
        ]
        if not overdue:
            return snapshot
        by_s = snapshot.now_s
        self.ledger.charge(
            [
                repriced(e, e.usd_per_hour, snapshot, by_s=by_s, committed=e.committed)
                for e in overdue
            ]
        )
        names = {each.instance_id for each in overdue}
        nodes = (
            replace(each, priced_at_s=by_s) if each.instance_id in names else each
            for each in snapshot.nodes
        )
        return replace(snapshot, nodes=tuple(nodes))

    def _charge(self, instance_ids: Iterable[str], snapshot: Snapshot, by_s: float) -> None:
        """Count what these nodes have cost; those that were counted before are left out.

        `by_s`: when those had ended that EC2 showed alive; the others had as it was asked.
        """
        ours = set(instance_ids)
        stretches: list[Stretch] = []
        shown = {each.instance_id for each in snapshot.instances if each.is_alive}
        for record in snapshot.nodes if ours else ():
            name = record.instance_id
            if name in ours and record.ended_at_s is None:
                is_shown = name in shown
                at_s = by_s if is_shown else snapshot.now_s
                stretches.append(ended(record, at_s, is_shown=is_shown))
        if stretches:
            self.ledger.charge(stretches)

    def _reprice(self, actions: Iterable[Action], snapshot: Snapshot) -> None:
        found = {a.instance_id: a for a in actions if isinstance(a, Reprice)}
        if found:
            by_s = self.clock.now_s()
            new = ((r, found[r.instance_id]) for r in snapshot.nodes if r.instance_id in found)
            self.ledger.charge(
                [
                    repriced(r, a.usd_per_hour, snapshot, by_s=by_s, committed=a.committed)
                    for r, a in new
                ]
            )

    def _mark(self, marks: Sequence[Mark]) -> None:
        phases: dict[str, Phase] = {}
        for mark in marks:
            phases[mark.instance_id] = max(mark.phase, phases.get(mark.instance_id, mark.phase))
        if phases:
            self.ledger.advance_nodes(phases)
        if ungated := [mark.instance_id for mark in marks if mark.is_ungated]:
            self.ledger.ungate(ungated)

    def _adopt(self, adopts: Sequence[Adopt]) -> None:
        """First, so that an order can be noted on them."""
        by_launch: dict[str, list[NodeRecord]] = {}
        for each in adopts:
            by_launch.setdefault(each.record.launch_id, []).append(each.record)
        if by_launch:
            done = LaunchStatus.DONE
            self.ledger.finish_launches(*(Finished(i, done, n) for i, n in by_launch.items()))

    def _learn(self, learns: Sequence[Learn]) -> bool:
        """False: others have noted news of a pool meanwhile, and what else it saw is as old.

        Of several lessons of a pool the last holds all that come before it.
        """
        newest = {each.pool_history.pool: each.pool_history for each in learns}
        return all(self.ledger.learn(each) for each in newest.values())

    def _remember(self, actions: Iterable[Action], snapshot: Snapshot) -> None:
        """What came and was no good."""
        found = [each for each in actions if isinstance(each, Rest)]
        if not found:
            return
        before = {each.key: each for each in (*snapshot.resting, *snapshot.outweighed)}
        before |= {each.key: each for each in self._failures(found)}
        if rests := rests_of(found, before, snapshot.now_s, snapshot.cluster.timings):
            self.ledger.rest(*rests.values())

    def _failures(self, rests: Iterable[Rest]) -> tuple[Resting, ...]:
        """What rests since boots failed, read anew: a node may have said since why it ends."""
        keys = [each.key for each in rests if not each.is_refusal]
        return self.ledger.resting(keys) if keys else ()


def _ordered_first(
    marks: Sequence[Mark], actions: Iterable[Action]
) -> tuple[list[Mark], list[Mark]]:
    """Marks that come before the orders, and all others.

    A node that Slurm has let go by an order would count as booting, until its boot bound, if the
    planner had died before it noted that the node was there.
    """
    ordered = {name for each in actions if isinstance(each, Send) for name in each.order.names}
    first: list[Mark] = []
    later: list[Mark] = []
    for mark in marks:
        is_first = mark.phase is Phase.JOINED and mark.instance_id in ordered
        (first if is_first else later).append(mark)
    return first, later


def _pending(send: Send) -> PendingOrder:
    order = send.order
    is_release = order.kind is OrderKind.RELEASE
    code = code_of(order.text) if is_release else None
    return PendingOrder(order.order_id, order.kind, order.not_after_s, code or "", send.opens_for)


def _seen(instance_ids: Sequence[str], snapshot: Snapshot) -> list[str]:
    """Those that EC2 showed: only they end by our doing."""
    shown = {one.instance_id for one in snapshot.instances}
    return [name for name in instance_ids if name in shown]
