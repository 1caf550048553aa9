"""EC2's words: instance types, offerings, instances, fleet requests and their results."""

from collections.abc import Mapping
from enum import StrEnum

from tidegate.core.model.codes import Coded
from tidegate.core.model.devices import SHARD
from tidegate.core.model.frozen import frozen
from tidegate.core.model.mig import Profile

# Slurm sees less memory than EC2 advertises: the kernel and firmware take their part.
# 95 % is what ParallelCluster assumes for its schedulable memory as well.
SLURM_VISIBLE_MEMORY = 0.95
# Of 8 GiB and less up to 7.2 % were seen to go (tests/core/test_visible_memory.py), and a node that
# has less than it promised is refused by slurmctld.
SMALL_MEMORY_MIB = 8192
SLURM_VISIBLE_SMALL_MEMORY = 0.90

# Tags that carry the facts of a launch to EC2 and, through the metadata service, to the node.
CLUSTER_TAG = "tidegate:cluster"
LAUNCH_TAG = "tidegate:launch"
POOL_TAG = "tidegate:pool"
GATE_TAG = "tidegate:gate"
MIG_TAG = "tidegate:mig"
DATA_TAG = "tidegate:data"
TEMPLATE_TAG = "tidegate:template"

# Source: EC2, "Tag your Amazon EC2 resources".
TAG_VALUE_MAX = 256

# Whose job a node was launched for, for cost allocation.
ACCOUNT_TAG = "tidegate:account"
USER_TAG = "tidegate:user"
JOB_TAG = "tidegate:job"

# What differs from launch to launch, and is told anew to a stopped node that is started.
TAGS_OF_LAUNCH = (
    *(LAUNCH_TAG, POOL_TAG, GATE_TAG, MIG_TAG, DATA_TAG, TEMPLATE_TAG),
    *(ACCOUNT_TAG, USER_TAG, JOB_TAG),
)

ROLE_TAG = "tidegate:role"
HEAD_ROLE = "head"
LOGIN_ROLE = "login"
# Of login nodes alone: which kind of them; the role where the file names none.
LOGIN_TAG = "tidegate:login"

# The role of AWS's own, one in an account, under which EC2 runs spot instances.
SPOT_ROLE = "AWSServiceRoleForEC2Spot"


class Market(StrEnum):
    """How an instance is paid for."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    RESERVED = "reserved"
    CAPACITY_BLOCK = "capacity-block"
    #: lent by a reservation's owner, who takes it back with two minutes' notice
    INTERRUPTIBLE = "interruptible-capacity-reservation"

    @property
    def feature(self) -> str:
        """What a node calls its market: EC2 tells it nothing of an open reservation."""
        return (Market.ON_DEMAND if self is Market.RESERVED else self).value

    @property
    def is_prepaid(self) -> bool:
        """Paid for whether used or not: an instance in it costs nothing more."""
        return self in _PREPAID

    @property
    def is_kept_idle(self) -> bool:
        """To give an idle instance back saves nothing. What is lent others may use meanwhile, and
        where another account lends it, it is billed to who uses it.
        """
        return self.is_prepaid and self is not Market.INTERRUPTIBLE

    @property
    def is_named(self) -> bool:
        """EC2 launches into it only what names it and its market, by a launch template."""
        return self in (Market.CAPACITY_BLOCK, Market.INTERRUPTIBLE)


_PREPAID = frozenset({Market.RESERVED, Market.CAPACITY_BLOCK, Market.INTERRUPTIBLE})


@frozen
class InstanceType:
    """The shape of an instance type as Slurm will see it.

    Source: EC2 DescribeInstanceTypes.
    """

    name: str
    vcpus: int  #: as EC2 starts it
    memory_mib: int
    gpus: int  #: GPUs, or devices of another GRES
    gpu_type: str  #: the GRES type, lower-case: a10g
    arch: str = "x86_64"
    family: str = ""
    generation: int = 0  #: the number in the family's name, 5 in g5
    gpu_memory_mib: int = 0
    local_nvme_gib: int = 0
    is_efa: bool = False
    gres: str = "gpu"  #: GRES name: gpu, or neuron for Trainium and Inferentia
    #: MIG profiles of which each node gets a layout of its own; none: its GPUs are all alike
    profiles: tuple[Profile, ...] = ()
    cut_into: Profile | None = None  #: the MIG profile into which all its GPUs are cut alike
    shards_per_gpu: int = 0  #: into so many shards Slurm counts each GPU; 0: none
    shared_gres: str = SHARD  #: GRES of these shards: shard or mps
    vcpus_per_cpu: int = 1  #: vCPUs to a CPU of Slurm's: 2 where nodes leave out second threads

    @property
    def cpus(self) -> int:
        """What Slurm gives away; quotas, limits and prices go by vCPUs all the same."""
        return self.vcpus // self.vcpus_per_cpu

    @property
    def whole_gpus(self) -> int:
        """GPUs that the machine has, whatever they are cut into."""
        return self.gpus // self.cut_into.most if self.cut_into else self.gpus

    @property
    def slurm_memory_mib(self) -> int:
        is_small = self.memory_mib <= SMALL_MEMORY_MIB
        return int(
            self.memory_mib * (SLURM_VISIBLE_SMALL_MEMORY if is_small else SLURM_VISIBLE_MEMORY)
        )


@frozen(order=True)
class Offering:
    """What EC2 sells: an instance type in a zone on a market."""

    instance_type: str  #: EC2's name, like g5.xlarge
    zone: str  #: availability zone
    market: Market  #: spot, on-demand, reserved or capacity-block

    def __str__(self) -> str:
        return f"{self.instance_type}/{self.zone}/{self.market}"


type Prices = Mapping[Offering, float]
"""USD per hour of each offering that has a known price."""


class InstanceState(StrEnum):
    """EC2's own words for the life of an instance."""

    PENDING = "pending"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting-down"
    STOPPING = "stopping"
    STOPPED = "stopped"
    TERMINATED = "terminated"


