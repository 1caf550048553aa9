"""Draws checks of idle nodes, alone and in pairs, with nodes that idle for them."""

from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.idle_check import IdleCheck, PairCheck

PAIRS = 0.6


def with_tests(chance: Random, cluster: Cluster) -> Cluster:
    """With a test of idle nodes, of which most pools with GPUs keep some."""
    named = tuple(p.name for p in cluster.pools if any(t.gpus for t in p.instance_types))
    least = chance.randint(1, 3)
    pair = PairCheck(chance.uniform(30.0, 600.0), 60.0) if chance.random() < PAIRS else None
    least += 2 if pair else 0  # one that fails is told from its partner by a third
    # One that expires within minutes beside a minimum would come and go for ever.
    keep = {p.name for p in cluster.pools if p.name in named and not p.disruption.expire_after_s}
    pools = tuple(
        replace(each, min_nodes=max(each.min_nodes, least)) if each.name in keep else each
        for each in cluster.pools
    )
    gpu_hours, every_s = chance.choice((0.5, 2.0, 50.0)), chance.uniform(30.0, 600.0)
    check = IdleCheck("ci", named, gpu_hours, every_s, 120.0, 120.0, pair)
    return replace(cluster, pools=pools, idle_check=check)
