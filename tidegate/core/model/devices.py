"""GRES of which a GPU gives several: shards, and instances of MIG."""

from tidegate.core.model.frozen import frozen

# The GRES of which a GPU gives several; what Slurm's guide calls sharding.
SHARD = "shard"


@frozen
class Devices:
    """GRES of one type on a node: MIG instances of a profile."""

    gpu_type: str  #: GRES type, like a100_1g.5gb
    count: int  #: how many there are
    alloc: int = 0  #: how many are in use
