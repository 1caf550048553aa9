"""Pools, partitions, limits: what the cluster file promises, as plain values."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import StrEnum

from tidegate.core.model.alarms import RolloutAlarms
from tidegate.core.model.budgets import DEFAULT_DISRUPTION, Disruption
from tidegate.core.model.ec2 import InstanceType, Market, Offering, Prices
from tidegate.core.model.frozen import frozen
from tidegate.core.model.gpu_use import IdleGpus
from tidegate.core.model.headroom import Headroom
from tidegate.core.model.idle_check import IdleCheck
from tidegate.core.model.savings_plans import SavingsPlan
from tidegate.core.model.site_check import SiteCheck
from tidegate.core.model.waiting import Waiting

# Interruptions of a spot instance per hour where neither the market data nor the cluster
# file says. The Spot Advisor's worst bucket (over 20 % a month) is 0.0003; single GPU types
# were seen far above it, so this leans towards on-demand for long jobs that lose all.
DEFAULT_HAZARD_PER_HOUR = 0.05
HAZARD_MAX_PER_HOUR = 60

# LBNL's Node Health Check: its helper drains with this prefix.
DEFAULT_HEALTH_REASONS = ("NHC:",)


@frozen
class Limits:
    """Never exceeded, not even for a moment. None: no limit."""

    gpus: int | None = None
    nodes: int | None = None
    usd_per_hour: float | None = None
    vcpus: int | None = None
    memory_mib: int | None = None


@frozen
class SpendingBudget:
    """Once so much is spent, nothing more is launched until the period ends. None: no budget."""

    usd_per_day: float | None = None
    usd_per_month: float | None = None


# Who a budget is for; `account_scope`, `user_scope`, `pool_scope` name the others.
CLUSTER_SCOPE = "cluster"


def pool_scope(pool: str) -> str:
    return f"pool {pool}"


def account_scope(account: str) -> str:
    return f"account {account}"


def user_scope(user: str) -> str:
    return f"user {user}"


def payer_scopes(account: str, user: str) -> tuple[str, ...]:
    """Who pays for the nodes that are bought for a job; "": nobody, or not known."""
    scopes = (account_scope(account) if account else "", user_scope(user) if user else "")
    return tuple(scope for scope in scopes if scope)


class Rebalance(StrEnum):
    """What to do when EC2 recommends to leave a spot instance, before any notice of a reclaim.

    IGNORE is the default: the reclaim may come hours later or never, and a job that is moved
    for nothing loses its work. CORDON starts no new job there, DRAIN moves the jobs at once.
    """

    IGNORE = "ignore"
    CORDON = "cordon"
    DRAIN = "drain"


# From StartInstances to a place in Slurm, of a node that was stopped. Nobody has measured it here;
# AWS says of a warm pool's stopped instances that they serve in as little as 30 s
# (EC2 Auto Scaling, announcement of warm pools, 2021), and slurmd comes after that.
START_S = 60.0


type PoolType = tuple[str, str]
"""A pool and one of its instance types."""


@frozen
class Pool:
    """Nodes of one kind of use; `weight`: higher is tried first (Karpenter's word).

    `is_idle_auto`: nodes stay idle for a time that follows from what was seen, see `patience`.
    `min_nodes` are always there, `headroom_nodes` of them or beside them always idle. `headroom`:
    room that is always free for such jobs.
    `max_job_time_s`: no job with a longer time limit may use the pool. A launch names at
    least `min_types` instance types where so many fit; `is_min_types_strict`: or does not
    happen. `boot_s` is the expected time from launch to joined. `checkpoint_s`: how much
    work a requeued job of this pool loses at most, None: all of it. So many nodes that idled
    out are stopped instead of terminated, and cost what their disks do: `stopped_usd_per_hour`
    each; `is_stopped_auto`: no more than these, and each no longer than it is worth that.
    `start_s` is the expected time from the start of a stopped one to joined.
    """

    name: str
    instance_types: tuple[InstanceType, ...]
    zones: tuple[str, ...]
    markets: tuple[Market, ...]
    weight: int = 1
    limits: Limits = Limits()
    idle_s: float = 120.0
    max_job_nodes: int = 16
    labels: tuple[str, ...] = ()
    min_nodes: int = 0
    headroom_nodes: int = 0
    headroom: tuple[Headroom, ...] = ()
    max_job_time_s: float | None = None
    min_types: int = 1
    is_min_types_strict: bool = False
    placement_group: bool = False
    boot_s: float = 300.0
    start_s: float = START_S
    checkpoint_s: float | None = None
    rebalance: Rebalance = Rebalance.IGNORE
    disruption: Disruption = DEFAULT_DISRUPTION
    is_idle_auto: bool = False
    stopped_nodes: int = 0
    is_stopped_auto: bool = False
    stopped_usd_per_hour: float = 0.0

    def up_in_s(self, *, is_started: bool) -> float:
        """How long until a node is up; one that was stopped comes no later than a new one."""
        return min(self.start_s, self.boot_s) if is_started else self.boot_s

    @property
    def keeps_free(self) -> bool:
        """Whether it has nodes that no job needs yet, beside its minimum."""
        return bool(self.headroom_nodes or self.headroom)

    def features(self, instance_type: str, market: Market) -> tuple[str, ...]:
        """The Slurm features that a node of this pool carries."""
        family = instance_type.split(".")[0]
        return (self.name, instance_type, family, market.feature, *self.labels)

    def offerings(self) -> Iterator[tuple[InstanceType, Offering]]:
        for market in self.markets:
            for instance_type in self.instance_types:
                for zone in self.zones:
                    yield instance_type, Offering(instance_type.name, zone, market)

    def may_have(self, offering: Offering) -> bool:
        """Whether it is one of the pool's offerings."""
        return (
            offering.market in self.markets
            and offering.zone in self.zones
            and any(each.name == offering.instance_type for each in self.instance_types)
        )


@frozen
class Partition:
    """A Slurm partition over one or more pools, and whom and what it takes.

    `state`: up, down, drain or inactive. Jobs of a higher `priority_tier` come first, whatever
    their priority. None: no limit; no accounts or QOS allowed: all are.
    """

    name: str
    pools: tuple[str, ...]
    is_default: bool = False
    state: str = "up"
    priority_tier: int = 1
    max_time_s: float | None = None
    min_nodes: int = 0
    max_nodes: int | None = None
    max_mem_per_node_mib: int | None = None
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()

    def takes(self, pool: str, nodes: int, limit_s: float) -> bool:
        """Whether a job on so many of the pool's nodes, with this time limit, would begin in it."""
        return (
            pool in self.pools
            and self.state == "up"
            and self.min_nodes <= nodes <= (self.max_nodes or nodes)
            and limit_s <= (self.max_time_s or limit_s)
        )


# A node's own bound counts from when its user data begins, half a minute after its launch.
BOOT_BEGINS_S = 60.0


@frozen
class Timings:
    """Every duration the control loop knows, in seconds.

    `spot_notice_s`: EC2 reclaims a spot instance two minutes after its notice.
    `apply_lease_s`: no planner lives longer (Lambda time-out), so an unfinished launch
    record older than this belongs to nobody. `orphan_after_s`: a node without a step that hears
    nothing from slurmctld ends itself after that; it is the node that knows it.
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
    orphan_after_s: float = 1800.0

    @property
    def given_up_s(self) -> float:
        """From its launch on: what has not joined by then has ended itself (`node/first.sh`).

        Ended sooner, it might be joining in this moment, and have a job in the next.
        """
        return self.boot_bound_s + BOOT_BEGINS_S


# What a launch into open reservations names instead of one of them.
OPEN = "reserved"


@frozen
class Reservation:
    """Capacity paid for in advance: an On-Demand Capacity Reservation, a Capacity Block, or what
    the owner of a reservation lends (an interruptible one).

    `ends_at_s` None: until it is cancelled. A Capacity Block always ends; EC2 begins to
    terminate its instances 30 minutes before. `is_targeted`: a reservation that takes nothing but
    what names it (EC2's instance match criteria `targeted`). `group`: the ARN of the group of the
    cluster file that it was found in; "": the file names it by its id.
    """

    id: str  #: EC2's id
    instance_type: str  #: instance type
    zone: str  #: its zone
    count: int  #: instances in it
    market: Market  #: reserved, capacity-block or interruptible-capacity-reservation
    starts_at_s: float  #: when it begins, epoch seconds
    ends_at_s: float | None = None  #: when it ends, epoch seconds; null: never
    is_targeted: bool = False  #: it takes only what names it
    group: str = ""  #: the ARN of the group that it is in; empty: the file names it by its id
    block: str = ""  #: EC2's id of the Capacity Block, an UltraServer, that it is in; empty: none

    @property
    def offering(self) -> Offering:
        return Offering(self.instance_type, self.zone, self.market)

    @property
    def is_named(self) -> bool:
        """Whether a launch has to name it or its group, by a launch template of its own."""
        return self.is_targeted or self.market.is_named or bool(self.group)

    @property
    def target(self) -> str:
        """What a launch into it names: its id, or its group; OPEN where it names neither."""
        if self.group:
            return group_target(self.group)
        return self.id if self.is_named else OPEN


def group_target(arn: str) -> str:
    """What a launch template for a reservation group is called by: the group's name."""
    return f"group-{arn.rpartition('/')[2]}"


def named_key(pool: str, target: str) -> str:
    """The name of a pool's launch template for a capacity block, a targeted reservation or a
    reservation group: by its `target`.
    """
    return f"{pool}/{target}"


def reserved_key(pool: str) -> str:
    """The name of a pool's launch template for places in open reservations, and for no others."""
    return named_key(pool, OPEN)


def group_key(pool: str, zone: str) -> str:
    """The name of a pool's placement group in a zone; it cannot span zones."""
    return f"{pool}/{zone}"


@frozen
class Estimate:
    """Of a price that the cluster file leaves to the market: what is known without asking it.

    `on_demand_usd_per_hour`: of the instance type alone; `beside_usd_per_hour`: of the disk and
    whatever else an instance of the offering is paid with.
    """

    on_demand_usd_per_hour: float
    beside_usd_per_hour: float


@frozen
class Cluster:
    """One cluster file, validated.

    `time_limit_ratio`: the part of its time limit that a job really runs, for accounts that
    `time_limit_ratios` does not name. `hazards`: interruptions per hour of spot offerings;
    `seen_hazards`: those of them that were learnt here.
    `budgets`: by scope. `health_reasons`: what the drain reasons of the site's checkers begin with.
    `waiting`: what an hour costs that a job waits. `estimates`: offerings whose price the file
    does not say; `quoted`: those of them whose price is what EC2 asks now, but for the part of it
    that a contract takes off (`discount`).
    `reservation_groups`: their ARNs; what is in them stands among `reservations` as soon as it was
    read. `check`: what new templates have to pass, `idle_check`: what idle nodes have to, None:
    nothing of the site's own. `alarms`: by which roll-outs stop, None: by none. `idle_gpus` None:
    jobs whose GPUs idle are left alone. `prefetch`: buckets, with a prefix or none, of which nodes
    load the data sets that jobs name.
    """

    name: str
    pools: tuple[Pool, ...]
    partitions: tuple[Partition, ...]
    prices: Prices
    limits: Limits = Limits()
    timings: Timings = field(default_factory=Timings)
    reservations: tuple[Reservation, ...] = ()
    reservation_groups: tuple[str, ...] = ()
    savings_plans: tuple[SavingsPlan, ...] = ()
    time_limit_ratio: float = 1.0
    time_limit_ratios: Mapping[str, float] = field(default_factory=dict)
    hazards: Mapping[Offering, float] = field(default_factory=dict)
    seen_hazards: frozenset[Offering] = frozenset()
    budgets: Mapping[str, SpendingBudget] = field(default_factory=dict)
    health_reasons: tuple[str, ...] = DEFAULT_HEALTH_REASONS
    waiting: Waiting = Waiting()
    estimates: Mapping[Offering, Estimate] = field(default_factory=dict)
    quoted: frozenset[Offering] = frozenset()
    discount: float = 0.0
    check: SiteCheck | None = None
    idle_check: IdleCheck | None = None
    alarms: RolloutAlarms | None = None
    idle_gpus: IdleGpus | None = None
    prefetch: tuple[str, ...] = ()

    def expected_s(self, time_limit_s: float | None, account: str) -> float | None:
        """How long a job will really run; None: it has no time limit, so nobody knows."""
        ratio = self.time_limit_ratios.get(account, self.time_limit_ratio)
        return None if time_limit_s is None else time_limit_s * ratio

    def payers(self, account: str, user: str) -> tuple[str, ...]:
        """The scopes of who pays for a job's nodes that have a budget, the account's first."""
        if not self.budgets:
            return ()
        return tuple(scope for scope in payer_scopes(account, user) if scope in self.budgets)

    def counted(self, user: str) -> str:
        """The user where he has a budget, else "".

        What the others spend nobody asks the ledger for, whose counters every look reads: of a
        thousand users over two years they would be a megabyte. `tidegate cost` asks Slurm.
        """
        return user if user_scope(user) in self.budgets else ""

    def hazard_per_hour(self, offering: Offering) -> float:
        """How often EC2 interrupts an instance of this offering; only spot is."""
        if offering.market is not Market.SPOT:
            return 0.0
        return self.hazards.get(offering, DEFAULT_HAZARD_PER_HOUR)

    @property
    def has_spot(self) -> bool:
        return any(Market.SPOT in pool.markets for pool in self.pools)

    def named_reservations(self, pool: Pool) -> tuple[Reservation, ...]:
        """The capacity blocks and targeted reservations that a pool may use."""
        return tuple(
            each for each in self.reservations if each.is_named and pool.may_have(each.offering)
        )

    def pool(self, name: str) -> Pool | None:
        for pool in self.pools:
            if pool.name == name:
                return pool
        return None

    def partition(self, name: str) -> Partition | None:
        for partition in self.partitions:
            if partition.name == name:
                return partition
        return None

    def instance_type(self, name: str) -> InstanceType | None:
        for pool in self.pools:
            for instance_type in pool.instance_types:
                if instance_type.name == name:
                    return instance_type
        return None
