"""What EC2 refuses of a launch by its own rules, whatever capacity there is.

moto takes all of it. Codes and words are EC2's, from the issue that each rule names.
"""

import base64
import gzip
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import moto
from moto.ec2.exceptions import EC2ClientError

from tidegate.core.model.ultraservers import is_in_ultraserver

USER_DATA_BYTES_MAX = 16 * 1024
# Source: botocore's model of CreateFleet, which names it for other fleets than instant ones, and no
# figure for these.
OVERRIDES_MAX = 300
# Sources: the same (MinTargetCapacity); EC2 developer guide, "Ensuring idempotency".
MIN_CAPACITY_MAX = 1000
TOKEN_CHARACTERS_MAX = 64
# Source: EC2 user guide, "Tag restrictions".
TAGS_MAX = 50
TAG_VALUE_MAX = 256

OFFERINGS = Path(moto.__file__).parent / "ec2/resources/instance_type_offerings/availability-zone"
METADATA_KEY = r"[0-9a-zA-Z\-_+=,.@:]{1,255}"
RESERVED_CAPACITY = "reserved-capacity"
RESERVED_KEYS = (".", "..", "_index")

type Data = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """EC2's answer: its code and its words."""

    code: str
    words: str

    def raised(self) -> EC2ClientError:
        return EC2ClientError(self.code, self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One way to launch: the request's data over those of its template. `snapshot_gib` 0: fits.

    `tags`: of its instances. `is_fleet`: by CreateFleet, which has words of its own.
    """

    data: Data
    image_id: str
    instance_type: str
    zone: str
    tags: Sequence[str]
    snapshot_gib: int
    is_fleet: bool


def of_launch(asked: Asked) -> Refused | None:
    """What EC2 says first against launching this."""
    rules = (
        *(_too_small(asked), _interfaces(asked), _metadata_tags(asked), _not_offered(asked)),
        *(_too_many_tags(asked), _outside_of_its_block(asked)),
    )
    return next((each for each in rules if each), None)


def of_fleet(params: Data, zone_of: Mapping[str, str]) -> Refused | None:
    """What EC2 says against the request as a whole. `zone_of`: by subnet.

    A pool is a type in a zone: github-aws-runners/terraform-aws-github-runner#5297.
    """
    overrides = [
        each
        for config in params.get("LaunchTemplateConfigs", ())
        for each in config.get("Overrides", ())
    ]
    if len(overrides) > OVERRIDES_MAX:
        words = f"A fleet can have at most {OVERRIDES_MAX} launch template overrides."
        return Refused("InvalidFleetConfig", words)
    pools = [
        (
            each.get("InstanceType"),
            each.get("AvailabilityZone") or zone_of.get(each.get("SubnetId", "")),
        )
        for each in overrides
    ]
    if len(set(pools)) < len(pools):
        words = "The fleet configuration contains duplicate instance pools."
        return Refused("InvalidFleetConfig", words)
    tags = _tags(params.get("TagSpecifications", ()))
    return tags or _minimum(params) or _reserved(params) or _token(params)


def _minimum(params: Data) -> Refused | None:
    """The rule is the model's; the codes are those that EC2 has for its kind."""
    for name in ("OnDemandOptions", "SpotOptions"):
        options = params.get(name) or {}
        least = int(options.get("MinTargetCapacity") or 0)
        single = ("SingleAvailabilityZone", "SingleInstanceType")
        if least > MIN_CAPACITY_MAX:
            return Refused("InvalidParameterValue", f"{name}: MinTargetCapacity is {least}")
        if least and not any(_is_true(options.get(each)) for each in single):
            words = f"{name}: MinTargetCapacity needs {' or '.join(single)}"
            return Refused("InvalidParameterCombination", words)
    return None


def _reserved(params: Data) -> Refused | None:
    """Source: EC2 API reference, ReservedCapacityOptionsRequest; EC2 user guide, "Configure your
    EC2 Fleet to launch instances into Interruptible Capacity Reservations".
    """
    options = params.get("ReservedCapacityOptions")
    capacity = params.get("TargetCapacitySpecification") or {}
    is_reserved = capacity.get("DefaultTargetCapacityType") == RESERVED_CAPACITY
    beside = ("OnDemandTargetCapacity", "SpotTargetCapacity")
    wrong = (
        (bool(options) != is_reserved, f"ReservedCapacityOptions belong to {RESERVED_CAPACITY}."),
        (is_reserved and params.get("Type") != "instant", "The fleet must be of type instant."),
        (is_reserved and any(capacity.get(each) for each in beside), "No other capacity is taken."),
    )
    words = next((words for is_wrong, words in wrong if is_wrong), "")
    return Refused("InvalidParameterCombination", words) if words else None


def _token(params: Data) -> Refused | None:
    token = str(params.get("ClientToken", ""))
    if len(token) <= TOKEN_CHARACTERS_MAX and token.isascii():
        return None
    return Refused("InvalidClientToken", "The specified client token is not valid.")


def of_template(data: Data) -> Refused | None:
    """CreateLaunchTemplate and its versions: hashicorp/terraform-provider-aws#49234."""
    if size_of(data.get("UserData")) > USER_DATA_BYTES_MAX:
        words = f"User data is limited to {USER_DATA_BYTES_MAX} bytes."
        return Refused("InvalidUserData.Malformed", words)
    return _tags(data.get("TagSpecifications", ()))


def of_user_data(text: Any) -> Refused | None:
    """RunInstances: runs-on/runs-on#9."""
    if size_of(text) <= USER_DATA_BYTES_MAX:
        return None
    words = f"User data is limited to {USER_DATA_BYTES_MAX} bytes"
    return Refused("InvalidParameterValue", words)


def size_of(encoded: Any) -> int:
    """The bytes behind the base64 of user data, as text or in moto's own type for it."""
    if not encoded:
        return 0
    text = encoded.as_bytes() if hasattr(encoded, "as_bytes") else encoded
    return len(base64.b64decode(text))


def _too_small(asked: Asked) -> Refused | None:
    """Source: aws/karpenter-provider-aws#3302."""
    for mapping in asked.data.get("BlockDeviceMappings") or ():
        gib = int((mapping.get("Ebs") or {}).get("VolumeSize", asked.snapshot_gib))
        if gib < asked.snapshot_gib:
            snapshot = asked.image_id.replace("ami-", "snap-")
            words = f"Volume of size {gib}GB is smaller than snapshot '{snapshot}', "
            words += f"expect size >= {asked.snapshot_gib}GB"
            return Refused("InvalidBlockDeviceMapping", words)
    return None


def _interfaces(asked: Asked) -> Refused | None:
    """Sources: aws/karpenter-provider-aws#5666; ansible-collections/amazon.aws#157."""
    interfaces = asked.data.get("NetworkInterfaces") or ()
    if interfaces and (asked.data.get("SecurityGroupIds") or asked.data.get("SecurityGroups")):
        words = "Network interfaces and an instance-level security groups may not be specified "
        return Refused("InvalidParameterCombination", f"{words}on the same request")
    public = [each for each in interfaces if "AssociatePublicIpAddress" in each]
    if len(interfaces) > 1 and any(_is_true(each["AssociatePublicIpAddress"]) for each in public):
        words = "The associatePublicIPAddress parameter cannot be specified when launching with "
        return Refused("InvalidParameterCombination", f"{words}multiple network interfaces.")
    return None


def _metadata_tags(asked: Asked) -> Refused | None:
    """Sources: aws/karpenter-provider-aws#1527, seek-oss/aec#411."""
    options = asked.data.get("MetadataOptions") or {}
    if options.get("InstanceMetadataTags") != "enabled":
        return None
    for key in asked.tags:
        if not re.fullmatch(METADATA_KEY, key) or key in RESERVED_KEYS:
            words = (
                f"'{key}' is not a valid tag key. Tag keys must match pattern "
                r"([0-9a-zA-Z\-_+=,.@:]{1,255}), and must not be a reserved name "
                "('.', '..', '_index')"
            )
            return Refused("InvalidParameterValue", words)
    return None


def _outside_of_its_block(asked: Asked) -> Refused | None:
    """Instances of UltraServers have no other place. Source: EC2 user guide, "Launch instances
    using Capacity Blocks".
    """
    options = asked.data.get("InstanceMarketOptions") or {}
    wanted = asked.data.get("CapacityReservationSpecification") or {}
    is_in_block = options.get("MarketType") == "capacity-block"
    if not is_in_ultraserver(asked.instance_type) or (
        is_in_block and wanted.get("CapacityReservationTarget")
    ):
        return None
    words = "There is no Capacity Block with available capacity for the requested instance type."
    return Refused("ReservationCapacityExceeded", words)


def _too_many_tags(asked: Asked) -> Refused | None:
    """Those of the request and of its template together."""
    of_template = [
        str(tag["Key"])
        for each in asked.data.get("TagSpecifications") or ()
        if each.get("ResourceType") == "instance"
        for tag in each.get("Tags") or ()
    ]
    return _limit_of_tags({*asked.tags, *of_template})


def _limit_of_tags(keys: Collection[Any]) -> Refused | None:
    if len(keys) <= TAGS_MAX:
        return None
    words = f"The maximum number of Tags for a resource has been reached ({TAGS_MAX})."
    return Refused("TagLimitExceeded", words)


def _not_offered(asked: Asked) -> Refused | None:
    """Sources: compiler-explorer/infra#601 (fleets), skyplane-project/skyplane#172."""
    zones = offered(asked.zone[:-1]).get(asked.instance_type)
    if not zones or asked.zone in zones:
        return None
    words = f"Your requested instance type ({asked.instance_type}) is not supported in your "
    words += f"requested Availability Zone ({asked.zone})."
    if asked.is_fleet:
        return Refused("InvalidFleetConfiguration", words)
    words += " Please retry your request by not specifying an Availability Zone or choosing "
    return Refused("Unsupported", f"{words}{', '.join(sorted(zones))}.")


def _tags(specifications: Sequence[Data]) -> Refused | None:
    for each in specifications:
        tags = each.get("Tags", ())
        if refused := _limit_of_tags(tags):
            return refused
        for tag in tags:
            if len(str(tag.get("Value", ""))) > TAG_VALUE_MAX:
                words = f"Tag value exceeds the maximum length of {TAG_VALUE_MAX} characters"
                return Refused("InvalidParameterValue", words)
    return None


@cache
def offered(region: str) -> Mapping[str, frozenset[str]]:
    """Instance type -> the zones that have it; as DescribeInstanceTypeOfferings answered moto."""
    file = OFFERINGS / f"{region}.json.gz"
    if not file.exists():
        return {}
    zones: dict[str, set[str]] = {}
    for name, zone in _rows(file):
        zones.setdefault(name, set()).add(zone)
    return {name: frozenset(those) for name, those in zones.items()}


def _rows(file: Path) -> Iterator[tuple[str, str]]:
    for each in json.loads(gzip.decompress(file.read_bytes())):
        yield each["InstanceType"], each["Location"]


def _is_true(value: Any) -> bool:
    return str(value).lower() == "true"
