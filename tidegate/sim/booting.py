"""What user data makes of a machine at the end of its boot."""

from collections.abc import Mapping

from tidegate.core.model.ec2 import GATE_TAG, MIG_TAG, Instance, InstanceType
from tidegate.core.model.mig import devices
from tidegate.sim.slurm_parts import SimNode, node_of


def booted_node(
    instance: Instance, shape: InstanceType, features: tuple[str, ...], tags: Mapping[str, str]
) -> SimNode | None:
    """The node that registers; None: the boot takes no tag that is no layout, and the machine ends.

    `tags`: of the fleet request; gate and layout travel by them, as on EC2.
    """
    cut = devices(tags.get(MIG_TAG, ""), shape.profiles)
    if shape.profiles and not cut:
        return None
    is_gated = tags.get(GATE_TAG) == "drain"
    return node_of(instance.instance_id, shape, features, is_gated=is_gated, instances=cut)
