"""A node's root volume: gp3, of what size and how fast.

Source of the bounds: EBS user guide, "General Purpose SSD volumes" (gp3).
"""

from typing import Annotated

from pydantic import Field

from tidegate.core.model.frozen import frozen

# What a gp3 volume has at its price by size.
INCLUDED_IOPS, INCLUDED_MIB_S = 3000, 125
IOPS_PER_GIB = 500
IOPS_PER_MIB_S = 4

Iops = Annotated[int, Field(ge=INCLUDED_IOPS, le=80_000)]
ThroughputMibS = Annotated[int, Field(ge=INCLUDED_MIB_S, le=2000)]


@frozen
class RootVolume:
    """None: what EBS gives without being asked."""

    gib: int
    iops: int | None = None
    throughput_mib_s: int | None = None
    initialization_mib_s: int | None = None

    @property
    def paid_iops(self) -> int:
        """Beyond those that are included."""
        return (self.iops or INCLUDED_IOPS) - INCLUDED_IOPS

    @property
    def paid_mib_s(self) -> int:
        """Beyond what is included."""
        return (self.throughput_mib_s or INCLUDED_MIB_S) - INCLUDED_MIB_S

    def problem(self) -> str:
        """What EBS would refuse it for; "": nothing."""
        iops = self.iops or INCLUDED_IOPS
        if iops > self.gib * IOPS_PER_GIB:
            least = -(-iops // IOPS_PER_GIB)
            return (
                f"root_iops is {iops}, and EBS gives {IOPS_PER_GIB} per GiB: with root_gib"
                f" {self.gib} at most {self.gib * IOPS_PER_GIB}, or root_gib at least {least}"
            )
        if self.throughput_mib_s and self.throughput_mib_s * IOPS_PER_MIB_S > iops:
            return (
                f"root_throughput_mib_s is {self.throughput_mib_s}, and EBS gives a quarter of the"
                f" IOPS: root_iops must be at least {self.throughput_mib_s * IOPS_PER_MIB_S}"
            )
        return ""
