"""Whether machines in a VPC that is there find each other by name.

Head, nodes and file systems are known to Amazon's DNS alone, and a node's name is completed by
what the VPC's DHCP options say. Sources: EC2 API, CreateDhcpOptions ("domain-name"); EC2 user
guide, "EC2 instance hostnames and domains"; aws/aws-parallelcluster#1935, #1201 and #1192, where
clusters did not come up for it.
"""

from collections.abc import Iterator

from tidegate.adapters.account import Account
from tidegate.wire.config import ClusterFile


def doubts(vpc_id: str, file: ClusterFile, account: Account) -> Iterator[str]:
    told, domain = account.naming(vpc_id), node_domain(file.region)
    if told.servers:
        others = ", ".join(told.servers)
        what, cure = f"the names of head, EFS and endpoints, and for {domain}", "AmazonProvidedDNS"
        if told.has_amazons:
            yield (
                f"{vpc_id} has DNS servers of its own beside Amazon's ({others}): a machine that "
                f"asks these for {what}, is not told; let its DHCP options name {cure} alone, or "
                "the servers forward these names"
            )
        else:
            yield (
                f"{vpc_id} has DNS servers of its own ({others}): unless they ask the VPC's "
                f"resolver for {what}, no machine of the cluster comes up; let its DHCP options "
                f"name {cure}, or the servers forward these names"
            )
    if told.domains and domain not in told.domains:
        yield (
            f"{vpc_id} completes names by {' '.join(told.domains)}, and EC2 knows nodes as "
            f"INSTANCE.{domain}: programs that connect to a node by its name (ssh, torchrun with "
            f"$(hostname)) do not find it; add {domain} to domain-name of its DHCP options"
        )


def node_domain(region: str) -> str:
    """Under which EC2 knows the instances of a region."""
    return "ec2.internal" if region == "us-east-1" else f"{region}.compute.internal"
