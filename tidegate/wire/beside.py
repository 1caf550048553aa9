"""What a node costs beside its instance: its disk, its public address, and its traffic.

List prices of us-east-1 without any free tier, of November 2026; other regions' differ by some
percent. Sources: the pricing pages of EBS (gp3), VPC (public IPv4 addresses, NAT gateways) and
EC2 (data transfer between availability zones: 0.01 USD per GB in each direction).
"""

from typing import Annotated

from pydantic import Field

from tidegate.core.model.frozen import frozen
from tidegate.wire.root_volume import RootVolume
from tidegate.wire.section import Section

HOURS_A_MONTH = 730.0
USD_PER_GP3_GIB = 0.08  # and month
USD_PER_GP3_IOPS = 0.005  # and month, beyond those that are included
USD_PER_GP3_MIB_S = 0.04
USD_PER_PUBLIC_ADDRESS_HOUR = 0.005
USD_PER_NAT_GB = 0.045
USD_PER_GB_BETWEEN_ZONES = 0.02

# Prices are shown with four decimals; sums of floats have sixteen.
DIGITS = 6

Gb = Annotated[float, Field(ge=0, le=1_500_000)]  # 3,200 Gbit/s for an hour


class TrafficModel(Section):
    """What nobody can know before: it is in the bill as "NatGateway-Bytes" and "DataTransfer"."""

    nat_gb_per_node_hour: Gb = Field(
        default=0.0, description="GB that a node sends and gets through a NAT gateway"
    )
    zones_gb_per_node_hour: Gb = Field(
        default=0.0, description="GB that a node outside the head's zone exchanges with other zones"
    )


def stopped_usd_per_hour(root: RootVolume) -> float:
    """Of the disk alone, which is all that a stopped node costs: EC2 takes its address back."""
    usd_per_month = root.gib * USD_PER_GP3_GIB + root.paid_iops * USD_PER_GP3_IOPS
    return (usd_per_month + root.paid_mib_s * USD_PER_GP3_MIB_S) / HOURS_A_MONTH


@frozen(kw_only=True)
class Beside:
    """`head_zone`: where what nodes talk to is."""

    has_public_address: bool
    has_nat: bool
    head_zone: str
    traffic: TrafficModel

    def usd_per_hour(self, root: RootVolume, zone: str) -> float:
        """Of a node with such a disk in this zone."""
        usd = stopped_usd_per_hour(root)
        if self.has_public_address:
            usd += USD_PER_PUBLIC_ADDRESS_HOUR
        if self.has_nat:
            usd += self.traffic.nat_gb_per_node_hour * USD_PER_NAT_GB
        if zone != self.head_zone:
            usd += self.traffic.zones_gb_per_node_hour * USD_PER_GB_BETWEEN_ZONES
        return usd
