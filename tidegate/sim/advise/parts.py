"""Parts of GPUs that a class of jobs with a whole one could ask for instead.

How much a GPU did is known by the time in which any kernel ran, not by how much of it that filled.
So a part is proposed where it could do the same work, and played as if all of that took longer by
as much as the part is smaller, with nothing beside it meanwhile: the longest that it can last.
"""

from collections.abc import Iterator

from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.frozen import frozen
from tidegate.core.model.mig import SLICES, Profile, named_profile
from tidegate.sim.replay.trace import GPU

# What an instance has of its slices of memory, at least. Source: `nvidia-smi mig -lgip` of A100 and
# H100: 4.75 GiB of 1g.5gb, 9.75 of 1g.10gb.
USABLE = 0.95
# Of a GPU; those of four slices, whose instances have more of it, are taken for the same.
COMPUTE_SLICES = 7
# More than this is no small part, and hardly another job finds room beside it.
SHARE_MOST = 0.5


@frozen
class Part:
    """What `count` of a GRES type are: `share` of one GPU's compute, and of its memory.

    `is_apart`: the GPU keeps its memory and compute from others (MIG).
    """

    gres: str
    gpu_type: str
    count: int
    share: float
    memory_mib: float
    usd_per_hour: float
    is_apart: bool

    @property
    def model(self) -> str:
        """Of which GPU it is a part."""
        named = named_profile(self.gpu_type)
        return named[0] if named else self.gpu_type

    @property
    def request(self) -> str:
        """For sbatch's --gres."""
        kind = f"{self.gres}:{self.gpu_type}" if self.gpu_type else self.gres
        return f"{kind}:{self.count}"

    def holds(self, did: float, memory_mib: float) -> bool:
        return did <= self.share and memory_mib <= self.memory_mib

    def lasts(self, did: float) -> float:
        """How many times as long a job may last whose kernels ran for `did` of the time."""
        return 1 - did + did / self.share

    @property
    def told(self) -> str:
        """What it is, and from what it is kept apart."""
        if self.is_apart:
            return "a MIG instance, whose memory and compute the GPU keeps apart from others'"
        return (
            "on a GPU that others share: nothing keeps its memory or faults apart from theirs, and"
            " each can fill it or end the others"
        )


def parts_of_node(of: InstanceType, usd: float) -> Iterator[Part]:
    """What such a node, for so many USD per hour, has of parts that are small."""
    profiles = (of.cut_into,) if of.cut_into else of.profiles
    for each in profiles:
        share = _share(each)
        if 0 < share <= SHARE_MOST:
            memory_mib = of.gpu_memory_mib * each.size / SLICES * USABLE
            usd_each = usd * each.size / SLICES / of.whole_gpus
            yield Part(GPU, each.gpu_type, 1, share, memory_mib, usd_each, is_apart=True)
    for count in range(1, int(of.shards_per_gpu * SHARE_MOST) + 1):
        share = count / of.shards_per_gpu
        memory_mib, usd_each = of.gpu_memory_mib * share, usd * share / of.gpus
        yield Part(of.shared_gres, of.gpu_type, count, share, memory_mib, usd_each, is_apart=False)


def _share(profile: Profile) -> float:
    """Of a GPU's compute or memory, whichever is less; 0.0: it is no plain profile."""
    compute, _, rest = profile.name.partition("g.")
    if not rest.removesuffix("gb").isdecimal():
        return 0.0
    return min(int(compute) / COMPUTE_SLICES, profile.size / SLICES)
