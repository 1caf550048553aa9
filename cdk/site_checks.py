"""What the head submits as the site's own checks, from the cluster file."""

from collections.abc import Iterable
from dataclasses import replace

from tidegate.wire.config import ClusterFile
from userdata.site_check import SiteCheckValues


def template_check(file: ClusterFile) -> SiteCheckValues | None:
    model, found = file.rollout.check, file.cluster.check
    if model is None or found is None:
        return None
    pools = found.pools or tuple(pool.name for pool in file.cluster.pools)
    return SiteCheckValues(
        user=found.user,
        nodes=found.nodes,
        time_limit_s=int(found.time_limit_s),
        wait_s=int(found.wait_s),
        script=model.script,
        partitions=_taken_by(file, pools, found.nodes, found.limit_s),
    )


def idle_check(file: ClusterFile) -> SiteCheckValues | None:
    model, found = file.idle_check, file.cluster.idle_check
    if model is None or found is None:
        return None
    return SiteCheckValues(
        user=found.user,
        nodes=1,
        time_limit_s=int(found.time_limit_s),
        wait_s=int(found.wait_s),
        script=model.script,
        partitions=_taken_by(file, found.pools, 1, found.limit_s()),
    )


def pair_check(file: ClusterFile) -> SiteCheckValues | None:
    """As that of one node, but for the script, its time and the number of nodes."""
    model, found, alone = file.idle_check, file.cluster.idle_check, idle_check(file)
    if model is None or model.pair is None or found is None or alone is None:
        return None
    return replace(
        alone,
        nodes=2,
        time_limit_s=int(model.pair.time_limit_s),
        script=model.pair.script,
        partitions=_taken_by(file, found.pools, 2, found.limit_s(is_pair=True)),
    )


def _taken_by(
    file: ClusterFile, pools: Iterable[str], nodes: int, limit_s: float
) -> tuple[tuple[str, str], ...]:
    """Each pool's check runs in the first partition that takes it; the file's rules see to one."""
    partitions = file.cluster.partitions
    return tuple(
        (pool, next(each.name for each in partitions if each.takes(pool, nodes, limit_s)))
        for pool in pools
    )
