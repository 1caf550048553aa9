"""What a cluster file may say about its deployment: network, head, files, logs, rights."""

from collections.abc import Iterator
from enum import StrEnum
from ipaddress import IPv4Network
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from tidegate.core.model.frozen import frozen
from tidegate.wire import names
from tidegate.wire.catalogue import arch_of
from tidegate.wire.data_repositories import DataRepositories
from tidegate.wire.problems import did_you_mean, shown
from tidegate.wire.section import PositiveCount, PositiveUsd, Section, VolumeGib

# What head and nodes ask for by its name: without a way out each needs an interface endpoint.
# Session Manager asks `ssmmessages`; to `ec2messages` the machines' roles have no right, agents
# from 3.3.40.0 on ask it nothing, and regions that began in 2024 or later do not have it. Source:
# Systems Manager user guide, "Reference: ec2messages, ssmmessages, and other API operations".
NEEDED_ENDPOINTS = ("events", "secretsmanager", "sqs", "ssm", "ssmmessages")
OTHER_ENDPOINTS = (
    *("aps-workspaces", "ec2", "ecr.api", "ecr.dkr", "elasticfilesystem", "kms", "logs"),
    "monitoring",
)
ENDPOINTS = tuple(sorted({*NEEDED_ENDPOINTS, *OTHER_ENDPOINTS, "ec2messages", "sts"}))

# CloudWatch Logs takes no other numbers (API reference, PutRetentionPolicy).
RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)

# The largest network of a VPC, and the smallest of which a sixteenth (cdk/vpc.py) is a subnet: /28
# (VPC user guide, "VPC CIDR blocks", "Subnet CIDR blocks").
LONGEST_PREFIX, SHORTEST_PREFIX = 24, 16
# RFC 1918, RFC 6598 and RFC 2544: what nobody's hosts on the internet have, and EC2 takes.
PRIVATE = tuple(
    map(
        IPv4Network,
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15"),
    )
)
# Of its default bridge (Docker's manual, "Packet filtering and firewalls", default-address-pools).
DOCKER = IPv4Network("172.17.0.0/16")


class Nat(StrEnum):
    """How instances of an own network reach the internet: not by NAT, or by one gateway."""

    NONE = "none"
    ONE = "one"


class FlowLogs(StrEnum):
    """What an own network writes down of its traffic: nothing, what was refused, or all."""

    NONE = "none"
    REJECTED = "rejected"
    ALL = "all"


class Metrics(StrEnum):
    """How much CloudWatch counts: the cluster as a whole, or each pool as well."""

    MINIMAL = "minimal"
    FULL = "full"


def _range(value: str) -> str:
    """As EC2 takes it: with the length of its prefix, never with a mask."""
    try:
        return str(IPv4Network(value))
    except ValueError as error:
        raise ValueError(f"must be an IPv4 network like 10.0.0.0/16: {error}") from error


def _cidr(value: str) -> str:
    network = IPv4Network(_range(value))
    if not SHORTEST_PREFIX <= network.prefixlen <= LONGEST_PREFIX:
        raise ValueError(
            f"must be between /{SHORTEST_PREFIX} and /{LONGEST_PREFIX}: each zone has a sixteenth"
            " of it for its subnet, which is not smaller than /28"
        )
    if not any(network.subnet_of(each) for each in PRIVATE):
        raise ValueError(f"{value} is not a private network like 10.0.0.0/16")
    return str(network)


def _endpoint(value: str) -> str:
    if value not in ENDPOINTS:
        hint = did_you_mean(value, ENDPOINTS)
        raise ValueError(f"{shown(value)} is not one of {', '.join(ENDPOINTS)}{hint}")
    return value


def _retention(value: int) -> int:
    if value not in RETENTION_DAYS:
        raise ValueError(f"must be one of {', '.join(map(str, RETENTION_DAYS))}, is {value}")
    return value


class LustreKind(StrEnum):
    """Without copies, for what can be fetched again; or with, for months."""

    SCRATCH = "scratch"
    PERSISTENT = "persistent"


def _lustre_gib(value: int) -> int:
    if value != 1200 and value % 2400:
        raise ValueError(f"must be 1200 or a multiple of 2400, is {value}")
    return value


class LustreModel(Section):
    """FSx for Lustre that the stack makes, beside the shared files, in the head's zone.

    Others, which are there already, are `file_systems`.
    """

    directory: names.SharedDir = Field(
        default="/fsx", description="where head and nodes have it; their image needs the client"
    )
    kind: LustreKind = Field(
        default=LustreKind.SCRATCH, description="scratch (no copies) or persistent"
    )
    storage_gib: Annotated[int, Field(ge=1200), AfterValidator(_lustre_gib)] = Field(
        description="GiB: 1200 or a multiple of 2400"
    )
    data_repositories: DataRepositories = Field(
        default=(), description="buckets behind folders of it"
    )


@frozen
class BillAlert:
    """What the cluster may cost in a month before `email` hears of it."""

    usd_per_month: float
    email: str


class BillAlertModel(Section):
    """A budget of AWS: it tells and stops nothing, as `limits` do."""

    usd_per_month: PositiveUsd = Field(description="mails at 80 % and at 100 % of it")
    email: names.Email | None = Field(
        default=None, description="who hears of it; `alarm_email` when left out"
    )


class ProxyModel(Section):
    """An HTTP proxy for head and nodes; the functions run outside of the network."""

    url: names.ProxyUrl = Field(description="like http://proxy.example:3128")
    no_proxy: tuple[names.ProxyHost, ...] = Field(
        default=(), description="hosts and domains that are reached without it"
    )


