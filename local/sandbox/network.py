"""The VPC of a cluster file, which the local EC2 has by the ids that stand in the file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv4Network
from typing import Any

from moto.ec2.models import subnets as moto_subnets
from moto.ec2.models import vpcs as moto_vpcs

# Of a file that has the stack make one, which would reach no file system that is there, and would
# give no public address to nodes with several interfaces.
STAND_IN = "vpc-00000000"
CIDR = IPv4Network("10.8.0.0/16")
PREFIX = 20


def played(
    given: Mapping[str, Any], zones: Mapping[str, str], *, is_needed: bool
) -> dict[str, Any]:
    """The section `network`. `zones`: as they are called here; `is_needed`: that of the stack's own
    making does not do.
    """
    vpc, subnets = given.get("vpc"), given.get("subnets", {})
    if not (vpc or is_needed):
        return {}
    made = {
        here: subnets.get(zone, f"subnet-{number:08x}")
        for number, (zone, here) in enumerate(zones.items())
    }
    return {"vpc": vpc or STAND_IN, "subnets": made}


def left_out(given: Mapping[str, Any]) -> Iterator[str]:
    """All but the places where machines are."""
    return (each for each in given if each not in ("vpc", "subnets"))


def make(ec2: Any, vpc: str, subnets: Mapping[str, str]) -> None:
    """`subnets`: zone -> id. moto draws ids, and takes none."""
    with _drawn(moto_vpcs, "random_vpc_id", vpc):
        ec2.create_vpc(CidrBlock=str(CIDR))
    blocks = CIDR.subnets(new_prefix=PREFIX)
    for (zone, subnet), block in zip(subnets.items(), blocks, strict=False):
        with _drawn(moto_subnets, "random_subnet_id", subnet):
            ec2.create_subnet(VpcId=vpc, CidrBlock=str(block), AvailabilityZone=zone)


@contextmanager
def _drawn(module: Any, name: str, found: str) -> Iterator[None]:
    kept = getattr(module, name)
    setattr(module, name, lambda: found)
    try:
        yield
    finally:
        setattr(module, name, kept)
