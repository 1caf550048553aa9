"""Room that a pool keeps free, in the jobs that it is for."""

from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Shape


@frozen
class Headroom:
    """Room for jobs that have not come: Karpenter's capacity buffer, in Slurm's words.

    `jobs` of `nodes` nodes each, and on each node what `shape` says. The nodes of one job are in
    one zone.
    """

    shape: Shape
    nodes: int = 1
    jobs: int = 1

    def __str__(self) -> str:
        each = f"{self.nodes} x " if self.nodes > 1 else ""
        return f"{self.jobs} x {each}[{self.shape}]"

    @property
    def most_nodes(self) -> int:
        """As many as it takes where no two jobs share one."""
        return self.jobs * self.nodes
