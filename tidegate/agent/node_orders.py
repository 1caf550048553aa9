"""Orders about nodes: drain, undrain and reboot, all names of an order in one command."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.agent.asked import Carried, asked_nodes, is_allowed, result, why_held
from tidegate.core.fleet.drains import is_ours
from tidegate.core.model.drain_reason import DrainCode, DrainReason, code_of
from tidegate.core.model.orders import Order, OrderOutcome, OrderResult
from tidegate.core.model.slurm import Job, Node, Reading, holders
from tidegate.ports.slurm import Slurm

# Slurm's weights are below 2**32 - 1.
WEIGHT_DIGITS = 9


def drain(orders: Sequence[Order], slurm: Slurm) -> Carried:
    """Start no new job on these nodes. The orders share text and guard."""
    asked = asked_nodes(orders, slurm.read())
    drained = {n.name for order, n in asked.pairs if _keeps_reason(n, order)}
    names = list(dict.fromkeys(n.name for _, n in asked.pairs if n.name not in drained))
    if names:
        # Also where the node drains already: a release in progress undrains only a node that
        # still carries its own reason, and this one must stay drained.
        slurm.drain(names, orders[0].text or str(DrainReason(DrainCode.OTHER, "drain")))
    kept = _give_way(asked.pairs, slurm) if orders[0].only_if and names else {}
    done = (
        result(order, node.name, OrderOutcome.KEPT, kept[node.name])
        if node.name in kept
        else result(order, node.name, OrderOutcome.DONE, "The node takes no new job.")
        for order, node in asked.pairs
    )
    lasting = tuple(order for order in orders if not order.only_if)
    return Carried((*asked.settled, *done), lasting=lasting)


def _keeps_reason(node: Node, order: Order) -> bool:
    """It drains for a reason that must not be lost: somebody reads it, or the watcher does."""
    if not node.state.is_drain:
        return False
    is_watchers = code_of(node.reason) is DrainCode.SAVING
    # A person's reason says to whom the node belongs, a checker's what is wrong with it.
    return is_watchers or not is_ours(node) or _is_lesser(order, node.reason)


def _is_lesser(order: Order, before: str) -> bool:
    """A mere risk, where a reclaim was the reason before: queues do not keep the order."""
    is_reclaimed = code_of(before) is DrainCode.RECLAIM
    return is_reclaimed and code_of(order.text) is not DrainCode.RECLAIM


def _give_way(pairs: Sequence[tuple[Order, Node]], slurm: Slurm) -> dict[str, str]:
    """A job may have slipped in between reading and draining: then it wins. Name -> why."""
    states = {node.name: node.state for node in slurm.read().nodes}
    changed = [
        node
        for order, node in pairs
        if node.name in states and not is_allowed(order, states[node.name].words)
    ]
    ours = [node.name for node in changed if not node.state.is_drain]
    if ours:
        slurm.undrain(ours)
    return {node.name: f"The node became {states[node.name]} meanwhile." for node in changed}


def undrain(order: Order, slurm: Slurm) -> Carried:
    """Let jobs start again, where the node is at a gate or carries the reason to lift."""
    asked = asked_nodes((order,), slurm.read())
    # A gate has no reason; who drained the node since then gave one, and wants it drained,
    # unless it is the very one that the order is to lift.
    may_open = ("", order.text)
    names = [n.name for _, n in asked.pairs if n.state.is_drain and n.reason in may_open]
    if names:
        # One command for all: a gang whose members open one by one loses them to small jobs.
        slurm.undrain(names)
    results = (_opened(order, node, names) for _, node in asked.pairs)
    return Carried((*asked.settled, *results), lifted=order)


def _opened(order: Order, node: Node, opened: Sequence[str]) -> OrderResult:
    if node.name in opened:
        return result(order, node.name, OrderOutcome.DONE, "The node takes jobs.")
    if node.state.is_drain:
        return result(order, node.name, OrderOutcome.KEPT, f"It is drained: {node.reason}.")
    return result(order, node.name, OrderOutcome.DONE, "The node took jobs already.")


def reboot(order: Order, slurm: Slurm) -> Carried:
    """Have Slurm reboot what is drained for the very reason that was judged, and empty.

    Slurm itself waits for a job that slipped in.
    """
    reading = slurm.read()
    asked, held = asked_nodes((order,), reading), holders(reading.jobs)
    refused = {node.name: _why_no_reboot(order, node, held) for _, node in asked.pairs}
    pairs = [(node, refused[node.name]) for _, node in asked.pairs]
    names = [node.name for node, why in pairs if not why and not node.state.awaits_reboot]
    if names:
        slurm.reboot(names)
    done = (
        result(order, node.name, OrderOutcome.KEPT, why)
        if why
        else result(order, node.name, OrderOutcome.DONE, "Slurm reboots the node.")
        for node, why in pairs
    )
    return Carried((*asked.settled, *done))


def _why_no_reboot(order: Order, node: Node, held: Mapping[str, Sequence[Job]]) -> str:
    """Why this node is left as it is; "" when Slurm may reboot it."""
    if node.state.is_down or not node.state.is_drain:
        return f"The node is {node.state}, not drained for what was found."
    if node.state.is_busy or node.name in held:
        return "A job has the node."
    return why_held(order, node)


def weigh(order: Order, slurm: Slurm) -> Carried:
    """Set the weight of these nodes, where it is a number that Slurm takes.

    Only a failure is told: the next reading shows the rest, and digests hold few results.
    """
    if not (order.text.isascii() and order.text.isdecimal() and len(order.text) <= WEIGHT_DIGITS):
        why = f"{order.text[:40]!r} is no weight."
        return Carried(tuple(result(order, n, OrderOutcome.FAILED, why) for n in order.names))
    slurm.weigh(order.names, int(order.text))
    return Carried(())


def check(order: Order, slurm: Slurm) -> Carried:
    """Submit the site's check, on all of the order's nodes or not at all."""
    asked = asked_nodes((order,), slurm.read())
    if asked.settled:
        return Carried(asked.settled)
    refused = slurm.check(order.text, order.names)
    outcome = OrderOutcome.FAILED if refused else OrderOutcome.DONE
    detail = f"Not taken: {refused.rstrip('.')}." if refused else "It waits or runs there."
    return Carried(tuple(result(order, name, outcome, detail) for name in order.names))


@dataclass(slots=True)
class Lasting:
    """Drains that hold until their time is over, whatever happens to the node meanwhile.

    It may still boot: then it is drained before a job can start on it. Or the node's own
    watcher drained it a moment later: then the reason tells it that we have its jobs.
    """

    _orders: dict[str, tuple[Order, float]] = field(default_factory=dict)
    # Orders come on other threads than looks.
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, orders: Iterable[Order], now_s: float) -> None:
        """`now_s`: when they had been carried out."""
        with self._lock:
            for order in orders:
                for name in order.names:
                    before = self._orders[name][0].text if name in self._orders else ""
                    if not _is_lesser(order, before):
                        self._orders[name] = order, now_s

    def lift(self, undrain: Order) -> None:
        """No more drains for the reason that this order takes back, also of nodes that boot; and
        what was only kept from small jobs is open whatever it was drained for since.
        """
        with self._lock:
            for name in undrain.names:
                text = self._orders[name][0].text if name in self._orders else ""
                if text and (text == undrain.text or code_of(text) is DrainCode.CLOSED):
                    del self._orders[name]

    def renew(
        self, reading: Reading, slurm: Slurm, *, read_at_s: float, now_s: float
    ) -> frozenset[str]:
        """Drain again where it is needed; those names. Errors: SlurmUnavailable.

        A reading from before an order was carried out does not show yet what it did.
        """
        with self._lock:
            self._orders = {
                name: (order, since_s)
                for name, (order, since_s) in self._orders.items()
                if now_s <= order.not_after_s
            }
            known = dict(self._orders)
        drained: set[str] = set()
        names: dict[str, list[str]] = {}
        for node in reading.nodes:
            is_open = not node.state.is_drain or code_of(node.reason) is DrainCode.NOTICED
            if node.name not in known or not is_open:
                continue
            drained.add(node.name)
            order, since_s = known[node.name]
            if since_s <= read_at_s:
                names.setdefault(order.text, []).append(node.name)
        for reason, ours in names.items():
            slurm.drain(ours, reason)
        return frozenset(drained)
