"""What a cluster file may hold, as pydantic models.

Defaults of pools and timings are those of `tidegate.core.model.cluster`, so they are stated once.
"""

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from tidegate.core.model.cluster import HAZARD_MAX_PER_HOUR, Cluster, Timings
from tidegate.wire import names
from tidegate.wire.beside import Beside, TrafficModel
from tidegate.wire.budget_models import SpendingBudgetModel, budgets
from tidegate.wire.container_model import ContainerCache
from tidegate.wire.deployment import (
    BillAlert,
    BillAlertModel,
    ExistingModel,
    HeadModel,
    LogsModel,
    LustreModel,
    Metrics,
    Nat,
    NetworkModel,
)
from tidegate.wire.directory import DirectoryModel
from tidegate.wire.file_systems import FileSystems
from tidegate.wire.hooks import HooksModel
from tidegate.wire.idle_check_model import IdleCheckModel
from tidegate.wire.idle_gpus_model import IdleGpusModel
from tidegate.wire.images_model import ImagesModel
from tidegate.wire.login import LoginModel
from tidegate.wire.monitoring import MonitoringModel
from tidegate.wire.node_models import Containers, SoftwareModel, Users
from tidegate.wire.notifications_model import CHATLESS, NotificationsModel
from tidegate.wire.partition_model import PartitionModel
from tidegate.wire.places import WITHOUT_LUSTRE, why_no_budget
from tidegate.wire.pool_models import LimitsModel, PoolModel, ReservationModel
from tidegate.wire.prefetch_model import PrefetchModel
from tidegate.wire.prices import Discount, OwnPrices, Priced, PriceList, hazards
from tidegate.wire.report_model import ReportModel
from tidegate.wire.rollout_model import RolloutModel
from tidegate.wire.savings_plan_model import SavingsPlans, plans_of
from tidegate.wire.schedules_model import SchedulesModel
from tidegate.wire.section import Section
from tidegate.wire.slurm_model import SlurmModel
from tidegate.wire.tags import Tags
from tidegate.wire.waiting_model import WaitingModel

_TIMINGS = Timings()

# A new head, or a long restart of it, takes less.
ORPHAN_MIN_S = 900.0

Ratio = Annotated[float, Field(ge=0.001, le=1)]
Hazard = Annotated[float, Field(ge=0, le=HAZARD_MAX_PER_HOUR)]

# EC2 gives two minutes. A planner's time-out and the agent's heartbeat bound the others.
NoticeSeconds = Annotated[float, Field(ge=1, le=120)]
LeaseSeconds = Annotated[float, Field(ge=10, le=900)]
StaleSeconds = Annotated[float, Field(ge=60, le=3600)]
TtlSeconds = Annotated[float, Field(ge=10, le=3600)]
LagSeconds = Annotated[float, Field(ge=1, le=600)]
DaySeconds = Annotated[float, Field(ge=1, le=86400)]


class TimingsModel(Section):
    """Durations of the control loop; best left alone."""

    boot_bound_s: DaySeconds = Field(
        default=_TIMINGS.boot_bound_s,
        description="a node that is not ready by then ends itself, and is given up a minute later",
    )
    spot_notice_s: NoticeSeconds = Field(
        default=_TIMINGS.spot_notice_s, description="time between EC2's spot notice and the reclaim"
    )
    requeue_margin_s: DaySeconds = Field(
        default=_TIMINGS.requeue_margin_s,
        validate_default=True,
        description="how long before the reclaim running jobs are requeued",
    )
    apply_lease_s: LeaseSeconds = Field(
        default=_TIMINGS.apply_lease_s, description="no planner lives longer than this"
    )
    digest_stale_s: StaleSeconds = Field(
        default=_TIMINGS.digest_stale_s, description="an older digest buys nothing new"
    )
    order_ttl_s: TtlSeconds = Field(
        default=_TIMINGS.order_ttl_s, description="an order to the head expires after this"
    )
    describe_lag_s: LagSeconds = Field(
        default=_TIMINGS.describe_lag_s, description="how long EC2 may not show a fresh instance"
    )
    rest_min_s: DaySeconds = Field(
        default=_TIMINGS.rest_min_s, description="first rest of an offering that EC2 refused"
    )
    rest_max_s: DaySeconds = Field(
        default=_TIMINGS.rest_max_s,
        validate_default=True,
        description="longest rest of an offering that EC2 keeps refusing",
    )
    orphan_after_s: Annotated[float, Field(ge=ORPHAN_MIN_S, le=86400)] = Field(
        default=_TIMINGS.orphan_after_s,
        description="an idle node that hears nothing from slurmctld ends itself after this",
    )

    @field_validator("requeue_margin_s")
    @classmethod
    def _is_in_the_notice(cls, margin_s: float, info: ValidationInfo) -> float:
        notice_s = info.data.get("spot_notice_s")
        if notice_s is not None and margin_s >= notice_s:
            text = f"{margin_s:g}, but EC2 gives {notice_s:g} s of notice (spot_notice_s)"
            raise ValueError(f"{text}: take less, like {_TIMINGS.requeue_margin_s:g}")
        return margin_s

    @field_validator("rest_max_s")
    @classmethod
    def _is_the_longest(cls, most_s: float, info: ValidationInfo) -> float:
        least_s = info.data.get("rest_min_s")
        if least_s is not None and most_s < least_s:
            text = f"{most_s:g}, less than rest_min_s ({least_s:g})"
            raise ValueError(f"{text}: the longest rest is not shorter than the first")
        return most_s

    def timings(self) -> Timings:
        return Timings(**self.model_dump())


