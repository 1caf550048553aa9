"""Rules across numbers that could each be meant, but not together."""

from collections.abc import Iterator

from tidegate.wire.parts import Parts
from tidegate.wire.problems import Problem


def _boots_in_time(parts: Parts) -> Iterator[Problem]:
    """A node may take as long as its pool says to boot, and lives longer than that."""
    for name, pool in parts.pools.items():
        bound_s = parts.timings.boot_bound_s if parts.timings else None
        if bound_s is not None and bound_s <= pool.boot_s:
            text = f"{bound_s:g}, but nodes of pool {name} boot in {pool.boot_s:g} s (boot_s)"
            yield Problem(
                ("timings", "boot_bound_s"),
                f"{text}: every one would be given up before it joins; take at least"
                f" {2 * pool.boot_s:g}",
            )
        expire_s = pool.disruption.expire_after_s
        if expire_s is not None and expire_s <= pool.boot_s:
            text = f"{expire_s:g}, but its nodes boot in {pool.boot_s:g} s (boot_s)"
            yield Problem(
                ("pools", name, "disruption", "expire_after_s"),
                f"{text}: each would be replaced before it ran a job; take days, like 604800",
            )


def _pre_warmed_nodes(parts: Parts) -> Iterator[Problem]:
    """What is pre-warmed fits into the limits."""
    for index, each in enumerate(parts.schedules.pre_warm if parts.schedules else ()):
        place = ("schedules", "pre_warm", index, "nodes")
        for name, count in each.nodes.items():
            most = parts.pools[name].limits.nodes if name in parts.pools else None
            if most is not None and count > most:
                text = f"{count}, more than pools.{name}.limits.nodes ({most})"
                yield Problem((*place, name), f"{text}: lower it, or raise the limit")
        total, most = sum(each.nodes.values()), parts.limits.nodes if parts.limits else None
        if most is not None and total > most:
            text = f"{total} nodes, more than limits.nodes ({most})"
            yield Problem(place, f"{text}: lower them, or raise the limit")


SENSE_RULES = (_boots_in_time, _pre_warmed_nodes)
