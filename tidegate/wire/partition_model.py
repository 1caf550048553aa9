"""What a cluster file says of a Slurm partition, in Slurm's own words.

Source: slurm.conf(5), PARTITION CONFIGURATION; what each does is in docs/partitions.md.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from tidegate.core.model.cluster import Partition
from tidegate.wire import names
from tidegate.wire.pool_models import PoolModel
from tidegate.wire.section import PositiveCount, Section

_PARTITION = Partition("", ())
_DAY_S = 86_400
_MINUTE_S = 60


class PartitionState(StrEnum):
    """Whether a partition takes jobs and starts them."""

    UP = "up"
    DOWN = "down"  # takes jobs, starts none
    DRAIN = "drain"  # takes none, starts those that wait
    INACTIVE = "inactive"  # neither


class PreemptMode(StrEnum):
    """What happens to jobs of a partition that give way to those of a higher tier."""

    OFF = "off"
    CANCEL = "cancel"
    REQUEUE = "requeue"


class OverSubscribe(StrEnum):
    """Whether jobs of a partition share nodes. Those that share cores cannot be planned."""

    NO = "no"
    EXCLUSIVE = "exclusive"


def _minutes(value: int) -> int:
    if value % _MINUTE_S:
        up = -(-value // _MINUTE_S) * _MINUTE_S
        raise ValueError(f"Slurm counts minutes: must be a multiple of 60, like {up}, is {value}")
    return value


WholeMinutes = Annotated[int, Field(ge=60, le=365 * _DAY_S), AfterValidator(_minutes)]
Priority = Annotated[int, Field(ge=0, le=65533)]
Accounts = Annotated[
    tuple[names.AccountName, ...], Field(min_length=1), AfterValidator(names.no_repeats)
]
QosNames = Annotated[
    tuple[names.QosName, ...], Field(min_length=1), AfterValidator(names.no_repeats)
]
Groups = Annotated[
    tuple[names.GroupName, ...], Field(min_length=1), AfterValidator(names.no_repeats)
]

# Option -> Slurm's name of it, with what Slurm's value is made from. The order of the line.
LISTS = {
    "allow_groups": "AllowGroups",
    "allow_accounts": "AllowAccounts",
    "deny_accounts": "DenyAccounts",
    "allow_qos": "AllowQos",
    "deny_qos": "DenyQos",
}
WORDS = {
    "qos": "QOS",
    "priority_tier": "PriorityTier",
    "priority_job_factor": "PriorityJobFactor",
    "min_nodes": "MinNodes",
    "max_nodes": "MaxNodes",
    "def_cpu_per_gpu": "DefCpuPerGPU",
    "def_mem_per_cpu_mib": "DefMemPerCPU",
    "def_mem_per_gpu_mib": "DefMemPerGPU",
    "def_mem_per_node_mib": "DefMemPerNode",
    "max_mem_per_node_mib": "MaxMemPerNode",
    "grace_time_s": "GraceTime",
}
TIMES = {
    "default_time_s": "DefaultTime",
    "max_time_s": "MaxTime",
    "over_time_limit_s": "OverTimeLimit",
}
FLAGS = {"hidden": "Hidden", "root_only": "RootOnly", "req_resv": "ReqResv"}
NEED_ACCOUNTING = ("allow_accounts", "deny_accounts", "allow_qos", "deny_qos", "qos")
_DEF_MEM = ("def_mem_per_cpu_mib", "def_mem_per_gpu_mib", "def_mem_per_node_mib")


def bound_of(names: Iterable[str], pools: Mapping[str, PoolModel]) -> int | None:
    """The longest time limit that one of these pools takes, in whole minutes; None: any."""
    bounds_s = [pools[name].max_job_time_s if name in pools else None for name in names]
    known_s = [each for each in bounds_s if each is not None]
    if not known_s or len(known_s) < len(bounds_s):
        return None
    return max(int(max(known_s) // 60) * 60, 60)


class PartitionModel(Section):
    """A Slurm partition: whose jobs it takes, how large and long, and which come first."""

    pools: Annotated[
        tuple[names.PoolName, ...], Field(min_length=1), AfterValidator(names.no_repeats)
    ] = Field(description="the pools whose nodes it has")
    default: bool = Field(
        default=False, description="takes jobs that name no partition; a single one always does"
    )
    state: PartitionState = Field(
        default=PartitionState.UP,
        description="up; down: takes jobs and starts none; drain: takes none and starts those that"
        " wait; inactive: neither",
    )
    allow_accounts: Accounts | None = Field(
        default=None, description="Slurm accounts that may use it; all when left out"
    )
    deny_accounts: Accounts | None = Field(
        default=None, description="Slurm accounts that may not, instead of allow_accounts"
    )
    allow_groups: Groups | None = Field(
        default=None, description="groups of the head's users that may use it; all when left out"
    )
    allow_qos: QosNames | None = Field(
        default=None, description="QOS that may use it; all when left out"
    )
    deny_qos: QosNames | None = Field(
        default=None, description="QOS that may not, instead of allow_qos"
    )
    qos: names.QosName | None = Field(
        default=None, description="the QOS whose limits hold for all jobs in it"
    )
    priority_tier: Priority = Field(
        default=_PARTITION.priority_tier,
        description="jobs of a higher tier come first, and may preempt",
    )
    priority_job_factor: Priority = Field(
        default=1, description="its share in a job's priority, with PriorityType multifactor"
    )
    max_time_s: WholeMinutes | None = Field(
        default=None,
        description="longest time limit of a job; when left out the largest `max_job_time_s` of its"
        " pools, none where one of them has none",
    )
    default_time_s: WholeMinutes | None = Field(
        default=None, description="time limit of a job that names none; max_time_s when left out"
    )
    over_time_limit_s: WholeMinutes | None = Field(
        default=None, description="how long a job may go on beyond its time limit"
    )
    min_nodes: PositiveCount | None = Field(
        default=None, description="fewest nodes of a job; one that names no -N gets as many"
    )
    max_nodes: PositiveCount | None = Field(default=None, description="most nodes of a job")
    max_mem_per_node_mib: PositiveCount | None = Field(
        default=None, description="most MiB of a job on one node"
    )
    def_cpu_per_gpu: PositiveCount | None = Field(
        default=None, description="CPUs for each GPU of a job that names none"
    )
    def_mem_per_cpu_mib: PositiveCount | None = Field(
        default=None, description="MiB for each CPU of a job that names no memory"
    )
    def_mem_per_gpu_mib: PositiveCount | None = Field(
        default=None,
        description="MiB for each GPU of a job that names no memory; it is planned with them even"
        " when it says --mem, since squeue does not tell the two apart",
    )
    def_mem_per_node_mib: PositiveCount | None = Field(
        default=None, description="MiB on each node of a job that names no memory"
    )
    over_subscribe: OverSubscribe = Field(
        default=OverSubscribe.NO,
        description="exclusive: each job has its nodes for itself, as with sbatch --exclusive",
    )
    preempt_mode: PreemptMode | None = Field(
        default=None,
        description="what happens to its jobs when one of a higher tier needs their nodes; by"
        " slurm.settings when left out",
    )
    grace_time_s: PositiveCount | None = Field(
        default=None, description="how long a job that is preempted may go on"
    )
    hidden: bool = Field(default=False, description="not shown to those who may not use it")
    root_only: bool = Field(default=False, description="jobs are submitted by root alone")
    req_resv: bool = Field(default=False, description="takes jobs with a reservation only")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for allow, deny in (("allow_accounts", "deny_accounts"), ("allow_qos", "deny_qos")):
            if getattr(self, allow) and getattr(self, deny):
                raise ValueError(f"{allow} and {deny}: Slurm ignores the second; keep one of them")
        if self.min_nodes and self.max_nodes and self.min_nodes > self.max_nodes:
            text = f"min_nodes is {self.min_nodes}, more than max_nodes ({self.max_nodes})"
            raise ValueError(f"{text}: no job could ever start")
        if self.default_time_s and self.max_time_s and self.default_time_s > self.max_time_s:
            text = f"default_time_s is {self.default_time_s}, more than max_time_s"
            raise ValueError(f"{text} ({self.max_time_s}): jobs without a limit would never start")
        given = [name for name in _DEF_MEM if getattr(self, name)]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}: Slurm knows one of them for a partition")
        most, usual = self.max_mem_per_node_mib, self.def_mem_per_node_mib
        if most and usual and usual > most:
            text = f"def_mem_per_node_mib is {usual}, more than max_mem_per_node_mib ({most})"
            raise ValueError(f"{text}: jobs that name no memory would never start")
        if self.grace_time_s and self.preempt_mode in (None, PreemptMode.OFF):
            raise ValueError("grace_time_s needs preempt_mode: cancel or requeue")
        return self

    @property
    def needs_accounting(self) -> tuple[str, ...]:
        """Its options that mean nothing, or keep every job, without accounting."""
        return tuple(name for name in NEED_ACCOUNTING if getattr(self, name))

    @property
    def all_qos(self) -> frozenset[str]:
        """The QOS that it names."""
        return frozenset((*(self.allow_qos or ()), *(self.deny_qos or ()))) | (
            {self.qos} if self.qos else set()
        )

    def within(self, pools: Mapping[str, PoolModel]) -> Self:
        """The same with the time limit of its pools, where each of them has one: Slurm, which knows
        none of a pool, would start a longer job on a node that is there.
        """
        bound_s = bound_of(self.pools, pools)
        if bound_s is None or self.max_time_s is not None:
            return self
        return self.model_copy(update={"max_time_s": bound_s})

    def partition(self, name: str, *, is_single: bool) -> Partition:
        return Partition(
            name,
            self.pools,
            self.default or is_single,
            state=self.state.value,
            priority_tier=self.priority_tier,
            max_time_s=self.max_time_s,
            min_nodes=self.min_nodes or 0,
            max_nodes=self.max_nodes,
            max_mem_per_node_mib=self.max_mem_per_node_mib,
            allow_accounts=self.allow_accounts or (),
            deny_accounts=self.deny_accounts or (),
            allow_qos=self.allow_qos or (),
            deny_qos=self.deny_qos or (),
        )

    def settings(self) -> tuple[tuple[str, str], ...]:
        """What its line in slurm.conf says beside its nodes: what is not Slurm's own default."""
        return tuple(self._settings())

    def _settings(self) -> Iterator[tuple[str, str]]:
        for name, key in LISTS.items():
            if values := getattr(self, name):
                yield key, ",".join(values)
        for name, key in WORDS.items():
            value = getattr(self, name)
            if value is not None and value != type(self).model_fields[name].default:
                yield key, str(value)
        for name, key in TIMES.items():
            if seconds := getattr(self, name):
                yield key, str(seconds // _MINUTE_S)
        for name, key in FLAGS.items():
            if getattr(self, name):
                yield key, "YES"
        if self.over_subscribe is not OverSubscribe.NO:
            yield "OverSubscribe", self.over_subscribe.value.upper()
        if self.preempt_mode is not None:
            yield "PreemptMode", self.preempt_mode.value.upper()
        if self.state is not PartitionState.UP:
            yield "State", self.state.value.upper()
