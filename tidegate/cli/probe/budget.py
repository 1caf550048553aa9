"""How long each part of a node's boot may take on EC2: the upper ends of docs/boot.md, "Times"."""

from collections.abc import Iterator

from tidegate.adapters.boot_log import BootTold
from tidegate.cli.probe.facts import Stage
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.frozen import frozen
from tidegate.wire.config import ClusterFile

RUNS = "the instance runs, kernel, network, user data"
JOINS = "slurmd registers, a pass starts the job"
TOGETHER = "together"

MANY_GPUS = 8
# The column of the table by what a node is made from.
NEWEST, BAKED, BAKED_LARGE = range(3)


@frozen
class Row:
    """A line of the table: seconds in AWS's image, in a baked one, there with eight GPUs.

    `stages`: the boot's own that belong to it.
    """

    name: str
    budget_s: tuple[float, float, float]
    stages: tuple[str, ...] = ()


ROWS = (
    Row(RUNS, (65, 55, 90)),
    Row("packages that the image lacks", (180, 0, 0), ("packages", "driver")),
    Row("owner rule, EFS, Munge", (5, 5, 5), ("owner_rule", "efs", "munge")),
    Row("GPUs attach, nvidia-smi", (10, 10, 45), ("gpu", "fabric", "health")),
    Row(JOINS, (7, 7, 7)),
    Row(TOGETHER, (270, 77, 147)),
)


def column(file: ClusterFile, instance_type: InstanceType) -> int:
    """Which column holds for a node. An image of one's own counts as baked."""
    if file.image_id is None:
        return NEWEST
    return BAKED_LARGE if instance_type.gpus >= MANY_GPUS else BAKED


def stages(
    of: int, *, launched_at_s: float, boot: BootTold | None, runs_at_s: float | None
) -> Iterator[Stage]:
    """Each part as it was. `runs_at_s`: when the job began; None: it never did."""
    ready_at_s = boot.at_s if boot and not boot.failed else None
    for row in ROWS:
        took_s: float | None = None
        if row.name == RUNS:
            took_s = max(0.0, boot.at_s - boot.took_s - launched_at_s) if boot else None
        elif row.name == JOINS:
            took_s = runs_at_s - ready_at_s if runs_at_s and ready_at_s else None
            took_s = None if took_s is None else max(0.0, took_s)
        elif row.name == TOGETHER:
            took_s = runs_at_s - launched_at_s if runs_at_s else None
        elif boot:
            known = [boot.stages[each] for each in row.stages if each in boot.stages]
            took_s = sum(known) if known else 0.0
        yield Stage(row.name, took_s, row.budget_s[of])
