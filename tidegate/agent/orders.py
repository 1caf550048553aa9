"""Orders from the planner, carried out on Slurm: guarded, and harmless when repeated.

Every order first reads what is true now. An expired order does nothing; an order whose guard
(`only_if`) no longer holds keeps things as they are. Errors: SlurmUnavailable, always before
the order counts as carried out, so that the queue delivers it again.
"""

import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field, replace
from typing import assert_never

from tidegate.adapters.slurm_cli import JOBS_AT_ONCE
from tidegate.agent.asked import Carried, result
from tidegate.agent.delete import delete
from tidegate.agent.job_orders import (
    Signalled,
    cancel,
    comment,
    constrain,
    hold_back,
    requeue,
    signal,
    tell,
)
from tidegate.agent.node_orders import check, drain, reboot, undrain, weigh
from tidegate.agent.release import Pace, release
from tidegate.core.model.drain_reason import DrainCode, read
from tidegate.core.model.frozen import frozen
from tidegate.core.model.orders import Order, OrderKind, OrderOutcome, OrderResult
from tidegate.core.model.slurm_names import ABOUT_JOBS, is_job_id, is_node_name, is_signal
from tidegate.ports.slurm import Slurm

type Sleep = Callable[[float], None]

# What is carried out first of the orders that arrive together: a job is signalled before it is
# requeued, and no new one starts meanwhile.
_RANK = {
    OrderKind.DRAIN: 0,
    OrderKind.SIGNAL: 1,
    OrderKind.HOLD: 2,
    OrderKind.REQUEUE: 3,
    OrderKind.DELETE: 4,
}


@frozen
class Worker:
    """Carries orders out on one Slurm; `signalled` and `told` are its only memory.

    `tell`: a word to all users. They hear once of each stop of the cluster.
    """

    slurm: Slurm
    sleep: Sleep = time.sleep
    pace: Pace = field(default_factory=Pace)
    signalled: Signalled = field(default_factory=Signalled)
    tell: Callable[[str], None] = lambda text: None
    told: list[str] = field(default_factory=list)

    def carry_out(self, batch: Sequence[Order], now_s: float) -> Carried:
        """What became of the orders of one batch, see `batches`. Errors: SlurmUnavailable."""
        results: list[OrderResult] = []
        good: list[Order] = []
        for order in batch:
            valid, refused = _valid(order, now_s)
            results.extend(refused)
            if valid.names:
                good.append(valid)
        done = self._do(good, now_s) if good else Carried(())
        return replace(done, results=(*results, *done.results)) if results else done

    def _do(self, batch: Sequence[Order], now_s: float) -> Carried:
        first = batch[0]
        match first.kind:
            case OrderKind.RELEASE:
                return Carried(release(first, self.slurm, self.sleep, self.pace))
            case OrderKind.DRAIN:
                carried = drain(batch, self.slurm)
                self._tell_of_stop(first.text)
                return carried
            case OrderKind.UNDRAIN:
                return undrain(first, self.slurm)
            case OrderKind.REBOOT:
                return reboot(first, self.slurm)
            case OrderKind.WEIGHT:
                return weigh(first, self.slurm)
            case OrderKind.REQUEUE:
                return requeue(batch, self.slurm, now_s)
            case OrderKind.HOLD:
                return hold_back(batch, self.slurm)
            case OrderKind.SIGNAL:
                return signal(batch, self.slurm, self.signalled)
            case OrderKind.CANCEL:
                return cancel(batch, self.slurm)
            case OrderKind.TELL:
                return tell(first, self.slurm)
            case OrderKind.DELETE:
                return delete(batch, self.slurm, self.sleep, self.pace, now_s)
            case OrderKind.CONSTRAIN:
                return constrain(first, self.slurm)
            case OrderKind.CHECK:
                return check(first, self.slurm)
            case OrderKind.COMMENT:
                return comment(first, self.slurm)
            case _:
                assert_never(first.kind)

    def _tell_of_stop(self, text: str) -> None:
        """Slurm itself tells nobody why no job starts."""
        said = read(text)
        if said and said.code is DrainCode.STOPPED and said.sentence not in self.told:
            self.told.append(said.sentence)
            self.tell(f"Tidegate: {said.sentence}. No job starts until then.")


def batches[T](received: Sequence[T], order_of: Callable[[T], Order]) -> list[list[T]]:
    """What arrived together, in groups of which each is one read of Slurm and one command.

    First those that are carried out first. Commands about jobs take Slurm long: such a group
    names no more than one command does, so that a drain does not wait behind a storm of them.
    """
    groups: dict[Hashable, list[T]] = {}
    names: Counter[Hashable] = Counter()
    for one in received:
        order = order_of(one)
        alike: Hashable = (order.kind, order.text, order.only_if)
        if order.kind not in _RANK:
            alike = order.order_id
        elif order.kind in ABOUT_JOBS:
            names[alike] += len(order.names)
            alike = (alike, (names[alike] - 1) // JOBS_AT_ONCE)
        groups.setdefault(alike, []).append(one)
    return sorted(groups.values(), key=lambda group: _rank(order_of(group[0])))


def _rank(order: Order) -> int:
    return _RANK.get(order.kind, len(_RANK))


def _valid(order: Order, now_s: float) -> tuple[Order, tuple[OrderResult, ...]]:
    """The order with the names that may become arguments, and a refusal for each other one."""
    is_about_jobs = order.kind in ABOUT_JOBS
    is_good = is_job_id if is_about_jobs else is_node_name
    what = "a job id" if is_about_jobs else "the name of a node"
    if not now_s <= order.not_after_s:  # and where it is no number
        late_s = now_s - order.not_after_s
        detail = f"The order came {late_s:.0f} s after its time; nothing was done."
        return _refused(order, OrderOutcome.EXPIRED, detail)
    if order.kind is OrderKind.SIGNAL and not is_signal(order.text):
        detail = f"{order.text[:40]!r} is no signal that Slurm knows by name."
        return _refused(order, OrderOutcome.FAILED, detail)
    names = tuple(dict.fromkeys(order.names))
    good = tuple(name for name in names if is_good(name))
    return order if good == order.names else replace(order, names=good), tuple(
        result(order, name[:80], OrderOutcome.FAILED, f"This is not {what}.")
        for name in names
        if not is_good(name)
    )


def _refused(
    order: Order, outcome: OrderOutcome, detail: str
) -> tuple[Order, tuple[OrderResult, ...]]:
    results = tuple(result(order, name, outcome, detail) for name in order.names)
    return replace(order, names=()), results