@frozen
class Template:
    """A launch template at one version; a number, so that a retry buys the same thing."""

    template_id: str  #: launch template
    version: str  #: its version, a number
    #: names what nodes are made from: image, user data, driver, security group, everything that a
    #: launch template holds; stands in a tag of each instance; empty: not known
    digest: str = ""

    @property
    def name(self) -> str:
        """Another one for each version, also of a template that was deleted and made again."""
        return template_name(self.template_id, self.version)


def login_words(kind: str) -> str:
    """What login nodes of a kind are called in sentences; "": they bear no tag yet."""
    return "login nodes" if kind in ("", LOGIN_ROLE) else f"login nodes {kind}"


def template_name(template_id: str, version: str) -> str:
    return f"{template_id}:{version}"


# EC2's words for want of capacity, of a request and of an instance that it had taken already.
# Source: EC2 API, "Error codes for the Amazon EC2 API" and StateReason.
NO_ROOM_CODE = "InsufficientInstanceCapacity"
NO_ROOM = f"Server.{NO_ROOM_CODE}"
# And as it ends what it has just started: no more disks for the account, a key that the caller may
# not use, an image without its snapshot.
# Sources: EC2 user guide, "Instance terminates immediately"; EC2 API, StateReason; AWS re:Post,
# "KMS and IAM permissions to start an EC2 instance".
NO_DISKS = "Client.VolumeLimitExceeded"
NO_KEY = "Client.InternalError"
NO_SNAPSHOT = "Client.InvalidSnapshot.NotFound"
# EC2 has taken a spot instance back.
RECLAIMED = "Server.SpotInstanceTermination"
# The machine was shut down from within: by Tidegate's own watch on it, or by whoever is root there.
SHUT_DOWN = "Client.InstanceInitiatedShutdown"


@frozen
class Instance:
    """One instance that carries our cluster tag."""

    instance_id: str  #: EC2's id
    offering: Offering  #: instance type, zone and market
    state: InstanceState  #: EC2's word
    launched_at_s: float  #: when EC2 launched it
    launch_id: str  #: the launch that bought it
    pool: str  #: its pool
    template: str = ""  #: digest of what it is made from; empty: not known
    #: the open reservation or capacity block that it is in; empty: none, or EC2 has not said yet
    capacity_reservation_id: str = ""
    placement_group: str = ""  #: the one that it is in, also while it is stopped; empty: none
    state_reason: str = ""  #: EC2's code for why it came to this state; empty: it says none

    @property
    def lacked_room(self) -> bool:
        """For it or for its disk."""
        return self.state_reason in (NO_ROOM, NO_DISKS)

    @property
    def is_reclaimed(self) -> bool:
        """EC2 says so, also where its notice never came."""
        return self.state_reason == RECLAIMED

    @property
    def has_ended_itself(self) -> bool:
        """Nobody took it back, whatever was heard of its end."""
        return not self.is_alive and self.state_reason == SHUT_DOWN

    @property
    def is_alive(self) -> bool:
        return self.state in (InstanceState.PENDING, InstanceState.RUNNING)

    @property
    def is_stopped(self) -> bool:
        """Or will be in a moment."""
        return self.state in (InstanceState.STOPPING, InstanceState.STOPPED)


