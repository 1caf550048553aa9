"""The head: one small instance, its data volume, and a name that keeps pointing at it."""

from collections.abc import Sequence
from pathlib import Path

from aws_cdk import CfnTag, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_route53 as route53
from aws_cdk import aws_ssm as ssm
from constructs import Construct, IDependable

from cdk import statements
from cdk.acknowledged import acknowledge
from cdk.bootstrap import AgentNames, head_host, head_values, zone_name
from cdk.bundles import read_bundles, store, store_file
from cdk.events import Events
from cdk.images import HeadImage
from cdk.network import Network
from cdk.nodes import shared_names
from cdk.proxy import with_proxy
from cdk.queues import Queues
from cdk.storage import Storage
from cdk.user_data import judge_user_data
from tidegate.core.model.ec2 import CLUSTER_TAG, HEAD_ROLE, ROLE_TAG
from tidegate.wire.config import ClusterFile
from tidegate.wire.events import DIGEST_SOURCE
from userdata.render import head_bundle, head_parameter, head_user_data

DATA_DEVICE = "/dev/sdf"
RECORD_TTL_S = 30


class Head(Construct):
    """Outbound connections only; people reach it with Session Manager.

    `agent`: the archive that `cdk.agent_package` makes.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file: ClusterFile,
        network: Network,
        storage: Storage,
        queues: Queues,
        events: Events,
        image: HeadImage,
        mounts: Sequence[IDependable],
        lustre: str,
        agent: Path,
    ) -> None:
        super().__init__(scope, id)
        volume_id = storage.volume_id
        assert volume_id, "a head of ours has a volume of ours"
        names = agent_names(storage, queues, events)
        shared = shared_names(storage, events, lustre)
        agent_at = store_file(self, "Agent", agent)
        values = head_values(file, shared, names, volume_id, agent_at=agent_at)
        bundle = store(self, "Bundle", head_bundle(values))
        parameter = ssm.CfnParameter(
            self,
            "Boot",
            name=f"/tidegate/{file.cluster.name}/head",
            type="String",
            value=head_parameter(values, bundle),
            description="what the head runs; it looks here every minute",
        )
        more = [
            read_bundles(self, bundle.bucket),
            *statements.mount_more(self, (f.source for f in file.file_systems if f.is_efs)),
            *statements.read_hooks(self, (each.source for each in file.head_hooks)),
            *statements.read_packages(self, values.repository if values.installs else None),
        ]
        self.role = self._role(file.cluster.name, storage, queues, events, more)
        user_data = with_proxy(head_user_data(values, parameter.ref), file.network.proxy)
        judge_user_data(self, user_data)
        self.instance = self._instance(file, network, image, user_data, volume_id)
        acknowledge(
            self.instance,
            EC28="the planner hears its heartbeat every minute, and an alarm says when it does not",
            EC29="a deployment may replace it; what it holds is on the data volume, which is kept",
        )
        self.instance.node.add_dependency(*mounts, *network.route_out)
        self._name(file, network)

    def _role(
        self,
        cluster: str,
        storage: Storage,
        queues: Queues,
        events: Events,
        more: Sequence[iam.PolicyStatement],
    ) -> iam.Role:
        return statements.role(
            self,
            "Role",
            service="ec2",
            statements=[
                *agent_statements(storage, queues, events),
                statements.read_secret(storage.munge_secret_arn),
                *statements.use_key_for_secrets(self, storage.kms_key),
                statements.mount(storage.file_system_arn, as_root=True),
                statements.tell_of_boot(events.bus.event_bus_arn),
                statements.session_manager(),
                *more,
                statements.statement(
                    "Boot",
                    ["ssm:GetParameter"],
                    [
                        Stack.of(self).format_arn(
                            service="ssm",
                            resource="parameter",
                            resource_name=f"tidegate/{cluster}/head",
                        )
                    ],
                ),
            ],
        )

    def _instance(
        self,
        file: ClusterFile,
        network: Network,
        image: HeadImage,
        user_data: str,
        volume_id: str,
    ) -> ec2.CfnInstance:
        """With its data volume as a property, not as an attachment beside it: CloudFormation would
        detach that one before it ends the head, which has it mounted.

        Source: CloudFormation reference, AWS::EC2::VolumeAttachment: unmount it before.
        """
        cluster = file.cluster.name
        profile = iam.CfnInstanceProfile(self, "Profile", roles=[self.role.role_name])
        return ec2.CfnInstance(
            self,
            f"Instance{generation if (generation := file.head.generation) > 1 else ''}",
            image_id=image.image_id,
            launch_template=image.template,
            instance_type=file.head.instance_type,
            subnet_id=network.subnets[file.head_zone],
            security_group_ids=[network.head_group_id, *file.head.security_groups],
            iam_instance_profile=profile.ref,
            user_data=Fn.base64(user_data),
            metadata_options=ec2.CfnInstance.MetadataOptionsProperty(
                http_endpoint="enabled", http_tokens="required", http_put_response_hop_limit=1
            ),
            private_dns_name_options=ec2.CfnInstance.PrivateDnsNameOptionsProperty(
                hostname_type="resource-name", enable_resource_name_dns_a_record=True
            ),
            block_device_mappings=[
                ec2.CfnInstance.BlockDeviceMappingProperty(
                    device_name=image.root_device,
                    ebs=ec2.CfnInstance.EbsProperty(
                        volume_type="gp3",
                        volume_size=file.head.root_gib,
                        encrypted=True,
                        kms_key_id=file.kms_key,
                    ),
                )
            ],
            volumes=[ec2.CfnInstance.VolumeProperty(device=DATA_DEVICE, volume_id=volume_id)],
            propagate_tags_to_volume_on_creation=True,
            tags=[
                CfnTag(key=CLUSTER_TAG, value=cluster),
                CfnTag(key=ROLE_TAG, value=HEAD_ROLE),
                CfnTag(key="Name", value=f"tidegate-{cluster}-head"),
            ],
        )

    def _name(self, file: ClusterFile, network: Network) -> None:
        cluster = file.cluster.name
        zone = route53.CfnHostedZone(
            self,
            "Zone",
            name=zone_name(cluster),
            vpcs=[route53.CfnHostedZone.VPCProperty(vpc_id=network.vpc_id, vpc_region=file.region)],
        )
        route53.CfnRecordSet(
            self,
            "Record",
            hosted_zone_id=zone.ref,
            name=head_host(file),
            type="A",
            ttl=str(RECORD_TTL_S),
            resource_records=[self.instance.attr_private_ip],
        )


def agent_names(storage: Storage, queues: Queues, events: Events) -> AgentNames:
    return AgentNames(
        bucket=storage.bucket.bucket_name,
        bus=events.bus.event_bus_name,
        urgent_queue_url=queues.urgent.queue_url,
        routine_queue_url=queues.routine.queue_url,
    )


def agent_statements(
    storage: Storage, queues: Queues, events: Events
) -> Sequence[iam.PolicyStatement]:
    """Only the head puts digests: what the planner believes about Slurm comes from here.

    It reads the newest verdicts, for the notes on jobs.
    """
    return (
        statements.statement(
            "Digest", ["s3:PutObject"], [f"{storage.bucket.bucket_arn}/{storage.digest_key}"]
        ),
        *statements.read_newest("Verdicts", storage.bucket.bucket_arn, storage.verdicts_key),
        statements.tell("TellOfDigest", events.bus.event_bus_arn, DIGEST_SOURCE),
        statements.statement(
            "Orders",
            ["sqs:ReceiveMessage", "sqs:DeleteMessage"],
            [queues.urgent.queue_arn, queues.routine.queue_arn],
        ),
    )
