"""Login nodes: where people work, so that nothing of theirs runs beside slurmctld."""

from collections.abc import Sequence

from aws_cdk import Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_route53 as route53
from constructs import Construct, IDependable

from cdk import statements
from cdk.bootstrap import login_values, zone_name
from cdk.bundles import read_bundles, store
from cdk.events import Events
from cdk.images import HeadImage
from cdk.lustre import Mounted
from cdk.machine import attach, boot_parameter, machine, read_boot_parameter, rights_to_boot
from cdk.mounts import mount_more
from cdk.network import Network, construct_id
from cdk.nodes import shared_names
from cdk.proxy import with_proxy
from cdk.storage import Storage
from cdk.user_data import judge_user_data
from tidegate.core.model.ec2 import LOGIN_ROLE, LOGIN_TAG
from tidegate.wire.config import ClusterFile
from tidegate.wire.login import LoginKind
from userdata.render import LoginValues, login_bundle, login_parameter, login_user_data

# Of all of them together: a client takes one of their addresses.
RECORD_TTL_S = 30


class Login(Construct):
    """Those of one kind. `instances`: `count` of them. They have a node's rights and no more."""

    instances: Sequence[ec2.CfnInstance]

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file: ClusterFile,
        kind: LoginKind,
        network: Network,
        storage: Storage,
        events: Events,
        image: HeadImage,
        mounts: Sequence[IDependable],
        lustre: Mounted,
        zone: route53.CfnHostedZone,
    ) -> None:
        super().__init__(scope, id)
        values = login_values(file, shared_names(storage, events, lustre), kind)
        bundle = store(self, "Bundle", login_bundle(values))
        parameter = boot_parameter(self, file, kind.host_name, login_parameter(values, bundle))
        user_data = with_proxy(login_user_data(values, parameter.ref), file.network.proxy)
        judge_user_data(self, user_data)
        more = [
            read_bundles(self, bundle.bucket),
            read_boot_parameter(self, file, kind.host_name),
            *mount_more(self, file.file_systems),
            *statements.read_hooks(self, (each.source for each in kind.hooks)),
            *(statements.read_secret(each, "Directory") for each in file.directory_secrets),
            *statements.read_packages(self, values.repository if values.installs else None),
        ]
        role = self._role(values, storage, events, more, kind.model.policies)
        profile = iam.CfnInstanceProfile(self, "Profile", roles=[role.role_name])
        self.instances = [
            machine(
                self,
                f"Instance{number}",
                file=file,
                role=LOGIN_ROLE,
                name=f"{kind.host_name}-{number}",
                image=image,
                instance_type=kind.model.instance_type,
                root_gib=kind.model.root_gib,
                subnet_id=kind.model.subnet or network.subnets[file.login_zone(kind)],
                group_ids=[network.login_groups[construct_id(kind)], *kind.model.security_groups],
                profile=profile,
                user_data=user_data,
            )
            for number in range(1, kind.model.count + 1)
        ]
        for each in self.instances:
            Tags.of(each).add(LOGIN_TAG, kind.name)
            each.node.add_dependency(*mounts, *network.route_out)
        self._give_address(login_host(file, kind), zone)

    def _give_address(self, name: str, zone: route53.CfnHostedZone) -> None:
        route53.CfnRecordSet(
            self,
            "Record",
            hosted_zone_id=zone.ref,
            name=name,
            type="A",
            ttl=str(RECORD_TTL_S),
            resource_records=[each.attr_private_ip for each in self.instances],
        )

    def _role(
        self,
        values: LoginValues,
        storage: Storage,
        events: Events,
        more: Sequence[iam.PolicyStatement],
        policies: Sequence[str],
    ) -> iam.Role:
        """Root of the shared files only where a directory's people get their homes at a login."""
        made = statements.role(
            self,
            "Role",
            service="ec2",
            statements=[
                *rights_to_boot(self, storage, events, as_root=bool(values.users)),
                *more,
            ],
        )
        attach(made, policies)
        return made


def login_host(file: ClusterFile, kind: LoginKind) -> str:
    """The name of all login nodes of a kind together."""
    return f"{kind.host_name}.{zone_name(file.cluster.name)}"
