"""A network of the cluster's own: subnets that stay as they are when a zone comes or goes."""

from collections.abc import Sequence
from ipaddress import IPv4Network

from aws_cdk import CfnResource, CfnTag, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct, IDependable

from cdk import statements
from cdk.acknowledged import acknowledge
from cdk.storage import keep_once_made
from tidegate.wire.config import ClusterFile
from tidegate.wire.deployment import FlowLogs, Nat

# A sixteenth of the network for each zone, by its letter; the last one is that of the gateway.
SLOT_BITS = 4
GATEWAY_SLOT = 15
GATEWAY_SERVICES = ("dynamodb", "s3")
# One route, whatever it leads to, which CloudFormation changes in place: a table takes no second
# one for the same addresses (RouteAlreadyExists), and what goes, goes after what comes.
_OUT = "Out"


class Vpc(Construct):
    """Public subnets that cost nothing while idle; or private ones, with NAT or with endpoints.

    A subnet's addresses follow from its zone alone: were they counted through, a new zone would
    move those behind it, which CloudFormation cannot do while instances are in them.

    `subnets`: zone -> subnet id. `route_out`: what must be there before an instance may boot.
    """

    def __init__(self, scope: Construct, id: str, *, file: ClusterFile) -> None:
        super().__init__(scope, id)
        self._name = f"tidegate-{file.cluster.name}"
        self._slots = list(IPv4Network(file.network.cidr).subnets(prefixlen_diff=SLOT_BITS))
        vpc = ec2.CfnVPC(
            self,
            "Vpc",
            cidr_block=file.network.cidr,
            enable_dns_hostnames=True,
            enable_dns_support=True,
            tags=[CfnTag(key="Name", value=self._name)],
        )
        self.vpc_id = vpc.ref
        self._stays: dict[str, CfnResource] = {"": vpc}
        if file.network.flow_logs is FlowLogs.NONE:
            acknowledge(
                vpc,
                VPC7="`network.flow_logs` is none: they are paid by traffic, which is large where "
                "models are trained; groups here let nobody in from outside",
            )
        else:
            self._flow_logs(file)
        is_private = file.network.is_private
        self._table = ec2.CfnRouteTable(self, "Routes", vpc_id=self.vpc_id)
        self.route_out: list[IDependable] = []
        self.subnets = {
            zone: self._subnet(zone, self._slots[slot(zone)], self._table, is_public=not is_private)
            for zone in file.all_zones
        }
        if file.network.nat is Nat.ONE:
            self.route_out.append(self._through_nat(file.head_zone))
        elif not is_private:
            self.route_out.append(self._to_the_internet(_OUT, self._table))
        self._gateway_endpoints()

    def keep(self, zone: str) -> None:
        """The network with a zone's subnet, for what stays there when the stack goes."""
        keep_once_made(self._stays[""])
        keep_once_made(self._stays[zone])

    def _flow_logs(self, file: ClusterFile) -> None:
        """Into a log group that is kept as long as the functions' logs."""
        cluster = file.cluster.name
        name = f"/tidegate/{cluster}/flows"
        group = logs.CfnLogGroup(
            self, "FlowLog", log_group_name=name, retention_in_days=file.log_days
        )
        arn = Stack.of(self).format_arn(service="logs", resource=f"log-group:{name}")
        role = statements.role(
            self,
            "FlowRole",
            service="vpc-flow-logs",
            statements=_write_flow_logs(arn),
            trust={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
        )
        flows = ec2.CfnFlowLog(
            self,
            "Flows",
            resource_id=self.vpc_id,
            resource_type="VPC",
            traffic_type="REJECT" if file.network.flow_logs is FlowLogs.REJECTED else "ALL",
            log_destination_type="cloud-watch-logs",
            log_group_name=name,
            deliver_logs_permission_arn=role.role_arn,
        )
        flows.add_dependency(group)

    def _subnet(
        self, zone: str, block: IPv4Network, table: ec2.CfnRouteTable, *, is_public: bool
    ) -> str:
        subnet = ec2.CfnSubnet(
            self,
            f"Subnet-{zone}",
            vpc_id=self.vpc_id,
            availability_zone=zone,
            cidr_block=str(block),
            map_public_ip_on_launch=is_public,
            private_dns_name_options_on_launch={
                "HostnameType": "resource-name",
                "EnableResourceNameDnsARecord": True,
            },
            tags=[CfnTag(key="Name", value=f"{self._name}-{zone}")],
        )
        # Until then the subnet has the VPC's main table, which leads nowhere.
        routing = ec2.CfnSubnetRouteTableAssociation(
            self, f"Routing-{zone}", subnet_id=subnet.ref, route_table_id=table.ref
        )
        self.route_out.append(routing)
        self._stays[zone] = subnet
        return subnet.ref

    def _to_the_internet(self, id: str, table: ec2.CfnRouteTable) -> ec2.CfnRoute:
        gateway = ec2.CfnInternetGateway(
            self, "InternetGateway", tags=[CfnTag(key="Name", value=self._name)]
        )
        attached = ec2.CfnVPCGatewayAttachment(
            self, "Attached", vpc_id=self.vpc_id, internet_gateway_id=gateway.ref
        )
        route = self._out(id, table, gateway_id=gateway.ref)
        route.node.add_dependency(attached)
        return route

    def _out(
        self,
        id: str,
        table: ec2.CfnRouteTable,
        *,
        gateway_id: str | None = None,
        nat_gateway_id: str | None = None,
    ) -> ec2.CfnRoute:
        return ec2.CfnRoute(
            self,
            id,
            route_table_id=table.ref,
            destination_cidr_block="0.0.0.0/0",
            gateway_id=gateway_id,
            nat_gateway_id=nat_gateway_id,
        )

    def _through_nat(self, zone: str) -> ec2.CfnRoute:
        """One gateway, in the head's zone: when that zone is gone, so is the head."""
        table = ec2.CfnRouteTable(self, "GatewayRoutes", vpc_id=self.vpc_id)
        out = self._to_the_internet("GatewayOut", table)
        subnet = ec2.CfnSubnet(
            self,
            "GatewaySubnet",
            vpc_id=self.vpc_id,
            availability_zone=zone,
            cidr_block=str(self._slots[GATEWAY_SLOT]),
            tags=[CfnTag(key="Name", value=f"{self._name}-nat")],
        )
        ec2.CfnSubnetRouteTableAssociation(
            self, "GatewayRouting", subnet_id=subnet.ref, route_table_id=table.ref
        )
        address = ec2.CfnEIP(self, "Address", domain="vpc")
        nat = ec2.CfnNatGateway(
            self, "Nat", subnet_id=subnet.ref, allocation_id=address.attr_allocation_id
        )
        nat.node.add_dependency(out)
        return self._out(_OUT, self._table, nat_gateway_id=nat.ref)

    def _gateway_endpoints(self) -> None:
        """Free, unlike interface endpoints, and the way to both without NAT."""
        for service in GATEWAY_SERVICES:
            made = ec2.CfnVPCEndpoint(
                self,
                f"Endpoint-{service}",
                vpc_id=self.vpc_id,
                vpc_endpoint_type="Gateway",
                service_name=f"com.amazonaws.{Stack.of(self).region}.{service}",
                route_table_ids=[self._table.ref],
            )
            self.route_out.append(made)


def slot(zone: str) -> int:
    """0 for us-east-1a, 1 for us-east-1b. A local zone's letter says nothing: rules refuse it."""
    return ord(zone[-1]) - ord("a")


def _write_flow_logs(log_group_arn: str) -> Sequence[iam.PolicyStatement]:
    """Source: VPC user guide, "IAM role for publishing flow logs to CloudWatch Logs"."""
    return (
        statements.write_logs(log_group_arn),
        statements.statement("Streams", ["logs:DescribeLogStreams"], [f"{log_group_arn}:*"]),
        statements.statement("Groups", ["logs:DescribeLogGroups"], ["*"]),
    )
