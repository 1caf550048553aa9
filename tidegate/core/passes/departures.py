"""Nodes that have had their time, as the passes hand them on."""

from collections.abc import Mapping
from dataclasses import field

from tidegate.core.fleet.judge import Judged
from tidegate.core.fleet.members import Member
from tidegate.core.model.budgets import DisruptionReason
from tidegate.core.model.cluster import Pool
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.frozen import frozen
from tidegate.core.model.idle_use import IdleUse
from tidegate.core.model.plan import Action
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


@frozen
class IdleNodes:
    """Idle nodes that no pending job takes. `going`: those that go, by the reason; `prepaid`: those
    that stay since they are paid for, and for how long their pool keeps idle ones, in s;
    `above`: how many more each pool can do without; `uses`: what each idle node is for.
    """

    going: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prepaid: tuple[tuple[Member, float], ...] = ()
    above: Mapping[str, int] = field(default_factory=dict)
    uses: Mapping[str, IdleUse] = field(default_factory=dict)


@frozen
class Departures:
    """Which nodes go of our own accord. `actions`: what is done about them now; `idle`: those that
    go when no job takes them; `replacing`: those whose pool needs a new one first; `tries`:
    pool -> the node that waits for the first one of a new template.
    """

    actions: tuple[Action, ...] = ()
    idle: tuple[Outdated, ...] = ()
    replacing: tuple[Outdated, ...] = ()
    tries: Mapping[str, Outdated] = field(default_factory=dict)
