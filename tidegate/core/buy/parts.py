"""What is free of a node whose GPUs are shared: MIG instances of several profiles, or shards."""

from collections.abc import Sequence
from dataclasses import replace

from tidegate.core.model.devices import SHARD
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.frozen import frozen
from tidegate.core.model.mig import devices
from tidegate.core.model.slurm import Job, Node, Shape


@frozen
class Instances:
    """Free MIG instances by GRES type, in the order in which Slurm gives them away."""

    free: tuple[tuple[str, int], ...]

    @property
    def gpus(self) -> int:
        return sum(count for _, count in self.free)

    def room(self, shape: Shape) -> int:
        """For how many such shares there are devices; the shape asks for some."""
        if shape.gres != "gpu":
            return 0
        found = dict(self.free).get(shape.gpu_type, 0) if shape.gpu_type else self.gpus
        return found // shape.gpus

    def less(self, shape: Shape, count: int) -> "Instances":
        """After so many such shares were put there."""
        left, free = shape.gpus * count, []
        for gpu_type, of_type in self.free:
            taken = min(left, of_type) if shape.gpu_type in ("", gpu_type) else 0
            free.append((gpu_type, of_type - taken))
            left -= taken
        return replace(self, free=tuple(free))

    def plus(self, shape: Shape, before: "Parts | None") -> "Instances":
        """After one such share was taken back; `before`: as it was before it was put there."""
        assert isinstance(before, Instances)
        left, free = shape.gpus, []
        for (gpu_type, of_type), (_, most) in zip(self.free, before.free, strict=True):
            given = min(left, most - of_type) if shape.gpu_type in ("", gpu_type) else 0
            free.append((gpu_type, of_type + given))
            left -= given
        return replace(self, free=tuple(free))


@frozen
class Shards:
    """GPUs that are taken whole or in shards: `gpus` that nobody has, and `opened`, what is free of
    those that have shards in use. `gres`: shard, or mps, which Slurm gives away alike.

    Slurm gives a job all its shards on one GPU, and no GPU of which a shard is in use. One that
    wants the node for itself gets all of them, and so none where there are several GPUs.
    Source: Slurm's GRES guide, "Sharding"; tests/contracts/test_shares_contract.py tries it.
    """

    gpu_type: str
    per_gpu: int
    gpus: int
    opened: tuple[int, ...] = ()
    gres: str = SHARD

    def room(self, shape: Shape) -> int:
        if shape.gpu_type not in ("", self.gpu_type):
            return 0
        if shape.gres != self.gres:
            return self.gpus // shape.gpus if shape.gres == "gpu" else 0
        if shape.is_exclusive and self.gpus != 1:
            return 0
        there = sum(free // shape.gpus for free in self.opened)
        return there + self.gpus * (self.per_gpu // shape.gpus)

    def less(self, shape: Shape, count: int) -> "Shards":
        if shape.gres != self.gres:
            return replace(self, gpus=self.gpus - shape.gpus * count)
        gpus, opened = self.gpus, list(self.opened)
        for _ in range(count):
            best = min((free for free in opened if free >= shape.gpus), default=0)
            if best:
                opened.remove(best)
            else:
                gpus -= 1
            opened.append((best or self.per_gpu) - shape.gpus)
        return replace(self, gpus=gpus, opened=tuple(sorted(opened)))

    def plus(self, shape: Shape, before: "Parts | None") -> "Shards":
        if shape.gres != self.gres:
            return replace(self, gpus=self.gpus + shape.gpus)
        assert isinstance(before, Shards)
        opened = list(self.opened)
        # The least full of those that can have had it: what comes back may be less, never more.
        least = min(free for free in opened if free + shape.gpus <= self.per_gpu)
        opened.remove(least)
        is_whole = least + shape.gpus == self.per_gpu and len(opened) >= len(before.opened)
        opened += [] if is_whole else [least + shape.gpus]
        return replace(self, gpus=self.gpus + is_whole, opened=tuple(sorted(opened)))


type Parts = Instances | Shards
"""Of a node of which the devices are not all alike, or not all whole."""


def parts_of_node(node: Node, jobs: Sequence[Job]) -> Parts | None:
    """What `jobs`, those that it has, leave of a registered node; None: its devices are alike.

    Before 23.11 Slurm tells how many shards a job has, and which GPUs are shared, not what is left
    of each: of several one is taken to have no more than any of them must have.
    """
    if node.devices:
        return Instances(tuple((each.gpu_type, each.count - each.alloc) for each in node.devices))
    if not node.shards or not node.gpus:
        return None
    per_gpu, shared = node.shards // node.gpus, node.gpus_shared
    used = sum(job.shape.gpus for job in jobs if job.shape.gres == node.shared_gres)
    free = max(shared * per_gpu - used, 0)
    each_free = [-(-free // shared)] if free else []
    if node.shards_used:
        each_free = sorted(per_gpu - each for each in node.shards_used if each < per_gpu)
    whole = node.gpus - node.gpus_alloc - shared
    return Shards(node.gpu_type, per_gpu, whole, tuple(each_free), node.shared_gres)


def parts_of_type(of: InstanceType, layout: str) -> Parts | None:
    """The same of a whole node that boots; of one whose layout nobody knows nothing is told."""
    if of.profiles:
        return Instances(devices(layout, of.profiles))
    if not of.shards_per_gpu:
        return None
    return Shards(of.gpu_type, of.shards_per_gpu, of.gpus, gres=of.shared_gres)


def parts_freed(parts: Parts, node: Node, soon: Sequence[Job], *, is_all: bool) -> Parts:
    """With what these jobs of the node give back, `is_all`: no other has it. Of instances those
    whose type they named; of GPUs that others share, nobody knows which.
    """
    if isinstance(parts, Shards):
        return replace(parts, gpus=node.gpus, opened=()) if is_all else parts
    most = {each.gpu_type: each.alloc for each in node.devices}
    back = {name: sum(j.shape.gpus for j in soon if j.shape.gpu_type == name) for name in most}
    free = ((name, count + min(back[name], most[name])) for name, count in parts.free)
    return replace(parts, free=tuple(free))
