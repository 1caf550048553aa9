"""What a job asks for, per node, from the fields that squeue prints. Pure.

Slurm knows many ways to ask for the same thing (per node, per task, per job, per GPU). The
smallest split that Slurm accepts on the fewest nodes is taken; what these fields do not say
exactly is refused with a sentence, never guessed.
"""

import re
from collections.abc import Mapping
from math import ceil

from tidegate.adapters.slurm_gres import GRES_NAMES
from tidegate.adapters.slurm_text import memory_mib, number, value
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import WAITING_STATES, Shape, Spread

# The fields that `read_request` needs.
REQUEST_FIELDS = (
    "State",
    "tres-per-node",
    "tres-per-job",
    "tres-per-task",
    "tres-per-socket",
    "cpus-per-task",
    "cpus-per-tres",
    "mem-per-tres",
    "MinCPUs",
    "MinMemory",
    "NumNodes",
    "NumTasks",
    "NumCPUs",
    "NTPerNode",
    "tres-alloc",
    "OverSubscribe",
)

_TRES_NODES = re.compile(r"(?:^|,)node=([0-9]+K?)(?:,|$)", re.ASCII)
_TRES_MEMORY = re.compile(r"(?:^|,)mem=([0-9.]+[KMGTP]?)(?:,|$)", re.ASCII)
# 22.05 prints `gres:gpu:a10g:4` and, for DefMemPerGPU, `gpu:15564`; later versions print
# `gres/gpu:a10g:4`, per task `gres/gpu:a10g=4`.
_GPU = re.compile(
    rf"(?:gres[:/])?({'|'.join(GRES_NAMES)})(?::([A-Za-z][\w.-]*))?(?:[:=]([0-9]{{1,9}}))?",
    re.ASCII,
)
# A job that may spread over this many different counts of nodes is told by the first ones.
MAX_SPREADS = 16
MAX_LOOKED_AT = 256

# --exclusive and its kinds. With `=user` the user's own jobs may share the node; Shape cannot
# say that, and a node too many is better than a wait without end.
_ALONE = frozenset({"NO", "USER", "MCS"})


class Unreadable(Exception):
    """The row does not say exactly what the job needs; the message names the option."""


@frozen
class Gpus:
    """A number of GPUs, or of another GRES that Tidegate can buy, of one type ("": any)."""

    count: int = 0
    gpu_type: str = ""
    gres: str = GRES_NAMES[0]


@frozen
class Request:
    """Nodes and the shape of each. `is_memory_unclear`: per CPU or per node is not printed.

    `spreads`: larger counts of nodes on which each gives less.
    """

    nodes: int
    shape: Shape
    is_memory_unclear: bool = False
    spreads: tuple[Spread, ...] = ()


def read_request(row: Mapping[str, str], is_memory_per_cpu: bool | None) -> Request:
    """What the row asks for. Errors: Unreadable, ParseError.

    `is_memory_per_cpu` settles an unclear row; None: not known.
    """
    if value(row["tres-per-socket"]):
        raise Unreadable("asks for GPUs per socket (--gpus-per-socket), which Tidegate cannot read")
    if row["State"] not in WAITING_STATES:
        return _allocated(row)
    asked = _Asked.read(row)
    shape, is_unclear = _split(row, asked, asked.nodes, is_memory_per_cpu)
    spreads: list[Spread] = []
    smallest = shape
    for nodes in range(asked.nodes + 1, min(asked.most_nodes, asked.nodes + MAX_LOOKED_AT) + 1):
        less, _ = _split(row, asked, nodes, is_memory_per_cpu)
        if (less.gpus, less.cpus) != (smallest.gpus, smallest.cpus) and len(spreads) < MAX_SPREADS:
            spreads.append(Spread(nodes, less))
            smallest = less
    return Request(asked.nodes, shape, is_unclear, tuple(spreads))


def _split(
    row: Mapping[str, str], asked: "_Asked", nodes: int, is_memory_per_cpu: bool | None
) -> tuple[Shape, bool]:
    """What each of so many nodes must give, and whether its memory is unclear."""
    gpus = asked.gpus_on_a_node(nodes)
    cpus = max(
        number(row["MinCPUs"]),
        ceil(asked.tasks / nodes) * asked.cpus_per_task,
        gpus.count * asked.cpus_per_gpu,
        1,
    )
    memory, is_whole_node, is_unclear = _memory(row, gpus.count, cpus, is_memory_per_cpu)
    shape = Shape(
        gpus=gpus.count,
        gpu_type=gpus.gpu_type,
        cpus=cpus,
        memory_mib=memory,
        is_exclusive=is_whole_node or row["OverSubscribe"] in _ALONE,
        gres=gpus.gres,
    )
    return shape, is_unclear


