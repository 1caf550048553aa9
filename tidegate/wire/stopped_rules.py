"""Whether a pool can have the stopped nodes that it is to keep."""

from collections.abc import Iterator

from tidegate.core.model.ec2 import Market
from tidegate.wire.disruption import AUTO_COUNT
from tidegate.wire.parts import Parts
from tidegate.wire.problems import Problem


def _stopped(parts: Parts) -> Iterator[Problem]:
    """They are on demand, no more than the pool may have, and of GPUs that are not cut."""
    for name, pool in parts.pools.items():
        place, count = ("pools", name, "stopped_nodes"), pool.stopped_nodes
        if not count:
            continue
        if Market.ON_DEMAND not in pool.capacity_types:
            bought = " and ".join(pool.capacity_types)
            text = f"the pool buys {bought} alone, and only on-demand nodes are stopped"
            yield Problem(place, f"{text}: add on-demand to capacity_types, or leave it out")
        most = pool.limits.nodes
        if most is not None and count > most:
            yield Problem(place, f"{count}, and the pool has at most {most} nodes (limits.nodes)")
        if count == AUTO_COUNT and pool.start_s >= pool.boot_s:
            text = f"a start takes {pool.start_s:g} s and a boot {pool.boot_s:g} (boot_s)"
            yield Problem(("pools", name, "start_s"), f"{text}: stopped nodes save nothing")
        if all(each.profiles for each in pool.selected):
            text = "nodes of a pool whose GPUs are cut as jobs ask for it are not stopped"
            yield Problem(place, f"{text}: leave it out, or name the cut (gpu.mig)")


STOPPED_RULES = (_stopped,)
