"""Draws a check of idle nodes, with nodes that idle for it."""

from dataclasses import replace
from random import Random

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.idle_check import IdleCheck


def with_tests(chance: Random, cluster: Cluster) -> Cluster:
    """With a test of idle nodes, of which most pools with GPUs keep some."""
    named = tuple(p.name for p in cluster.pools if any(t.gpus for t in p.instance_types))
    least = chance.randint(1, 3)
    # One that expires within minutes beside a minimum would come and go for ever.
    keep = {p.name for p in cluster.pools if p.name in named and not p.disruption.expire_after_s}
    pools = tuple(
        replace(each, min_nodes=max(each.min_nodes, least)) if each.name in keep else each
        for each in cluster.pools
    )
    gpu_hours, every_s = chance.choice((0.5, 2.0, 50.0)), chance.uniform(30.0, 600.0)
    check = IdleCheck("ci", named, gpu_hours, every_s, 120.0, 120.0)
    return replace(cluster, pools=pools, idle_check=check)
