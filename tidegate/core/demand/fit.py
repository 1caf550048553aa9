"""Whether an instance type can hold what a job asks of one node, and if not, why."""

from collections.abc import Sequence
from dataclasses import replace

from tidegate.core.model.cluster import Pool
from tidegate.core.model.devices import SHARD, SHARED_GRES
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.mig import SLICES
from tidegate.core.model.slurm import Shape


def lacks(shape: Shape, instance_type: InstanceType) -> str:
    """The first dimension in which one node of this type is too small, "" when it fits."""
    if shape.gpus and (shape.gres in SHARED_GRES or instance_type.profiles):
        if why := _lacks_shares(shape, instance_type):
            return why
    elif shape.gpus and instance_type.gpus and shape.gres != instance_type.gres:
        return f"{instance_type.name} has {instance_type.gres} devices, not {shape.gres}"
    elif shape.gpus and shape.gpu_type and shape.gpu_type != instance_type.gpu_type:
        return f"{instance_type.name} has {instance_type.gpu_type} GPUs, not {shape.gpu_type}"
    elif shape.gpus > instance_type.gpus:
        has = f"{instance_type.gpus} GPU{'s' * (instance_type.gpus != 1)}"
        return f"{instance_type.name} has {has}, the job asks {shape.gpus}"
    if shape.cpus > instance_type.cpus:
        return f"{instance_type.name} has {instance_type.cpus} CPUs, the job asks {shape.cpus}"
    if shape.memory_mib > instance_type.slurm_memory_mib:
        return (
            f"{instance_type.name} gives Slurm {instance_type.slurm_memory_mib} MiB, "
            f"the job asks {shape.memory_mib} MiB"
        )
    return ""


def part_of_gpu(shape: Shape, of: InstanceType) -> float:
    """How many GPUs of a node of this type the shape's parts are; 0.0: it asks for no part."""
    if shape.gres in SHARED_GRES:
        most = _shards_of_one(shape, of)
        return shape.gpus / most if most else 0.0
    asked = (each for each in of.profiles if each.gpu_type == shape.gpu_type)
    return sum(shape.gpus * each.size / SLICES for each in asked)


def share(shape: Shape, of: InstanceType) -> float:
    """The part of a node that one node's share of a job fills."""
    if shape.is_exclusive:
        return 1.0
    gpus = (part_of_gpu(shape, of) or shape.gpus) / of.gpus if of.gpus else 0.0
    return min(max(gpus, shape.cpus / of.cpus, shape.memory_mib / of.slurm_memory_mib), 1.0)


def has_devices(shape: Shape, instance_type: InstanceType) -> int:
    """How many devices such a node has of the kind that the shape asks for; of shards, one GPU."""
    if shape.gres in SHARED_GRES:
        return _shards_of_one(shape, instance_type)
    if instance_type.profiles:
        asked = (each for each in instance_type.profiles if each.gpu_type == shape.gpu_type)
        return sum(instance_type.gpus * each.most for each in asked)
    is_kind = instance_type.gres == shape.gres
    return instance_type.gpus * (is_kind and shape.gpu_type in ("", instance_type.gpu_type))


def _shards_of_one(shape: Shape, of: InstanceType) -> int:
    """How many of what the shape asks for it may have of a GPU of this type. A job that wants a
    node for itself gets all of the node's, and of more than one GPU Slurm gives no job any.
    """
    is_theirs = shape.gres == of.shared_gres and shape.gpu_type in ("", of.gpu_type)
    is_one = of.gpus == 1 or not shape.is_exclusive
    return of.shards_per_gpu if is_theirs and is_one else 0


def _lacks_shares(shape: Shape, instance_type: InstanceType) -> str:
    """The same of a job that asks for shards, for mps, or for an instance of MIG."""
    name = instance_type.name
    if shape.gres in SHARED_GRES:
        most, kind = _shards_of_one(shape, instance_type), shape.gpu_type or "any type"
        shards = "shards" if shape.gres == SHARD else shape.gres
        if not most and _shards_of_one(replace(shape, is_exclusive=False), instance_type):
            has = f"{name} has {instance_type.gpus} GPUs"
            return f"{has}, and Slurm gives {shards} with --exclusive on nodes with one GPU alone"
        if not most:
            return f"the GPUs of {name} are not shared in {shards} of {kind}"
        few = f"a GPU of {name} has {most} {shards}, the job asks {shape.gpus} of one GPU"
        return few if shape.gpus > most else ""
    for each in instance_type.profiles:
        if shape.gres == "gpu" and shape.gpu_type == each.gpu_type:
            most = instance_type.gpus * each.most
            few = f"{name} holds {most} MIG instances {each.name}, the job asks {shape.gpus}"
            return few if shape.gpus > most else ""
    known = ", ".join(each.gpu_type for each in instance_type.profiles)
    return f"the GPUs of {name} are cut as jobs ask (MIG), which must name one of {known}"


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
