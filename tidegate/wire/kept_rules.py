"""Whether a pool can have the nodes that it is to keep, or that a job is to have at least."""

from collections.abc import Iterator, Mapping
from math import floor

from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.wire.parts import Parts
from tidegate.wire.pool_models import LimitsModel, PoolModel
from tidegate.wire.problems import Place, Problem
from tidegate.wire.selection import MIB_PER_GIB

TELLS = "lower it, or raise the limit"
# A sum of prices is as exact as a float is.
_SOME = 1e-9


def _bounds(parts: Parts, name: str, pool: PoolModel) -> Iterator[tuple[str, int]]:
    """How many nodes each limit leaves the pool, if all are the smallest: why, and the number."""
    for where, limits in ((f"pools.{name}.limits", pool.limits), ("limits", parts.limits)):
        if limits is None:
            continue
        for key, each, limit, least in _shares(parts, pool, limits):
            if least > 0:
                text = f"{where}.{key} ({limit:g}) allows of {each.name}"
                yield text, floor(limit / least + _SOME)
        if limits.nodes is not None:
            yield f"{where}.nodes allows", limits.nodes


def _shares(
    parts: Parts, pool: PoolModel, limits: LimitsModel
) -> Iterator[tuple[str, InstanceType, float, float]]:
    """Of each limit that is set: the type with the least share of it, the limit, and this share."""
    sizes = {
        "gpus": {each: float(each.gpus) for each in pool.selected},
        "vcpus": {each: float(each.vcpus) for each in pool.selected},
        "memory_gib": {each: each.memory_mib / MIB_PER_GIB for each in pool.selected},
        "usd_per_hour": _prices(parts, pool),
    }
    for key, of in sizes.items():
        limit = getattr(limits, key)
        if limit is not None and of:
            smallest = min(of, key=lambda each: (of[each], each.name))
            yield key, smallest, limit, of[smallest]


def _prices(parts: Parts, pool: PoolModel) -> dict[InstanceType, float]:
    """The least that a node of each type costs by the file; none where it leaves a price open."""
    found: dict[InstanceType, float] = {}
    for each in pool.selected:
        own: Mapping[Market, float] = dict(parts.prices.get(each.name, {}).items())
        if not own.keys() >= set(pool.capacity_types):
            return {}
        found[each] = min(own[market] for market in pool.capacity_types)
    return found


def _too_many(parts: Parts, name: str, count: int, place: Place) -> Iterator[Problem]:
    """The tightest of the limits that `count` nodes of a pool would break."""
    over = [(most, why) for why, most in _bounds(parts, name, parts.pools[name]) if count > most]
    if over:
        most, why = min(over)
        yield Problem(place, f"{count}, more than the {most} that {why}: {TELLS}")


def _kept_nodes(parts: Parts) -> Iterator[Problem]:
    """What pools keep fits into their limits, and a strict minimum of types can be met."""
    kept, most = sum(p.min_nodes for p in parts.pools.values()), _most_nodes(parts)
    if most is not None and kept > most >= max(p.min_nodes for p in parts.pools.values()):
        text = f"keep {kept} nodes by min_nodes, more than limits.nodes ({most})"
        yield Problem(("pools",), f"{text}: lower them, or raise the limit")
    for name, pool in parts.pools.items():
        for key in ("min_nodes", "headroom_nodes"):
            if count := getattr(pool, key):
                yield from _too_many(parts, name, count, ("pools", name, key))
        if pool.flexibility.strict and pool.flexibility.min_types > len(pool.selected):
            types = f"{len(pool.selected)} instance type{'s' * (len(pool.selected) != 1)}"
            yield Problem(
                ("pools", name, "flexibility", "min_types"),
                f"{pool.flexibility.min_types}, but the pool has {types} and strict is true:"
                " nothing could ever start",
            )


def _pre_warmed_nodes(parts: Parts) -> Iterator[Problem]:
    """What is pre-warmed fits into the limits."""
    for index, each in enumerate(parts.schedules.pre_warm if parts.schedules else ()):
        place = ("schedules", "pre_warm", index, "nodes")
        alone = [
            problem
            for name, count in each.nodes.items()
            if name in parts.pools
            for problem in _too_many(parts, name, count, (*place, name))
        ]
        yield from alone
        total, most = sum(each.nodes.values()), _most_nodes(parts)
        if most is not None and total > most and not alone:
            text = f"{total} nodes, more than limits.nodes ({most})"
            yield Problem(place, f"{text}: lower them, or raise the limit")


def _most_nodes(parts: Parts) -> int | None:
    return parts.limits.nodes if parts.limits else None


def _jobs_of_partitions(parts: Parts) -> Iterator[Problem]:
    """The smallest job that a partition takes fits into the limits of its pools together."""
    for name, partition in parts.partitions.items():
        asked, pools = partition.min_nodes, partition.pools
        if asked is None or not set(pools) <= parts.pools.keys():
            continue
        bounds = [_most_nodes(parts), _together(parts, pools)]
        most = min((bound for bound in bounds if bound is not None), default=asked)
        if asked > most:
            text = f"{asked}, more than the {most} nodes that limits allow: no job could ever start"
            yield Problem(("partitions", name, "min_nodes"), text)


def _together(parts: Parts, pools: tuple[str, ...]) -> int | None:
    of_pools = [parts.pools[each].limits.nodes for each in pools]
    return None if None in of_pools else sum(each for each in of_pools if each is not None)


def _memory_of_partitions(parts: Parts) -> Iterator[Problem]:
    """What jobs get that name nothing is there on some node, or Slurm refuses each of them."""
    for name, partition in parts.partitions.items():
        if not set(partition.pools) <= parts.pools.keys():
            continue
        types = [each for pool in partition.pools for each in parts.pools[pool].selected]
        memory_mib = max(each.memory_mib for each in types)
        by_gpu = [each.cpus // max(1, each.gpus) for each in types if each.gpus]
        for key, most, unit in (
            ("def_mem_per_node_mib", memory_mib, "MiB"),
            ("def_mem_per_cpu_mib", memory_mib, "MiB"),
            ("def_mem_per_gpu_mib", memory_mib, "MiB"),
            ("def_cpu_per_gpu", max(by_gpu, default=0), "CPUs for each GPU"),
        ):
            asked = getattr(partition, key)
            if asked is not None and most and asked > most:
                text = f"{asked}, and the largest node of its pools has {most} {unit}"
                yield Problem(("partitions", name, key), f"{text}: jobs that name none never start")


KEPT_RULES = (_kept_nodes, _pre_warmed_nodes, _jobs_of_partitions, _memory_of_partitions)
