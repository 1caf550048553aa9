"""Whether a pool can have the headroom that it is to keep."""

from collections.abc import Iterator
from math import ceil

from tidegate.core.demand.fit import lacks
from tidegate.core.model.headroom import Headroom
from tidegate.wire.headroom_model import MIB_PER_GIB, headrooms
from tidegate.wire.parts import Parts
from tidegate.wire.pool_models import LimitsModel, PoolModel
from tidegate.wire.problems import Place, Problem

SMALLER = "ask less per node, or name a larger type"
# A headroom names no part of a GPU, so that nobody knows what to cut for it.
UNCUT = "keep whole nodes free (headroom_nodes), or this room in a pool whose GPUs are not cut"


def _headroom(parts: Parts) -> Iterator[Problem]:
    """Some type of the pool holds it, Slurm takes such jobs, and limits leave room for it all."""
    for name, pool in parts.pools.items():
        found = headrooms(pool.headroom, pool.selected)
        for index, each in enumerate(found):
            yield from _never_held(("pools", name, "headroom", index), pool, each)
        if found:
            place = "pools", name, "headroom"
            for where, limits in ((f"pools.{name}.limits", pool.limits), ("limits", parts.limits)):
                yield from _over_limits(place, where, limits, found, pool)


def _never_held(place: Place, pool: PoolModel, headroom: Headroom) -> Iterator[Problem]:
    whys = [lacks(headroom.shape, each) for each in pool.selected]
    if all(whys):
        is_of_cut = headroom.shape.gpus and all(each.profiles for each in pool.selected)
        text = f"no instance type of the pool holds one node's share: {whys[-1]}"
        yield Problem(place, f"{text}: {UNCUT if is_of_cut else SMALLER}")
    if headroom.nodes > pool.max_job_nodes:
        text = f"{headroom.nodes}, but Slurm refuses jobs of more than {pool.max_job_nodes} nodes"
        yield Problem((*place, "nodes"), f"{text} here (max_job_nodes)")


def _over_limits(
    place: Place,
    where: str,
    limits: LimitsModel | None,
    found: tuple[Headroom, ...],
    pool: PoolModel,
) -> Iterator[Problem]:
    """What it takes at least, however its jobs share nodes."""
    if limits is None:
        return
    gpus = sum(each.most_nodes * each.shape.gpus for each in found)
    cpus = sum(each.most_nodes * each.shape.cpus for each in found)
    filled = ceil(gpus / max(1, *(each.gpus for each in pool.selected)))
    for key, limit, takes in (
        ("gpus", limits.gpus, gpus),
        ("vcpus", limits.vcpus, cpus * min(each.vcpus_per_cpu for each in pool.selected)),
        (
            "memory_gib",
            limits.memory_gib,
            sum(each.most_nodes * each.shape.memory_mib for each in found) / MIB_PER_GIB,
        ),
        ("nodes", limits.nodes, max(filled, *(each.nodes for each in found))),
    ):
        if limit is not None and takes > limit:
            yield Problem(
                place, f"takes {takes:g} {key} in all, more than {where}.{key} ({limit:g})"
            )


HEADROOM_RULES = (_headroom,)
