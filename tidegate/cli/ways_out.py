"""Whether machines can reach what they need, told before they are launched.

Sources: VPC user guide, "Public IPv4 addresses" (an address is given where the subnet or the
launch says so) and "Route tables" (the main one holds for subnets without their own); EC2 user
guide, "Elastic Fabric Adapter" (none for an instance with several network interfaces); VPC user
guide, "Block public access to VPCs and subnets" (modes and exclusions) and "VPC BPA basics" (a NAT
gateway needs an internet gateway).
"""

from collections.abc import Iterator

from tidegate.adapters import endpoints
from tidegate.adapters.account import NOT_BLOCKED, Account, Subnet
from tidegate.core.model.cluster import Pool
from tidegate.wire.compat_facts import facts_of
from tidegate.wire.config import ClusterFile
from tidegate.wire.deployment import Nat
from tidegate.wire.problems import Problem
from tidegate.wire.subnets import NamedSubnet

INTERNET_GATEWAY = "igw-"
NAT_GATEWAY = "nat-"
# The one mode of VPC Block Public Access that lets NAT gateways through.
INGRESS_ONLY = "block-ingress"


def problems(file: ClusterFile, account: Account) -> Iterator[Problem]:
    """Subnets of an existing network from which a machine reaches nothing outside."""
    vpc_id = file.network.vpc
    if vpc_id is None or file.network.endpoints or account.has_endpoints(vpc_id):
        return
    for named in file.named_subnets:
        subnet = account.subnet(named.subnet_id)
        if subnet is None or subnet.vpc_id != vpc_id:
            continue  # told as such
        route = account.default_route(named.subnet_id, vpc_id)
        for text in _faults(file, named, subnet, route):
            yield Problem(named.place, f"{named.subnet_id}: {text}")


def endpoint_problems(file: ClusterFile, account: Account) -> Iterator[Problem]:
    """Interface endpoints that AWS does not have in the head's zone, where they are made.

    Source: EC2 API reference, DescribeVpcEndpointServices; terraform-aws-modules/terraform-aws-vpc
    #785 has the refusal: "does not support the availability zone of the subnet".
    """
    zones_of = account.endpoint_zones(file.region) if file.network.endpoints else {}
    for index, service in enumerate(file.network.endpoints):
        zones = zones_of.get(service, frozenset())
        if file.head_zone not in zones:
            there = f"it is in {', '.join(sorted(zones))}: take such a head.zone"
            text = there if zones else f"nor elsewhere in {file.region}"
            place = ("network", "endpoints", index)
            yield Problem(place, f"AWS has no endpoint to {service} in {file.head_zone}; {text}")


def second_endpoints(file: ClusterFile, account: Account) -> Iterator[Problem]:
    """Endpoints that the file asks for and an existing VPC has already, from somebody else.

    Sources: aws-samples/amazon-mwaa-examples#76 has the refusal of a second one with private DNS;
    EC2 user guide, "Quotas for EC2 Instance Connect Endpoint".
    """
    vpc_id, name = file.network.vpc, file.cluster.name
    if vpc_id is None:
        return
    there = endpoints.with_names(account, vpc_id, file.region) if file.network.endpoints else {}
    for index, service in enumerate(file.network.endpoints):
        found = there.get(service)
        if found and found.cluster != name:
            text = f"{vpc_id} has {found.endpoint_id} to {service} already, and EC2 gives a"
            text += " service's name to one endpoint of a VPC: the deployment would be rolled back;"
            text += f" leave {service} out, and let head and nodes into that one by HTTPS"
            yield Problem(("network", "endpoints", index), text)
    if file.network.instance_connect:
        for each in endpoints.of_instance_connect(account, vpc_id):
            if each.cluster != name:
                text = f"{vpc_id} has {each.endpoint_id} already, and EC2 makes one for each VPC:"
                text += " the deployment would be rolled back; leave it out"
                yield Problem(("network", "instance_connect"), text)


def blocked(file: ClusterFile, account: Account) -> Iterator[Problem]:
    """What VPC Block Public Access, of the account or its organization, keeps from going out."""
    mode = account.internet_block()
    if mode == NOT_BLOCKED:
        return
    said = f"VPC Block Public Access of this account ({mode}) stops it"
    if file.network.vpc:
        yield from _blocked_subnets(file, account, mode, said)
        return
    is_open = bool(file.network.endpoints) or (file.network.nat is Nat.ONE and mode == INGRESS_ONLY)
    out = account.let_out()
    mine = [each for each in account.vpcs().values() if each.cluster == file.cluster.name]
    if not is_open and not any(each.vpc_id in out for each in mine):
        instead = "`nat: one`, `endpoints`" if mode == INGRESS_ONLY else "`endpoints`"
        yield Problem(
            ("network",),
            f"the way out is an internet gateway, and {said}: machines would reach nothing; "
            f"set {instead}, or name a `vpc` that is left out of it",
        )
    if file.images:
        yield Problem(
            ("images",),
            f"they are baked in a network whose way out is an internet gateway, and {said}: name "
            "a `network.vpc` that is left out of it, or has another way out",
        )


def _blocked_subnets(
    file: ClusterFile, account: Account, mode: str, said: str
) -> Iterator[Problem]:
    vpc_id, out = file.network.vpc, account.let_out()
    assert vpc_id
    if vpc_id in out or file.network.endpoints or account.has_endpoints(vpc_id):
        return
    for named in file.named_subnets:
        subnet_id = named.subnet_id
        route = account.default_route(subnet_id, vpc_id)
        # In which subnet a NAT gateway is, and whether that one is left out, is not asked.
        is_shut = (route.startswith(INTERNET_GATEWAY) and subnet_id not in out) or (
            route.startswith(NAT_GATEWAY) and mode != INGRESS_ONLY and not out
        )
        if is_shut:
            instead = " a NAT gateway," if mode == INGRESS_ONLY else ""
            text = f"{subnet_id}: its way out is {route}, and {said}: machines there reach nothing"
            remedy = f"route it to{instead} another way out, or leave the VPC out of the block"
            yield Problem(named.place, f"{text}; {remedy} (allow-egress)")


def _faults(file: ClusterFile, named: NamedSubnet, subnet: Subnet, route: str) -> Iterator[str]:
    if not route:
        yield (
            "has no default route, and its VPC no interface endpoints: machines there reach "
            "nothing; route it to a NAT gateway, or set network.endpoints"
        )
    elif route.startswith(INTERNET_GATEWAY) and not subnet.gives_addresses:
        yield (
            f"its way out is {route}, but it gives no public addresses: route it to a NAT "
            "gateway, or have it assign them (MapPublicIpOnLaunch)"
        )
    elif route.startswith(INTERNET_GATEWAY):
        several = [pool.name for pool in file.cluster.pools if _has_several(file, pool, named)]
        if several:
            yield (
                f"its way out is {route}, and EC2 gives no public address to nodes with several "
                f"network interfaces (pool {', '.join(several)}): route it to a NAT gateway"
            )


def _has_several(file: ClusterFile, pool: Pool, named: NamedSubnet) -> bool:
    return (
        pool.name in file.efa
        and named.zone in pool.zones
        and named.subnet_id in file.subnets_of(pool.name, named.zone, file.network.subnets)
        and any(facts_of(each.name).efa_interfaces > 1 for each in pool.instance_types)
    )
