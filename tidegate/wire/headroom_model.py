"""The key `headroom` of a pool in the cluster file."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.headroom import Headroom
from tidegate.core.model.slurm import Shape
from tidegate.wire.section import PositiveCount, Section, at_most

MIB_PER_GIB = 1024

# More kinds of jobs than that are no headroom but a plan.
KINDS_MAX = 10

JobCount = Annotated[int, Field(ge=1, le=1000)]
Gib = Annotated[float, Field(gt=0, le=100_000)]


class HeadroomModel(Section):
    """Room that is kept free for jobs that have not come, in sbatch's words."""

    jobs: JobCount = Field(default=1, description="for how many such jobs")
    nodes: JobCount = Field(
        default=1, description="nodes of each job, as sbatch --nodes; all of them in one zone"
    )
    gpus_per_node: PositiveCount | None = Field(
        default=None, description="GPUs that it has on each node, as sbatch --gpus-per-node"
    )
    cpus_per_node: PositiveCount | None = Field(
        default=None, description="CPUs that it has on each node; 1 when left out"
    )
    memory_per_node_gib: Gib | None = Field(
        default=None, description="GiB of memory that it has on each node; any when left out"
    )

    @model_validator(mode="after")
    def _says_how_much(self) -> Self:
        if self.gpus_per_node is self.cpus_per_node is self.memory_per_node_gib is None:
            text = "gpus_per_node, cpus_per_node or memory_per_node_gib"
            raise ValueError(f"how much on each node? It needs {text}, like {{gpus_per_node: 8}}")
        return self

    def headroom(self, gres: str = "gpu") -> Headroom:
        """`gres`: what the pool's devices are."""
        shape = Shape(
            gpus=self.gpus_per_node or 0,
            cpus=self.cpus_per_node or 1,
            memory_mib=round((self.memory_per_node_gib or 0) * MIB_PER_GIB),
            gres=gres,
        )
        return Headroom(shape, self.nodes, self.jobs)


Headrooms = Annotated[tuple[HeadroomModel, ...], at_most(KINDS_MAX)]


def headrooms(
    models: tuple[HeadroomModel, ...], instance_types: tuple[InstanceType, ...]
) -> tuple[Headroom, ...]:
    """What a pool of these types keeps free."""
    gres = next((each.gres for each in instance_types if each.gpus), "gpu")
    return tuple(each.headroom(gres) for each in models)
