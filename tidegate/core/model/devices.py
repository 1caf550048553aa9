"""GRES of which a GPU gives several: shards, shares of MPS, and instances of MIG."""

from tidegate.core.model.frozen import frozen

# What Slurm's guide calls shared GRES: a GPU gives several of one of these.
SHARD, MPS = "shard", "mps"
SHARED_GRES = (SHARD, MPS)


@frozen
class Devices:
    """GRES of one type on a node: MIG instances of a profile."""

    gpu_type: str  #: GRES type, like a100_1g.5gb
    count: int  #: how many there are
    alloc: int = 0  #: how many are in use
