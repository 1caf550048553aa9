"""What a drawn world may spend."""

from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import CLUSTER_SCOPE, Budget, Cluster, user_scope
from tidegate.core.model.waiting import Waiting
from tidegate.sim.draw_jobs import USERS

# From what one node costs in two minutes to what a few cost in a story.
USD_PER_DAY = (0.03, 0.1, 0.4, 1.5)


def with_budget(chance: Random, cluster: Cluster) -> Cluster:
    """Now and then a budget of a day, which stories are shorter than: the cluster's, the users'."""
    budgets: dict[str, Budget] = {}
    if chance.random() < 0.08:
        budgets[CLUSTER_SCOPE] = Budget(usd_per_day=chance.choice(USD_PER_DAY))
    if chance.random() < 0.08:
        for user in USERS:
            budgets[user_scope(user)] = Budget(usd_per_day=chance.choice(USD_PER_DAY[:2]))
    return replace(cluster, budgets=budgets)


def with_waiting(chance: Random, cluster: Cluster) -> Cluster:
    """Now and then a price of waiting, high enough that jobs of one story are worth spare nodes."""
    if chance.random() >= 0.1:
        return cluster
    return replace(cluster, waiting=Waiting(chance.choice((20.0, 300.0, 5000.0))))
