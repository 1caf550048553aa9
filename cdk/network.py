"""The network: the user's own subnets or a VPC of the cluster's, and who may talk to whom."""

from collections.abc import Mapping, Sequence

from aws_cdk import CfnTag
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from constructs import Construct, IDependable

from cdk.vpc import Vpc
from tidegate.wire.config import ClusterFile
from tidegate.wire.login import ONLY_KIND, LoginKind
from tidegate.wire.places import is_local_zone

ALL_PORTS = (0, 65535)
EVERYWHERE = "0.0.0.0/0"
HTTPS_PORT = 443
NFS_PORT = 2049
SSH_PORT = 22


def construct_id(kind: LoginKind) -> str:
    """What a kind of login nodes is called among constructs: `Login`, or `Login-Gpu`."""
    return f"Login{suffix(kind)}"


def suffix(kind: LoginKind) -> str:
    """Nothing for the kind of a file that names none; CDK leaves the hyphen out of logical ids."""
    if kind.name == ONLY_KIND:
        return ""
    return "-" + "".join(word.capitalize() for word in kind.name.split("-"))


class Network(Construct):
    """Subnets, and security groups that let nobody in from outside.

    `subnets`: by zone, of machines that name none of their own and of what the zone shares.
    `login_groups`: those of login nodes, by `construct_id`.
    `route_out`: what must be there before an instance may boot, since its first boot needs
    AWS's APIs and its files.
    """

    vpc_id: str
    subnets: Mapping[str, str]
    head_subnet: str
    head_group_id: str
    node_group_id: str
    file_group_id: str
    login_groups: Mapping[str, str]
    route_out: Sequence[IDependable]
    instance_connect_id: str

    def __init__(self, scope: Construct, id: str, *, file: ClusterFile) -> None:
        super().__init__(scope, id)
        if file.network.vpc:
            self.vpc_id, self._own = file.network.vpc, None
            self.route_out = ()
            self.subnets = {zone: file.network.subnets[zone] for zone in file.all_zones}
        else:
            self._own = vpc = Vpc(self, "Own", file=file)
            self.vpc_id, self.subnets, self.route_out = vpc.vpc_id, vpc.subnets, vpc.route_out
        self.head_subnet = file.head.subnet or self.subnets[file.head_zone]
        name, existing = file.cluster.name, file.existing
        self.node_group_id = self.group(self, "NodeGroup", f"nodes of cluster {name}")
        self.head_group_id = (
            existing.head.security_group
            if existing.head
            else self.group(self, "HeadGroup", f"head of cluster {name}")
        )
        self.file_group_id = existing.file_security_group or self.group(
            self, "FileGroup", f"shared files of cluster {name}"
        )
        self._let_head_and_nodes_talk(has_own_head=existing.head is None)
        self.login_groups = {
            construct_id(each): self._login_group(file, each) for each in file.login_kinds
        }
        self._open_file_systems(file)
        if file.network.endpoints:
            self._interface_endpoints(file)
        self.instance_connect_id = (
            self._instance_connect(file) if file.network.instance_connect else ""
        )

    def keep(self, zone: str) -> None:
        """A network of ours, for what stays in that zone when the stack goes."""
        if self._own:
            self._own.keep(zone)

    def mount(self, file_system_id: str) -> Sequence[IDependable]:
        """Make the file system reachable from every subnet; what must be there before a mount.

        From a Local Zone, where EFS has no mount targets, by that of the head's zone.
        """
        return [
            efs.CfnMountTarget(
                self,
                f"MountTarget{zone}",
                file_system_id=file_system_id,
                subnet_id=subnet_id,
                security_groups=[self.file_group_id],
            )
            for zone, subnet_id in self.subnets.items()
            if not is_local_zone(zone)
        ]

    def _interface_endpoints(self, file: ClusterFile) -> None:
        """In the head's zone only: each zone costs as much again, and that one must live anyway."""
        name = file.cluster.name
        group = self.group(self, "EndpointGroup", f"endpoints of cluster {name}")
        sources = {"Head": self.head_group_id, "Nodes": self.node_group_id, **self.login_groups}
        for source, source_id in sources.items():
            ports = (HTTPS_PORT, HTTPS_PORT)
            rule = self.let(
                self, f"EndpointsFrom{source}", group, source_id, ports, f"HTTPS from {source}"
            )
            self.route_out = [*self.route_out, rule]
        for service in file.network.endpoints:
            made = ec2.CfnVPCEndpoint(
                self,
                f"Endpoint-{service}",
                vpc_id=self.vpc_id,
                vpc_endpoint_type="Interface",
                # China has some of them under names of its own: the CDK has AWS's list.
                service_name=ec2.InterfaceVpcEndpointAwsService(service).name,
                private_dns_enabled=True,
                subnet_ids=[self.subnets[file.head_zone]],
                security_group_ids=[group],
            )
            self.route_out = [*self.route_out, made]

    def _instance_connect(self, file: ClusterFile) -> str:
        """An endpoint that leads to SSH of head and login nodes, and nowhere else; its id.

        Who may come in by it is said by IAM alone: what reaches the endpoint asks no group. The
        address of who comes is not preserved, since groups then would see that instead of the
        endpoint's. Source: EC2 user guide, "Security groups for EC2 Instance Connect Endpoint".
        """
        name = f"Instance Connect endpoint of cluster {file.cluster.name}"
        group = self.group(self, "ConnectGroup", name)
        reached = {"Head": self.head_group_id, **self.login_groups}
        for target, target_id in reached.items():
            ports = (SSH_PORT, SSH_PORT)
            self.let(self, f"{target}FromConnect", target_id, group, ports, "SSH by the endpoint")
            ec2.CfnSecurityGroupEgress(
                self,
                f"ConnectTo{target}",
                group_id=group,
                destination_security_group_id=target_id,
                ip_protocol="tcp",
                from_port=SSH_PORT,
                to_port=SSH_PORT,
                description=f"SSH of {target}",
            )
        endpoint = ec2.CfnInstanceConnectEndpoint(
            self,
            "Connect",
            subnet_id=self.subnets[file.head_zone],
            security_group_ids=[group],
            preserve_client_ip=False,
            tags=[CfnTag(key="Name", value=name)],
        )
        return endpoint.ref

    def group(self, scope: Construct, id: str, description: str) -> str:
        """A group that lets nothing in yet, and everything out, as EC2 makes them."""
        group = ec2.CfnSecurityGroup(
            scope,
            id,
            vpc_id=self.vpc_id,
            group_description=description,
            tags=[CfnTag(key="Name", value=description)],
        )
        return group.attr_group_id

    def _let_head_and_nodes_talk(self, *, has_own_head: bool) -> None:
        """Slurm listens on fixed ports, but `srun` and job steps on any.

        A head that was there before reaches its files already; a second rule for the same would
        be refused.
        """
        head, node, files = self.head_group_id, self.node_group_id, self.file_group_id
        self.let(self, "HeadFromNodes", head, node, ALL_PORTS, "Slurm and srun from nodes")
        self.let(self, "NodesFromHead", node, head, ALL_PORTS, "Slurm and srun from the head")
        if has_own_head:
            nfs = (NFS_PORT, NFS_PORT)
            to_files = self.let(self, "FilesFromHead", files, head, nfs, "NFS from the head")
            self.route_out = [*self.route_out, to_files]
        self.let(self, "FilesFromNodes", files, node, (NFS_PORT, NFS_PORT), "NFS from nodes")
        self._let_nodes_talk_and_out(node)

    def _login_group(self, file: ClusterFile, kind: LoginKind) -> str:
        """Slurm's commands reach head and nodes, and both answer `srun` on any port."""
        scope = self if kind.name == ONLY_KIND else Construct(self, construct_id(kind))
        whose = kind.words
        login = self.group(scope, "LoginGroup", f"{whose} of cluster {file.cluster.name}")
        for name, group in (("Head", self.head_group_id), ("Nodes", self.node_group_id)):
            self.let(scope, f"{name}FromLogin", group, login, ALL_PORTS, f"Slurm from {whose}")
            self.let(scope, f"LoginFrom{name}", login, group, ALL_PORTS, f"Slurm from {name}")
        nfs, from_login = (NFS_PORT, NFS_PORT), f"NFS from {whose}"
        to_files = self.let(scope, "FilesFromLogin", self.file_group_id, login, nfs, from_login)
        self.route_out = [*self.route_out, to_files]
        for source in kind.model.ssh_from:
            ec2.CfnSecurityGroupIngress(
                scope,
                f"SshFrom{source}",
                group_id=login,
                cidr_ip=source,
                ip_protocol="tcp",
                from_port=SSH_PORT,
                to_port=SSH_PORT,
                description="SSH of people",
            )
        return login

    def _open_file_systems(self, file: ClusterFile) -> None:
        """Those whose group the file names: NFS from nodes and an own head, once for each group."""
        known = {file.existing.file_security_group}
        sources = {"Nodes": self.node_group_id}
        if file.existing.head is None:
            sources["Head"] = self.head_group_id
        sources |= self.login_groups
        # Lustre's ports are other ones (`cdk/lustre.py`).
        groups = {each.security_group for each in file.file_systems if each.kind != "lustre"}
        for group in sorted(groups - {""} - known):
            for source, source_id in sources.items():
                ports = (NFS_PORT, NFS_PORT)
                id = f"{group}From{source}"
                rule = self.let(self, id, group, source_id, ports, f"NFS from {source}")
                self.route_out = [*self.route_out, rule]

    def _let_nodes_talk_and_out(self, node: str) -> None:
        """Anything among nodes, and from nodes to everywhere.

        EFA wants both directions from the group to itself (EC2 user guide, "Get started with
        EFA"); MPI and NCCL take any port anyway. CloudFormation takes away the rule that lets
        everything out as soon as it adds such an egress rule (aws-cdk, issues 987 and 3355), so
        that rule is added here, and after the other one, which would take it away again.
        """
        ec2.CfnSecurityGroupIngress(
            self,
            "NodesFromNodes",
            group_id=node,
            source_security_group_id=node,
            ip_protocol="-1",
            description="jobs between nodes",
        )
        among = ec2.CfnSecurityGroupEgress(
            self,
            "NodesToNodes",
            group_id=node,
            destination_security_group_id=node,
            ip_protocol="-1",
            description="jobs between nodes",
        )
        out = ec2.CfnSecurityGroupEgress(
            self,
            "NodesToAll",
            group_id=node,
            cidr_ip=EVERYWHERE,
            ip_protocol="-1",
            description="AWS, files, the head, packages",
        )
        out.node.add_dependency(among)

    def let(
        self,
        scope: Construct,
        id: str,
        group_id: str,
        source_id: str,
        ports: tuple[int, int],
        description: str,
    ) -> ec2.CfnSecurityGroupIngress:
        """TCP to these ports of a group from another one."""
        return ec2.CfnSecurityGroupIngress(
            scope,
            id,
            group_id=group_id,
            source_security_group_id=source_id,
            ip_protocol="tcp",
            from_port=ports[0],
            to_port=ports[1],
            description=description,
        )
