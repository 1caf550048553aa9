"""The invariant of looks that follow each other: none undoes, or asks again, what one before did.

A plan that another one contradicts with each look moves nothing, and no other check sees it: each
order alone is a good one.
"""

from collections import defaultdict, deque

from tidegate.core.model.orders import Order, OrderKind
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.slurm_parts import SimJob

WITHIN_S = 60.0
# Looks that contradict each other do so each second; people, faults and short jobs make six turns
# of a node in a minute, and ten orders alike to one, in thousands of worlds.
TURNS_MAX = SENT_MAX = 12
WAITS_S = 3.0
# About what AWS takes a plan repeats its orders until a digest shows that they are carried out.
REPEATED = frozenset({OrderKind.SIGNAL, OrderKind.REQUEUE, OrderKind.DELETE})


class NoFlapping(Check):
    """No node is closed and opened again look by look, nor asked the same in each."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.last: dict[str, str] = {}
        self.turns: defaultdict[str, deque[float]] = defaultdict(deque)
        self.asked: defaultdict[tuple[str, OrderKind, str], deque[float]] = defaultdict(deque)

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        if verb not in ("drain", "undrain"):
            return
        for name in names:
            if self.last.get(name, verb) != verb and self._count(self.turns[name]) > TURNS_MAX:
                raise self.broken(f"{name} was opened and closed {TURNS_MAX} times in a minute")
            self.last[name] = verb

    def started(self, job: SimJob) -> None:
        """What opened for a job that then started there, however soon that failed, was no turn."""
        for name in job.node_names:
            self.turns[name].clear()

    def sent(self, order: Order) -> None:
        """A head whose clock is wrong carries none out: they are all too late, or too early. One
        that is behind tells in digest after digest of weights that it has not set yet.
        """
        since_s, chaos = self.witness.now_s - WITHIN_S, self.witness.chaos
        if order.kind in REPEATED or not chaos.was_calm_since(since_s, "clock"):
            return
        if order.kind is OrderKind.WEIGHT and self._waits(order):
            return
        # Another weight is asked as jobs come and go; one of two in turn is still found.
        weight = order.text if order.kind is OrderKind.WEIGHT else ""
        for name in order.names:
            if self._count(self.asked[name, order.kind, weight]) > SENT_MAX:
                raise self.broken(f"{order.kind} {name}: sent {SENT_MAX} times in a minute")

    def _waits(self, order: Order) -> bool:
        """The head, which asks each second or so, has not taken one about the same for a while."""
        due_s = self.witness.now_s - WAITS_S
        due = (m.order for m in self.world.bus.routine.messages if m.visible_at_s < due_s)
        weighed = (name for o in due if o and o.kind is order.kind for name in o.names)
        return not set(order.names).isdisjoint(weighed)

    def _count(self, at_s: deque[float]) -> int:
        """How many within the last minute, this one too."""
        at_s.append(self.witness.now_s)
        while at_s[0] < self.witness.now_s - WITHIN_S:
            at_s.popleft()
        return len(at_s)
