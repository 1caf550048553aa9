"""What a cluster file says of login nodes: machines beside the head for people to work on."""

from ipaddress import IPv4Network
from typing import Annotated

from pydantic import AfterValidator, Field

from tidegate.wire import names
from tidegate.wire.catalogue import arch_of
from tidegate.wire.section import Section, VolumeGib

# More than a team needs; each is paid by the hour, and takes an address of the network.
MAX_LOGIN_NODES = 10
# Wider than this is most of the internet, and was mistyped.
_SHORTEST_PREFIX = 8


def _source(value: str) -> str:
    """With its prefix length, which EC2 asks for (API reference, IpRange): /32 of one address."""
    try:
        found = IPv4Network(value)
    except ValueError as error:
        raise ValueError(f"must be an IPv4 network like 203.0.113.0/24: {error}") from error
    if found.prefixlen < _SHORTEST_PREFIX:
        raise ValueError(f"{value} is nearly everybody; name the networks that people come from")
    return str(found)


class LoginModel(Section):
    """Login nodes: people work there, and not beside slurmctld. None when left out."""

    instance_type: names.LoginInstanceType = Field(
        default="m6i.large",
        description="an instance type like m6i.large or m7g.large; its architecture is theirs",
    )
    count: Annotated[int, Field(ge=1, le=MAX_LOGIN_NODES)] = Field(
        default=1, description="how many; each is paid while the head runs"
    )
    root_gib: VolumeGib = Field(
        default=30, description="GiB of its root volume, no less than its image's snapshot"
    )
    zone: names.Zone | None = Field(
        default=None, description="its availability zone; that of the head when left out"
    )
    subnet: names.SubnetId | None = Field(
        default=None,
        description="its subnet in `zone`, like a public one; that of network.subnets when left"
        " out",
    )
    image: names.ImageId | None = Field(
        default=None, description="its machine image; that of the head when left out"
    )
    security_groups: names.SecurityGroups = Field(
        default=(), description="more security groups of it, of network.vpc, beside Tidegate's own"
    )
    policies: names.Policies = Field(
        default=(), description="IAM policies of your own for what root runs on it, beside its own"
    )
    ssh_from: Annotated[
        tuple[Annotated[str, AfterValidator(_source)], ...], AfterValidator(names.no_repeats)
    ] = Field(
        default=(),
        description="address ranges that may open SSH connections; nobody when left out: people"
        " come through Session Manager",
    )

    @property
    def arch(self) -> str:
        return arch_of(self.instance_type)
