"""Pools, partitions, limits: what the cluster file promises, as plain values."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidegate.core.ec2 import InstanceType, Market, Offering, Prices


@dataclass(frozen=True, slots=True)
class Limits:
    """Never exceeded, not even for a moment. None: no limit."""

    gpus: int | None = None
    nodes: int | None = None
    usd_per_hour: float | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one kind of use; `weight`: higher is tried first (Karpenter's word)."""

    name: str
    instance_types: tuple[InstanceType, ...]
    zones: tuple[str, ...]
    markets: tuple[Market, ...]
    weight: int = 1
    limits: Limits = Limits()
    idle_s: float = 60.0
    max_job_nodes: int = 16
    labels: tuple[str, ...] = ()

    def features(self, instance_type: str, market: Market) -> tuple[str, ...]:
        """The Slurm features that a node of this pool carries."""
        family = instance_type.split(".")[0]
        return (self.name, instance_type, family, market.value, *self.labels)

    def offerings(self) -> Iterator[tuple[InstanceType, Offering]]:
        for market in self.markets:
            for instance_type in self.instance_types:
                for zone in self.zones:
                    yield instance_type, Offering(instance_type.name, zone, market)


@dataclass(frozen=True, slots=True)
class Partition:
    """A Slurm partition over one or more pools."""

    name: str
    pools: tuple[str, ...]
    is_default: bool = False


@dataclass(frozen=True, slots=True)
class Timings:
    """Every duration the control loop knows, in seconds.

    `spot_notice_s`: EC2 reclaims a spot instance two minutes after its notice.
    `apply_lease_s`: no planner lives longer (Lambda time-out), so an unfinished launch
    record older than this belongs to nobody.
    """

    boot_bound_s: float = 900.0
    spot_notice_s: float = 120.0
    requeue_margin_s: float = 25.0
    apply_lease_s: float = 45.0
    digest_stale_s: float = 300.0
    order_ttl_s: float = 60.0
    describe_lag_s: float = 60.0
    rest_min_s: float = 180.0
    rest_max_s: float = 1800.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """One cluster file, validated."""

    name: str
    pools: tuple[Pool, ...]
    partitions: tuple[Partition, ...]
    prices: Prices
    limits: Limits = Limits()
    timings: Timings = field(default_factory=Timings)

    def pool(self, name: str) -> Pool | None:
        return next((pool for pool in self.pools if pool.name == name), None)

    def partition(self, name: str) -> Partition | None:
        return next((part for part in self.partitions if part.name == name), None)

    def instance_type(self, name: str) -> InstanceType | None:
        for pool in self.pools:
            for instance_type in pool.instance_types:
                if instance_type.name == name:
                    return instance_type
        return None
