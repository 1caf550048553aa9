"""The entry points of the loop: a look, and a batch of news about nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidegate.core.model.calendar import AlwaysUp
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import RefusalKind
from tidegate.core.model.errors import NotAuthorized, TidegateError
from tidegate.core.model.events import News
from tidegate.core.model.frozen import frozen
from tidegate.core.model.plan import Plan
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.planner import plan
from tidegate.ports import Bus, Calendar, Clock, Compute, Ledger
from tidegate.ports.alarms import Alarms
from tidegate.service.apply import Applier
from tidegate.service.interruptions import Interrupted, Interruptions
from tidegate.service.observe import AskedOnce, observe
from tidegate.service.outcome import Outcome
from tidegate.service.requests import Placement

# After a refusal the plan is made anew without the refused offering, in the same look; so is
# one that was cut. No round starts after the budget: a planner lives 45 s.
ROUNDS_MAX = 4
BUDGET_S = 10.0


@frozen
class Round:
    """One pass of observe, plan, apply."""

    snapshot: Snapshot
    plan: Plan
    outcome: Outcome
    notes: tuple[str, ...] = ()

    @property
    def wants_another(self) -> bool:
        """Not where EC2 is asked too fast: what it did not judge is for the next look."""
        refused = self.outcome.refused
        is_throttled = any(each.kind is RefusalKind.THROTTLED for each in refused)
        return not is_throttled and bool(refused or self.plan.is_cut or self.outcome.is_late)


@dataclass(slots=True)
class Looked:
    """What a look did; `trouble` is set when the outside world failed it, `is_denied` when that
    was a policy.
    """

    rounds: list[Round] = field(default_factory=list)
    trouble: str = ""
    is_denied: bool = False

    @property
    def last_known(self) -> Round | None:
        """The last round that knew the queue and lost no race; None: there was none."""
        known = [
            each
            for each in self.rounds
            if each.snapshot.digest is not None and not each.outcome.is_stale
        ]
        return known[-1] if known else None


@frozen
class Control:
    """The only loop. Lambda, demo, tests and simulator differ in the ports they give it."""

    cluster: Cluster
    compute: Compute
    ledger: Ledger
    bus: Bus
    clock: Clock
    placement: Placement
    calendar: Calendar = field(default_factory=AlwaysUp)
    alarms: Alarms | None = None

    def look(self) -> Looked:
        """Observe, plan, apply; never raises for trouble outside: the next look is near."""
        looked = Looked()
        until_s = self.clock.now_s() + BUDGET_S
        alarms = AskedOnce(self.alarms) if self.alarms else None
        try:
            while len(looked.rounds) < ROUNDS_MAX and self.clock.now_s() < until_s:
                done = self._round(until_s, alarms)
                looked.rounds.append(done)
                if done.outcome.is_stale or not done.wants_another:
                    return looked
            self.bus.look("more to launch than one look can")
        except TidegateError as trouble:
            looked.trouble = f"{type(trouble).__name__}: {trouble}"
            looked.is_denied = isinstance(trouble, NotAuthorized)
        return looked

    def _round(self, until_s: float, alarms: Alarms | None) -> Round:
        snapshot, notes = observe(
            self.cluster,
            compute=self.compute,
            ledger=self.ledger,
            bus=self.bus,
            clock=self.clock,
            calendar=self.calendar,
            alarms=alarms,
            templates=self.placement.templates,
            subnets_of=self.placement.subnets_of,
        )
        made = plan(snapshot)
        applier = Applier(self.compute, self.ledger, self.bus, self.placement, self.clock)
        outcome = applier.apply(made, snapshot, until_s)
        if snapshot.digest is not None and not outcome.is_stale:
            self.ledger.see_digest(snapshot.digest.stamp)
        return Round(snapshot, made, outcome, notes)

    def interrupt(self, news: Sequence[News]) -> Interrupted:
        """Save what runs on nodes that go. Errors: Throttled, NotAuthorized."""
        return Interruptions(self.cluster, self.ledger, self.bus, self.clock).handle(news)
