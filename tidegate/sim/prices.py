"""What AWS asks for instances, as a test says."""

from collections.abc import Collection
from dataclasses import dataclass, field

from tidegate.core.model.errors import TidegateError
from tidegate.core.model.market import Quote


@dataclass(slots=True)
class SimPrices:
    """The price feed in memory. `listed` None: this partition's list cannot be asked for.

    `trouble` is raised by both; `asked`: each question's instance types.
    """

    sold: list[Quote] = field(default_factory=list)
    listed: list[Quote] | None = field(default_factory=list)
    trouble: TidegateError | None = None
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def spot(self, instance_types: Collection[str]) -> tuple[Quote, ...]:
        self._hear(instance_types)
        return tuple(each for each in self.sold if each.instance_type in instance_types)

    def on_demand(self, instance_types: Collection[str]) -> tuple[Quote, ...] | None:
        self._hear(instance_types)
        if self.listed is None:
            return None
        return tuple(each for each in self.listed if each.instance_type in instance_types)

    def _hear(self, instance_types: Collection[str]) -> None:
        self.asked.append(tuple(instance_types))
        if self.trouble is not None:
            raise self.trouble
