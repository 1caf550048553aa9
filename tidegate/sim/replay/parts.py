"""GPUs of a replayed node that jobs have in parts: MIG instances of its layout, or shards."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

from tidegate.core.demand.fit import lacks, part_of_gpu
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.devices import Devices
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.mig import SLICES, devices, named_profile
from tidegate.core.model.slurm import Node, Shape
from tidegate.sim.replay.trace import TraceJob
from tidegate.sim.slurm_shares import SharedGpus


class Parts(Protocol):
    """What Slurm gives away of a node's GPUs, and to whom it gave what."""

    def has_room(self, shape: Shape) -> bool: ...
    def give(self, job_id: str, shape: Shape) -> None: ...
    def take_back(self, job_id: str) -> None: ...
    def copy(self) -> Self: ...
    def emptied(self) -> Self: ...
    def told(self, node: Node) -> Node:
        """The node as Slurm shows it."""
        ...


@dataclass(slots=True)
class Cut:
    """MIG instances by GRES type, in the order in which the node tells them."""

    of: Mapping[str, int]
    free: dict[str, int] = field(init=False)
    _of_job: dict[Hashable, dict[str, int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.free = dict(self.of)

    def has_room(self, shape: Shape) -> bool:
        return self.free.get(shape.gpu_type, 0) >= shape.gpus

    def give(self, job_id: str, shape: Shape) -> None:
        """Who wants the node for itself has all of it."""
        taken = dict(self.free) if shape.is_exclusive else {shape.gpu_type: shape.gpus}
        self._of_job[job_id] = taken if shape.gpus or shape.is_exclusive else {}
        for gpu_type, count in self._of_job[job_id].items():
            self.free[gpu_type] -= count

    def take_back(self, job_id: str) -> None:
        for gpu_type, count in self._of_job.pop(job_id, {}).items():
            self.free[gpu_type] += count

    def copy(self) -> "Cut":
        made = Cut(self.of)
        made.free, made._of_job = dict(self.free), dict(self._of_job)
        return made

    def emptied(self) -> "Cut":
        return Cut(self.of)

    def told(self, node: Node) -> Node:
        has = tuple(Devices(name, n, n - self.free[name]) for name, n in self.of.items())
        total, alloc = sum(self.of.values()), sum(each.alloc for each in has)
        first = next(iter(self.of), node.gpu_type)
        return replace(node, gpus=total, gpu_type=first, gpus_alloc=alloc, devices=has)


@dataclass(slots=True)
class Shared(SharedGpus):
    """GPUs in shards, or by MPS; from 23.11 on Slurm tells how much is in use of each."""

    tells_each: bool = True

    def copy(self) -> "Shared":
        made = self.emptied()
        made.free, made._of = list(self.free), dict(self._of)
        return made

    def emptied(self) -> "Shared":
        return Shared(self.gres, self.per_gpu, self.gpus)

    def told(self, node: Node) -> Node:
        return replace(
            node,
            gpus_alloc=self.whole,
            shards=self.gpus * self.per_gpu,
            shared_gres=self.gres,
            gpus_shared=len(self.used),
            shards_used=self.used,
        )


def parts_of(of: InstanceType, layout: str) -> Cut | Shared | None:
    """Of a node that nobody has anything of yet; None: its GPUs are given away whole."""
    if of.profiles:
        return Cut(dict(devices(layout, of.profiles)))
    return Shared(of.shared_gres, of.shards_per_gpu, of.gpus) if of.shards_per_gpu else None


def whole_gpus(shape: Shape, of: InstanceType) -> float:
    """How many GPUs of such a node the shape's devices are: shards by their number, MIG instances
    by their memory, of which a GPU has eight slices.
    """
    if of.cut_into:
        return shape.gpus * of.cut_into.size / SLICES
    return part_of_gpu(shape, of) or float(shape.gpus)


def gpus_asked(shape: Shape, cluster: Cluster) -> float:
    """The same of the first type that holds it; of what none does each device counts whole."""
    types = (of for pool in cluster.pools for of in pool.instance_types)
    held = (whole_gpus(shape, of) for of in types if shape.gpus and not lacks(shape, of))
    return next(held, float(shape.gpus))


def type_here(job: TraceJob, pools: frozenset[str], cluster: Cluster) -> str:
    """The GRES type that nodes of these pools have for a history's words: others call the same MIG
    instances `1g.10gb`, or by a longer name of the GPU. As it is where none of them has it.
    """
    asked = named_profile(job.gpu_type)
    known = [
        each
        for pool in cluster.pools
        if pool.name in pools
        for of in pool.instance_types
        for each in (of.gpu_type, *(profile.gpu_type for profile in of.profiles))
    ]
    if asked is None or job.gpu_type in known:
        return job.gpu_type
    for each in known:
        here = named_profile(each)
        if here and here[1] == asked[1] and (not asked[0] or here[0] in asked[0]):
            return each
    return job.gpu_type