class NetworkModel(Section):
    """An existing network (`vpc`, `subnets`), or how the stack's own is built."""

    vpc: names.VpcId | None = Field(default=None, description="the VPC that the subnets are in")
    subnets: dict[names.Zone, names.SubnetId] = Field(
        default_factory=dict,
        description="a subnet of `vpc` for each availability zone: that of machines which name none"
        " of their own, and of what all in the zone share",
    )
    cidr: Annotated[str, AfterValidator(_cidr)] = Field(
        default="10.0.0.0/16", description="addresses of an own network"
    )
    nat: Nat = Field(
        default=Nat.NONE,
        description="one: an own network's instances get private addresses and a NAT gateway",
    )
    endpoints: tuple[Annotated[str, AfterValidator(_endpoint)], ...] = Field(
        default=(), description="interface endpoints, each paid by the hour; see `tidegate cost`"
    )
    proxy: ProxyModel | None = Field(default=None, description="an HTTP proxy of head and nodes")
    connected: tuple[Annotated[str, AfterValidator(_range)], ...] = Field(
        default=(),
        description="address ranges of other networks that this one is or will be connected to,"
        " like those of static nodes; it must not overlap them",
    )
    flow_logs: FlowLogs = Field(
        default=FlowLogs.NONE,
        description="an own network's flow logs: none, rejected or all; paid by traffic",
    )

    instance_connect: bool = Field(
        default=False,
        description="an EC2 Instance Connect endpoint in the head's zone, by which people reach SSH"
        " of head and login nodes without an open port; free, and one for each VPC",
    )

    @model_validator(mode="after")
    def _is_apart(self) -> Self:
        for other in self.connected:
            if not self.vpc and IPv4Network(other).overlaps(IPv4Network(self.cidr)):
                raise ValueError(f"connected: {other} overlaps cidr, {self.cidr}")
        return self

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if bool(self.vpc) != bool(self.subnets):
            raise ValueError("vpc and subnets belong together")
        if self.vpc and self.nat is Nat.ONE:
            raise ValueError("nat: an existing VPC keeps its own routes")
        if self.vpc and self.flow_logs is not FlowLogs.NONE:
            raise ValueError("flow_logs: an existing VPC keeps its own")
        missing = [each for each in NEEDED_ENDPOINTS if each not in self.endpoints]
        if self.endpoints and not self.vpc and self.nat is Nat.NONE and missing:
            raise ValueError(f"endpoints: without NAT also {', '.join(missing)}")
        return self

    def notes(self) -> Iterator[str]:
        """What an own network could have, and hardly be meant to."""
        if not self.vpc and IPv4Network(self.cidr).overlaps(DOCKER):
            yield (
                f"network.cidr: {self.cidr} has addresses of Docker's own network ({DOCKER}): a"
                " machine with Docker does not reach others there; take one like 10.0.0.0/16 for a"
                " new cluster"
            )

    @property
    def is_private(self) -> bool:
        """Whether an own network gives instances no public addresses."""
        return self.nat is Nat.ONE or bool(self.endpoints)


class HeadModel(Section):
    """The head node: slurmctld and the agent."""

    instance_type: names.HeadInstanceType = Field(
        default="m6i.large",
        description="an instance type like m6i.large or m7g.large; its architecture is the head's",
    )
    volume_gib: VolumeGib = Field(default=50, description="GiB of its data volume")
    root_gib: VolumeGib = Field(
        default=30, description="GiB of its root volume, no less than its image's snapshot"
    )
    zone: names.Zone | None = Field(
        default=None, description="its availability zone; the pools' first one when left out"
    )
    subnet: names.SubnetId | None = Field(
        default=None,
        description="its subnet in `zone`, like a public one; that of network.subnets when left"
        " out",
    )
    image: names.ImageId | None = Field(
        default=None, description="its machine image; that of the nodes when left out"
    )

    security_groups: names.SecurityGroups = Field(
        default=(), description="more security groups of it, of network.vpc, beside Tidegate's own"
    )
    policies: names.Policies = Field(
        default=(), description="IAM policies of your own for what root runs on it, beside its own"
    )
    generation: PositiveCount = Field(
        default=1, description="counted up to have a new head made; see docs/recovery.md"
    )
    termination_protection: bool = Field(
        default=False,
        description="EC2 refuses to terminate it, also for cdk destroy; see docs/recovery.md",
    )

    @property
    def arch(self) -> str:
        return arch_of(self.instance_type)


class ExistingHeadModel(Section):
    """A head that is there already, with slurmctld on it."""

    instance: names.InstanceId = Field(description="its instance id")
    host: names.HostName = Field(description="the name or address under which nodes find it")
    role: names.RoleName = Field(description="the IAM role of its instance profile")
    security_group: names.SecurityGroupId = Field(description="its security group")


class ExistingModel(Section):
    """What the stack shall use instead of making its own."""

    head: ExistingHeadModel | None = Field(default=None, description="the head node")
    file_system: names.FileSystemId | None = Field(default=None, description="the EFS file system")
    file_security_group: names.SecurityGroupId | None = Field(
        default=None, description="the security group of its mount targets"
    )
    munge_secret: names.SecretArn | None = Field(
        default=None, description="the secret that holds the Munge key"
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.head and not (self.file_system and self.munge_secret):
            raise ValueError("an existing head needs file_system and munge_secret as well")
        if bool(self.file_system) != bool(self.file_security_group):
            raise ValueError("file_system and file_security_group belong together")
        return self


class LogsModel(Section):
    """The logs of functions and nodes."""

    nodes: bool = Field(
        default=False, description="nodes send theirs to CloudWatch, by the agent of AWS's image"
    )
    retention_days: Annotated[int, AfterValidator(_retention)] = Field(
        default=30, description="how long CloudWatch keeps them"
    )
