"""Which stopped nodes could be started now, and how many more a pool may keep."""

from collections import Counter
from collections.abc import Iterable

from tidegate.core.fleet.members import Member
from tidegate.core.fleet.stopped import is_startable, stopped_of
from tidegate.core.fleet.worth import kept_s
from tidegate.core.model.cluster import PoolType
from tidegate.core.model.snapshot import Snapshot


def stopped_room(snapshot: Snapshot) -> Counter[str]:
    """How many more nodes each pool may keep stopped."""
    return Counter(
        {
            pool.name: pool.stopped_nodes - len(stopped_of(snapshot, pool.name))
            for pool in snapshot.cluster.pools
            if pool.stopped_nodes and kept_s(snapshot.cluster, pool)
        }
    )


def startable(snapshot: Snapshot, ours: Iterable[Member]) -> Counter[PoolType]:
    """How many stopped nodes of each type could be started now."""
    if not any(pool.stopped_nodes for pool in snapshot.cluster.pools):
        return Counter()
    ready = (each for each in ours if is_startable(each, snapshot))
    return Counter((each.pool, each.offering.instance_type) for each in ready)
