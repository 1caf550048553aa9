"""What a cluster file may hold, as pydantic models.

Defaults of pools and timings are those of `tidegate.core.pool`, so they are stated once.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from tidegate.core.ec2 import Market, Offering
from tidegate.core.pool import Cluster, Limits, Partition, Pool, Timings
from tidegate.wire import names
from tidegate.wire.calendar import Schedules
from tidegate.wire.catalogue import load_catalogue

_POOL = Pool(name="", instance_types=(), zones=(), markets=())
_TIMINGS = Timings()

PositiveCount = Annotated[int, Field(ge=1)]
PositiveUsd = Annotated[float, Field(gt=0, allow_inf_nan=False)]
# What is paid by the hour; reservations are paid for already.
PaidMarket = Literal[Market.SPOT, Market.ON_DEMAND]
PriceModel = dict[PaidMarket, PositiveUsd]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Section(BaseModel):
    """A part of the file; a name that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SlurmModel(_Section):
    """The Slurm that head and nodes run."""

    version: names.SlurmVersion = Field(
        default="23.11", description="Slurm release of head and nodes: 22.05, 23.11 or 24.11"
    )
    settings: dict[names.SlurmSetting, names.SettingValue] = Field(
        default_factory=dict, description="lines of slurm.conf, over the usual ones"
    )
    cgroup: dict[names.CgroupSetting, names.SettingValue] = Field(
        default_factory=dict, description="lines of cgroup.conf, over the usual ones"
    )


class HeadModel(_Section):
    """The head node: slurmctld and the agent."""

    instance_type: names.HeadInstanceType = Field(
        default="m6i.large", description="an x86 instance type, like m6i.large"
    )
    volume_gib: Annotated[int, Field(ge=8, le=16384)] = Field(
        default=50, description="GiB of its data volume"
    )


class SchedulesModel(_Section):
    """When the cluster is up; cron with five fields, in the cluster's own time zone."""

    time_zone: names.TimeZone = Field(description="an IANA name, like Asia/Tokyo")
    stop: names.Cron = Field(description='when nodes go and then the head, like "0 20 * * MON-FRI"')
    start: names.Cron = Field(description='when the head comes back, like "0 8 * * MON-FRI"')

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if self.stop.split() == self.start.split():
            raise ValueError("stop and start are the same: the cluster would never be stopped")
        return self

    def schedules(self) -> Schedules:
        return Schedules(self.time_zone, self.stop, self.start)


class NetworkModel(_Section):
    """An existing network; without this section the stack makes its own."""

    vpc: names.VpcId = Field(description="the VPC that the subnets are in")
    subnets: Annotated[dict[names.Zone, names.SubnetId], Field(min_length=1)] = Field(
        description="a subnet for each availability zone"
    )


class LimitsModel(_Section):
    """Never exceeded, not even for a moment; what is left out has no limit."""

    gpus: PositiveCount | None = Field(default=None, description="GPUs at the same time")
    nodes: PositiveCount | None = Field(default=None, description="nodes at the same time")
    usd_per_hour: PositiveUsd | None = Field(default=None, description="USD per hour")

    def limits(self) -> Limits:
        return Limits(gpus=self.gpus, nodes=self.nodes, usd_per_hour=self.usd_per_hour)


class PartitionModel(_Section):
    """A Slurm partition."""

    pools: Annotated[
        tuple[names.PoolName, ...], Field(min_length=1), AfterValidator(names.no_repeats)
    ] = Field(description="the pools whose nodes it has")
    default: bool = Field(
        default=False, description="takes jobs that name no partition; a single one always does"
    )


class PoolModel(_Section):
    """Nodes of one kind of use."""

    instance_types: Annotated[
        tuple[names.GpuInstanceType, ...], Field(min_length=1), AfterValidator(names.no_repeats)
    ] = Field(description="exact EC2 names, like g4dn.xlarge")
    zones: Annotated[
        tuple[names.Zone, ...], Field(min_length=1), AfterValidator(names.no_repeats)
    ] = Field(description="availability zones, like us-east-1a")
    capacity_types: Annotated[
        tuple[PaidMarket, ...], Field(min_length=1), AfterValidator(names.no_repeats)
    ] = Field(description="spot, on-demand or both; tried in this order")
    weight: Annotated[int, Field(ge=1, le=100)] = Field(
        default=_POOL.weight, description="the pool with the higher one is tried first"
    )
    limits: LimitsModel = Field(default=LimitsModel(), description="limits of this pool")
    idle_s: Seconds = Field(
        default=_POOL.idle_s, description="seconds that a node stays without a job"
    )
    max_job_nodes: PositiveCount = Field(
        default=_POOL.max_job_nodes,
        description="the largest -N that Slurm accepts, for each instance type",
    )
    labels: Annotated[tuple[names.Label, ...], AfterValidator(names.no_repeats)] = Field(
        default=_POOL.labels, description="more Slurm features of the pool's nodes"
    )

    def pool(self, name: str) -> Pool:
        catalogue = load_catalogue()
        return Pool(
            name=name,
            instance_types=tuple(catalogue[each].instance_type for each in self.instance_types),
            zones=self.zones,
            markets=self.capacity_types,
            weight=self.weight,
            limits=self.limits.limits(),
            idle_s=self.idle_s,
            max_job_nodes=self.max_job_nodes,
            labels=self.labels,
        )


