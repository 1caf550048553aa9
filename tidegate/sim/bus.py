"""The way between head and planner, with the habits of S3, EventBridge and SQS."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidegate.core.model.digest import Digest
from tidegate.core.model.errors import BadEvent
from tidegate.core.model.orders import Order
from tidegate.core.model.slurm_names import faults
from tidegate.ports import Clock, ReceivedDigest, ReceivedOrder
from tidegate.sim.faults import Faults, effect, no_faults

BATCH = 10  # what one SQS receive returns at most
NEVER_S = float("inf")

type Route[T] = Callable[[T], tuple[float, ...]]
"""After how many seconds a message arrives, once for each delivery; (): it is lost."""


def at_once(message: object) -> tuple[float, ...]:
    """A message on its best day: one delivery, now."""
    return (0.0,)


@dataclass(slots=True)
class Message:
    """One message of a queue; `order` None stands for a body that no one can read."""

    handle: str
    order: Order | None
    visible_at_s: float


@dataclass(slots=True)
class SimQueue:
    """A standard SQS queue: at least once, hidden for a while after each receive."""

    clock: Clock
    visibility_s: float
    messages: list[Message] = field(default_factory=list)
    sent: int = 0

    def send(self, order: Order | None, delay_s: float = 0.0) -> None:
        self.sent += 1
        visible_at_s = self.clock.now_s() + delay_s
        self.messages.append(Message(f"receipt-{self.sent}", order, visible_at_s))

    def receive(self) -> tuple[ReceivedOrder, ...]:
        now_s = self.clock.now_s()
        due = [one for one in self.messages if one.visible_at_s <= now_s][:BATCH]
        for message in due:
            message.visible_at_s = now_s + self.visibility_s
        self.messages = [one for one in self.messages if one.order is not None or one not in due]
        return tuple(ReceivedOrder(one.order, one.handle) for one in due if one.order is not None)

    def next_due_s(self) -> float:
        return min(one.visible_at_s for one in self.messages) if self.messages else NEVER_S

    def delete(self, handle: str) -> None:
        self.messages = [one for one in self.messages if one.handle != handle]


@dataclass(slots=True)
class SimBus:
    """One cluster's bus. `looks`: when each arrives and why, until `take_looks`.

    `look_route`, `order_route`: what the way does to a message.
    """

    clock: Clock
    visibility_s: float = 30.0
    faults: Faults = no_faults
    look_route: Route[str] = at_once
    order_route: Route[Order] = at_once
    looks: list[tuple[float, str]] = field(default_factory=list)
    on_order: list[Callable[[Order], None]] = field(default_factory=list)
    on_digest: list[Callable[[Digest], None]] = field(default_factory=list)
    digest: Digest | None = None
    put_at_s: float = 0.0
    is_digest_readable: bool = True
    orders: list[Order] = field(default_factory=list)
    urgent: SimQueue = field(init=False)
    routine: SimQueue = field(init=False)

    def __post_init__(self) -> None:
        self.urgent = SimQueue(self.clock, self.visibility_s)
        self.routine = SimQueue(self.clock, self.visibility_s)

    def put_digest(self, digest: Digest) -> None:
        with effect(self.faults, "put_digest"):
            self.digest, self.put_at_s = digest, self.clock.now_s()
            self.is_digest_readable = True
        with effect(self.faults, "announce_digest"):
            self._ask("digest")

    def newest_digest(self) -> ReceivedDigest | None:
        with effect(self.faults, "newest_digest"):
            if not self.is_digest_readable:
                raise BadEvent("the digest cannot be read")
            age_s = self.clock.now_s() - self.put_at_s
            received = ReceivedDigest(self.digest, age_s) if self.digest else None
            if received is not None:
                for tell in self.on_digest:
                    tell(received.digest)
        return received

    def look(self, why: str) -> None:
        with effect(self.faults, "look"):
            self._ask(why)

    def send_orders(self, orders: Sequence[Order]) -> None:
        with effect(self.faults, "send_orders"):
            for order in orders:
                self.orders.append(order)
                for tell in self.on_order:
                    tell(order)
                if any(faults(order)):  # nobody can read it
                    continue
                for late_s in self.order_route(order):
                    queue = self._queue(urgent=order.kind.is_urgent)
                    queue.send(order, order.delay_s + late_s)

    def receive_orders(self, *, urgent: bool, wait_s: int) -> tuple[ReceivedOrder, ...]:
        """Orders that are due now; virtual time does not pass here, whatever `wait_s` says."""
        with effect(self.faults, "receive_orders"):
            received = self._queue(urgent=urgent).receive()
        return received

    def acknowledge(self, received: ReceivedOrder) -> None:
        with effect(self.faults, "acknowledge"):
            self._queue(urgent=received.order.kind.is_urgent).delete(received.handle)

    def take_looks(self) -> tuple[str, ...]:
        """The looks that have arrived since the last call."""
        if not self.looks:
            return ()
        now_s = self.clock.now_s()
        taken = tuple(why for at_s, why in self.looks if at_s <= now_s)
        self.looks = [each for each in self.looks if each[0] > now_s]
        return taken

    def next_look_s(self) -> float:
        return min(at_s for at_s, _ in self.looks) if self.looks else NEVER_S

    def next_order_s(self) -> float:
        return min(self.urgent.next_due_s(), self.routine.next_due_s())

    def _ask(self, why: str) -> None:
        now_s = self.clock.now_s()
        self.looks.extend((now_s + late_s, why) for late_s in self.look_route(why))

    def repeat(self, order: Order) -> None:
        """Deliver an order once more, as SQS may even after it was acknowledged."""
        self._queue(urgent=order.kind.is_urgent).send(order)

    def spoil_digest(self) -> None:
        """Put bytes where the digest was."""
        self.is_digest_readable = False

    def _queue(self, *, urgent: bool) -> SimQueue:
        return self.urgent if urgent else self.routine


@dataclass(slots=True)
class SimDeadLooks:
    """What was put aside: message id -> (body, reason)."""

    faults: Faults = no_faults
    kept: dict[str, tuple[str, str]] = field(default_factory=dict)

    def keep(self, body: str, *, message_id: str, reason: str) -> None:
        with effect(self.faults, "keep"):
            self.kept[message_id] = (body, reason)
