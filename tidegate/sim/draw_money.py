"""What a drawn world may spend."""

from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import CLUSTER_SCOPE, Budget, Cluster

# From what one node costs in two minutes to what a few cost in a story.
USD_PER_DAY = (0.03, 0.1, 0.4, 1.5)


def with_budget(chance: Random, cluster: Cluster) -> Cluster:
    """Now and then a budget of a day, which stories are shorter than."""
    if chance.random() >= 0.08:
        return cluster
    budget = Budget(usd_per_day=chance.choice(USD_PER_DAY))
    return replace(cluster, budgets={CLUSTER_SCOPE: budget})
