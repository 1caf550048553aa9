"""What functions may read and use of capacity that is paid for in advance."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk.statements import statement
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market
from tidegate.core.model.ultraservers import is_in_ultraserver


def read_reservations(scope: Construct, cluster: Cluster) -> Sequence[iam.PolicyStatement]:
    """What is in the cluster's groups, and what became of the reservations that its file names;
    EC2's part knows no resources.
    """
    has_block = any(each.market is Market.CAPACITY_BLOCK for each in cluster.reservations)
    actions = ["ec2:DescribeCapacityReservations"]
    if has_block:
        actions.append("ec2:DescribeCapacityBlockExtensionHistory")
    if any(is_in_ultraserver(each.instance_type) for each in cluster.reservations):
        actions.append("ec2:DescribeCapacityBlockStatus")
    groups = cluster.reservation_groups
    return (
        *([statement("Reservations", actions, ["*"])] if groups or cluster.reservations else []),
        *(_list_groups(scope, groups) if groups else []),
    )


def _list_groups(scope: Construct, groups: Sequence[str]) -> Sequence[iam.PolicyStatement]:
    """A group may be made of tags or of a stack, so AWS asks for the rights to these of any.

    Source: Resource Groups API reference, ListGroupResources, "Minimum permissions".
    """
    stacks = Stack.of(scope).format_arn(
        service="cloudformation", resource="stack", resource_name="*/*"
    )
    of_stacks = ["cloudformation:DescribeStacks", "cloudformation:ListStackResources"]
    return (
        statement("Groups", ["resource-groups:ListGroupResources"], groups),
        statement("GroupsOfTags", ["tag:GetResources"], ["*"]),
        statement("GroupsOfStacks", of_stacks, [stacks]),
    )


def reserved_kinds(cluster: Cluster) -> tuple[str, ...]:
    """Which more kinds of EC2 resources launches use."""
    is_reserved = cluster.reservations or cluster.reservation_groups
    return ("capacity-reservation",) if is_reserved else ()


def launch_into_groups(cluster: Cluster) -> Sequence[iam.PolicyStatement]:
    """A launch that names a group is asked for the group as well.

    Source: Service Authorization Reference, RunInstances; ParallelCluster's user guide, "Launch
    instances with On-Demand Capacity Reservations".
    """
    groups = cluster.reservation_groups
    return (statement("LaunchInto", ["ec2:RunInstances"], groups),) if groups else ()
