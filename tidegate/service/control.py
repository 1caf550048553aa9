"""The entry points of the loop: a look, and a batch of interruption notices."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tidegate.core.actions import NodeRecord, Plan, Resting
from tidegate.core.errors import TidegateError
from tidegate.core.interruption import Notice, orders_for, saves
from tidegate.core.planner import plan
from tidegate.core.pool import Cluster
from tidegate.core.slurm import Reading
from tidegate.core.snapshot import Snapshot
from tidegate.ports import Bus, Calendar, Clock, Compute, Ledger, LedgerView
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
    """What a batch of notices did: nodes that are ours, and how many were not.

    `trouble`: why the jobs on them could not be saved at once.
    """

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
    calendar: Calendar | None = None

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
            calendar=self.calendar,
        )
        made = plan(snapshot)
        applier = Applier(self.compute, self.ledger, self.bus, self.placement)
        outcome = applier.apply(made, snapshot)
        if snapshot.digest is not None and not outcome.is_stale:
            self.ledger.see_digest(snapshot.digest.stamp)
        return Round(snapshot, made, outcome, notes)

    def interrupt(self, notices: Sequence[Notice]) -> Interrupted:
        """Save what runs on nodes that EC2 reclaims; replacing them is the next look's work.

        Drains go out before anything else: two minutes are short. Errors: Transient, so that
        the queue delivers the batch again; every step may be repeated.
        """
        if not notices:
            return Interrupted((), 0)
        trouble = ""
        view = self.ledger.view()
        records = {record.instance_id: record for record in view.nodes}
        ours = tuple(notice for notice in notices if notice.instance_id in records)
        if ours:
            now_s, timings = self.clock.now_s(), self.cluster.timings
            self.bus.send_orders(orders_for(ours, None, now_s, timings))
            reading, trouble = self._reading()
            self.bus.send_orders(saves(ours, reading, now_s, timings))
            for notice in ours:
                self.ledger.interrupt_node(notice.instance_id, notice.reclaim_at_s)
            self._rest(ours, records, view)
            self.bus.look("spot interruption notice")
        foreign = len(notices) - len(ours)
        return Interrupted(tuple(n.instance_id for n in ours), foreign, trouble)

    def look_if_ours(self, instance_ids: Collection[str], why: str) -> tuple[str, ...]:
        """Ask for a look when any of these instances is a node of ours; returns those.

        Errors: Throttled, NotAuthorized.
        """
        if not instance_ids:
            return ()
        known = {record.instance_id for record in self.ledger.view().nodes}
        ours = tuple(sorted(known.intersection(instance_ids)))
        if ours:
            self.bus.look(why)
        return ours

    def _reading(self) -> tuple[Reading | None, str]:
        """The last digest's queue, or why there is none.

        Whatever is wrong with it must not stop the notice: the next looks save the jobs.
        """
        try:
            received = self.bus.newest_digest()
        except TidegateError as trouble:
            return None, f"the digest cannot be read: {trouble}"
        return (received.digest.reading if received else None), ""

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
