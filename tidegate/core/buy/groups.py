"""Equal jobs as one group: what can be decided once is not decided for each of them."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.core.demand.demand import Need
from tidegate.core.model.why import WhyNot
from tidegate.core.offers.catalogue import Vector, vector

if TYPE_CHECKING:
    from tidegate.core.buy.blueprint import Config
    from tidegate.core.buy.pending_launch import PendingLaunch


@dataclass(slots=True, eq=False)
class Slot:
    """Room for jobs of one group, `each` on each of `nodes` nodes that are being bought.

    Nodes of a plan are numbered; `first` is the number of the first of these.
    """

    pending_launch: "PendingLaunch"
    first: int
    nodes: int
    each: int
    used: int = 0
    node: tuple[str] = ("",)

    @property
    def left(self) -> int:
        return self.nodes * self.each - self.used

    def take(self) -> tuple[str]:
        """The node for one more job."""
        if self.used % self.each == 0:
            number = self.first + self.used // self.each
            self.node = (f"new {self.pending_launch.offering.instance_type} {number}",)
        self.used += 1
        return self.node


@dataclass(slots=True, eq=False)
class Group:
    """Jobs that differ only in their ids and in their place in the queue.

    `waiting`: how many have no place yet. `position`: where in the bins the next may fit.
    `configs`: nodes that the blueprint has for them; `slots`: room on those that were bought.
    `refused`: why none of them can get more in this plan.
    """

    need: Need
    size: Vector
    number: int
    waiting: int = 0
    position: int = 0
    configs: deque["Config"] = field(default_factory=deque)
    slots: deque[Slot] = field(default_factory=deque)
    refused: tuple[WhyNot, ...] = ()
    refused_because: str = ""

    @property
    def unplanned(self) -> int:
        """Jobs for which no node was bought yet."""
        return self.waiting - sum(slot.left for slot in self.slots)


def grouped(needs: Iterable[Need]) -> list[Group]:
    """The group of each need."""
    groups: dict[object, Group] = {}
    found: list[Group] = []
    for need in needs:
        key: object = need.kind if need.kind >= 0 else need.job_id
        group = groups.get(key)
        if group is None:
            group = groups[key] = Group(need, vector(need.shape), len(groups))
        found.append(group)
    return found
