"""What an AWS account has and allows in a region, asked before anything is deployed there.

Reads only. Errors of every method: Throttled, NotAuthorized. None: there is no such thing.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from ipaddress import IPv4Network
from typing import Any

from botocore.exceptions import ClientError

from tidegate.adapters.alarms import CloudWatchAlarms
from tidegate.adapters.aws_errors import aws_call, is_missing, tolerating
from tidegate.core.model.alarms import SeenAlarm
from tidegate.core.model.ec2 import CLUSTER_TAG
from tidegate.core.model.frozen import frozen
from tidegate.wire.finite import parse_json

# EC2 takes at most 200 values in a filter (API reference, DescribeInstanceTypeOfferings).
MAX_VALUES = 200

EBS_AWS_KEY = "alias/aws/ebs"
NOT_BLOCKED = "off"
# Names of the VPC's own resolver, beside the address two above the VPC's first range.
# Source: VPC user guide, "Amazon DNS".
AMAZONS_DNS = frozenset(("AmazonProvidedDNS", "169.254.169.253", "fd00:ec2::253"))
# Source: Systems Manager user guide, "Start a default shell session by specifying the default
# session document in IAM policies".
SESSIONS = "SSM-SessionManagerRunShell"
# The id of a VPC's set that has none. Source: EC2 API, AssociateDhcpOptions.
NO_DHCP_OPTIONS = "default"


@frozen
class Subnet:
    """`free_addresses`: how many more instances it can hold. `gives_addresses`: public ones."""

    vpc_id: str
    zone: str
    free_addresses: int
    gives_addresses: bool


@frozen
class Vpc:
    """`cidrs`: its address ranges. `cluster`: the Tidegate cluster that made it, or "". `owner`:
    the account that it belongs to, who may have shared it.
    """

    vpc_id: str
    cidrs: tuple[str, ...]
    cluster: str
    owner: str


@frozen
class Naming:
    """What machines of a VPC are told of names. `servers`: of DNS that are not Amazon's.
    `domains`: what completes a name without one. `has_amazons`: Amazon's DNS is named too.
    """

    servers: tuple[str, ...]
    domains: tuple[str, ...]
    has_amazons: bool


@frozen
class Image:
    """A machine image.

    `keys`: the KMS keys that its snapshots are encrypted with. `root_gib`: of its root volume,
    which EC2 makes no smaller; 0: not told. `root_device`: its name; "": not told.
    """

    arch: str
    state: str
    keys: tuple[str, ...]
    root_gib: int = 0
    root_device: str = ""


@frozen
class Key:
    """A KMS key.

    `is_customers`: AWS does not manage it. Then `grantees`: whom its grants name; `policy`: its.
    """

    arn: str
    is_enabled: bool
    is_customers: bool
    grantees: tuple[str, ...] = ()
    policy: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Account:
    """One region of one account."""

    clients: Callable[[str], Any]

    def offerings(self, instance_types: Collection[str]) -> Mapping[str, frozenset[str]]:
        """Instance type -> the zones that offer it; types that no zone offers are left out."""
        found: dict[str, set[str]] = {}
        names = sorted(instance_types)
        for start in range(0, len(names), MAX_VALUES):
            values = names[start : start + MAX_VALUES]
            for each in self._pages(
                "ec2",
                "describe_instance_type_offerings",
                "InstanceTypeOfferings",
                LocationType="availability-zone",
                Filters=[{"Name": "instance-type", "Values": values}],
            ):
                found.setdefault(each["InstanceType"], set()).add(each["Location"])
        return {name: frozenset(zones) for name, zones in found.items()}

    def quotas(self, service: str = "ec2") -> Mapping[str, float]:
        """A service's quotas by name; what was never changed has AWS's default."""
        found: dict[str, float] = {}
        for operation in ("list_aws_default_service_quotas", "list_service_quotas"):
            for each in self._pages("service-quotas", operation, "Quotas", ServiceCode=service):
                found[each["QuotaName"]] = each["Value"]
        return found

    def num_addresses(self) -> int:
        """How many Elastic IP addresses the region has; one call tells them all."""
        answer = self._ask(lambda: self.clients("ec2").describe_addresses()) or {}
        return len(answer.get("Addresses", ()))

    def parameter(self, name: str) -> str | None:
        """The value of an SSM parameter."""
        answer = self._ask(lambda: self.clients("ssm").get_parameter(Name=name))
        return str(answer["Parameter"]["Value"]) if answer else None

    def tagged(self, cluster: str) -> tuple[str, ...]:
        """The ARNs of what carries a cluster's tag; instances that have ended do so for a while."""
        filters = [{"Key": CLUSTER_TAG, "Values": [cluster]}]
        pages = self._pages(
            "resourcegroupstaggingapi",
            "get_resources",
            "ResourceTagMappingList",
            TagFilters=filters,
        )
        return tuple(sorted(each["ResourceARN"] for each in pages))

    def log_groups(self, prefix: str) -> tuple[str, ...]:
        """The names of log groups that begin so."""
        pages = self._pages("logs", "describe_log_groups", "logGroups", logGroupNamePrefix=prefix)
        return tuple(each["logGroupName"] for each in pages)

    def session_preferences(self) -> Mapping[str, Any]:
        """What the account asks of shells by Session Manager; nothing where it never said."""
        answer = self._ask(lambda: self.clients("ssm").get_document(Name=SESSIONS))
        return dict(parse_json(answer["Content"]).get("inputs", {})) if answer else {}

    def has_role(self, name: str) -> bool:
        return self._ask(lambda: self.clients("iam").get_role(RoleName=name)) is not None

    def number(self) -> str:
        """The account's own."""
        answer = self._ask(lambda: self.clients("sts").get_caller_identity())
        return str(answer["Account"])

    def has_policy(self, arn: str) -> bool:
        return self._ask(lambda: self.clients("iam").get_policy(PolicyArn=arn)) is not None

    def region_of_bucket(self, name: str) -> str | None:
        """Of a bucket that anybody has, as far as it may be asked about; None: there is none."""
        answer = self._ask(lambda: self.clients("s3").head_bucket(Bucket=name))
        return str(answer["BucketRegion"]) if answer else None

    def image(self, image_id: str) -> Image | None:
        answer = self._ask(lambda: self.clients("ec2").describe_images(ImageIds=[image_id]))
        if not (answer and answer["Images"]):
            return None
        found = answer["Images"][0]
        mappings = found.get("BlockDeviceMappings", ())
        disks = [each.get("Ebs", {}) for each in mappings]
        snapshots = [each["SnapshotId"] for each in disks if each.get("SnapshotId")]
        keys = self._snapshot_keys(snapshots)
        root = str(found.get("RootDeviceName", ""))
        sizes = [
            each.get("Ebs", {}) for each in mappings if root and each.get("DeviceName") == root
        ]
        root_gib = max((int(each.get("VolumeSize", 0)) for each in sizes), default=0)
        return Image(
            found["Architecture"], found["State"], tuple(sorted(keys)), root_gib, root or ""
        )

    def _snapshot_keys(self, ids: list[str]) -> set[str]:
        if not ids:
            return set()
        ec2 = self.clients("ec2")
        answer = self._ask(lambda: ec2.describe_snapshots(SnapshotIds=ids)) or {}
        return {each["KmsKeyId"] for each in answer.get("Snapshots", ()) if each.get("KmsKeyId")}

    def vpcs(self) -> Mapping[str, Vpc]:
        found = self._pages("ec2", "describe_vpcs", "Vpcs")
        return {each["VpcId"]: _vpc(each) for each in found}

    def has_dns(self, vpc_id: str) -> bool:
        """Whether names of instances are resolved in a VPC: both attributes are needed."""
        ec2 = self.clients("ec2")
        for name in ("enableDnsSupport", "enableDnsHostnames"):
            ask = partial(ec2.describe_vpc_attribute, VpcId=vpc_id, Attribute=name)
            answer = self._ask(ask)
            if answer and not answer[name[0].upper() + name[1:]]["Value"]:
                return False
        return True

    def naming(self, vpc_id: str) -> Naming:
        """By the VPC's set of DHCP options."""
        ec2 = self.clients("ec2")
        vpcs = self._ask(lambda: ec2.describe_vpcs(VpcIds=[vpc_id])) or {"Vpcs": ()}
        ids = [each["DhcpOptionsId"] for each in vpcs["Vpcs"] if each.get("DhcpOptionsId")]
        if not ids or ids == [NO_DHCP_OPTIONS]:
            return Naming((), (), has_amazons=True)
        answer = self._ask(lambda: ec2.describe_dhcp_options(DhcpOptionsIds=ids)) or {}
        told = {
            option["Key"]: tuple(each["Value"] for each in option.get("Values", ()))
            for found in answer.get("DhcpOptions", ())
            for option in found.get("DhcpConfigurations", ())
        }
        servers = told.get("domain-name-servers", ())
        domains = " ".join(told.get("domain-name", ())).split()
        own = AMAZONS_DNS | {str(IPv4Network(each["CidrBlock"])[2]) for each in vpcs["Vpcs"]}
        others = tuple(each for each in servers if each not in own)
        return Naming(others, tuple(domains), has_amazons=others != servers)

    def subnet(self, subnet_id: str) -> Subnet | None:
        answer = self._ask(lambda: self.clients("ec2").describe_subnets(SubnetIds=[subnet_id]))
        if not (answer and answer["Subnets"]):
            return None
        found = answer["Subnets"][0]
        return Subnet(
            found["VpcId"],
            found["AvailabilityZone"],
            found["AvailableIpAddressCount"],
            bool(found.get("MapPublicIpOnLaunch")),
        )

    def default_route(self, subnet_id: str, vpc_id: str) -> str:
        """What a subnet sends to the rest of the world through: the id of a gateway; "": none."""
        own = [{"Name": "association.subnet-id", "Values": [subnet_id]}]
        main = [
            {"Name": "vpc-id", "Values": [vpc_id]},
            {"Name": "association.main", "Values": ["true"]},
        ]
        for filters in (own, main):
            pages = self._pages("ec2", "describe_route_tables", "RouteTables", Filters=filters)
            if tables := list(pages):
                return next((_target(each) for each in tables[0]["Routes"] if _is_way(each)), "")
        return ""

    def has_endpoints(self, vpc_id: str) -> bool:
        """Whether a VPC reaches any of AWS's services by an interface of its own."""
        filters = [
            {"Name": "vpc-id", "Values": [vpc_id]},
            {"Name": "vpc-endpoint-type", "Values": ["Interface"]},
        ]
        return any(self._pages("ec2", "describe_vpc_endpoints", "VpcEndpoints", Filters=filters))

    def internet_block(self) -> str:
        """What the account lets through no internet gateway of its VPCs here: EC2's word, "off"
        for nothing.
        """
        ask = self.clients("ec2").describe_vpc_block_public_access_options
        found = (self._ask(ask) or {}).get("VpcBlockPublicAccessOptions", {})
        return str(found.get("InternetGatewayBlockMode") or NOT_BLOCKED)

    def let_out(self) -> frozenset[str]:
        """The VPCs and subnets that this block leaves out, at least for what goes out."""
        ask = self.clients("ec2").describe_vpc_block_public_access_exclusions
        found: list[str] = []
        page: dict[str, str] | None = {}
        while page is not None:  # botocore has no paginator for it
            answer = self._ask(partial(ask, **page)) or {}
            found += (
                each["ResourceArn"].rpartition("/")[2]
                for each in answer.get("VpcBlockPublicAccessExclusions", ())
                if each["State"] in ("create-complete", "update-complete")
            )
            page = {"NextToken": answer["NextToken"]} if answer.get("NextToken") else None
        return frozenset(found)

    def endpoint_zones(self, region: str) -> Mapping[str, frozenset[str]]:
        """Service -> the zones where AWS has an interface endpoint to it. In China some services
        are named the other way round: what comes behind the region says which it is.
        """
        pages = self._pages(
            "ec2",
            "describe_vpc_endpoint_services",
            "ServiceDetails",
            Filters=[{"Name": "service-type", "Values": ["Interface"]}],
        )
        found = ((each["ServiceName"].partition(f".{region}."), each) for each in pages)
        return {
            name: frozenset(each["AvailabilityZones"])
            for (_, region_and_dots, name), each in found
            if region_and_dots
        }

    def vpc_of_security_group(self, group_id: str) -> str | None:
        ec2 = self.clients("ec2")
        answer = self._ask(lambda: ec2.describe_security_groups(GroupIds=[group_id]))
        groups = answer["SecurityGroups"] if answer else ()
        return str(groups[0]["VpcId"]) if groups else None

    def vpc_of_instance(self, instance_id: str) -> str | None:
        """Of an instance that is not terminated."""
        ec2 = self.clients("ec2")
        answer = self._ask(lambda: ec2.describe_instances(InstanceIds=[instance_id]))
        for reservation in answer["Reservations"] if answer else ():
            for each in reservation["Instances"]:
                if each["State"]["Name"] != "terminated":
                    return str(each.get("VpcId", ""))
        return None

    def mount_targets(self, file_system_id: str) -> Mapping[str, str] | None:
        """Zone -> VPC of the mount targets of an EFS file system."""
        efs = self.clients("efs")
        answer = self._ask(lambda: efs.describe_mount_targets(FileSystemId=file_system_id))
        if answer is None:
            return None
        found = answer["MountTargets"]
        return {each["AvailabilityZoneName"]: each["VpcId"] for each in found}

    def alarms(self, names: Sequence[str]) -> tuple[SeenAlarm, ...]:
        return CloudWatchAlarms(self.clients("cloudwatch")).states(names)

    def has_secret(self, arn: str) -> bool:
        secrets = self.clients("secretsmanager")
        return self._ask(lambda: secrets.describe_secret(SecretId=arn)) is not None

    def default_ebs_key(self) -> str:
        """The key of volumes that name none: AWS's own alias, or one that the account chose."""
        answer = self._ask(lambda: self.clients("ec2").get_ebs_default_kms_key_id()) or {}
        return str(answer.get("KmsKeyId") or EBS_AWS_KEY)

    def key(self, key_id: str) -> Key | None:
        kms = self.clients("kms")
        answer = self._ask(lambda: kms.describe_key(KeyId=key_id))
        if answer is None:
            return None
        found = answer["KeyMetadata"]
        is_enabled = found.get("KeyState") == "Enabled"
        if found.get("KeyManager") != "CUSTOMER":
            return Key(found["Arn"], is_enabled, is_customers=False)
        of = found["KeyId"]
        told = self._ask(lambda: kms.get_key_policy(KeyId=of, PolicyName="default")) or {}
        grants = self._pages("kms", "list_grants", "Grants", KeyId=of)
        grantees = tuple(each.get("GranteePrincipal", "") for each in grants)
        policy = parse_json(told.get("Policy", "{}"))
        return Key(found["Arn"], is_enabled, is_customers=True, grantees=grantees, policy=policy)

    def _ask(self, call: Callable[[], Any]) -> Any:
        """What AWS answers; None where it says that there is no such thing."""
        with aws_call():
            answer = tolerating(call, is_missing)
        return None if isinstance(answer, ClientError) else answer

    def _pages(self, service: str, operation: str, key: str, **request: Any) -> Iterator[Any]:
        with aws_call():
            for page in self.clients(service).get_paginator(operation).paginate(**request):
                yield from page[key]


def _is_way(route: Mapping[str, Any]) -> bool:
    """A black hole leads to a gateway that is gone."""
    return route.get("DestinationCidrBlock") == "0.0.0.0/0" and route.get("State") != "blackhole"


def _target(route: Mapping[str, Any]) -> str:
    kinds = ("GatewayId", "NatGatewayId", "TransitGatewayId", "NetworkInterfaceId", "InstanceId")
    return next((str(route[kind]) for kind in kinds if route.get(kind)), "another gateway")


def _vpc(found: Mapping[str, Any]) -> Vpc:
    tags = {each["Key"]: each["Value"] for each in found.get("Tags", ())}
    cidrs = [each["CidrBlock"] for each in found.get("CidrBlockAssociationSet", ())]
    return Vpc(
        found["VpcId"],
        tuple(cidrs or [found["CidrBlock"]]),
        tags.get(CLUSTER_TAG, ""),
        found.get("OwnerId", ""),
    )
