"""Nodes that are bought on a budget that is spent, counted by day, month and scope."""

from dataclasses import replace

import pytest

from tests.make import T4, cluster
from tidegate.core.model.cluster import (
    CLUSTER_SCOPE,
    SpendingBudget,
    account_scope,
    pool_scope,
    user_scope,
)
from tidegate.sim.replay.meters import launches_over_budget
from tidegate.sim.replay.state import EPOCH_S, Machine

HOUR_S, DAY_S = 3600.0, 86400.0


def machine(
    from_s: float, to_s: float, *, pool: str = "t4", account: str = "", user: str = ""
) -> Machine:
    """A node at one USD per hour."""
    offering = next(each for one in cluster().pools for _, each in one.offerings())
    return Machine(
        name=f"node-{from_s}",
        pool=pool,
        offering=offering,
        instance_type=T4,
        usd_per_hour=1.0,
        launched_s=EPOCH_S + from_s,
        joins_s=EPOCH_S + from_s,
        features=(),
        account=account,
        user=user,
        ended_s=EPOCH_S + to_s,
    )


def over(scope: str, budget: SpendingBudget, *machines: Machine) -> int:
    return launches_over_budget(machines, replace(cluster(), budgets={scope: budget}))


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (SpendingBudget(usd_per_day=2.0), 1),
        (SpendingBudget(usd_per_month=2.0), 2),
        (SpendingBudget(usd_per_day=3.0), 0),
    ],
)
def test_a_day_s_budget_comes_back_with_the_day_and_a_month_s_does_not(budget, expected):
    spends = machine(0, 2 * HOUR_S)
    same_day, next_day = machine(4 * HOUR_S, 5 * HOUR_S), machine(DAY_S, DAY_S + HOUR_S)

    assert over(CLUSTER_SCOPE, budget, spends, same_day, next_day) == expected


def test_a_node_that_has_ended_spends_nothing_more():
    machines = (machine(0, HOUR_S), machine(10 * HOUR_S, 11 * HOUR_S))

    assert over(CLUSTER_SCOPE, SpendingBudget(usd_per_day=1.5), *machines) == 0


@pytest.mark.parametrize("scope", [pool_scope("t4"), account_scope("interns"), user_scope("ada")])
def test_a_budget_counts_its_own_nodes_only(scope):
    budget = SpendingBudget(usd_per_day=1.0)
    spends = machine(0, 2 * HOUR_S, account="interns", user="ada")
    same = machine(3 * HOUR_S, 4 * HOUR_S, account="interns", user="ada")
    other = machine(5 * HOUR_S, 6 * HOUR_S, pool="a10g", account="staff", user="bob")

    assert over(scope, budget, spends, same, other) == 1
