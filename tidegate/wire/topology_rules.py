"""Whether EC2 tells where nodes are in its network, and who may ask it."""

from collections.abc import Iterator

from tidegate.core.model.ec2 import InstanceType
from tidegate.wire.deployment import Nat
from tidegate.wire.parts import Parts
from tidegate.wire.problems import Problem

# Source: EC2 user guide, "Prerequisites for Amazon EC2 topology", read in November 2026.
_FAMILIES = frozenset({"g6e", "g7e", "hpc6a", "hpc6id", "hpc7a", "hpc7g", "hpc8a"})
_TYPES = frozenset(
    {
        *("p3dn.24xlarge", "p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5e.48xlarge"),
        *("p5en.48xlarge", "p6-b200.48xlarge", "p6-b300.48xlarge", "p6e-gb200.36xlarge"),
        *("trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2u.48xlarge"),
    }
)


def tells_place(instance_type: InstanceType) -> bool:
    """Whether DescribeInstanceTopology names the network nodes of such an instance."""
    return instance_type.name in _TYPES or instance_type.name.split(".")[0] in _FAMILIES


def _is_of_use(parts: Parts) -> Iterator[Problem]:
    if parts.slurm is None or not parts.slurm.topology:
        return
    types = [each for pool in parts.pools.values() for each in pool.selected]
    if len(parts.pools) == len(parts.all_pools) and not any(map(tells_place, types)):
        text = "EC2 tells of none of the pools' instance types where they are in its network"
        yield Problem(("slurm", "topology"), f"{text} (docs/topology.md): leave it out")


def _way_to_ec2(parts: Parts) -> Iterator[Problem]:
    """Each node asks EC2 where it is."""
    network = parts.network
    if parts.slurm is None or not parts.slurm.topology or network is None or network.vpc:
        return
    if network.nat is Nat.NONE and network.endpoints and "ec2" not in network.endpoints:
        text = "without NAT also ec2, which nodes ask where they are (slurm.topology)"
        yield Problem(("network", "endpoints"), text)


TOPOLOGY_RULES = (_is_of_use, _way_to_ec2)
