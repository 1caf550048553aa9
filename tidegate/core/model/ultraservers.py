"""UltraServers: instances that share one NVLink or NeuronLink, and are sold together.

EC2 sells such a type as whole UltraServers, each of which is a Capacity Block, and launches it
nowhere else.
Source: EC2 user guide, "Capacity Blocks for ML", "Find and purchase Capacity Blocks"; EC2's page on
UltraServers; AWS Neuron's documentation, "Amazon EC2 Trn2 Architecture".
"""

from tidegate.core.model.frozen import frozen

# EC2 begins to end instances an hour before the block's end, of p6e-gb200 their user has to have
# ended them by then: their nodes leave early enough for jobs to be requeued and instances to end.
ULTRASERVER_DRAIN_S = 4500.0
ULTRASERVER_ENDS_S = 3720.0


@frozen
class UltraServer:
    """A type of UltraServer by EC2's name, and the instances that one of it has."""

    name: str
    instance_type: str
    count: int


ULTRASERVERS = (
    UltraServer("u-p6e-gb200x36", "p6e-gb200.36xlarge", 9),
    UltraServer("u-p6e-gb200x72", "p6e-gb200.36xlarge", 18),
    UltraServer("u-trn2x64", "trn2u.48xlarge", 4),
)
_MEMBERS = frozenset(each.instance_type for each in ULTRASERVERS)


def is_in_ultraserver(instance_type: str) -> bool:
    """Whether instances of this type are a part of an UltraServer."""
    return instance_type in _MEMBERS


def ultraservers_for(instance_type: str, nodes: int) -> tuple[UltraServer, int]:
    """What to buy for so many nodes of such a type: the smallest one that has them, else as many of
    the largest as have them together.
    """
    sold = [each for each in ULTRASERVERS if each.instance_type == instance_type]
    sold.sort(key=lambda each: each.count)
    smallest = next((each for each in sold if each.count >= nodes), sold[-1])
    return smallest, -(-nodes // smallest.count)
