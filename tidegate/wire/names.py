"""The kinds of names in a cluster file, and what each must look like."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field

from tidegate.core.model.ec2 import Market
from tidegate.wire import places
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.cron import check_cron, check_time_zone
from tidegate.wire.problems import shown
from tidegate.wire.section import at_most
from tidegate.wire.selection import check_instance_type, is_pattern
from tidegate.wire.slurm_settings import own_setting
from tidegate.wire.static_lines import static_line

TESTED_SLURM_VERSIONS = ("22.05", "23.11", "24.11", "25.05", "25.11", "26.05")

# Slurm reads DEFAULT as "defaults for the lines below" and ALL as "every node", in any case. A
# partition may be called all: where Slurm reads names of partitions, it is no word of its own.
DEFAULTS = "default"
SLURM_RESERVED = (DEFAULTS, "all")

# Nodes carry their market as a Slurm feature; the last two are kept for later versions.
MARKET_WORDS = tuple(each.value for each in Market)


def _cluster(value: str) -> str:
    for ending, holds in {"-data": "the data", "-images": "the images"}.items():
        if value.endswith(ending):
            stack, other = f"tidegate-{value}", value.removesuffix(ending)
            text = f"{value}: its stack {stack} would be the one that holds {holds} of {other}"
            raise ValueError(f"{text}; take a name without {ending} at its end")
    return value


def _name(value: str) -> str:
    if value.lower() in SLURM_RESERVED:
        raise ValueError(f"{value} has a meaning of its own in slurm.conf; take another name")
    return value


def _partition(value: str) -> str:
    return _name(value) if value.lower() == DEFAULTS else value


def _feature(value: str) -> str:
    families = {name.split(".")[0] for name in load_catalogue()}
    if value in MARKET_WORDS:
        raise ValueError(f"{value} is a capacity type, a feature that nodes have anyway")
    if value in families:
        raise ValueError(f"{value} is an instance family, a feature that nodes have anyway")
    return _name(value)


def _slurm_version(value: str) -> str:
    if value in TESTED_SLURM_VERSIONS:
        return value
    tested = f"{', '.join(TESTED_SLURM_VERSIONS[:-1])} or {TESTED_SLURM_VERSIONS[-1]}"
    if value.startswith(("20.", "21.")):
        raise ValueError(f"{value} has no dynamic nodes (they came with 22.05); must be {tested}")
    raise ValueError(f"must be {tested}, is {shown(value)}")


def _instance_type(value: str) -> str:
    if is_pattern(value):
        raise ValueError(f"{value} is a pattern; name one instance type")
    return check_instance_type(value)


def _instant(value: object) -> datetime:
    """A time with its zone; YAML's own times are off, so it is text."""
    expected = "a time with its zone, like 2027-01-01T11:30:00Z"
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        raise ValueError(f"must be {expected}, is {shown(value)}") from None
    if instant.tzinfo is None:
        raise ValueError(f"must be {expected}: the zone is missing in {shown(value)}")
    return instant