class ClusterModel(Section):
    """A Tidegate cluster: what may be bought, where, and up to which limits."""

    name: names.ClusterName = Field(description="name of the cluster, like dev")
    region: names.Region = Field(description="AWS region, like us-east-1")
    slurm: SlurmModel = Field(default=SlurmModel(), description="the Slurm of the cluster")
    shared_dir: names.SharedDir = Field(
        default="/shared", description="directory that head and nodes share"
    )
    head: HeadModel = Field(default=HeadModel(), description="the head node")
    image: names.NodeImage = Field(
        default="dlami",
        description="dlami: AWS's with the GPU driver; install: plain Ubuntu, the driver is added;"
        " or the id of an image for head and nodes",
    )
    images: ImagesModel | None = Field(default=None, description="images baked for nodes, if any")
    software: SoftwareModel = Field(
        default=SoftwareModel(), description="what nodes' images and jobs hold, to be checked"
    )
    containers: Containers = None
    container_cache: ContainerCache = None
    users: Users | None = Field(
        default=None,
        description="sssd: nodes know users by it, with an image of your own that is set up for"
        " it; those of the head when left out",
    )
    directory: DirectoryModel | None = Field(
        default=None, description="people come from LDAP or Active Directory; from the head if not"
    )
    job_role: names.RoleArn | None = Field(
        default=None,
        description="an IAM role that jobs act as on AWS, and which trusts the nodes' role; without"
        " one jobs have no rights",
    )
    job_role_by_account: names.ByAccount[names.RoleArn] = Field(
        default_factory=dict,
        description="the same for jobs of single Slurm accounts, on nodes of pools without a"
        " job_role of their own",
    )
    hooks: HooksModel = Field(
        default=HooksModel(),
        description="scripts of your own that head and nodes run at their boot",
    )
    network: NetworkModel = Field(
        default=NetworkModel(), description="an existing network, or what the stack makes"
    )
    login: LoginModel | None = Field(default=None, description="machines for people to work on")
    existing: ExistingModel = Field(
        default=ExistingModel(), description="what the stack uses instead of making its own"
    )
    lustre: LustreModel | None = Field(
        default=None, description="FSx for Lustre that the stack makes; none when left out"
    )
    file_systems: FileSystems = Field(
        default=(), description="file systems that are there already, mounted beside shared_dir"
    )
    prefetch: PrefetchModel | None = Field(
        default=None,
        description="data sets that jobs name in their comments (tidegate:data=s3://...) come to"
        " nodes' own disks while these boot; none when left out",
    )
    logs: LogsModel = Field(default=LogsModel(), description="the logs of functions and nodes")
    metrics: Metrics = Field(
        default=Metrics.MINIMAL,
        description="full: all figures, paid by the metric, and a dashboard",
    )
    monitoring: MonitoringModel = Field(
        default=MonitoringModel(), description="Prometheus on the head; none when left out"
    )
    backup_days: Annotated[int, Field(ge=0, le=36500)] = Field(
        default=14, description="how long daily backups of files and head are kept; 0: none"
    )
    tags: Tags = Field(
        default_factory=dict, description="on all that the stacks make and nodes are launched with"
    )
    node_policies: names.Policies = Field(
        default=(),
        description="IAM policies of your own for what root runs on nodes, like scripts in hooks;"
        " jobs do not have them: see job_role",
    )
    permissions_boundary: names.PolicyArn | None = Field(
        default=None, description="an IAM policy that bounds every role of the stack"
    )
    kms_key: names.KeyArn | None = Field(
        default=None,
        description="a KMS key of your own for volumes, shared files and the Munge key;"
        " AWS's keys when left out",
    )
    schedules: SchedulesModel | None = Field(
        default=None, description="when the cluster is up; always when left out"
    )
    alarm_email: names.Email | None = Field(default=None, description="who hears of alarms")
    notifications: NotificationsModel | None = Field(
        default=None,
        description="alarm_email and chats hear of long waits, budgets, roll-outs, blocks, checks"
        " and idle GPUs, in sentences; of alarms alone when left out",
    )
    report: ReportModel | None = Field(
        default=None, description="a page of costs and waits by itself; none when left out"
    )
    bill_alert: BillAlertModel | None = Field(
        default=None, description="mails when a month's costs come near it; none when left out"
    )
    limits: LimitsModel = Field(default=LimitsModel(), description="limits of the whole cluster")
    budget: SpendingBudgetModel = Field(
        default=SpendingBudgetModel(), description="what all nodes may cost by day and by month"
    )
    budget_by_account: names.ByAccount[SpendingBudgetModel] = Field(
        default_factory=dict,
        description="the same for single Slurm accounts; a node counts for the account of the"
        " first job that it was launched for",
    )
    budget_by_user: dict[names.UserName, SpendingBudgetModel] = Field(
        default_factory=dict,
        description="the same for single users, beside their accounts' budgets",
    )
    partitions: Annotated[dict[names.PartitionName, PartitionModel], Field(min_length=1)] = Field(
        description="Slurm partitions by name"
    )
    pools: Annotated[dict[names.PoolName, PoolModel], Field(min_length=1)] = Field(
        description="pools by name; the name becomes a Slurm feature"
    )
    prices_usd_per_hour: OwnPrices = Field(default_factory=dict)
    discount_percent: Discount = 0.0
    traffic: TrafficModel = Field(
        default=TrafficModel(), description="what nodes transfer, which is added to their price"
    )
    hazards_per_hour: dict[names.InstanceTypeName, Hazard] = Field(
        default_factory=dict, description="interruptions of a spot instance per hour, to begin with"
    )
    reservations: tuple[ReservationModel, ...] = Field(
        default=(), description="capacity that is paid for already"
    )
    reservation_groups: names.ReservationGroups = ()
    savings_plans: SavingsPlans = ()
    rollout: RolloutModel = Field(
        default=RolloutModel(), description="how new images and settings come to nodes"
    )
    waiting: WaitingModel = Field(default=WaitingModel(), description="what waiting jobs cost")
    idle_check: IdleCheckModel | None = Field(
        default=None, description="your own check of idle nodes; none when left out"
    )
    idle_gpus: IdleGpusModel | None = Field(
        default=None,
        description="what becomes of running jobs whose GPUs idle; they are shown, and left alone,"
        " when left out",
    )
    time_limit_ratio: Ratio = Field(
        default=1.0, description="the part of its time limit that a job really runs"
    )
    time_limit_ratio_by_account: names.ByAccount[Ratio] = Field(
        default_factory=dict, description="the same for single Slurm accounts"
    )
    timings: TimingsModel = Field(
        default=TimingsModel(), description="durations of the control loop, in seconds"
    )

    @field_validator("lustre")
    @classmethod
    def _has_its_place(cls, lustre: LustreModel | None, info: ValidationInfo) -> LustreModel | None:
        if lustre and lustre.directory == info.data.get("shared_dir"):
            raise ValueError(f"directory {lustre.directory} is shared_dir as well")
        region = info.data.get("region")
        if lustre and region in WITHOUT_LUSTRE:
            raise ValueError(f"storage_gib: CloudFormation makes no file system of FSx in {region}")
        return lustre

    @field_validator("kms_key")
    @classmethod
    def _is_of_the_region(cls, key: str | None, info: ValidationInfo) -> str | None:
        region = info.data.get("region")
        if key and region and key.split(":")[3] != region:
            raise ValueError(f"is a key of {key.split(':')[3]}, the cluster is in {region}")
        return key

    @field_validator("partitions")
    @classmethod
    def _are_not_static(
        cls, partitions: dict[str, PartitionModel], info: ValidationInfo
    ) -> dict[str, PartitionModel]:
        slurm = info.data.get("slurm")
        for line in slurm.static if slurm else ():
            name = line.split()[0].removeprefix("PartitionName=")
            if name in partitions:
                raise ValueError(f"{name} is a partition of slurm.static as well")
        return partitions

    @field_validator("notifications")
    @classmethod
    def _has_chats(
        cls, told: NotificationsModel | None, info: ValidationInfo
    ) -> NotificationsModel | None:
        region = info.data.get("region")
        if told and region and (told.slack or told.teams) and region.startswith(CHATLESS):
            raise ValueError(f"slack and teams: Amazon Q Developer does not serve {region}")
        return told

    @field_validator("bill_alert")
    @classmethod
    def _has_a_reader(
        cls, bill_alert: BillAlertModel | None, info: ValidationInfo
    ) -> BillAlertModel | None:
        if bill_alert and not (bill_alert.email or info.data.get("alarm_email", "told by itself")):
            raise ValueError("email is missing, and so is alarm_email: who shall hear of it?")
        if bill_alert and (why := why_no_budget(info.data.get("region", ""))):
            raise ValueError(f"{why}: leave it out, and make one by hand (docs/deploying.md)")
        return bill_alert

    def alert(self) -> BillAlert | None:
        if self.bill_alert is None:
            return None
        email = self.bill_alert.email or self.alarm_email
        assert email, "a validator asked for it"
        return BillAlert(self.bill_alert.usd_per_month, email)

    def cluster(self) -> Cluster:
        priced = self._priced()
        pools = tuple(model.pool(name) for name, model in self.pools.items())
        return Cluster(
            name=self.name,
            pools=pools,
            partitions=tuple(
                model.within(self.pools).partition(name, is_single=len(self.partitions) == 1)
                for name, model in self.partitions.items()
            ),
            prices=priced.prices,
            limits=self.limits.limits(),
            timings=self.timings.timings(),
            reservations=tuple(each.reservation() for each in self.reservations),
            reservation_groups=self.reservation_groups,
            savings_plans=plans_of(self.savings_plans, self.pools, self._listed()),
            time_limit_ratio=self.time_limit_ratio,
            time_limit_ratios=self.time_limit_ratio_by_account,
            hazards=hazards(pools, self.hazards_per_hour),
            budgets=budgets(
                self.budget,
                {name: model.budget for name, model in self.pools.items()},
                self.budget_by_account,
                self.budget_by_user,
            ),
            health_reasons=self.slurm.health_reasons,
            waiting=self.waiting.waiting(),
            idle_gpus=self.idle_gpus.idle_gpus() if self.idle_gpus else None,
            prefetch=self.prefetch.places if self.prefetch else (),
            estimates=priced.estimates,
            discount=self.discount_percent / 100,
            check=self.rollout.check.check() if self.rollout.check else None,
            idle_check=self.idle_check.check(pools) if self.idle_check else None,
            alarms=self.rollout.rollout_alarms(),
        )

    def _priced(self) -> Priced:
        pools = [(model.pool(name), model.root_volume()) for name, model in self.pools.items()]
        held = [each.reservation() for each in self.reservations]
        return self._listed().priced(pools, held, has_groups=bool(self.reservation_groups))

    def _listed(self) -> PriceList:
        return PriceList(
            known=self.prices_usd_per_hour,
            region=self.region,
            beside=self._beside(),
            discount=self.discount_percent / 100,
        )

    def _beside(self) -> Beside:
        network, pools = self.network, self.pools.values()
        return Beside(
            has_public_address=network.vpc is None and not network.is_private,
            has_nat=network.nat is Nat.ONE,
            head_zone=self.head.zone or min(zone for each in pools for zone in each.zones),
            traffic=self.traffic,
        )
