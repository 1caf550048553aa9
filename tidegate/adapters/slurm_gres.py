"""What Slurm's commands print of a node's GRES: GPUs, MIG instances of several profiles, shards.

Pure, and never in doubt: what is no GRES that Tidegate can buy is left out.
"""

import re

from tidegate.core.model.devices import SHARD, SHARED_GRES, Devices
from tidegate.core.model.frozen import frozen

# What Tidegate can buy: GPUs, and the Neuron devices of Trainium and Inferentia.
GRES_NAMES = ("gpu", "neuron", *SHARED_GRES)

_NODE_GRES = re.compile(r"(gpu|neuron|shard|mps)(?::([A-Za-z][^:,()=]*))?:([0-9]{1,9})", re.ASCII)
# What is in use of shards: `shard:l4:1(IDX:0,2-3)` in 22.05, `shard:l4:5(3/4,2/4)` later, in 26.05
# with `-/4` for a GPU that a job has whole; of mps alike.
_SHARDS_USED = re.compile(
    r"(?:shard|mps)(?::[^:,()]*)?:[0-9]+\((?:IDX:([0-9,-]+)|([0-9/,-]+))\)", re.ASCII
)


@frozen
class NodeGres:
    """What a node has of each GRES, or what is in use of it. `shared`: GPUs in use by shards;
    `used`: how many of each of these, where Slurm tells it.
    """

    gres: str = GRES_NAMES[0]
    counts: tuple[tuple[str, int], ...] = ()
    shards: int = 0
    shared: int = 0
    used: tuple[int, ...] = ()
    shared_gres: str = SHARD

    @property
    def count(self) -> int:
        return sum(count for _, count in self.counts)

    @property
    def gpu_type(self) -> str:
        """That of the first."""
        return self.counts[0][0] if self.counts else ""


def node_gres(text: str) -> NodeGres:
    """`gpu:a10g:4(S:0-1)`, `gpu:a100_3g.20gb:2(IDX:0-1),gpu:a100_1g.5gb:0(IDX:N/A)` for MIG,
    `gpu:l4:0(IDX:N/A),shard:l4:1(IDX:0)` for shards.
    """
    shared = _SHARDS_USED.search(text)
    indices, each = shared.groups("") if shared else ("", "")
    used = tuple(n for part in each.split(",") if (n := _count(part)))
    # Brackets hold indices with commas of their own, as in `gpu:t4:2(IDX:0,2)`.
    found = _NODE_GRES.findall(re.sub(r"\([^()]*\)", "", text))
    whole = [(name, of, int(count)) for name, of, count in found if name not in SHARED_GRES]
    shards = [(name, int(count)) for name, _, count in found if name in SHARED_GRES]
    return NodeGres(
        gres=whole[0][0] if whole else GRES_NAMES[0],
        counts=tuple((of, count) for _, of, count in whole),
        shards=sum(count for _, count in shards),
        shared=len(used) or _num_indices(indices),
        used=used,
        shared_gres=shards[0][0] if shards else SHARD,
    )


def _count(part: str) -> int:
    """The shards in use in `3/4`; none of a GPU that a job has whole, `-/4`."""
    number = part.partition("/")[0]
    return int(number) if number.isdecimal() else 0


def _num_indices(text: str) -> int:
    """How many GPUs `0,2-3` names, in 22.05."""
    ends = (part.split("-") for part in text.split(",") if part)
    return sum(int(end[-1]) - int(end[0]) + 1 for end in ends)


def devices(has: NodeGres, used: NodeGres) -> tuple[Devices, ...]:
    """Of a node with GPUs of several types; as `Node.gpus` and `gpu_type` tell all others."""
    alloc = dict(used.counts)
    found = (Devices(gpu_type, count, alloc.get(gpu_type, 0)) for gpu_type, count in has.counts)
    return tuple(found) if len(has.counts) > 1 else ()
