"""The head: one small instance, its data volume, and a name that keeps pointing at it."""

from collections.abc import Sequence
from pathlib import Path

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_route53 as route53
from constructs import Construct, IDependable

from cdk import statements
from cdk.bootstrap import AgentNames, head_host, head_values, zone_name
from cdk.bundles import read_bundles, store, store_file
from cdk.events import Events
from cdk.images import HeadImage
from cdk.lustre import Mounted
from cdk.machine import attach, boot_parameter, machine, read_boot_parameter, rights_to_boot
from cdk.mounts import mount_more
from cdk.network import Network
from cdk.nodes import shared_names
from cdk.proxy import with_proxy
from cdk.queues import Queues
from cdk.reports import hand_in
from cdk.storage import Storage
from cdk.user_data import judge_user_data
from tidegate.core.model.ec2 import HEAD_ROLE
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
        lustre: Mounted,
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
        parameter = boot_parameter(self, file, HEAD_ROLE, head_parameter(values, bundle))
        more = [
            read_bundles(self, bundle.bucket),
            *mount_more(self, file.file_systems),
            *statements.read_hooks(self, (each.source for each in file.head_hooks)),
            *(statements.read_secret(each, "Directory") for each in file.directory_secrets),
            *statements.read_packages(self, values.repository if values.installs else None),
            *_write_metrics(self, file),
        ]
        self.role = self._role(file, storage, queues, events, more)
        attach(self.role, file.head.policies)
        user_data = with_proxy(head_user_data(values, parameter.ref), file.network.proxy)
        judge_user_data(self, user_data)
        self.instance = self._instance(file, network, image, user_data, volume_id)
        self.instance.node.add_dependency(*mounts, *network.route_out)
        self.zone = self._name(file, network)

    def _role(
        self,
        file: ClusterFile,
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
                *agent_statements(file, storage, queues, events),
                *rights_to_boot(self, storage, events, as_root=True),
                *more,
                read_boot_parameter(self, file, HEAD_ROLE),
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
        profile = iam.CfnInstanceProfile(self, "Profile", roles=[self.role.role_name])
        return machine(
            self,
            f"Instance{generation if (generation := file.head.generation) > 1 else ''}",
            file=file,
            role=HEAD_ROLE,
            name="head",
            image=image,
            instance_type=file.head.instance_type,
            root_gib=file.head.root_gib,
            subnet_id=network.head_subnet,
            group_ids=[network.head_group_id, *file.head.security_groups],
            profile=profile,
            user_data=user_data,
            volumes=[ec2.CfnInstance.VolumeProperty(device=DATA_DEVICE, volume_id=volume_id)],
            is_protected=file.head.termination_protection,
        )

    def _name(self, file: ClusterFile, network: Network) -> route53.CfnHostedZone:
        """The cluster's zone, in which the head has a name."""
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
        return zone


def agent_names(storage: Storage, queues: Queues, events: Events) -> AgentNames:
    return AgentNames(
        bucket=storage.bucket.bucket_name,
        bus=events.bus.event_bus_name,
        urgent_queue_url=queues.urgent.queue_url,
        routine_queue_url=queues.routine.queue_url,
    )


def agent_statements(
    file: ClusterFile, storage: Storage, queues: Queues, events: Events
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
        *([_hand_in(file, storage)] if file.report else []),
    )


def _write_metrics(scope: Construct, file: ClusterFile) -> Sequence[iam.PolicyStatement]:
    """To the one workspace; or as the role that another account's is written by."""
    write = file.monitoring.remote_write
    if write is None:
        return ()
    if write.role:
        return (statements.statement("Metrics", ["sts:AssumeRole"], [write.role]),)
    arn = Stack.of(scope).format_arn(
        service="aps",
        region=write.region,
        resource="workspace",
        resource_name=write.workspace,
    )
    return (statements.statement("Metrics", ["aps:RemoteWrite"], [arn]),)


def _hand_in(file: ClusterFile, storage: Storage) -> iam.PolicyStatement:
    bucket_arn = Stack.of(storage).export_value(storage.bucket.bucket_arn)
    return hand_in(bucket_arn, file.cluster.name)
