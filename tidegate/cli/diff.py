"""What a deployment would do to a cluster that runs, told from its templates before and after.

Source of what replaces what: the CloudFormation resource reference, "Update requires".
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from tidegate.core.model.ec2 import LOGIN_ROLE, ROLE_TAG
from tidegate.core.model.frozen import frozen

type Template = Mapping[str, Any]
type Resources = Mapping[str, Mapping[str, Any]]

INSTANCE = "AWS::EC2::Instance"

# Of a launch template's own tags; those of its nodes are in LaunchTemplateData. Sources:
# CloudFormation's schema, where TagSpecifications is not create-only;
# aws-cloudformation/cloudformation-coverage-roadmap#957 and #1873.
TAGS_STAY = ": CloudFormation leaves the tags of a template that is there as they are"

# Type -> properties whose change needs a new resource. Only types of our stacks.
REPLACED_BY: Mapping[str, frozenset[str]] = {
    kind: frozenset(properties.split())
    for kind, properties in {
        "AWS::Backup::BackupSelection": "BackupPlanId BackupSelection",
        "AWS::Backup::BackupVault": "BackupVaultName",
        "AWS::Budgets::Budget": "NotificationsWithSubscribers",
        "AWS::Chatbot::MicrosoftTeamsChannelConfiguration": "ConfigurationName TeamId "
        "TeamsTenantId",
        "AWS::Chatbot::SlackChannelConfiguration": "ConfigurationName SlackWorkspaceId",
        "AWS::CloudWatch::Alarm": "AlarmName",
        "AWS::CloudWatch::Dashboard": "DashboardName",
        # DynamoDB makes local indexes with their table only.
        "AWS::DynamoDB::Table": "KeySchema LocalSecondaryIndexes TableName",
        "AWS::EC2::EIP": "Domain",
        "AWS::EC2::FlowLog": "DeliverLogsPermissionArn LogDestinationType LogGroupName ResourceId "
        "ResourceType TrafficType",
        "AWS::EC2::Instance": "AvailabilityZone BlockDeviceMappings ImageId KeyName LaunchTemplate "
        "PrivateIpAddress SubnetId",
        "AWS::EC2::InstanceConnectEndpoint": "ClientToken PreserveClientIp SecurityGroupIds "
        "SubnetId",
        "AWS::EC2::LaunchTemplate": "LaunchTemplateName",
        "AWS::EC2::NatGateway": "AllocationId SubnetId",
        "AWS::EC2::PlacementGroup": "GroupName PartitionCount SpreadLevel Strategy Tags",
        "AWS::EC2::Route": "DestinationCidrBlock RouteTableId",
        "AWS::EC2::RouteTable": "VpcId",
        "AWS::EC2::SecurityGroup": "GroupDescription GroupName VpcId",
        "AWS::EC2::SecurityGroupEgress": "CidrIp DestinationSecurityGroupId FromPort GroupId "
        "IpProtocol ToPort",
        "AWS::EC2::SecurityGroupIngress": "CidrIp FromPort GroupId IpProtocol "
        "SourceSecurityGroupId ToPort",
        "AWS::EC2::Subnet": "AvailabilityZone CidrBlock VpcId",
        "AWS::EC2::SubnetRouteTableAssociation": "RouteTableId SubnetId",
        "AWS::EC2::VPC": "CidrBlock",
        "AWS::EC2::VPCEndpoint": "ServiceName VpcEndpointType VpcId",
        "AWS::EC2::VPCGatewayAttachment": "VpcId",
        "AWS::EC2::Volume": "AvailabilityZone Encrypted KmsKeyId SnapshotId",
        "AWS::EFS::FileSystem": "AvailabilityZoneName Encrypted KmsKeyId PerformanceMode",
        "AWS::EFS::MountTarget": "FileSystemId SubnetId",
        "AWS::Events::EventBus": "Name",
        "AWS::FSx::DataRepositoryAssociation": "BatchImportMetaDataOnCreate DataRepositoryPath "
        "FileSystemId FileSystemPath",
        "AWS::FSx::FileSystem": "FileSystemType FileSystemTypeVersion KmsKeyId SecurityGroupIds "
        "StorageCapacity SubnetIds",
        "AWS::IAM::InstanceProfile": "InstanceProfileName Path",
        "AWS::IAM::ManagedPolicy": "Description ManagedPolicyName Path",
        "AWS::IAM::Role": "Path RoleName",
        "AWS::ImageBuilder::Component": "Data Name Platform Version",
        "AWS::ImageBuilder::DistributionConfiguration": "Name",
        "AWS::ImageBuilder::ImagePipeline": "Name",
        "AWS::ImageBuilder::ImageRecipe": "AmiTags Components Name ParentImage Version",
        "AWS::ImageBuilder::InfrastructureConfiguration": "Name",
        "AWS::ImageBuilder::LifecyclePolicy": "Name",
        "AWS::Lambda::EventSourceMapping": "EventSourceArn",
        "AWS::Lambda::Function": "FunctionName",
        "AWS::Logs::LogGroup": "LogGroupName",
        "AWS::Route53::HostedZone": "Name",
        "AWS::Route53::RecordSet": "HostedZoneId Name",
        "AWS::S3::Bucket": "BucketName",
        "AWS::S3::BucketPolicy": "Bucket",
        "AWS::SNS::Subscription": "Endpoint Protocol TopicArn",
        "AWS::SNS::Topic": "TopicName",
        "AWS::SQS::Queue": "FifoQueue QueueName",
        "AWS::SSM::Parameter": "Name",
        "AWS::Scheduler::Schedule": "Name",
        "AWS::Scheduler::ScheduleGroup": "Name",
        "AWS::SecretsManager::Secret": "Name",
    }.items()
}

# EC2 takes these for a stopped instance only.
RESTARTED_BY = {"AWS::EC2::Instance": frozenset({"InstanceType", "UserData", "EbsOptimized"})}

# What holds something that nobody can make again.
HOLDS_DATA = frozenset(
    {
        *("AWS::Backup::BackupVault", "AWS::DynamoDB::Table"),
        *("AWS::EC2::Volume", "AWS::EFS::FileSystem"),
        "AWS::FSx::FileSystem",
        *("AWS::S3::Bucket", "AWS::SecretsManager::Secret"),
    }
)


class Effect(StrEnum):
    """What happens to one resource, the worst first."""

    REPLACED = "replaced"
    REMOVED = "removed"
    RESTARTED = "stopped and started"
    ADDED = "added"
    CHANGED = "changed in place"


ASSOCIATION = "AWS::FSx::DataRepositoryAssociation"
# What machines that stay lose by a change, told as `Change.loss`: by type of what is removed.
# Sources: EFS user guide, "Deleting mount targets": mounts by it are broken off; FSx for Lustre
# user guide, "Importing changes from your data repository": a first read loads what is in a file.
LOST_WITH: Mapping[str, str] = {
    "AWS::EFS::MountTarget": "nodes that still run in its zone lose the shared files, and in a "
    "network of the cluster's own their way out: end them first",
    ASSOCIATION: "the files stay, but the bucket gets nothing of them any more, and what is in "
    "files that nobody has read yet is in the bucket alone (docs/data-sets.md)",
    "AWS::FSx::FileSystem": "it is kept, and paid for until you delete it; machines that run may "
    "lose it, those that start have nothing of what is in it: end nodes first",
}
# Source: EC2 user guide, "Amazon EC2 instance IP addressing": given at the launch only.
NO_ADDRESS = (
    "machines that are there get no public address and have no way out then: end head and nodes "
    "first"
)


RULES = frozenset({"AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress"})
# CloudFormation makes what is new before it deletes what goes, and EC2 has a rule only once: the
# new one is refused (InvalidPermission.Duplicate), or taken to be made and deleted with the old
# one. Sources: aws-cloudformation/cloudformation-coverage-roadmap#612; persol-serverworks.co.jp,
# "SecurityGroup" (2023), and jlordiales.me (2018), of rules that were gone after an update.
SAME_RULE = (
    "EC2 has this rule as {old} already, which goes with this deployment: it would fail, or leave "
    "the group without the rule. Deploy first without what needs it, then with it"
)


@frozen
class Change:
    """`properties`: those that differ; none when the whole resource comes or goes. `loss`: of
    machines that stay, "": none. `is_login`: a login node.
    """

    effect: Effect
    logical_id: str
    kind: str
    properties: tuple[str, ...] = ()
    loss: str = ""
    is_login: bool = False

    @property
    def is_grave(self) -> bool:
        """The head or a login node, or something that holds data, is replaced; a login node goes;
        or what runs loses files or network.
        """
        kinds = {*HOLDS_DATA, INSTANCE}
        is_new = self.effect is Effect.REPLACED and self.kind in kinds
        return bool(self.loss) or is_new or (self.is_login and self.effect is Effect.REMOVED)

    def told(self, stack: str) -> "Told":
        return Told(
            stack=stack,
            effect=self.effect.name.lower(),
            logical_id=self.logical_id,
            kind=self.kind,
            properties=self.properties,
            is_grave=self.is_grave,
            sentence=self.sentence,
        )

    @property
    def sentence(self) -> str:
        """What a person must know of it."""
        because = f" by {', '.join(self.properties)}" if self.properties else ""
        return f"{self.logical_id} ({self.kind}) is {self.effect}{because}{self._meaning}"

    @property
    def _meaning(self) -> str:
        if self.loss:
            return f": {self.loss}"
        is_new = self.effect is Effect.REPLACED
        if self.kind in HOLDS_DATA and self.effect in (Effect.REPLACED, Effect.REMOVED):
            return (
                ": the old one is kept, what is in it does not move"
                if is_new
                else ": it is kept, and paid for until you delete it"
            )
        if self.is_login:
            gone = self.effect in (Effect.REPLACED, Effect.REMOVED, Effect.RESTARTED)
            return ": who is logged in there is cut off, jobs that run go on" if gone else ""
        if self.kind == INSTANCE:
            return {
                Effect.REPLACED: ": a new head boots, jobs that run go on",
                Effect.RESTARTED: ": the head is away for minutes, jobs that run go on",
            }.get(self.effect, "")
        if self.kind == "AWS::Logs::LogGroup" and self.effect is Effect.REMOVED:
            return ": what was logged there goes with it"
        if self.kind == "AWS::EC2::LaunchTemplate" and "ImagesHead" not in self.logical_id:
            is_tags_alone = self.properties == ("TagSpecifications",)
            return {
                Effect.CHANGED: TAGS_STAY
                if is_tags_alone
                else ": for nodes that are launched from then on",
                Effect.REMOVED: ": no more nodes of this pool",
            }.get(self.effect, "")
        return ""


@frozen(kw_only=True)
class Told:
    """A change of a stack, for programs. `code`: why it would fail; "": it would not."""

    stack: str
    effect: str
    logical_id: str
    kind: str
    properties: tuple[str, ...]
    is_grave: bool
    sentence: str
    code: str = ""


def changes(before: Template, after: Template) -> list[Change]:
    """Of one stack, the gravest first. References to what is replaced count as changed."""
    old: Resources = before.get("Resources", {})
    new: Resources = after.get("Resources", {})
    gone = {name: str(old[name]["Type"]) for name in old.keys() - new.keys()}
    found = [
        Change(Effect.REMOVED, name, kind, loss=LOST_WITH.get(kind, ""))
        for name, kind in gone.items()
    ]
    found += [
        Change(Effect.ADDED, name, str(new[name]["Type"])) for name in new.keys() - old.keys()
    ]
    found += _of_both(old, new)
    found = [
        replace(each, loss=_same_rule(each.logical_id, old, new))
        if each.kind in RULES and each.effect in (Effect.ADDED, Effect.REPLACED)
        else replace(each, is_login=_is_login({**old, **new}[each.logical_id]))
        for each in found
    ]
    order = list(Effect)
    return sorted(found, key=lambda each: (order.index(each.effect), each.logical_id))


def _of_both(old: Resources, new: Resources) -> list[Change]:
    both = sorted(old.keys() & new.keys())
    replaced: dict[str, Change] = {}
    while True:
        found = [
            change
            for name in both
            if (change := _change(name, old[name], new[name], replaced.keys()))
        ]
        now = {each.logical_id: each for each in found if each.effect is Effect.REPLACED}
        if now.keys() == replaced.keys():
            return found
        replaced = now


def _change(
    name: str, old: Mapping[str, Any], new: Mapping[str, Any], replaced: Iterable[str]
) -> Change | None:
    kind = str(new["Type"])
    before, after = old.get("Properties", {}), new.get("Properties", {})
    names = sorted(before.keys() | after.keys())
    differ = tuple(
        each
        for each in names
        if before.get(each) != after.get(each) or refers(after.get(each), replaced)
    )
    if kind != old["Type"] or REPLACED_BY.get(kind, frozenset()).intersection(differ):
        loss = LOST_WITH[kind] if kind == ASSOCIATION else ""
        return Change(Effect.REPLACED, name, kind, differ, loss)
    if RESTARTED_BY.get(kind, frozenset()).intersection(differ):
        return Change(Effect.RESTARTED, name, kind, differ)
    loss = NO_ADDRESS if _becomes_public(kind, before, after) else ""
    return Change(Effect.CHANGED, name, kind, differ, loss) if differ else None


def _same_rule(name: str, old: Resources, new: Resources) -> str:
    """A rule of a security group that another name has until now, and not any more."""
    what = _without_words(new[name])
    had = (each for each in old if each != name and _without_words(old[each]) == what)
    found = sorted(each for each in had if each not in new or _without_words(new[each]) != what)
    return SAME_RULE.format(old=found[0]) if found else ""


def _is_login(resource: Mapping[str, Any]) -> bool:
    tags = resource.get("Properties", {}).get("Tags", ()) if resource["Type"] == INSTANCE else ()
    return {"Key": ROLE_TAG, "Value": LOGIN_ROLE} in tags


def _without_words(rule: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    properties = rule.get("Properties", {})
    return str(rule["Type"]), {k: v for k, v in properties.items() if k != "Description"}


def _becomes_public(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """A subnet whose machines were behind NAT or endpoints."""
    said = [bool(each.get("MapPublicIpOnLaunch")) for each in (before, after)]
    return kind == "AWS::EC2::Subnet" and said == [False, True]


def refers(value: Any, names: Iterable[str]) -> bool:
    """Whether CloudFormation puts one of these resources into the value."""
    match value:
        case {"Ref": name}:
            return name in names
        case {"Fn::GetAtt": [name, *_]}:
            return name in names
        case Mapping():
            return any(refers(each, names) for each in value.values())
        case list():
            return any(refers(each, names) for each in value)
        case _:
            return False
