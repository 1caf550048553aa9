"""Rules of a cluster file on the nodes' image and what is in it."""

from collections.abc import Iterator

from tidegate.wire.catalogue import USUAL_ARCH
from tidegate.wire.node_models import GpuModel
from tidegate.wire.parts import Parts
from tidegate.wire.problems import Problem, and_

# What jobs bring with them, whatever the image.
OF_JOBS = frozenset({"cuda", "nccl"})


def _architectures(parts: Parts) -> Iterator[Problem]:
    """A job's program runs on one architecture, and so does an image."""
    for name, partition in parts.partitions.items():
        pools = {pool: parts.pools[pool].arch for pool in partition.pools if pool in parts.pools}
        if len(set(pools.values())) > 1:
            told = and_([f"{pool} ({arch})" for pool, arch in pools.items()])
            text = f"has {told}: Slurm would start a job on either; give each a partition"
            yield Problem(("partitions", name, "pools"), text)
    if not parts.is_own_image:
        return
    archs = {f"pool {name}": pool.arch for name, pool in parts.pools.items()}
    if parts.head and parts.head.image is None:
        archs["the head"] = USUAL_ARCH
    if len(set(archs.values())) > 1:
        told = and_([f"{what} ({arch})" for what, arch in archs.items()])
        yield Problem(("image",), f"an image is of one architecture, but is for {told}")


def _gpu_settings(parts: Parts) -> Iterator[Problem]:
    """Settings of GPUs that no node has."""
    for name, pool in parts.pools.items():
        without = [each.name for each in pool.selected if each.gres != "gpu" or not each.gpus]
        if without and pool.gpu != GpuModel():
            text = f"{without[0]} has no NVIDIA GPU, so there is nothing to set"
            yield Problem(("pools", name, "gpu"), text)


def _layouts(parts: Parts) -> Iterator[Problem]:
    """The planner knows one shape of an instance type, and so do the placeholders."""
    seen: dict[str, str] = {}
    for name, pool in parts.pools.items():
        for each in pool.selected:
            other = seen.setdefault(each.name, name)
            if parts.pools[other].gpu.mig != pool.gpu.mig:
                text = f"{each.name} is cut in another way in pool {other}; a type has one layout"
                yield Problem(("pools", name, "gpu", "mig"), text)
                break


def _software(parts: Parts) -> Iterator[Problem]:
    """What AWS's and Canonical's images hold is known; only an image of one's own may say it."""
    if parts.is_own_image or not parts.software:
        return
    for name in sorted(parts.software.model_fields_set - OF_JOBS):
        text = f"is known for image: {parts.image}; only an image of your own (ami-...) says it"
        yield Problem(("software", name), text)


IMAGE_RULES = (_architectures, _gpu_settings, _layouts, _software)
