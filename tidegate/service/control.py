"""The entry points of the loop: a look, and a batch of interruption notices."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate.core.actions import NodeRecord, Plan, Resting
from tidegate.core.errors import BadEvent, TidegateError
from tidegate.core.interruption import Notice, orders_for
from tidegate.core.planner import plan
from tidegate.core.pool import Cluster
from tidegate.core.slurm import Reading
from tidegate.core.snapshot import Snapshot
from tidegate.ports import Bus, Clock, Compute, Ledger, LedgerView
from tidegate.service.apply import Applier, Outcome
from tidegate.service.observe import observe
from tidegate.service.requests import Placement

# After a refusal the plan is made anew without the refused offering, in the same look; so is
# one that was cut. No round starts after the budget: a planner lives 45 s.
ROUNDS_MAX = 4
BUDGET_S = 20.0


@dataclass(frozen=True, slots=True)
class Round:
    """One pass of observe, plan, apply."""

    snapshot: Snapshot
    plan: Plan
    outcome: Outcome
    notes: tuple[str, ...] = ()

    @property
    def wants_another(self) -> bool:
        return bool(self.outcome.refused) or self.plan.is_cut


@dataclass(slots=True)
class Looked:
    """What a look did; `trouble` is set when the outside world failed it."""

    rounds: list[Round] = field(default_factory=list)
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Interrupted:
    """What a batch of notices did: nodes that are ours, and how many were not."""

    node_names: tuple[str, ...]
    foreign: int
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Control:
    """The only loop. Lambda, demo, tests and simulator differ in the ports they give it."""

    cluster: Cluster
    compute: Compute
    ledger: Ledger
    bus: Bus
    clock: Clock
    placement: Placement

    def look(self) -> Looked:
        """Observe, plan, apply; never raises for trouble outside: the next look is near."""
        looked = Looked()
        until_s = self.clock.now_s() + BUDGET_S
        try:
            while len(looked.rounds) < ROUNDS_MAX and self.clock.now_s() < until_s:
                done = self._round()
                looked.rounds.append(done)
                if done.outcome.is_stale or not done.wants_another:
                    return looked
            self.bus.look("more to launch than one look can")
        except TidegateError as trouble:
            looked.trouble = f"{type(trouble).__name__}: {trouble}"
        return looked

    def _round(self) -> Round:
        snapshot, notes = observe(
            self.cluster,
            compute=self.compute,
            ledger=self.ledger,
            bus=self.bus,
            clock=self.clock,
        )
        made = plan(snapshot)
        applier = Applier(self.compute, self.ledger, self.bus, self.placement)
        outcome = applier.apply(made, snapshot)
        if snapshot.digest is not None and not outcome.is_stale:
            self.ledger.see_digest(snapshot.digest.stamp)
        return Round(snapshot, made, outcome, notes)

    def interrupt(self, notices: Sequence[Notice]) -> Interrupted:
        """Save what runs on nodes that EC2 reclaims; replacing them is the next look's work.

        Orders go out before anything else: two minutes are short. Errors: Transient, so that
        the queue delivers the batch again; every step may be repeated.
        """
        view = self.ledger.view()
        records = {record.instance_id: record for record in view.nodes}
        ours = tuple(notice for notice in notices if notice.instance_id in records)
        if ours:
            orders = orders_for(ours, self._reading(), self.clock.now_s(), self.cluster.timings)
            self.bus.send_orders(orders)
            for notice in ours:
                self.ledger.interrupt_node(notice.instance_id, notice.reclaim_at_s)
            self._rest(ours, records, view)
            self.bus.look("spot interruption notice")
        return Interrupted(tuple(n.instance_id for n in ours), len(notices) - len(ours))

    def _reading(self) -> Reading | None:
        """The last digest's queue; a digest that cannot be read must not stop the drain."""
        try:
            received = self.bus.newest_digest()
        except BadEvent:
            return None
        return received.digest.reading if received else None

    def _rest(
        self, ours: Sequence[Notice], records: dict[str, NodeRecord], view: LedgerView
    ) -> None:
        """EC2 takes back where it is short: do not buy there again right away."""
        known = {resting.offering: resting for resting in view.resting}
        until_s = self.clock.now_s() + self.cluster.timings.rest_min_s
        for offering in sorted({records[n.instance_id].offering for n in ours}):
            before = known.get(offering)
            if before is None or before.until_s < until_s:
                failures = before.failures if before else 1
                said = "EC2 reclaims spot instances here"
                self.ledger.rest(Resting(offering, until_s, failures, "spot interruption", said))
