"""What a cluster file says of pools, limits and reservations, as pydantic models.

Defaults are those of `tidegate.core.model.cluster`, so they are stated once.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

from tidegate.core.model.cluster import Limits, Pool, Rebalance, Reservation
from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.wire import names
from tidegate.wire.bare_metal import BARE_METAL_BOOT_S, usual_boot_s, usual_start_s
from tidegate.wire.beside import stopped_usd_per_hour
from tidegate.wire.budget_models import SpendingBudgetModel
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.disruption import (
    AUTO_COUNT,
    AUTO_S,
    CountOrAuto,
    DisruptionModel,
    SecondsOrAuto,
)
from tidegate.wire.headroom_model import Headrooms, headrooms
from tidegate.wire.hooks import NodeHooksModel
from tidegate.wire.names import SecurityGroups
from tidegate.wire.node_models import GpuModel
from tidegate.wire.root_volume import Iops, RootVolume, ThroughputMibS
from tidegate.wire.section import (
    MAX_KEPT_NODES,
    Count,
    InitializationRate,
    PositiveCount,
    PositiveNumber,
    PositiveUsd,
    Seconds,
    Section,
    VolumeGib,
)
from tidegate.wire.selection import MIB_PER_GIB, Requirement, Selection, select, why_nothing
from tidegate.wire.subnets import SubnetsOfZone

_POOL = Pool(name="", instance_types=(), zones=(), markets=())

# EC2 has had reservations since 2014; and what ends later than this was mistyped.
FIRST_YEAR, LAST_YEAR = 2014, 2099
# Source: EC2 user guide, "Capacity Blocks for ML": up to 182 days, and what they are extended to.
LONGEST_BLOCK = timedelta(days=183)

# What is paid by the hour; reservations are paid for already.
PaidMarket = Literal[Market.SPOT, Market.ON_DEMAND]
# A number of YAML comes as its text, and so is no literal yet.
OneThread = Annotated[Literal[1], BeforeValidator(lambda value: 1 if value == "1" else value)]
PrepaidMarket = Literal[Market.RESERVED, Market.CAPACITY_BLOCK, Market.INTERRUPTIBLE]


class LimitsModel(Section):
    """Never exceeded, not even for a moment; what is left out has no limit."""

    gpus: PositiveCount | None = Field(
        default=None,
        description="GPUs at the same time; with gpu.mig, instances of them; with"
        " gpu.mig_profiles, gpu.shards_per_gpu or gpu.mps_per_gpu whole ones",
    )
    vcpus: PositiveCount | None = Field(default=None, description="vCPUs at the same time")
    memory_gib: PositiveNumber | None = Field(
        default=None, description="GiB of memory at the same time"
    )
    nodes: PositiveCount | None = Field(default=None, description="nodes at the same time")
    usd_per_hour: PositiveUsd | None = Field(default=None, description="USD per hour")

    def limits(self) -> Limits:
        memory = self.memory_gib
        return Limits(
            gpus=self.gpus,
            nodes=self.nodes,
            usd_per_hour=self.usd_per_hour,
            vcpus=self.vcpus,
            memory_mib=None if memory is None else int(memory * MIB_PER_GIB),
        )


class FlexibilityModel(Section):
    """How many instance types a launch must be able to choose from."""

    min_types: PositiveCount = Field(
        default=_POOL.min_types, description="instance types that a launch names at least"
    )
    strict: bool = Field(
        default=_POOL.is_min_types_strict,
        description="with fewer nothing is launched, instead of what there is",
    )


class ReservationModel(Section):
    """An On-Demand Capacity Reservation or a Capacity Block that is paid for already."""

    id: names.ReservationId = Field(description="EC2's id, like cr-0a1b2c3d4e5f60001")
    kind: PrepaidMarket = Field(
        description="reserved, capacity-block, or interruptible-capacity-reservation: one that its"
        " owner lends and takes back with two minutes' notice"
    )
    instance_type: names.InstanceTypeName = Field(description="exact EC2 name")
    zone: names.Zone = Field(description="its availability zone")
    count: PositiveCount = Field(description="instances in it")
    targeted: bool = Field(
        default=False,
        description="it takes only instances that name it (EC2's instance match criteria"
        " targeted), as a Capacity Block always does",
    )
    starts_at: names.Instant = Field(description="when it begins, like 2027-01-01T11:30:00Z")
    ends_at: names.Instant | None = Field(
        default=None, description="when it ends; until it is cancelled when left out"
    )

    @model_validator(mode="after")
    def _ends(self) -> Self:
        for key, instant in (("starts_at", self.starts_at), ("ends_at", self.ends_at)):
            if instant and not FIRST_YEAR <= instant.year <= LAST_YEAR:
                raise ValueError(f"{key} must be between {FIRST_YEAR} and {LAST_YEAR}")
        if self.kind is Market.INTERRUPTIBLE and self.ends_at:
            # Source: EC2 user guide, "Interruptible Capacity Reservations for capacity owners".
            raise ValueError("what an owner lends has no end but when it is taken back: no ends_at")
        if self.ends_at is None:
            if self.kind is Market.CAPACITY_BLOCK:
                raise ValueError("a Capacity Block always ends: ends_at is missing")
        elif self.ends_at <= self.starts_at:
            raise ValueError(f"ends_at must be later than starts_at, is {_iso(self.ends_at)}")
        elif self.kind is Market.CAPACITY_BLOCK and self.ends_at - self.starts_at > LONGEST_BLOCK:
            text = f"a Capacity Block lasts {LONGEST_BLOCK.days} days at most"
            raise ValueError(f"ends_at is too late: {text}")
        return self

    def reservation(self) -> Reservation:
        return Reservation(
            id=self.id,
            instance_type=self.instance_type,
            zone=self.zone,
            count=self.count,
            market=self.kind,
            starts_at_s=self.starts_at.timestamp(),
            ends_at_s=self.ends_at.timestamp() if self.ends_at else None,
            is_targeted=self.targeted and self.kind is Market.RESERVED,
        )


class PoolModel(Section):
    """Nodes of one kind of use."""

    instance_types: Annotated[
        tuple[names.InstanceTypeOrPattern, ...], AfterValidator(names.no_repeats)
    ] = Field(default=(), description="EC2 names or patterns, like g4dn.xlarge or g5.*")
    requirements: tuple[Requirement, ...] = Field(
        default=(), validate_default=True, description="conditions on instance types; all must hold"
    )
    zones: Annotated[
        tuple[names.Zone, ...], Field(min_length=1), AfterValidator(names.no_repeats)
    ] = Field(description="availability zones, like us-east-1a")
    subnets: dict[names.Zone, SubnetsOfZone] = Field(
        default_factory=dict,
        description="its own subnets of network.vpc by zone, each filled before the next; that of"
        " network.subnets when left out",
    )
    capacity_types: Annotated[
        tuple[Market, ...], Field(min_length=1), AfterValidator(names.no_repeats)
    ] = Field(
        description="spot, on-demand, reserved, capacity-block, interruptible-capacity-reservation;"
        " tried in this order"
    )
    weight: Annotated[int, Field(ge=1, le=100)] = Field(
        default=_POOL.weight, description="the pool with the higher one is tried first"
    )
    limits: LimitsModel = Field(default=LimitsModel(), description="limits of this pool")
    budget: SpendingBudgetModel = Field(
        default=SpendingBudgetModel(), description="what its nodes may cost by day and by month"
    )
    idle_s: SecondsOrAuto = Field(
        default=_POOL.idle_s,
        description="seconds that a node stays without a job; auto: as long as it is expected to "
        "cost less than booting another",
    )
    max_job_nodes: PositiveCount = Field(
        default=_POOL.max_job_nodes,
        description="the largest -N that Slurm accepts, for each"
        " instance type; `validate` tells where limits.nodes is larger",
    )
    max_job_time_s: Seconds | None = Field(
        default=_POOL.max_job_time_s,
        description="no node is bought for jobs with a longer time limit; Slurm starts none there"
        " where each pool of the partition has such a limit",
    )
    labels: Annotated[tuple[names.Label, ...], AfterValidator(names.no_repeats)] = Field(
        default=_POOL.labels, description="more Slurm features of the pool's nodes"
    )
    min_nodes: Count = Field(
        default=_POOL.min_nodes, description="nodes that are kept even without jobs"
    )
    headroom_nodes: Count = Field(
        default=_POOL.headroom_nodes, description="idle nodes that are kept for the next job"
    )
    stopped_nodes: CountOrAuto = Field(
        default=_POOL.stopped_nodes,
        description="on-demand nodes that are stopped instead of terminated once they idled, and"
        " started when a job comes for their type; they cost what their disks do. auto: as long as"
        " each saves more by the price of waiting than its disk costs",
    )
    start_s: Seconds = Field(
        default_factory=usual_start_s,
        description="seconds from the start of a stopped node to joined, as expected;"
        f" {_POOL.start_s:g}, with bare metal {BARE_METAL_BOOT_S:g}, when left out",
    )
    headroom: Headrooms = Field(
        default=(), description="room that is kept free for such jobs, also beside running ones"
    )
    flexibility: FlexibilityModel = Field(
        default=FlexibilityModel(), description="instance types that a launch may choose from"
    )
    placement_group: bool = Field(
        default=_POOL.placement_group,
        description="gangs in a placement group, close together; not in reservations and blocks,"
        " whose places are where they are",
    )
    boot_s: Seconds = Field(
        default_factory=usual_boot_s,
        description="seconds from launch to joined, as expected;"
        f" {_POOL.boot_s:g}, with bare metal {BARE_METAL_BOOT_S:g}, when left out",
    )
    checkpoint_s: Seconds | None = Field(
        default=_POOL.checkpoint_s,
        description="seconds of work that a requeued job loses at most; all when left out",
    )
    rebalance: Rebalance = Field(
        default=_POOL.rebalance,
        description="on EC2's rebalance recommendation: ignore, cordon (no new job) or drain",
    )
    threads_per_core: OneThread | None = Field(
        default=None,
        description="1: no hyperthreading, so that each CPU that Slurm gives away is a whole core;"
        " limits, quotas and prices still go by the type's vCPUs. As EC2 starts it when left out",
    )
    efa: bool = Field(
        default=False, description="nodes with all EFA interfaces that their type can have"
    )
    root_gib: VolumeGib = Field(
        default=100,  # the driver image alone takes more than half of it
        description="GiB of a node's root volume, no less than the image's snapshot",
    )
    root_iops: Iops | None = Field(
        default=None, description="IOPS of the root volume (gp3), at a price; 3000 when left out"
    )
    root_throughput_mib_s: ThroughputMibS | None = Field(
        default=None,
        description="MiB per second of the root volume (gp3), at a price; 125 when left out",
    )
    root_initialization_mib_s: InitializationRate | None = Field(
        default=None,
        description="how fast EBS brings the root volume's blocks from their snapshot, at a price"
        " by its size and within a quota; as they are first read when left out",
    )
    image: names.ImageId | None = Field(
        default=None,
        description="an image of your own for its nodes alone; the cluster's `image` when left out",
    )
    gpu: GpuModel = Field(default=GpuModel(), description="settings of the NVIDIA GPUs")
    security_groups: SecurityGroups = Field(
        default=(),
        description="more security groups of its nodes, of network.vpc, beside Tidegate's own",
    )
    hooks: NodeHooksModel = Field(
        default=NodeHooksModel(), description="scripts that its nodes run after the cluster's own"
    )
    job_role: names.RoleArn | None = Field(
        default=None, description="the role that jobs on its nodes act as, instead of the cluster's"
    )

    disruption: DisruptionModel = Field(
        default=DisruptionModel(), description="which nodes are let go, and how many at once"
    )

    @field_validator("requirements")
    @classmethod
    def _selects(
        cls, requirements: tuple[Requirement, ...], info: ValidationInfo
    ) -> tuple[Requirement, ...]:
        entries = info.data.get("instance_types")
        if entries is None:  # it has a problem of its own
            return requirements
        if not entries and not requirements:
            raise ValueError("missing, and so is instance_types: one must say what nodes it has")
        if not select(entries, requirements).instance_types:
            raise ValueError(why_nothing(entries, requirements))
        return requirements

    @model_validator(mode="after")
    def _is_of_one_arch(self) -> Self:
        """One image serves a pool, and one CreateFleet call names any of its types."""
        first_of = {each.arch: each.name for each in reversed(self.selected)}
        if len(first_of) > 1:
            types = " and ".join(f"{name} ({arch})" for arch, name in sorted(first_of.items()))
            raise ValueError(f"has {types}: a pool is of one architecture, make two of it")
        return self

    @model_validator(mode="after")
    def _has_a_root_that_is_sold(self) -> Self:
        if problem := self.root_volume().problem():
            raise ValueError(problem)
        return self

    def root_volume(self) -> RootVolume:
        return RootVolume(
            self.root_gib,
            self.root_iops,
            self.root_throughput_mib_s,
            self.root_initialization_mib_s,
        )

    @property
    def arch(self) -> str:
        return self.selected[0].arch

    def selection(self) -> Selection:
        return select(self.instance_types, self.requirements)

    @property
    def selected(self) -> tuple[InstanceType, ...]:
        """As Slurm sees them: with MIG, devices are instances of GPUs, and CPUs may be cores."""
        return tuple(self._seen(each) for each in self.selection().instance_types)

    def _seen(self, instance_type: InstanceType) -> InstanceType:
        cut = self.gpu.cut(instance_type)
        if self.threads_per_core is None:
            return cut
        return replace(cut, vcpus_per_cpu=load_catalogue()[cut.name].threads_per_core)

    @property
    def paid_markets(self) -> tuple[Market, ...]:
        return tuple(market for market in self.capacity_types if not market.is_prepaid)

    @property
    def most_stopped(self) -> int:
        """How many of its nodes may be stopped: where it follows from prices, all of them."""
        if self.stopped_nodes != AUTO_COUNT:
            return self.stopped_nodes
        return MAX_KEPT_NODES if self.limits.nodes is None else self.limits.nodes

    def pool(self, name: str) -> Pool:
        return Pool(
            name=name,
            instance_types=self.selected,
            zones=self.zones,
            markets=self.capacity_types,
            weight=self.weight,
            limits=self.limits.limits(),
            idle_s=self.idle_s or _POOL.idle_s,
            is_idle_auto=self.idle_s == AUTO_S,
            max_job_nodes=self.max_job_nodes,
            labels=self.labels,
            min_nodes=self.min_nodes,
            headroom_nodes=self.headroom_nodes,
            stopped_nodes=self.most_stopped,
            is_stopped_auto=self.stopped_nodes == AUTO_COUNT,
            stopped_usd_per_hour=stopped_usd_per_hour(self.root_volume())
            if self.stopped_nodes
            else 0.0,
            headroom=headrooms(self.headroom, self.selected),
            max_job_time_s=self.max_job_time_s,
            min_types=self.flexibility.min_types,
            is_min_types_strict=self.flexibility.strict,
            placement_group=self.placement_group,
            boot_s=self.boot_s,
            start_s=self.start_s,
            checkpoint_s=self.checkpoint_s,
            rebalance=self.rebalance,
            disruption=self.disruption.disruption(),
        )


def _iso(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat()
