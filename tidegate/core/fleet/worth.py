"""What waiting less is worth to a pool's jobs, and for how long a stopped node is kept for that.

`stopped_nodes: auto`: a stopped node costs its disk, and the job that it is started for waits
`boot_s - start_s` less. So it is kept until its disk has cost as much as one start saves: at worst
that costs twice what one would have paid who knew what comes. The one that was stopped last is
started first, so the k-th of them goes when k have not been wanted at a time for so long.
"""

from math import inf

from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.ledger import NodeRecord
from tidegate.core.model.snapshot import Snapshot

HOUR_S = 3600.0


def wait_usd_per_hour(cluster: Cluster, pool: Pool) -> float:
    """The price of waiting of the job that comes next to the pool.

    Nobody knows whose it is: the dearest of the pool's partitions counts, no QOS or account.
    """
    partitions = [each.name for each in cluster.partitions if pool.name in each.pools]
    return cluster.waiting.usd(partitions, "", "")


def start_saves_usd(cluster: Cluster, pool: Pool) -> float:
    """What a job saves by a start instead of a boot."""
    sooner_s = pool.boot_s - pool.up_in_s(is_started=True)
    return wait_usd_per_hour(cluster, pool) * sooner_s / HOUR_S


def start_share(pool: Pool) -> float:
    """The part of a boot that a start takes."""
    return pool.up_in_s(is_started=True) / pool.boot_s if pool.boot_s else 1.0


def kept_s(cluster: Cluster, pool: Pool) -> float:
    """For how long a node of the pool is worth its disk while it stands stopped; 0: never."""
    if not pool.is_stopped_auto:
        return inf
    saves_usd = start_saves_usd(cluster, pool)
    if not saves_usd or not pool.stopped_usd_per_hour:
        return inf if saves_usd else 0.0
    return saves_usd / pool.stopped_usd_per_hour * HOUR_S


def why_not_worth(record: NodeRecord, pool: Pool, snapshot: Snapshot) -> str:
    """Why a stopped node is worth its disk no more; "": it is."""
    stood_s = snapshot.now_s - (record.stopped_at_s or 0.0)
    if stood_s <= kept_s(snapshot.cluster, pool):
        return ""
    saves_usd = start_saves_usd(snapshot.cluster, pool)
    cost_usd = stood_s / HOUR_S * pool.stopped_usd_per_hour
    return (
        f"no job has come for it for {stood_s / HOUR_S:.1f} h: its disk has cost {cost_usd:.2f} USD"
        f" since it was stopped, and a start saves {saves_usd:.2f} USD of waiting"
    )
