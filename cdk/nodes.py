"""The nodes: one launch template per pool, and their role."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from aws_cdk import ArnFormat, CfnTag, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk.aws_logs import CfnLogGroup
from constructs import Construct, IDependable

from cdk import statements
from cdk.acknowledged import acknowledge_lookup
from cdk.bootstrap import SharedNames, log_group, node_values
from cdk.bundles import read_bundles, store
from cdk.events import Events
from cdk.images import Images
from cdk.lustre import Mounted
from cdk.machine import attach, rights_to_boot
from cdk.mounts import load_data_sets, mount_more
from cdk.network import Network
from cdk.proxy import with_proxy
from cdk.reservation_rights import reserved_kinds
from cdk.storage import Storage
from cdk.user_data import judge_user_data
from tidegate.core.model.cluster import (
    Cluster,
    Pool,
    group_key,
    group_target,
    named_key,
    reserved_key,
)
from tidegate.core.model.ec2 import CLUSTER_TAG, Market
from tidegate.wire.compat_facts import facts_of
from tidegate.wire.config import ClusterFile
from tidegate.wire.image_names import root_device
from tidegate.wire.root_volume import RootVolume
from userdata.render import NodeValues, node_bundle, node_user_data

type Data = ec2.CfnLaunchTemplate.LaunchTemplateDataProperty
type Specification = ec2.CfnLaunchTemplate.CapacityReservationSpecificationProperty


class Aim(NamedTuple):
    """Where instances may go alone. `market`: of which EC2 wants to hear it twice; "": of none."""

    specification: Specification
    market: str = ""


class Nodes(Construct):
    """`templates`: pool -> (launch template id, version, digest), and the same by `named_key` and
    `reserved_key`.

    `placement_groups`: by `group_key`. `launched_with`: kinds of EC2 resources that launches
    use beside the usual ones.
    """

    templates: dict[str, tuple[str, str, str]]
    placement_groups: dict[str, str]
    launched_with: tuple[str, ...]

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file: ClusterFile,
        network: Network,
        storage: Storage,
        events: Events,
        images: Images,
        mounts: Sequence[IDependable],
        lustre: Mounted,
    ) -> None:
        super().__init__(scope, id)
        shared = shared_names(storage, events, lustre)
        values = {pool: node_values(file, shared, pool) for pool in file.cluster.pools}
        bundle = store(self, "Bundle", node_bundle())
        self._kms_key = file.kms_key
        scripts = [each.source for hooks in file.hooks.values() for each in hooks.all]
        more = [
            read_bundles(self, bundle.bucket),
            *_read_data(self, file),
            *statements.read_hooks(self, scripts),
            *(statements.read_secret(each, "Directory") for each in file.directory_secrets),
            *_assume(role for roles in file.job_roles.values() for role in roles.values()),
            *_ask_for_topology(file),
            *self._packages(values),
            *self._logs(file),
        ]
        self.role = self._role(storage, events, more)
        attach(self.role, file.node_policies)
        self._profile = iam.CfnInstanceProfile(self, "Profile", roles=[self.role.role_name])
        self.templates = {}
        cluster = file.cluster
        for pool in cluster.pools:
            image_id = images.of_pool(pool)
            user_data = with_proxy(node_user_data(values[pool], bundle), file.network.proxy)
            judge_user_data(self, user_data)
            digest = ""
            for key, name, aim in _kinds(cluster, pool):
                in_groups = [network.node_group_id, *file.security_groups.get(pool.name, ())]
                data = self._data(file, pool, user_data, image_id, in_groups, aim)
                template = ec2.CfnLaunchTemplate(
                    self,
                    name,
                    launch_template_data=data,
                    tag_specifications=[_of_template(file, pool)],
                )
                template.node.add_dependency(*mounts)
                acknowledge_lookup(template)
                version = template.attr_latest_version_number
                # The pool's own comes first; what pays for a node is no difference, and the
                # versions of its templates are not counted alike.
                digest = digest or f"{self._digest(data)}-{version}"
                self.templates[key] = (template.ref, version, digest)
        self.placement_groups = self._groups(cluster)
        groups = ("placement-group",) if self.placement_groups else ()
        self.launched_with = (*groups, *reserved_kinds(cluster))

    def _digest(self, data: Data) -> str:
        """What a launch template says, in a few letters.

        An image that is looked up at the deployment shows in the template's version alone, which
        goes up with every change.
        """
        said = json.dumps(Stack.of(self).resolve(data), sort_keys=True)
        return sha256(said.encode()).hexdigest()[:8]

    def _role(
        self, storage: Storage, events: Events, more: Sequence[iam.PolicyStatement]
    ) -> iam.Role:
        return statements.role(
            self,
            "Role",
            service="ec2",
            statements=[
                *rights_to_boot(self, storage, events, as_root=False),
                *more,
            ],
        )

    def _packages(self, values: Mapping[Pool, NodeValues]) -> Sequence[iam.PolicyStatement]:
        """The right to read Slurm's packages in S3. All pools have one image."""
        found = [each.repository for each in values.values() if each.installs]
        return statements.read_packages(self, found[0] if found else None)

    def _logs(self, file: ClusterFile) -> Sequence[iam.PolicyStatement]:
        """Where nodes ship their logs to, and the right to do so; nothing when they do not."""
        if not file.ships_logs:
            return ()
        name = log_group(file)
        CfnLogGroup(self, "Logs", log_group_name=name, retention_in_days=file.log_days)
        arn = Stack.of(self).format_arn(
            service="logs",
            resource="log-group",
            resource_name=name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        return (statements.write_logs_of_nodes(arn),)

    def _groups(self, cluster: Cluster) -> dict[str, str]:
        return {
            group_key(pool.name, zone): ec2.CfnPlacementGroup(
                self, f"Group-{pool.name}-{zone}", strategy="cluster"
            ).attr_group_name
            for pool in cluster.pools
            if pool.placement_group
            for zone in pool.zones
        }

    def _data(
        self,
        file: ClusterFile,
        pool: Pool,
        user_data: str,
        image_id: str,
        group_ids: list[str],
        aim: Aim | None,
    ) -> Data:
        """Type, subnet and market come with each launch; everything else is said here.

        But for what is paid for in advance, `aim`: EC2 takes that from the launch template alone.
        """
        template = ec2.CfnLaunchTemplate
        has_efa = pool.name in file.efa
        return template.LaunchTemplateDataProperty(
            instance_market_options=template.InstanceMarketOptionsProperty(market_type=aim.market)
            if aim and aim.market
            else None,
            capacity_reservation_specification=aim.specification if aim else None,
            image_id=image_id,
            user_data=Fn.base64(user_data),
            iam_instance_profile=template.IamInstanceProfileProperty(arn=self._profile.attr_arn),
            security_group_ids=None if has_efa else group_ids,
            network_interfaces=_efa_interfaces(pool, group_ids) if has_efa else None,
            # A node that gives up powers itself off, and must not cost anything then.
            instance_initiated_shutdown_behavior="terminate",
            metadata_options=template.MetadataOptionsProperty(
                http_endpoint="enabled",
                http_tokens="required",
                http_put_response_hop_limit=1,
                instance_metadata_tags="enabled",
            ),
            private_dns_name_options=template.PrivateDnsNameOptionsProperty(
                hostname_type="resource-name", enable_resource_name_dns_a_record=True
            ),
            block_device_mappings=[
                self._root(file.root_volumes[pool.name], root_device(file.os_of(pool.name)))
            ],
            tag_specifications=[
                template.TagSpecificationProperty(
                    resource_type=resource_type, tags=_tags(file, pool)
                )
                for resource_type in ("instance", "volume")
            ],
        )

    def _root(
        self, volume: RootVolume, device: str
    ) -> ec2.CfnLaunchTemplate.BlockDeviceMappingProperty:
        return ec2.CfnLaunchTemplate.BlockDeviceMappingProperty(
            device_name=device,
            ebs=ec2.CfnLaunchTemplate.EbsProperty(
                volume_type="gp3",
                volume_size=volume.gib,
                iops=volume.iops,
                throughput=volume.throughput_mib_s,
                volume_initialization_rate=volume.initialization_mib_s,
                encrypted=True,
                kms_key_id=self._kms_key,
                delete_on_termination=True,
            ),
        )


def _efa_interfaces(
    pool: Pool, group_ids: list[str]
) -> list[ec2.CfnLaunchTemplate.NetworkInterfaceProperty]:
    """EFA on every network card that has it; launches add the subnet.

    One interface for both where one is all, which may have a public address. Else the first
    card's for IP, and EFA alone on the others, which takes no address.
    Source: EC2 user guide, "Maximize network bandwidth on Amazon EC2 instances with multiple
    network cards". The cluster file's check has the types of a pool alike.
    """
    facts = facts_of(pool.instance_types[0].name)
    if facts.efa_interfaces == 1:
        return [_interface(group_ids, "efa", card=0, device=0)]
    is_on_first = facts.efa_interfaces == facts.network_cards
    return [
        _interface(group_ids, "interface", card=0, device=0),
        *([_interface(group_ids, "efa-only", card=0, device=1)] if is_on_first else []),
        *(
            _interface(group_ids, "efa-only", card=card, device=0)
            for card in facts.efa_cards or range(1, facts.network_cards)
        ),
    ]


def _interface(
    group_ids: list[str], kind: str, *, card: int, device: int
) -> ec2.CfnLaunchTemplate.NetworkInterfaceProperty:
    return ec2.CfnLaunchTemplate.NetworkInterfaceProperty(
        network_card_index=card,
        device_index=device,
        interface_type=kind,
        groups=group_ids,
        delete_on_termination=True,
    )


def _assume(roles: Iterable[str]) -> Sequence[iam.PolicyStatement]:
    """The roles that jobs act as, which nodes assume for them."""
    arns = sorted(set(roles))
    return (statements.statement("JobRoles", ["sts:AssumeRole"], arns),) if arns else ()


def _ask_for_topology(file: ClusterFile) -> Sequence[iam.PolicyStatement]:
    """Where a node is. EC2 knows no rights to this for single instances."""
    if not file.slurm.topology:
        return ()
    return (statements.statement("Topology", ["ec2:DescribeInstanceTopology"], ["*"]),)


def _kinds(cluster: Cluster, pool: Pool) -> Iterator[tuple[str, str, Aim | None]]:
    """The pool's templates: key, name in the stack, and where its instances may go alone.

    With `capacity-reservations-only` EC2 refuses what no open reservation, or none of the group,
    has room for; else it sells it on demand, which a limit in money would hear of too late.
    Source: EC2 API reference, CapacityReservationSpecification: with a target as well.
    """
    specification = ec2.CfnLaunchTemplate.CapacityReservationSpecificationProperty
    yield pool.name, f"Pool-{pool.name}", None
    if Market.RESERVED in pool.markets:
        only = specification(capacity_reservation_preference="capacity-reservations-only")
        yield reserved_key(pool.name), f"Reserved-{pool.name}", Aim(only)
        for arn in cluster.reservation_groups:
            target = ec2.CfnLaunchTemplate.CapacityReservationTargetProperty(
                capacity_reservation_resource_group_arn=arn
            )
            only = specification(
                capacity_reservation_preference="capacity-reservations-only",
                capacity_reservation_target=target,
            )
            name = group_target(arn)
            yield named_key(pool.name, name), f"Reserved-{pool.name}-{name}", Aim(only)
    for each in cluster.named_reservations(pool):
        target = ec2.CfnLaunchTemplate.CapacityReservationTargetProperty(
            capacity_reservation_id=each.id
        )
        market = each.market.value if each.market.is_named else ""
        aim = Aim(specification(capacity_reservation_target=target), market)
        yield named_key(pool.name, each.id), f"Pool-{pool.name}-{each.id}", aim


def _read_data(scope: Construct, file: ClusterFile) -> Sequence[iam.PolicyStatement]:
    return (
        *mount_more(scope, file.file_systems),
        *load_data_sets(scope, file.cluster.prefetch),
    )


def shared_names(storage: Storage, events: Events, lustre: Mounted) -> SharedNames:
    return SharedNames(
        munge_secret=storage.munge_secret_arn,
        file_system_id=storage.file_system_id,
        bus=events.bus.event_bus_name,
        lustre=lustre,
    )


def _of_template(
    file: ClusterFile, pool: Pool
) -> ec2.CfnLaunchTemplate.LaunchTemplateTagSpecificationProperty:
    """The template's own tags, by which the planner may launch from it."""
    return ec2.CfnLaunchTemplate.LaunchTemplateTagSpecificationProperty(
        resource_type="launch-template", tags=_tags(file, pool)
    )


def _tags(file: ClusterFile, pool: Pool) -> list[CfnTag]:
    cluster = file.cluster.name
    ours = {CLUSTER_TAG: cluster, "Name": f"tidegate-{cluster}-{pool.name}"}
    return [CfnTag(key=key, value=value) for key, value in {**file.tags, **ours}.items()]