@frozen
class _Asked:
    """The counts of a pending row."""

    nodes: int
    most_nodes: int
    tasks: int
    cpus_per_task: int
    cpus_per_gpu: int
    per_node: Gpus
    per_job: Gpus
    per_task: Gpus

    @classmethod
    def read(cls, row: Mapping[str, str]) -> "_Asked":
        per_node, per_job = gpus(row["tres-per-node"]), gpus(row["tres-per-job"])
        nodes = _nodes(row)
        if per_node.count and per_job.count:
            nodes = max(nodes, ceil(per_job.count / per_node.count))
        return cls(
            nodes=nodes,
            most_nodes=number(row["NumNodes"]),
            tasks=max(1, number(row["NumTasks"])),
            cpus_per_task=_count_or(row["cpus-per-task"], 1),
            cpus_per_gpu=gpus(row["cpus-per-tres"]).count,
            per_node=per_node,
            per_job=per_job,
            per_task=gpus(row["tres-per-task"]),
        )

    def gpus_on_a_node(self, nodes: int) -> Gpus:
        asked = (self.per_node, self.per_job, self.per_task)
        types = {one.gpu_type for one in asked if one.gpu_type}
        if len(types) > 1:
            raise Unreadable("asks for GPUs of two types on one node (--gres)")
        count = max(
            self.per_node.count,
            ceil(self.per_job.count / nodes),
            self.per_task.count * ceil(self.tasks / nodes),
        )
        names = {one.gres for one in asked if one.count}
        if len(names) > 1:
            raise Unreadable(f"asks for {' and '.join(sorted(names))} on one node (--gres)")
        return Gpus(count, *(types or {""}), *(names or {GRES_NAMES[0]}))


def gpus(text: str) -> Gpus:
    """The GPUs in `gres:gpu:a10g:4`, `gres/gpu=1` or `gres/gpu`; other TRES are refused."""
    found = [
        part for part in value(text).split(",") if part and not part.startswith(("cpu=", "cpu:"))
    ]
    if not found:
        return Gpus()
    if len(found) > 1:
        raise Unreadable(f"asks for several GRES on one node ({text[:60]})")
    matched = _GPU.fullmatch(found[0])
    if matched is None:
        raise Unreadable(f"asks for {found[0][:60]}, which is no GPU that Tidegate can buy")
    name, gpu_type, count = matched.groups()
    return Gpus(1 if count is None else int(count), gpu_type or "", name)


def _nodes(row: Mapping[str, str]) -> int:
    """The fewest nodes that Slurm accepts.

    NumNodes does not say it: that is the maximum of `-N 2-4`, and without `-N` an estimate.
    tres-alloc holds the minimum, but 22.05 leaves out what `--ntasks-per-node` implies.
    """
    found = _TRES_NODES.search(row["tres-alloc"])
    nodes = max(1, number(found.group(1) if found else row["NumNodes"]))
    if tasks_per_node := _count_or(row["NTPerNode"], 0):
        nodes = max(nodes, ceil(number(row["NumTasks"]) / tasks_per_node))
    return nodes


def _memory(
    row: Mapping[str, str], gpus_per_node: int, cpus: int, is_per_cpu: bool | None
) -> tuple[int, bool, bool]:
    """MiB per node, whether that is all a node has (`--mem=0`), and whether it is unclear."""
    # `gres:gpu:4096` has the form of a GPU count; here it is the MiB per GPU.
    if per_gpu := gpus(row["mem-per-tres"]).count:
        return per_gpu * gpus_per_node, False, False
    asked = memory_mib(row["MinMemory"])
    found = _TRES_MEMORY.search(row["tres-alloc"])
    if asked == 0 or found is None:
        return asked, asked == 0, False
    total = memory_mib(found.group(1))
    counted = _TRES_NODES.search(row["tres-alloc"])
    nodes = number(counted.group(1)) if counted else 1
    fits_node = asked * nodes == total
    fits_cpu = asked * number(row["NumCPUs"]) == total
    if is_per_cpu is None and fits_node and fits_cpu and cpus > 1:
        return asked, False, True
    if fits_cpu and (is_per_cpu or not fits_node):
        return asked * cpus, False, False
    if fits_node:
        return asked, False, False
    raise Unreadable(
        f"asks for {row['MinMemory'][:20]} of memory in a way that squeue does not tell per node"
    )


def _allocated(row: Mapping[str, str]) -> Request:
    """What a job that has nodes holds on each of them, on average."""
    nodes = max(1, number(row["NumNodes"]))
    found = _TRES_MEMORY.search(row["tres-alloc"])
    held = _Asked.read(row).gpus_on_a_node(nodes)
    shape = Shape(
        gpus=held.count,
        gpu_type=held.gpu_type,
        cpus=max(1, ceil(number(row["NumCPUs"]) / nodes)),
        memory_mib=ceil(memory_mib(found.group(1)) / nodes) if found else 0,
        is_exclusive=row["OverSubscribe"] in _ALONE,
        gres=held.gres,
    )
    return Request(nodes, shape)


def _count_or(text: str, default: int) -> int:
    return number(text) if value(text) else default
