"""What nodes of each partition cost, short enough for a file that each submission reads."""

from collections.abc import Iterable, Iterator

from tidegate.core.model.cluster import Cluster, Partition
from tidegate.core.model.devices import SHARD
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.frozen import frozen


@frozen
class ListedPrice:
    """The lowest price of an instance type in a partition. `memory_mib`: as Slurm sees it.
    `gpus`: devices of any kind, `gpu_type` "" without one. `shards_per_gpu`: how many of
    `shared_gres` Slurm counts of each, 0: they are not shared.
    """

    partition: str
    instance_type: str
    gpus: int
    gpu_type: str
    cpus: int
    memory_mib: int
    usd_per_hour: float
    shards_per_gpu: int = 0
    shared_gres: str = SHARD

    def is_beaten_by(self, other: "ListedPrice") -> bool:
        """Whether the other has all that this one has, for less."""
        return (
            other.usd_per_hour < self.usd_per_hour
            and other.gpus >= self.gpus
            and other.cpus >= self.cpus
            and other.memory_mib >= self.memory_mib
            and self.gpu_type in ("", other.gpu_type)
            and self._shares in (0, other._shares)
        )

    @property
    def _shares(self) -> object:
        """What a job with shards asks of it; one with `--exclusive` asks for a single GPU too."""
        has = self.shards_per_gpu, self.shared_gres, self.gpus == 1
        return has if self.shards_per_gpu else 0


def price_list(cluster: Cluster) -> tuple[ListedPrice, ...]:
    """The cheapest first. Types that no job would pay for are left out: another of the partition
    has all of theirs for less. So is what is prepaid: nobody knows how much of it is left.
    """
    return tuple(each for partition in cluster.partitions for each in _of(partition, cluster))


def _of(partition: Partition, cluster: Cluster) -> Iterator[ListedPrice]:
    lowest: dict[InstanceType, float] = {}
    for pool in (each for each in cluster.pools if each.name in partition.pools):
        for kind, offering in pool.offerings():
            usd = cluster.prices.get(offering, 0.0)
            if usd > 0 and not offering.market.is_prepaid:
                lowest[kind] = min(usd, lowest.get(kind, usd))
    rows = sorted(
        (_row(partition, kind, usd) for kind, usd in lowest.items()),
        key=lambda row: (row.usd_per_hour, row.instance_type),
    )
    kept: list[ListedPrice] = []
    for row in rows:
        if not _is_beaten(row, kept):
            kept.append(row)
    yield from kept


def _is_beaten(row: ListedPrice, cheaper: Iterable[ListedPrice]) -> bool:
    return any(row.is_beaten_by(other) for other in cheaper)


def _row(partition: Partition, kind: InstanceType, usd_per_hour: float) -> ListedPrice:
    found = partition.name, kind.name, kind.gpus, kind.gpu_type, kind.cpus
    shares = kind.shards_per_gpu, kind.shared_gres
    return ListedPrice(*found, kind.slurm_memory_mib, usd_per_hour, *shares)
