"""Budgets: how many nodes of a pool may leave at the same time, and for which reasons.

The words and the arithmetic are Karpenter's: a percentage is rounded up, the smallest budget
that counts now decides, nodes that leave already count, and what cannot be read lets nothing go.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from math import ceil
from typing import Protocol

from tidegate.core.model.frozen import frozen


class DisruptionReason(StrEnum):
    """Why a node that AWS would leave to us is let go, in the order in which it is decided."""

    UNHEALTHY = "unhealthy"  # Slurm finds it DOWN, or software drained it
    EXPIRED = "expired"  # older than its pool allows
    DRIFTED = "drifted"  # made from another launch template than its pool's
    EMPTY = "empty"  # idle, and no job needs it
    CONSOLIDATABLE = "consolidatable"  # its jobs would fit elsewhere for less


class Window(Protocol):
    """When a budget counts."""

    def is_open(self, now_s: float) -> bool:
        """Errors: ValueError, when nobody can tell."""
        ...


@frozen
class Budget:
    """At most `nodes` or `percent` of a pool's nodes leave at once; one of the two is given.

    `reasons` empty: for every reason. `window` None: at any time.
    """

    nodes: int | None = None
    percent: float | None = None
    reasons: frozenset[DisruptionReason] = frozenset()
    window: Window | None = None

    def __str__(self) -> str:
        return f"{self.percent:g} %" if self.nodes is None else f"{self.nodes} nodes"

    def counts(self, reason: DisruptionReason, now_s: float) -> bool:
        """Whether it has a say now; a window that nobody can read is open."""
        if self.reasons and reason not in self.reasons:
            return False
        try:
            return self.window is None or self.window.is_open(now_s)
        except ValueError:
            return True

    def allows(self, total: int, now_s: float) -> int:
        """How many of `total` nodes may leave at once; 0 when it cannot be read."""
        try:
            if self.window is not None:
                self.window.is_open(now_s)
        except ValueError:
            return 0
        if (self.nodes is None) == (self.percent is None):
            return 0
        if self.nodes is not None:
            return max(self.nodes, 0)
        assert self.percent is not None
        return ceil(total * self.percent / 100) if 0 <= self.percent <= 100 else 0


def tightest(
    budgets: Iterable[Budget], reason: DisruptionReason, total: int, now_s: float
) -> tuple[int, Budget] | None:
    """The budget that decides now, and how many nodes it lets leave; None: none counts."""
    counting = [(b.allows(total, now_s), b) for b in budgets if b.counts(reason, now_s)]
    return min(counting, key=lambda each: each[0], default=None)


# A check that errs finds every node unhealthy: it must not take the whole pool at once.
UNHEALTHY_BUDGET = Budget(percent=20.0, reasons=frozenset({DisruptionReason.UNHEALTHY}))

# An empty node can go unnoticed by anyone; nodes that work leave a tenth of the pool at a time.
DEFAULT_BUDGETS: tuple[Budget, ...] = (
    UNHEALTHY_BUDGET,
    Budget(
        percent=10.0,
        reasons=frozenset(
            {
                DisruptionReason.EXPIRED,
                DisruptionReason.DRIFTED,
                DisruptionReason.CONSOLIDATABLE,
            }
        ),
    ),
)


def with_unhealthy(budgets: Sequence[Budget]) -> tuple[Budget, ...]:
    """The budgets, and the usual one for unhealthy nodes where none of them speaks of these."""
    if any(not each.reasons or DisruptionReason.UNHEALTHY in each.reasons for each in budgets):
        return tuple(budgets)
    return (*budgets, UNHEALTHY_BUDGET)


@frozen
class Disruption:
    """When nodes of a pool are let go of our own accord.

    `expire_after_s` None: nodes live as long as they are used. `keep_max_s`: how long a node or
    a job may ask to be left alone. `roll_back_after`: so many launches from a new template fail
    before the last good one is used again. `hold_max_nodes`, `hold_max_s`: how many nodes people
    may hold at once to look into them, and for how long.
    """

    budgets: tuple[Budget, ...] = DEFAULT_BUDGETS
    expire_after_s: float | None = None
    keep_max_s: float = 86400.0
    roll_back_after: int = 2
    hold_max_nodes: int = 2
    hold_max_s: float = 86400.0


DEFAULT_DISRUPTION = Disruption()
