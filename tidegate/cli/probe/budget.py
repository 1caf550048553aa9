"""How long each part of a node's boot may take on EC2: the upper ends of the boot's budget."""

from collections.abc import Iterator, Mapping, Sequence

from tidegate.adapters.boot_log import BootTold
from tidegate.cli.probe.facts import Stage
from tidegate.core.model.ec2 import InstanceType
from tidegate.wire.boot_budget import boot_steps
from tidegate.wire.config import ClusterFile

RUNS = "the instance runs, kernel, network, user data"
JOINS = "slurmd registers, a pass starts the job"
TOGETHER = "together"

MANY_GPUS = 8
# The kinds of image that the table has a column for, by what a node is made from.
NEWEST, BAKED, BAKED_LARGE = KINDS = ("aws", "baked", "baked_8_gpus")

# The boot's own stages that belong to a step.
STAGES: Mapping[str, Sequence[str]] = {
    RUNS: (),
    "packages that the image lacks": ("packages", "driver"),
    "owner rule, EFS, Munge": ("owner_rule", "efs", "munge"),
    "GPUs attach, nvidia-smi": ("gpu", "fabric", "health"),
    JOINS: (),
}


def budgets(kind: str) -> Iterator[tuple[str, float]]:
    """Each step that a boot tells of, then all steps, and the most seconds that it may take."""
    most_s = {each.name: getattr(each, kind).most_s for each in boot_steps()}
    yield from ((name, most_s[name]) for name in STAGES)
    yield TOGETHER, sum(most_s.values())


def column(file: ClusterFile, pool: str, instance_type: InstanceType) -> str:
    """Which column holds for a node. An image of one's own counts as baked."""
    if file.image_of(pool) is None:
        return NEWEST
    return BAKED_LARGE if instance_type.gpus >= MANY_GPUS else BAKED


def stages(
    of: str, *, launched_at_s: float, boot: BootTold | None, runs_at_s: float | None
) -> Iterator[Stage]:
    """Each part as it was. `runs_at_s`: when the job began; None: it never did."""
    ready_at_s = boot.at_s if boot and not boot.failed else None
    for name, budget_s in budgets(of):
        took_s: float | None = None
        if name == RUNS:
            took_s = max(0.0, boot.at_s - boot.took_s - launched_at_s) if boot else None
        elif name == JOINS:
            took_s = runs_at_s - ready_at_s if runs_at_s and ready_at_s else None
            took_s = None if took_s is None else max(0.0, took_s)
        elif name == TOGETHER:
            took_s = runs_at_s - launched_at_s if runs_at_s else None
        elif boot:
            known = [boot.stages[each] for each in STAGES[name] if each in boot.stages]
            took_s = sum(known) if known else 0.0
        yield Stage(name, took_s, budget_s)