class TimingsModel(_Section):
    """Durations of the control loop; best left alone."""

    boot_bound_s: Seconds = Field(
        default=_TIMINGS.boot_bound_s, description="a node that has not joined by then is given up"
    )
    spot_notice_s: Seconds = Field(
        default=_TIMINGS.spot_notice_s, description="time between EC2's spot notice and the reclaim"
    )
    requeue_margin_s: Seconds = Field(
        default=_TIMINGS.requeue_margin_s,
        description="how long before the reclaim running jobs are requeued",
    )
    apply_lease_s: Seconds = Field(
        default=_TIMINGS.apply_lease_s, description="no planner lives longer than this"
    )
    digest_stale_s: Seconds = Field(
        default=_TIMINGS.digest_stale_s, description="an older digest buys nothing new"
    )
    order_ttl_s: Seconds = Field(
        default=_TIMINGS.order_ttl_s, description="an order to the head expires after this"
    )
    describe_lag_s: Seconds = Field(
        default=_TIMINGS.describe_lag_s, description="how long EC2 may not show a fresh instance"
    )
    rest_min_s: Seconds = Field(
        default=_TIMINGS.rest_min_s, description="first rest of an offering that EC2 refused"
    )
    rest_max_s: Seconds = Field(
        default=_TIMINGS.rest_max_s,
        description="longest rest of an offering that EC2 keeps refusing",
    )

    def timings(self) -> Timings:
        return Timings(**self.model_dump())


class ClusterModel(_Section):
    """A Tidegate cluster: what may be bought, where, and up to which limits."""

    name: names.ClusterName = Field(description="name of the cluster, like dev")
    region: names.Region = Field(description="AWS region, like us-east-1")
    slurm: SlurmModel = Field(default=SlurmModel(), description="the Slurm of the cluster")
    shared_dir: names.SharedDir = Field(
        default="/shared", description="directory that head and nodes share"
    )
    head: HeadModel = Field(default=HeadModel(), description="the head node")
    image: names.ImageId | None = Field(
        default=None,
        description="machine image of head and nodes; AWS's own for Ubuntu 24.04 when left out",
    )
    network: NetworkModel | None = Field(
        default=None, description="an existing network; made by the stack when left out"
    )
    schedules: SchedulesModel | None = Field(
        default=None, description="when the cluster is up; always when left out"
    )
    alarm_email: names.Email | None = Field(default=None, description="who hears of alarms")
    limits: LimitsModel = Field(default=LimitsModel(), description="limits of the whole cluster")
    partitions: Annotated[dict[names.PartitionName, PartitionModel], Field(min_length=1)] = Field(
        description="Slurm partitions by name"
    )
    pools: Annotated[dict[names.PoolName, PoolModel], Field(min_length=1)] = Field(
        description="pools by name; the name becomes a Slurm feature"
    )
    prices_usd_per_hour: dict[names.GpuInstanceType, PriceModel] = Field(
        description="price of each instance type and capacity type that a pool uses"
    )
    timings: TimingsModel = Field(
        default=TimingsModel(), description="durations of the control loop, in seconds"
    )

    def cluster(self) -> Cluster:
        return Cluster(
            name=self.name,
            pools=tuple(model.pool(name) for name, model in self.pools.items()),
            partitions=tuple(
                Partition(name, model.pools, model.default or len(self.partitions) == 1)
                for name, model in self.partitions.items()
            ),
            prices=self._prices(),
            limits=self.limits.limits(),
            timings=self.timings.timings(),
        )

    def _prices(self) -> Mapping[Offering, float]:
        """A price holds in every zone; only offerings of a pool are listed."""
        return {
            Offering(instance_type, zone, market): self.prices_usd_per_hour[instance_type][market]
            for pool in self.pools.values()
            for instance_type in pool.instance_types
            for zone in pool.zones
            for market in pool.capacity_types
        }