def no_repeats[Entry: str](values: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Refuse a list that names something twice."""
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise ValueError(f"names {', '.join(map(shown, twice))} twice")
    return values


def no_twins(values: object) -> object:
    """Refuse two keys that Slurm, which writes names in small letters, takes for one."""
    keys = [str(each) for each in values] if isinstance(values, Mapping) else []
    lowered = [each.lower() for each in keys]
    twins = sorted(each for each in keys if lowered.count(each.lower()) > 1)
    if twins:
        raise ValueError(f"Slurm takes {', '.join(map(shown, twins))} for one name")
    return values


def _pattern(pattern: str, expected: str) -> object:
    """A pattern, and the words that stand for it in messages."""
    return Field(pattern=pattern, json_schema_extra={"x-expected": expected})


# Of a URL; nobody listens on one that is higher.
PORT = r"([1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5])"

_FEATURE_WORDS = "lower-case letters, digits, - and _, first a letter, at most 31"

ClusterName = Annotated[
    str,
    _pattern(
        r"^[a-z][a-z0-9-]{0,30}$", "lower-case letters, digits and -, first a letter, at most 31"
    ),
    AfterValidator(_cluster),
]
PartitionName = Annotated[
    str,
    _pattern(
        r"^[A-Za-z][A-Za-z0-9_-]{0,30}$", "letters, digits, - and _, first a letter, at most 31"
    ),
    AfterValidator(_partition),
]
PoolName = Annotated[
    str, _pattern(r"^[a-z][a-z0-9_-]{0,30}$", _FEATURE_WORDS), AfterValidator(_feature)
]
Label = PoolName
Region = Annotated[
    str,
    _pattern(r"^[a-z]{2,4}(-[a-z]+)+-\d$", "an AWS region like us-east-1"),
    AfterValidator(places.region),
]
Zone = Annotated[
    str,
    _pattern(
        r"^[a-z]{2,4}(-[a-z]+)+-\d([a-h]|-[a-z]+-\d[a-z])$", "an availability zone like us-east-1a"
    ),
]
SubnetId = Annotated[str, _pattern(r"^subnet-[0-9a-f]{8,17}$", "a subnet id like subnet-0a1b2c3d")]
SharedDir = Annotated[
    str,
    _pattern(r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$", "an absolute path like /shared"),
    AfterValidator(places.shared_dir),
]
VpcId = Annotated[str, _pattern(r"^vpc-[0-9a-f]{8,17}$", "a VPC id like vpc-0a1b2c3d")]
ImageId = Annotated[str, _pattern(r"^ami-[0-9a-f]{8,17}$", "an image id like ami-0a1b2c3d")]
InstanceId = Annotated[str, _pattern(r"^i-[0-9a-f]{8,17}$", "an instance id like i-0a1b2c3d")]
SecurityGroupId = Annotated[
    str, _pattern(r"^sg-[0-9a-f]{8,17}$", "a security group's id like sg-0a1b2c3d")
]
# Five to a network interface unless AWS allowed an account more; one of them is ours.
SecurityGroups = Annotated[tuple[SecurityGroupId, ...], at_most(4), AfterValidator(no_repeats)]
FileSystemId = Annotated[
    str, _pattern(r"^fs-[0-9a-f]{8,17}$", "a file system's id like fs-0a1b2c3d")
]
# FSx's and those of Amazon File Cache, which are mounted alike.
LustreId = Annotated[
    str,
    _pattern(
        r"^f[sc]-[0-9a-f]{8,17}$", "a Lustre file system's id like fs-0a1b2c3d, or a cache's (fc-)"
    ),
]
LustreMountName = Annotated[str, _pattern(r"^[a-z0-9]{1,16}$", "like fsx or 3a4bcdef")]
SecretArn = Annotated[
    str,
    _pattern(r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:.+$", "a secret's ARN"),
]
PolicyArn = Annotated[
    str, _pattern(r"^arn:aws[a-z-]*:iam::(\d{12}|aws):policy/.+$", "an IAM policy's ARN")
]
# As many as a role has at most. Source: IAM's quotas, managed policies attached to a role.
Policies = Annotated[tuple[PolicyArn, ...], at_most(10), AfterValidator(no_repeats)]
KeyArn = Annotated[
    str,
    _pattern(
        r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[a-zA-Z0-9-]+$", "a KMS key's ARN, no alias"
    ),
]
RoleArn = Annotated[
    str, _pattern(r"^arn:aws[a-z-]*:iam::\d{12}:role/[A-Za-z0-9+=,.@_/-]+$", "an IAM role's ARN")
]
RoleName = Annotated[str, _pattern(r"^[A-Za-z0-9+=,.@_-]{1,64}$", "an IAM role's name")]
HostName = Annotated[str, _pattern(r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$", "a host's name")]
ProxyUrl = Annotated[
    str, _pattern(rf"^https?://[A-Za-z0-9.-]+(:{PORT})?/?$", "like http://proxy.example:3128")
]
ProxyHost = Annotated[str, _pattern(r"^[A-Za-z0-9*.:/-]+$", "a host, a domain or a network")]
NodeImage = Annotated[
    str,
    _pattern(
        r"^(dlami|install(-ubuntu22\.04|-al2023)?|ami-[0-9a-f]{8,17})$",
        "dlami, install, install-ubuntu22.04, install-al2023 or an image id like ami-0a1b2c3d",
    ),
]
LoginInstanceType = Annotated[
    str,
    _pattern(r"^[a-z][a-z0-9-]*\.[a-z0-9-]+$", "an instance type like m6i.large or m7g.large"),
    AfterValidator(places.machine_type),
]
# It is a part of a host's name, which ends in no hyphen (RFC 1123, 2.1).
LoginKindName = Annotated[
    str,
    _pattern(
        r"^[a-z]([a-z0-9-]{0,29}[a-z0-9])?$",
        "lower-case letters, digits and -, first a letter, last no -, at most 31",
    ),
]
HeadInstanceType = Annotated[LoginInstanceType, AfterValidator(places.head_type)]
Email = Annotated[
    str,
    _pattern(
        r"^[!-?A-~]+@([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])$",
        "an e-mail address",
    ),
]
# Source: Chatbot API reference, SlackChannelConfiguration and TeamsChannelConfiguration.
SlackId = Annotated[str, _pattern(r"^[A-Z0-9]{9,255}$", "an ID of Slack like C0123ABCDEF")]
Uuid = Annotated[
    str,
    _pattern(r"^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$", "a UUID, as Teams shows it"),
]
TeamsChannelId = Annotated[
    str,
    _pattern(
        r"^[A-Za-z0-9=+/.,_-]*%3[aA][A-Za-z0-9=+/.,_-]*%40[A-Za-z0-9=+/.,_-]*$",
        "a channel's id as its link has it, like 19%3Aab6e%40thread.tacv2",
    ),
]
TimeZone = Annotated[str, AfterValidator(check_time_zone)]
Cron = Annotated[str, AfterValidator(check_cron)]
CgroupSetting = Annotated[str, _pattern(r"^[A-Za-z][A-Za-z0-9]*$", "a setting's name")]
SlurmSetting = Annotated[CgroupSetting, AfterValidator(own_setting)]
SettingValue = Annotated[
    str, _pattern(r"^[A-Za-z0-9_./:,=()*%+@-]+$", "one word, in quotes where YAML needs them")
]
ReasonPrefix = Annotated[
    str,
    _pattern(r"^[^\s\x00-\x1f][^\x00-\x1f]{1,99}$", "the begin of a drain reason, like NHC:"),
]
StaticLine = Annotated[
    str,
    _pattern(
        r"^(NodeName|PartitionName|NodeSet|DownNodes)=[^\s=#]+( [A-Za-z]+=[^\s#]+)*$",
        "a line that begins with NodeName=, PartitionName=, NodeSet= or DownNodes=",
    ),
    AfterValidator(static_line),
]
AccountName = Annotated[
    str,
    _pattern(r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}$", "the name of a Slurm account"),
    AfterValidator(str.lower),  # as Slurm does
    AfterValidator(_name),
]
QosName = Annotated[
    str,
    _pattern(r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$", "the name of a QOS"),
    AfterValidator(str.lower),  # as Slurm does
    AfterValidator(_name),
]
# Annotated takes no other kind of parameter here: pydantic makes a definition of a `type`.
_Of = TypeVar("_Of")
ByAccount = Annotated[dict[AccountName, _Of], BeforeValidator(no_twins)]
ByQos = Annotated[dict[QosName, _Of], BeforeValidator(no_twins)]
GroupName = Annotated[
    str,
    _pattern(r"^[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}$", "the name of a group of users"),
    AfterValidator(_name),
]
UserName = Annotated[
    str,
    _pattern(r"^[A-Za-z0-9_][A-Za-z0-9_.@\\-]{0,63}$", "the name of a user"),
]
SlurmVersion = Annotated[str, AfterValidator(_slurm_version)]
InstanceTypeName = Annotated[str, AfterValidator(_instance_type)]
InstanceTypeOrPattern = Annotated[str, AfterValidator(check_instance_type)]
Instant = Annotated[datetime, BeforeValidator(_instant)]
GroupArn = Annotated[
    str,
    _pattern(
        r"^arn:aws[a-z-]*:resource-groups:[a-z0-9-]+:\d{12}:group/[A-Za-z0-9_.-]{1,300}$",
        "the ARN of a group of capacity reservations, like "
        "arn:aws:resource-groups:us-east-1:123456789012:group/gpus",
    ),
]
ReservationGroups = Annotated[
    tuple[GroupArn, ...],
    AfterValidator(no_repeats),
    Field(description="groups of On-Demand Capacity Reservations, by their ARNs"),
]
ReservationId = Annotated[
    str, _pattern(r"^cr-[0-9a-f]{8,17}$", "a capacity reservation's id like cr-0a1b2c3d")
]
