"""Whether an instance type can hold what a job asks of one node, and if not, why."""

from collections.abc import Sequence

from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.slurm import Shape


def lacks(shape: Shape, instance_type: InstanceType) -> str:
    """The first dimension in which one node of this type is too small, "" when it fits."""
    if shape.gpus and instance_type.gpus and shape.gres != instance_type.gres:
        return f"{instance_type.name} has {instance_type.gres} devices, not {shape.gres}"
    if shape.gpus and shape.gpu_type and shape.gpu_type != instance_type.gpu_type:
        return f"{instance_type.name} has {instance_type.gpu_type} GPUs, not {shape.gpu_type}"
    if shape.gpus > instance_type.gpus:
        return f"{instance_type.name} has {instance_type.gpus} GPUs, the job asks {shape.gpus}"
    if shape.cpus > instance_type.vcpus:
        return f"{instance_type.name} has {instance_type.vcpus} CPUs, the job asks {shape.cpus}"
    if shape.memory_mib > instance_type.slurm_memory_mib:
        return (
            f"{instance_type.name} gives Slurm {instance_type.slurm_memory_mib} MiB, "
            f"the job asks {shape.memory_mib} MiB"
        )
    return ""


def share(shape: Shape, of: InstanceType) -> float:
    """The part of a node that one node's share of a job fills."""
    if shape.is_exclusive:
        return 1.0
    gpus = shape.gpus / of.gpus if of.gpus else 0.0
    return min(max(gpus, shape.cpus / of.vcpus, shape.memory_mib / of.slurm_memory_mib), 1.0)


def satisfies(constraint: str, features: tuple[str, ...]) -> bool:
    """Whether a node with these features meets `a&b|c` (alternatives of conjunctions).

    `core.demand.constraint` brings every expression of Slurm's into this form.
    """
    if not constraint:
        return True
    have = set(features)
    alternatives = constraint.replace(",", "&").split("|")
    return any(all(word in have for word in part.split("&") if word) for part in alternatives)


def can_be(shape: Shape, constraint: str, pools: Sequence[Pool]) -> bool:
    """Whether any instance type of these pools has the shape and the features."""
    return any(
        not lacks(shape, each)
        and any(satisfies(constraint, pool.features(each.name, market)) for market in pool.markets)
        for pool in pools
        for each in pool.instance_types
    )
