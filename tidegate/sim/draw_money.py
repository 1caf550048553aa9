"""What a drawn world may spend."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import CLUSTER_SCOPE, Cluster, Estimate, SpendingBudget, user_scope
from tidegate.core.model.waiting import Waiting
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
    """The same cluster, whose file leaves every price to the market; its prices are guesses.

    `on_demand_usd`: by instance type, what the list says.
    """
    estimates = {
        offering: Estimate(on_demand_usd[offering.instance_type], 0.0)
        for offering in cluster.prices
        if not offering.market.is_prepaid
    }
    return replace(cluster, estimates=estimates)
