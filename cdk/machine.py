"""Machines that stay, the head and login nodes, and what all machines of a cluster may."""

from collections.abc import Iterable, Sequence

from aws_cdk import CfnTag, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk import statements
from cdk.acknowledged import acknowledge
from cdk.events import Events
from cdk.images import HeadImage
from cdk.storage import Storage
from tidegate.core.model.ec2 import CLUSTER_TAG, ROLE_TAG
from tidegate.wire.config import ClusterFile

METADATA = ec2.CfnInstance.MetadataOptionsProperty(
    http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
)


def machine(
    scope: Construct,
    id: str,
    *,
    file: ClusterFile,
    role: str,
    name: str,
    image: HeadImage,
    instance_type: str,
    root_gib: int,
    subnet_id: str,
    group_ids: Sequence[str],
    profile: iam.CfnInstanceProfile,
    user_data: str,
    volumes: Sequence[ec2.CfnInstance.VolumeProperty] = (),
    is_protected: bool | None = None,
) -> ec2.CfnInstance:
    """`role`: by which functions tell it from nodes. `name`: what AWS's console shows.

    `is_protected`: nobody can terminate it before that is taken back. Source: EC2 user guide,
    "Change instance termination protection"; it may be stopped all the same, as each night. False
    is said as well: what a template leaves out CloudFormation may leave as it was
    (aws-cloudformation/cloudformation-coverage-roadmap#2527).

    `volumes`: as a property, not as an attachment beside it, which CloudFormation would detach
    before it ends the machine that has it mounted. Source: CloudFormation reference,
    AWS::EC2::VolumeAttachment: unmount it before.
    """
    made = ec2.CfnInstance(
        scope,
        id,
        image_id=image.image_id,
        launch_template=image.template,
        instance_type=instance_type,
        subnet_id=subnet_id,
        security_group_ids=list(group_ids),
        iam_instance_profile=profile.ref,
        user_data=Fn.base64(user_data),
        metadata_options=METADATA,
        private_dns_name_options=ec2.CfnInstance.PrivateDnsNameOptionsProperty(
            hostname_type="resource-name", enable_resource_name_dns_a_record=True
        ),
        block_device_mappings=[_root(image.root_device, root_gib, file.kms_key)],
        volumes=list(volumes) or None,
        disable_api_termination=is_protected,
        propagate_tags_to_volume_on_creation=True,
        tags=[
            CfnTag(key=CLUSTER_TAG, value=file.cluster.name),
            CfnTag(key=ROLE_TAG, value=role),
            CfnTag(key="Name", value=f"tidegate-{file.cluster.name}-{name}"),
        ],
    )
    acknowledge(
        made,
        EC28="the planner hears the head's heartbeat every minute, and an alarm says when it does"
        " not; people see at once that a login node is slow",
        EC29="a deployment may replace it; what is kept is on the data volume and shared files",
    )
    return made


def _root(device: str, gib: int, kms_key: str | None) -> ec2.CfnInstance.BlockDeviceMappingProperty:
    ebs = ec2.CfnInstance.EbsProperty(
        volume_type="gp3", volume_size=gib, encrypted=True, kms_key_id=kms_key
    )
    return ec2.CfnInstance.BlockDeviceMappingProperty(device_name=device, ebs=ebs)


def rights_to_boot(
    scope: Construct, storage: Storage, events: Events, *, as_root: bool
) -> Sequence[iam.PolicyStatement]:
    """What every machine of a cluster may, nodes too. `as_root`: of the shared files."""
    return (
        statements.read_secret(storage.munge_secret_arn),
        *statements.use_key_for_secrets(scope, storage.kms_key),
        statements.mount(storage.file_system_arn, as_root=as_root),
        statements.tell_of_boot(events.bus.event_bus_arn),
        statements.session_manager(),
    )


def attach(role: iam.Role, policies: Iterable[str]) -> None:
    """A site's own policies, by their ARNs: jobs and people do not reach the machine's role."""
    for index, arn in enumerate(policies):
        role.add_managed_policy(iam.ManagedPolicy.from_managed_policy_arn(role, f"Own{index}", arn))


def boot_parameter(scope: Construct, file: ClusterFile, whose: str, text: str) -> ssm.CfnParameter:
    """Where machines look each minute for what they run. `whose`: their role, or a kind in it."""
    return ssm.CfnParameter(
        scope,
        "Boot",
        name=parameter_name(file, whose),
        type="String",
        value=text,
        description=f"what machines of the role {whose} run; they look here every minute",
    )


def parameter_name(file: ClusterFile, whose: str) -> str:
    return f"/tidegate/{file.cluster.name}/{whose}"


def read_boot_parameter(scope: Construct, file: ClusterFile, whose: str) -> iam.PolicyStatement:
    arn = Stack.of(scope).format_arn(
        service="ssm", resource="parameter", resource_name=parameter_name(file, whose)[1:]
    )
    return statements.statement("Boot", ["ssm:GetParameter"], [arn])