@frozen
class Override:
    """One line of a fleet request: where and as what an instance may come."""

    instance_type: str  #: EC2's name
    zone: str  #: availability zone
    subnet_id: str  #: subnet in it
    priority: int  #: lower is tried first
    placement_group: str = ""  #: the cluster placement group of a gang in this zone; empty: none


def client_token(cluster: str, launch_id: str) -> str:
    """EC2's idempotency token of a launch: a repeat under it never buys twice."""
    return f"{cluster}-{launch_id}"


# Enough to choose from, and a request that stays small: AWS names a bound (300) for fleets of other
# types than `instant`, none for this. Source: EC2 API reference, FleetLaunchTemplateConfigRequest.
OVERRIDES_MAX = 100


@frozen
class FleetRequest:
    """A whole CreateFleet call of type `instant`, or a start, kept byte for byte in the ledger.

    Repeating it under the same token must not buy twice, so nothing in it may be looked
    up again: the launch template version is a number, never `$Latest`.
    """

    client_token: str  #: EC2's idempotency token
    launch_template_id: str  #: launch template
    launch_template_version: str  #: its version, a number
    market: Market  #: how it is paid for
    count: int  #: instances
    min_count: int  #: with fewer EC2 launches none
    overrides: tuple[Override, ...]  #: instance types and subnets in order
    tags: tuple[tuple[str, str], ...]  #: tags of the instances
    #: the stopped instance that is started instead, by StartInstances; empty: CreateFleet
    starts: str = ""

    def __post_init__(self) -> None:
        assert 0 < len(self.overrides) <= OVERRIDES_MAX, "more than EC2 takes in a request"
        assert 0 <= self.min_count <= self.count


class RefusalKind(StrEnum):
    """What an EC2 error says about trying the same offering again."""

    CAPACITY = "capacity"
    QUOTA = "quota"
    SUBNET = "subnet"
    THROTTLED = "throttled"  # how fast we ask, or trouble of AWS's own: nothing about the offering
    OTHER = "other"


class Cure(Coded):
    """What a refusal, or a node that did not come up, needs that waiting does not bring."""

    NONE = "", "it passes by itself"
    DENIED = "denied", "a policy forbids the call"
    QUOTA = "quota", "the account may not have more of it"
    IMAGE = "image", "the image is gone, not shared with this account, or none of its Allowed AMIs"
    DISK = "disk", "the root volume is smaller than the image's snapshot"
    KEY = "key", "the launch may not use the key that the disk is encrypted with"
    TERMS = "terms", "the image's terms in AWS Marketplace were not accepted"
    ACCOUNT = "account", "AWS keeps the account from launching until it has looked at it"
    FREE_PLAN = "free-plan", "the account's free plan has a few small instance types alone"
    RESERVATION = "reservation", "the reservation is gone, or no place of it is this account's"
    SPOT_ROLE = "spot-role", "the account has not the role that spot needs"
    TEMPLATE = "template", "the launch template, or what it names, is gone or wrong"
    MUNGE = "munge", "the node's Munge key is not the head's"
    DRIVER = "driver", "the image's driver does not fit the GPU"
    SHARED = "shared", "the node cannot mount the shared files"
    HOOK = "hook", "a script of `hooks` failed, or could not be had"
    SHAPE = "shape", "Slurm sees less of the node than its type has"
    BOOT = "boot", "the node did not come up"
    START_DENIED = "start-denied", "a policy forbids to start stopped nodes"

    @classmethod
    def _missing_(cls, value: object) -> "Cure":
        """One that a later version wrote down, before its deployment was taken back."""
        return cls.NONE

    @property
    def is_of_pool(self) -> bool:
        """What one pool's template names is wrong, or the rights to use it: the same offering may
        be had from the template of another.
        """
        return self in (Cure.DENIED, Cure.IMAGE, Cure.DISK, Cure.TERMS, Cure.TEMPLATE)


@frozen
class Refusal:
    """An offering that EC2 did not give, with EC2's own words."""

    offering: Offering
    kind: RefusalKind
    code: str
    message: str
    cure: Cure = Cure.NONE
    pool: str = ""  #: whose launch was refused, where it lies in that; empty: whoever asks for it
    template: str = ""  #: which template of it, where it lies in that (`Template.name`)
    reservation: str = ""  #: what it was asked from, of what is paid for; empty: nothing
    subnet: str = ""  #: the subnet without a free address, where it lies in that

    @property
    def key(self) -> tuple[Offering, str, str, str, str]:
        """What rests after it (`RestKey`)."""
        return self.offering, self.pool, self.template, self.reservation, self.subnet


@frozen
class FleetResult:
    """What came of a fleet request: any mix of instances and refusals."""

    instances: tuple[Instance, ...]
    refusals: tuple[Refusal, ...]
