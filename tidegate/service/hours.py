"""Keeping the hours: the head runs when the calendar says so, and stops once its nodes are gone.

It asks the calendar what should be now, never the event that woke it: one that comes late,
twice or in the wrong order changes nothing. Nothing is remembered, so it may die anywhere.
"""

from enum import StrEnum

from tidegate.core.model.calendar import Wanted
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Phase
from tidegate.ports import Bus, Calendar, Clock, Compute, Head, Ledger, LedgerView

NAMED_MAX = 5


class Did(StrEnum):
    """What was done with the head."""

    STARTED = "started"
    STOPPED = "stopped"
    WAITS = "waits"  # it should change and cannot yet: tried again with the next event
    NOTHING = "nothing"


@frozen
class Kept:
    """What was done, and why, in a sentence."""

    did: Did
    sentence: str

    def record(self) -> dict[str, str]:
        return {"did": self.did.value, "sentence": self.sentence}


@frozen(kw_only=True)
class Hours:
    """The head's hours. Without schedules a person starts and stops the head."""

    cluster: Cluster
    calendar: Calendar
    head: Head
    compute: Compute
    ledger: Ledger
    bus: Bus
    clock: Clock

    def keep(self, why: str) -> Kept:
        """Ask for a look, and make the head what the calendar wants it to be now.

        The look comes first: whatever hinders the head, the nodes are looked after.
        Errors: Throttled, NotAuthorized; every step may be repeated.
        """
        self.bus.look(why)
        view = self.ledger.view()
        wanted = self.calendar.wanted(self.clock.now_s(), view.overrides)
        if wanted.keeps_head:
            return Kept(Did.NOTHING, f"{wanted.reason}, and the head is left as it is")
        state = self.head.state()
        if state is None:
            return Kept(Did.NOTHING, f"{wanted.reason}, and EC2 shows no head")
        return self._up(wanted, state) if wanted.is_up else self._stopped(wanted, state, view)

    def _up(self, wanted: Wanted, state: InstanceState) -> Kept:
        if state is InstanceState.STOPPING:
            return Kept(Did.WAITS, f"{wanted.reason}: the head is still stopping")
        if state is not InstanceState.STOPPED:
            return Kept(Did.NOTHING, f"{wanted.reason}, and the head is {state}")
        if refused := self.head.start():
            return Kept(Did.WAITS, f"{wanted.reason}: EC2 does not start {refused}")
        return Kept(Did.STARTED, f"{wanted.reason}: the head is started")

    def _stopped(self, wanted: Wanted, state: InstanceState, view: LedgerView) -> Kept:
        left = self._left(view)
        if state is InstanceState.PENDING:
            return Kept(Did.WAITS, f"{wanted.reason}: the head is still starting")
        if state is not InstanceState.RUNNING:
            also = f", but not all is over: {left}" if left else ""
            return Kept(Did.NOTHING, f"{wanted.reason}, and the head is {state}{also}")
        if left:
            return Kept(Did.WAITS, f"{wanted.reason}: the head waits for its nodes: {left}")
        # A planner that looked before this moment loses its epoch here and buys nothing; one
        # that looks later sees the same calendar.
        if not self.ledger.commit(view.epoch, ()):
            return Kept(Did.WAITS, f"{wanted.reason}: the head waits for a look at work")
        if refused := self.head.stop():
            return Kept(Did.WAITS, f"{wanted.reason}: EC2 does not stop {refused}")
        return Kept(Did.STOPPED, f"{wanted.reason}: the head is stopped, no node is left")

    def _left(self, view: LedgerView) -> str:
        """What still needs the head, "" when nothing does. The ledger was read before EC2."""
        nodes = {one.instance_id for one in view.nodes if one.phase < Phase.RELEASED}
        nodes |= {one.instance_id for one in self.compute.instances() if one.is_alive}
        launches = [record.launch.launch_id for record in view.launches]
        parts = [
            f"{what} {_named(names)}"
            for what, names in (("launch", sorted(launches)), ("node", sorted(nodes)))
            if names
        ]
        return ", ".join(parts)


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
