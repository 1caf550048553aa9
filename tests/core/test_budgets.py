"""How many nodes a budget lets leave at once."""

import pytest

from tests.make import NOW_S
from tidegate.core.model.budgets import DEFAULT_BUDGETS, Budget, DisruptionReason, tightest

EXPIRED, EMPTY = DisruptionReason.EXPIRED, DisruptionReason.EMPTY


class Always:
    def is_open(self, now_s: float) -> bool:
        return True


class Never:
    def is_open(self, now_s: float) -> bool:
        return False


class Unreadable:
    def is_open(self, now_s: float) -> bool:
        raise ValueError("nobody can tell")


def allowed(*budgets: Budget, reason: DisruptionReason = EXPIRED, total: int = 10) -> int | None:
    found = tightest(budgets, reason, total, NOW_S)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("budget", "total", "allows"),
    [
        (Budget(nodes=3), 10, 3),
        (Budget(nodes=0), 10, 0),
        (Budget(percent=5.0), 10, 1),
        (Budget(percent=50.0), 3, 2),
        (Budget(percent=0.0), 10, 0),
        (Budget(percent=100.0), 7, 7),
        (Budget(percent=10.0), 0, 0),
    ],
)
def test_a_part_of_the_nodes_is_rounded_up(budget, total, allows):
    assert allowed(budget, total=total) == allows


@pytest.mark.parametrize(
    "budget",
    [
        Budget(),
        Budget(nodes=2, percent=10.0),
        Budget(nodes=-1),
        Budget(percent=-5.0),
        Budget(percent=101.0),
        Budget(nodes=5, window=Unreadable()),
    ],
)
def test_a_budget_that_cannot_be_read_lets_nothing_go(budget):
    assert allowed(budget) == 0


def test_of_several_budgets_the_tightest_that_counts_now_decides():
    budgets = (
        Budget(nodes=5),
        Budget(nodes=2, window=Always()),
        Budget(nodes=1, reasons=frozenset({EMPTY})),
        Budget(nodes=0, window=Never()),
    )

    assert allowed(*budgets) == 2
    assert allowed(*budgets, reason=EMPTY) == 1


def test_without_a_budget_of_its_own_a_pool_loses_a_tenth_at_once_and_every_empty_node():
    assert allowed(*DEFAULT_BUDGETS, total=25) == 3
    assert allowed(*DEFAULT_BUDGETS, reason=EMPTY, total=25) is None
