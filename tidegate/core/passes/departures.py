"""Nodes that have had their time, as the passes hand them on."""

from dataclasses import dataclass, field

from tidegate.core.fleet.judge import Judged
from tidegate.core.model.budgets import DisruptionReason
from tidegate.core.model.cluster import Pool
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Node


@frozen
class Outdated:
    """A node that goes as soon as its pool can do without, and why."""

    judged: Judged
    node: Node
    pool: Pool
    reason: DisruptionReason
    why: str

    @property
    def drain_reason(self) -> DrainReason:
        return DrainReason(DrainCode(self.reason.value), self.why)


@dataclass(slots=True)
class Departures:
    """Which nodes go of our own accord. `idle`: those that go when no job takes them;
    `replacing`: those whose pool needs a new one first; `tries`: pool -> the node that waits for
    the first one of a new template.
    """

    idle: list[Outdated] = field(default_factory=list)
    replacing: list[Outdated] = field(default_factory=list)
    tries: dict[str, Outdated] = field(default_factory=dict)
