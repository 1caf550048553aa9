"""Whether a site's own checks could ever run: of new templates, of idle nodes, and of pairs."""

from collections.abc import Iterator

from tidegate.core.model.idle_check import whole_minutes_s
from tidegate.wire.parts import Parts
from tidegate.wire.problems import Place, Problem, did_you_mean


def _rollout(parts: Parts) -> Iterator[Problem]:
    """A check is for pools that can have its nodes, and the head has what submits it."""
    check = parts.rollout.check if parts.rollout else None
    if check is None:
        return
    if parts.existing and parts.existing.head:
        text = "existing.head is not changed, and lacks what submits the check: leave it out"
        yield Problem(("rollout", "check"), text)
    for index, pool in enumerate(check.pools):
        if pool not in parts.all_pools:
            hint = did_you_mean(pool, parts.all_pools)
            yield Problem(("rollout", "check", "pools", index), f"no pool named {pool}{hint}")
    for name, pool_model in parts.pools.items():
        most = pool_model.limits.nodes
        if most is not None and most < check.nodes and (not check.pools or name in check.pools):
            text = f"is {check.nodes}, and pool {name} may have {most}: leave it out of pools"
            yield Problem(("rollout", "check", "nodes"), text)
    where = ("rollout", "check", "time_limit_s")
    found = check.check()
    for pool in found.pools or parts.pools:
        yield from _never_begins(parts, where, pool, found.nodes, found.time_limit_s)


def _idle_check(parts: Parts) -> Iterator[Problem]:
    """A check is for pools with GPUs, fits into its budget, and the head has what submits it."""
    model = parts.idle_check
    if model is None:
        return
    if parts.existing and parts.existing.head:
        text = "existing.head is not changed, and lacks what submits the check: leave it out"
        yield Problem(("idle_check",), text)
    for index, pool in enumerate(model.pools):
        place = ("idle_check", "pools", index)
        if pool not in parts.all_pools:
            yield Problem(place, f"no pool named {pool}{did_you_mean(pool, parts.all_pools)}")
        elif pool in parts.pools and not any(t.gpus for t in parts.pools[pool].selected):
            yield Problem(place, f"pool {pool} has no GPUs: the budget is one of GPU-hours")
    pools = tuple(each.pool(name) for name, each in parts.pools.items())
    check = model.check(pools)
    if len(parts.pools) == len(parts.all_pools) and not check.pools:
        yield Problem(("idle_check",), "no pool has GPUs to check: leave it out")
    types = [(t.gpus, t.name) for p in pools if p.name in check.pools for t in p.instance_types]
    gpus, name = max(types, default=(0, ""))
    for nodes, of in ((1, name), (2, f"two {name}"))[: 2 if check.pair else 1]:
        is_pair, minutes = nodes == 2, check.limit_s(is_pair=nodes == 2) / 60
        most = check.most_gpu_hours(gpus * nodes, is_pair=is_pair)
        if most > check.gpu_hours_per_day:
            text = (
                f"is {check.gpu_hours_per_day:g}, and one check of {of} may use {most:g} "
                f"({gpus * nodes} GPUs for {minutes:.0f} min): none would ever begin"
            )
            yield Problem(("idle_check", "gpu_hours_per_day"), text)
    for pool in check.pools:
        yield from _never_begins(parts, ("idle_check", "time_limit_s"), pool, 1, check.time_limit_s)
        if check.pair:
            where = ("idle_check", "pair", "time_limit_s")
            yield from _never_begins(parts, where, pool, 2, check.pair.time_limit_s)


def _never_begins(
    parts: Parts, place: Place, pool: str, nodes: int, time_limit_s: float
) -> Iterator[Problem]:
    """Slurm takes a job that its partition's limits keep, and lets it pend to its deadline."""
    having = {name: each for name, each in parts.partitions.items() if pool in each.pools}
    if not having or len(parts.partitions) < len(parts.all_partitions):
        return
    limit_s = whole_minutes_s(time_limit_s)
    shown = (
        each.within(parts.pools).partition(name, is_single=False) for name, each in having.items()
    )
    if not any(each.takes(pool, nodes, limit_s) for each in shown):
        yield Problem(
            place,
            f"is {time_limit_s:g}, and none of the partitions of pool {pool} ({', '.join(having)})"
            f" takes {nodes} node{'s' if nodes > 1 else ''} for {limit_s / 60:g} min: it would wait"
            " to its deadline and never begin; see their max_time_s, min_nodes, max_nodes and"
            " state, or add one",
        )


CHECK_RULES = (_rollout, _idle_check)
