"""Orders from the planner, carried out on Slurm: guarded, and harmless when repeated.

Every order first reads what is true now. An expired order does nothing; an order whose guard
(`only_if`) no longer holds keeps things as they are. Errors: SlurmUnavailable, always before
the order counts as carried out, so that the queue delivers it again.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import assert_never

from tidegate.adapters.slurm_cli import is_job_id, is_node_name, is_signal
from tidegate.agent.release import Pace, release
from tidegate.core.actions import Order, OrderKind, OrderOutcome, OrderResult
from tidegate.core.slurm import Job, Node
from tidegate.ports import Slurm

type Sleep = Callable[[float], None]


def carry_out(
    order: Order, slurm: Slurm, now_s: float, *, sleep: Sleep = time.sleep, pace: Pace | None = None
) -> tuple[OrderResult, ...]:
    """What became of the order, one result per name. Errors: SlurmUnavailable."""
    if now_s > order.not_after_s:
        late_s = now_s - order.not_after_s
        detail = f"The order came {late_s:.0f} s after its time; nothing was done."
        return tuple(_result(order, name, OrderOutcome.EXPIRED, detail) for name in order.names)
    good, refused = _valid_names(order)
    if not good:
        return refused
    return (*refused, *_do(order, good, slurm, sleep, pace or Pace()))


def _do(
    order: Order, names: tuple[str, ...], slurm: Slurm, sleep: Sleep, pace: Pace
) -> tuple[OrderResult, ...]:
    match order.kind:
        case OrderKind.RELEASE:
            return release(order, names, slurm, sleep, pace)
        case OrderKind.DRAIN:
            return _drain(_NodeWork.read(order, names, slurm), slurm)
        case OrderKind.UNDRAIN:
            return _undrain(_NodeWork.read(order, names, slurm), slurm)
        case OrderKind.REQUEUE:
            return _requeue(_JobWork.read(order, names, slurm), slurm)
        case OrderKind.SIGNAL:
            return _signal(_JobWork.read(order, names, slurm), slurm)
        case OrderKind.COMMENT:
            return _comment(_JobWork.read(order, names, slurm), slurm)
        case _:
            assert_never(order.kind)


def _valid_names(order: Order) -> tuple[tuple[str, ...], tuple[OrderResult, ...]]:
    """The names that may become arguments, and a refusal for each other one."""
    is_about_nodes = order.kind in (OrderKind.DRAIN, OrderKind.UNDRAIN, OrderKind.RELEASE)
    is_good = is_node_name if is_about_nodes else is_job_id
    what = "the name of a node" if is_about_nodes else "a job id"
    if order.kind is OrderKind.SIGNAL and not is_signal(order.text):
        text = f"{order.text[:40]!r} is no signal that Slurm knows by name."
        return (), tuple(_result(order, name, OrderOutcome.FAILED, text) for name in order.names)
    names = tuple(dict.fromkeys(order.names))
    good = tuple(name for name in names if is_good(name))
    refused = (name for name in names if not is_good(name))
    return good, tuple(
        _result(order, name[:80], OrderOutcome.FAILED, f"This is not {what}.") for name in refused
    )


@dataclass(frozen=True, slots=True)
class _NodeWork:
    """The nodes of an order that exist and pass its guard, and results for the others."""

    order: Order
    nodes: tuple[Node, ...]
    settled: tuple[OrderResult, ...]

    @classmethod
    def read(cls, order: Order, names: Sequence[str], slurm: Slurm) -> "_NodeWork":
        known = {node.name: node for node in slurm.read().nodes}
        settled: list[OrderResult] = []
        nodes: list[Node] = []
        for name in names:
            node = known.get(name)
            if node is None:
                detail = "Slurm knows no node of this name."
                settled.append(_result(order, name, OrderOutcome.FAILED, detail))
            elif not _is_allowed(order, node.state.words):
                detail = f"The node is {node.state}, not {_either(order.only_if)}."
                settled.append(_result(order, name, OrderOutcome.KEPT, detail))
            else:
                nodes.append(node)
        return cls(order, tuple(nodes), tuple(settled))


def _drain(work: _NodeWork, slurm: Slurm) -> tuple[OrderResult, ...]:
    order = work.order
    names = [node.name for node in work.nodes]
    if names:
        # Also where the node drains already: a release in progress undrains only a node that
        # still carries its own reason, and this one must stay drained.
        slurm.drain(names, order.text or "tidegate: drain")
    if not order.only_if or not names:
        return (*work.settled, *_all(order, names, "The node takes no new job."))
    return (*work.settled, *_drain_checked(order, work.nodes, slurm))


def _drain_checked(order: Order, nodes: Sequence[Node], slurm: Slurm) -> Iterable[OrderResult]:
    """A job may have slipped in between reading and draining: then it wins."""
    states = {node.name: node.state for node in slurm.read().nodes}
    was_drained = {node.name for node in nodes if node.state.is_drain}
    changed = [
        node.name
        for node in nodes
        if node.name in states and not _is_allowed(order, states[node.name].words)
    ]
    slurm_undrains = [name for name in changed if name not in was_drained]
    if slurm_undrains:
        slurm.undrain(slurm_undrains)
    kept = {name: f"The node became {states[name]} meanwhile." for name in changed}
    return tuple(
        _result(order, node.name, OrderOutcome.KEPT, kept[node.name])
        if node.name in kept
        else _result(order, node.name, OrderOutcome.DONE, "The node takes no new job.")
        for node in nodes
    )


def _undrain(work: _NodeWork, slurm: Slurm) -> tuple[OrderResult, ...]:
    drained = [node for node in work.nodes if node.state.is_drain]
    # A gate has no reason; who drained the node since then gave one, and wants it drained,
    # unless it is the very one that the order is to lift.
    may_open = ("", work.order.text)
    names = [node.name for node in drained if node.reason in may_open]
    others = [node for node in drained if node.reason not in may_open]
    open_names = [node.name for node in work.nodes if not node.state.is_drain]
    if names:
        # One command for all: a gang whose members open one by one loses them to small jobs.
        slurm.undrain(names)
    opened = _all(work.order, names, "The node takes jobs.")
    kept = (
        _result(work.order, node.name, OrderOutcome.KEPT, f"It is drained: {node.reason}.")
        for node in others
    )
    already = _all(work.order, open_names, "The node took jobs already.")
    return (*work.settled, *opened, *kept, *already)


@dataclass(frozen=True, slots=True)
class _JobWork:
    """The jobs of an order that are in the queue and pass its guard."""

    order: Order
    jobs: tuple[Job, ...]
    settled: tuple[OrderResult, ...]

    @classmethod
    def read(cls, order: Order, names: Sequence[str], slurm: Slurm) -> "_JobWork":
        queue = {job.job_id: job for job in slurm.read().jobs}
        settled: list[OrderResult] = []
        jobs: list[Job] = []
        for name in names:
            job = queue.get(name)
            if job is None:
                detail = "The job is not in the queue."
                settled.append(_result(order, name, OrderOutcome.KEPT, detail))
            elif not _is_allowed(order, frozenset({job.state})):
                detail = f"The job is {job.state}, not {_either(order.only_if)}."
                settled.append(_result(order, name, OrderOutcome.KEPT, detail))
            elif order.on_nodes and not set(order.on_nodes) & set(job.node_names):
                detail = f"The job does not run on {_either(order.on_nodes)} any more."
                settled.append(_result(order, name, OrderOutcome.KEPT, detail))
            else:
                jobs.append(job)
        return cls(order, tuple(jobs), tuple(settled))


def _requeue(work: _JobWork, slurm: Slurm) -> tuple[OrderResult, ...]:
    order, results = work.order, list(work.settled)
    running: list[str] = []
    for job in work.jobs:
        if job.is_pending:
            results.append(_result(order, job.job_id, OrderOutcome.DONE, "The job waits already."))
        elif not job.is_requeueable:
            detail = "Its user forbade to requeue the job (--no-requeue)."
            results.append(_result(order, job.job_id, OrderOutcome.KEPT, detail))
        elif not job.is_running:
            detail = f"The job is {job.state}; only a running job is requeued."
            results.append(_result(order, job.job_id, OrderOutcome.KEPT, detail))
        else:
            running.append(job.job_id)
    errors = slurm.requeue(running) if running else {}
    done = "The job starts again as soon as it has nodes."
    return (*results, *_by_error(order, running, errors, done))


def _signal(work: _JobWork, slurm: Slurm) -> tuple[OrderResult, ...]:
    order = work.order
    running = [job.job_id for job in work.jobs if job.is_running]
    other = [job for job in work.jobs if not job.is_running]
    errors = slurm.signal(running, order.text) if running else {}
    return (
        *work.settled,
        *(
            _result(order, job.job_id, OrderOutcome.KEPT, f"The job is {job.state}, not RUNNING.")
            for job in other
        ),
        *_by_error(order, running, errors, f"The job got {order.text}."),
    )


def _comment(work: _JobWork, slurm: Slurm) -> tuple[OrderResult, ...]:
    for job in work.jobs:
        slurm.comment(job.job_id, work.order.text)
    names = [job.job_id for job in work.jobs]
    return (*work.settled, *_all(work.order, names, "The job carries the comment."))


def _by_error(
    order: Order, names: Sequence[str], errors: dict[str, str], done: str
) -> tuple[OrderResult, ...]:
    return tuple(
        _result(order, name, OrderOutcome.FAILED, f"Slurm refused: {errors[name]}.")
        if name in errors
        else _result(order, name, OrderOutcome.DONE, done)
        for name in names
    )


def _all(order: Order, names: Iterable[str], detail: str) -> tuple[OrderResult, ...]:
    return tuple(_result(order, name, OrderOutcome.DONE, detail) for name in names)


def _is_allowed(order: Order, words: frozenset[str]) -> bool:
    return not order.only_if or bool(words & set(order.only_if))


def _either(words: Sequence[str]) -> str:
    return " or ".join(words)


def _result(order: Order, name: str, outcome: OrderOutcome, detail: str) -> OrderResult:
    return OrderResult(order.order_id, order.kind, name, outcome, detail)
