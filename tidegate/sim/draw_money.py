"""What a drawn world may spend."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import CLUSTER_SCOPE, Cluster, Estimate, SpendingBudget, user_scope
from tidegate.core.model.ec2 import Market
from tidegate.core.model.savings_plans import PlanKind, PlanRate, SavingsPlan
from tidegate.core.model.waiting import Waiting
from tidegate.sim.clock import START_S
from tidegate.sim.draw_jobs import USERS

# From what one node costs in two minutes to what a few cost in a story.
USD_PER_DAY = (0.03, 0.1, 0.4, 1.5)

# A node that jobs of late are worth lives so long at least.
SPARE_EXPIRES_S = 900.0


def with_budget(chance: Random, cluster: Cluster) -> Cluster:
    """Now and then a budget of a day, which stories are shorter than: the cluster's, the users'."""
    budgets: dict[str, SpendingBudget] = {}
    if chance.random() < 0.08:
        budgets[CLUSTER_SCOPE] = SpendingBudget(usd_per_day=chance.choice(USD_PER_DAY))
    if chance.random() < 0.08:
        for user in USERS:
            budgets[user_scope(user)] = SpendingBudget(usd_per_day=chance.choice(USD_PER_DAY[:2]))
    return replace(cluster, budgets=budgets)


def with_plan(chance: Random, cluster: Cluster, safety_s: float) -> Cluster:
    """Now and then a Savings Plan, of a part of a node up to a few, which may begin or end within
    the story.
    """
    usd = {
        offering.instance_type: usd
        for offering, usd in cluster.prices.items()
        if offering.market is Market.ON_DEMAND and usd > 0
    }
    if chance.random() >= 0.15 or not usd:
        return cluster
    covered = [name for name in sorted(usd) if chance.random() < 0.8] or [min(usd)]
    saved = {name: chance.choice((0.3, 0.45, 0.6)) for name in covered}
    rates = {
        name: PlanRate(usd[name] * (1 - saved[name]), usd[name], saved[name]) for name in covered
    }
    plan = SavingsPlan(
        arn="arn:aws:savingsplans::123456789012:savingsplan/0f3a",
        kind=chance.choice(list(PlanKind)),
        usd_per_hour=round(min(usd.values()) * chance.choice((0.4, 0.4, 1.0, 2.5, 20.0)), 3),
        rates=rates,
        starts_at_s=START_S + chance.choice((-600.0, -600.0, safety_s / 3)),
        ends_at_s=START_S + chance.choice((1e6, 1e6, safety_s / 2)),
    )
    return replace(cluster, savings_plans=(plan,))


def with_waiting(chance: Random, cluster: Cluster) -> Cluster:
    """Now and then a price of waiting: so low that what is refused is waited for, or so high that
    jobs of one story are worth spare nodes.
    """
    if chance.random() >= 0.1:
        return cluster
    waiting = Waiting(chance.choice((0.2, 20.0, 300.0, 5000.0)))
    # Spare nodes that expire within minutes would come and go for hours.
    pools = tuple(
        replace(
            pool, disruption=replace(pool.disruption, expire_after_s=max(at_s, SPARE_EXPIRES_S))
        )
        if (at_s := pool.disruption.expire_after_s)
        else pool
        for pool in cluster.pools
    )
    return replace(cluster, waiting=waiting, pools=pools)


def with_open_prices(cluster: Cluster, on_demand_usd: Mapping[str, float]) -> Cluster:
    """The same cluster, whose file leaves every price to the market; its prices are guesses. No
    plan beside limits of USD per hour: what it saved as it was decided, no check could say.

    `on_demand_usd`: by instance type, what the list says.
    """
    limits = (cluster.limits, *(pool.limits for pool in cluster.pools))
    is_limited = any(each.usd_per_hour is not None for each in limits)
    plans = () if is_limited else cluster.savings_plans
    estimates = {
        offering: Estimate(on_demand_usd[offering.instance_type], 0.0)
        for offering in cluster.prices
        if not offering.market.is_prepaid
    }
    return replace(cluster, estimates=estimates, savings_plans=plans)
