"""Orders about nodes: drain and undrain, all names of all orders in one command."""

from collections.abc import Sequence

from tidegate.agent.asked import Carried, asked_nodes, is_allowed, result
from tidegate.core.actions import Order, OrderOutcome, OrderResult
from tidegate.core.slurm import Node
from tidegate.ports import Slurm


def drain(orders: Sequence[Order], slurm: Slurm) -> Carried:
    """Start no new job on these nodes. The orders share text and guard."""
    asked = asked_nodes(orders, slurm.read())
    names = list(dict.fromkeys(node.name for _, node in asked.pairs))
    if names:
        # Also where the node drains already: a release in progress undrains only a node that
        # still carries its own reason, and this one must stay drained.
        slurm.drain(names, orders[0].text or "tidegate: drain")
    kept = _give_way(asked.pairs, slurm) if orders[0].only_if and names else {}
    return Carried(
        (
            *asked.settled,
            *(
                result(order, node.name, OrderOutcome.KEPT, kept[node.name])
                if node.name in kept
                else result(order, node.name, OrderOutcome.DONE, "The node takes no new job.")
                for order, node in asked.pairs
            ),
        )
    )


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
    return Carried((*asked.settled, *(_opened(order, node, names) for _, node in asked.pairs)))


def _opened(order: Order, node: Node, opened: Sequence[str]) -> OrderResult:
    if node.name in opened:
        return result(order, node.name, OrderOutcome.DONE, "The node takes jobs.")
    if node.state.is_drain:
        return result(order, node.name, OrderOutcome.KEPT, f"It is drained: {node.reason}.")
    return result(order, node.name, OrderOutcome.DONE, "The node took jobs already.")
