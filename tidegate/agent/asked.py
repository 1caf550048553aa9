"""What orders ask of nodes or jobs, held against one reading of Slurm."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tidegate.core.fleet.drains import is_ours, told_by
from tidegate.core.model.frozen import frozen
from tidegate.core.model.orders import Order, OrderKind, OrderOutcome, OrderResult
from tidegate.core.model.slurm import Job, Node, Reading


@frozen
class Carried:
    """What became of orders, one result per name of each.

    `requeued`: jobs that now wait; `lasting`: drains to renew until their time is over;
    `lifted`: an undrain that ends such drains of its reason.
    """

    results: tuple[OrderResult, ...]
    requeued: frozenset[str] = frozenset()
    lasting: tuple[Order, ...] = ()
    lifted: Order | None = None


@frozen
class Asked[T]:
    """Each order with those nodes or jobs of its that pass its guard; results for the others.

    Several orders may name the same one: it is touched once, and each order has its result.
    """

    pairs: tuple[tuple[Order, T], ...]
    settled: tuple[OrderResult, ...]


def why_held(order: Order, node: Node) -> str:
    """Why the node stays in Slurm: between the decision and now somebody has taken it out of
    service; "": nobody has.
    """
    is_expected = is_ours(node) or told_by(node) == order.despite
    if not node.state.is_drain or node.state.is_down or is_expected:
        return ""
    return f"Somebody has drained the node: {node.reason}."


def asked_nodes(orders: Iterable[Order], reading: Reading) -> Asked[Node]:
    """The nodes that these orders name."""

    def why_not(order: Order, node: Node | None) -> tuple[OrderOutcome, str] | None:
        if node is None and order.kind is OrderKind.DELETE:
            return OrderOutcome.DONE, "The node is gone from Slurm."
        if node is None:
            return OrderOutcome.FAILED, "Slurm knows no node of this name."
        if not is_allowed(order, node.state.words):
            return OrderOutcome.KEPT, f"The node is {node.state}, not {either(order.only_if)}."
        return None

    return _asked(orders, {node.name: node for node in reading.nodes}, why_not)


def asked_jobs(orders: Iterable[Order], reading: Reading) -> Asked[Job]:
    """The jobs that these orders name."""

    def why_not(order: Order, job: Job | None) -> tuple[OrderOutcome, str] | None:
        if job is None:
            return OrderOutcome.KEPT, "The job is not in the queue."
        if not is_allowed(order, frozenset({job.state})):
            return OrderOutcome.KEPT, f"The job is {job.state}, not {either(order.only_if)}."
        if order.restarts is not None and order.restarts != job.restarts:
            return OrderOutcome.KEPT, "The run that the order is about is over."
        if order.on_nodes and set(order.on_nodes).isdisjoint(job.node_names):
            where = either(order.on_nodes[:5])
            return OrderOutcome.KEPT, f"The job does not run on {where} any more."
        return None

    return _asked(orders, {job.job_id: job for job in reading.jobs}, why_not)


def _asked[T](
    orders: Iterable[Order],
    known: Mapping[str, T],
    why_not: Callable[[Order, T | None], tuple[OrderOutcome, str] | None],
) -> Asked[T]:
    pairs: list[tuple[Order, T]] = []
    settled: list[OrderResult] = []
    for order in orders:
        for name in order.names:
            found = known.get(name)
            if refusal := why_not(order, found):
                settled.append(result(order, name, *refusal))
            elif found is not None:
                pairs.append((order, found))
    return Asked(tuple(pairs), tuple(settled))


def is_allowed(order: Order, words: frozenset[str]) -> bool:
    """Whether the order's guard holds for a node or job in this state."""
    return not order.only_if or bool(words & set(order.only_if))


def either(words: Sequence[str]) -> str:
    return " or ".join(words)


def result(order: Order, name: str, outcome: OrderOutcome, detail: str) -> OrderResult:
    return OrderResult(order.order_id, order.kind, name, outcome, detail)
