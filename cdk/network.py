"""The network: the user's own subnets, or a new VPC that costs nothing while idle."""

from collections.abc import Mapping, Sequence

from aws_cdk import CfnTag
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from constructs import Construct, IDependable

from tidegate.wire.config import ClusterFile

SUBNET_MASK = 20
ALL_PORTS = (0, 65535)
NFS_PORT = 2049


class Network(Construct):
    """Subnets by zone, and three security groups that let nobody in from outside.

    A new VPC has public subnets only: a NAT gateway would cost more than a small cluster's
    other parts together, and the groups are closed. `route_out`: what must be there before an
    instance may boot, since its first boot needs AWS's APIs.
    """

    vpc_id: str
    subnets: Mapping[str, str]
    subnets_of_nodes: Mapping[str, str]
    head_group_id: str
    node_group_id: str
    file_group_id: str
    route_out: Sequence[IDependable]

    def __init__(self, scope: Construct, id: str, *, file: ClusterFile) -> None:
        super().__init__(scope, id)
        if file.network.vpc_id:
            self.vpc_id = file.network.vpc_id
            self.route_out = ()
            self.subnets = {zone: file.network.subnets[zone] for zone in file.all_zones}
        else:
            vpc = self._new_vpc(file)
            self.vpc_id = vpc.vpc_id
            self.route_out = [
                subnet.internet_connectivity_established for subnet in vpc.public_subnets
            ]
            self.subnets = {
                subnet.availability_zone: subnet.subnet_id for subnet in vpc.public_subnets
            }
        self.subnets_of_nodes = {zone: self.subnets[zone] for zone in file.zones}
        name = file.cluster.name
        self.head_group_id = self._group("HeadGroup", f"head of cluster {name}")
        self.node_group_id = self._group("NodeGroup", f"nodes of cluster {name}")
        self.file_group_id = self._group("FileGroup", f"shared files of cluster {name}")
        self._let_head_and_nodes_talk()

    def _new_vpc(self, file: ClusterFile) -> ec2.Vpc:
        vpc = ec2.Vpc(
            self,
            "Vpc",
            vpc_name=f"tidegate-{file.cluster.name}",
            availability_zones=list(file.all_zones),
            nat_gateways=0,
            # Nothing uses the default group, and closing it takes a Lambda function.
            restrict_default_security_group=False,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="public",
                    subnet_type=ec2.SubnetType.PUBLIC,
                    cidr_mask=SUBNET_MASK,
                    map_public_ip_on_launch=True,
                )
            ],
            # Free, unlike interface endpoints.
            gateway_endpoints={
                "S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3),
                "DynamoDb": ec2.GatewayVpcEndpointOptions(
                    service=ec2.GatewayVpcEndpointAwsService.DYNAMODB
                ),
            },
        )
        for subnet in vpc.public_subnets:
            child = subnet.node.default_child
            assert isinstance(child, ec2.CfnSubnet)
            child.private_dns_name_options_on_launch = {
                "HostnameType": "resource-name",
                "EnableResourceNameDnsARecord": True,
            }
        return vpc

    def mount(self, file_system_id: str) -> Sequence[IDependable]:
        """Make the file system reachable from every subnet; what must be there before a mount."""
        return [
            efs.CfnMountTarget(
                self,
                f"MountTarget{zone}",
                file_system_id=file_system_id,
                subnet_id=subnet_id,
                security_groups=[self.file_group_id],
            )
            for zone, subnet_id in self.subnets.items()
        ]

    def _group(self, id: str, description: str) -> str:
        """A group that lets nothing in yet, and everything out, as EC2 makes them."""
        group = ec2.CfnSecurityGroup(
            self,
            id,
            vpc_id=self.vpc_id,
            group_description=description,
            tags=[CfnTag(key="Name", value=description)],
        )
        return group.attr_group_id

    def _let_head_and_nodes_talk(self) -> None:
        """Slurm listens on fixed ports, but `srun` and job steps on any."""
        head, node, files = self.head_group_id, self.node_group_id, self.file_group_id
        self._let("HeadFromNodes", head, node, ALL_PORTS, "Slurm and srun from nodes")
        self._let("NodesFromHead", node, head, ALL_PORTS, "Slurm and srun from the head")
        self._let("FilesFromHead", files, head, (NFS_PORT, NFS_PORT), "NFS from the head")
        self._let("FilesFromNodes", files, node, (NFS_PORT, NFS_PORT), "NFS from nodes")
        # EFA wants both directions from the group to itself (EC2 user guide, "Get started
        # with EFA"); MPI and NCCL take any port anyway.
        ec2.CfnSecurityGroupIngress(
            self,
            "NodesFromNodes",
            group_id=node,
            source_security_group_id=node,
            ip_protocol="-1",
            description="jobs between nodes",
        )
        ec2.CfnSecurityGroupEgress(
            self,
            "NodesToNodes",
            group_id=node,
            destination_security_group_id=node,
            ip_protocol="-1",
            description="jobs between nodes",
        )

    def _let(
        self, id: str, group_id: str, source_id: str, ports: tuple[int, int], description: str
    ) -> None:
        ec2.CfnSecurityGroupIngress(
            self,
            id,
            group_id=group_id,
            source_security_group_id=source_id,
            ip_protocol="tcp",
            from_port=ports[0],
            to_port=ports[1],
            description=description,
        )
