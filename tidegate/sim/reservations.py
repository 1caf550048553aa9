"""The account's reservations, as a test says."""

from collections.abc import Collection
from dataclasses import dataclass, field

from tidegate.core.model.capacity import Extension, Gone, Holding
from tidegate.core.model.errors import TidegateError


@dataclass(slots=True)
class SimReservations:
    """What the account has, in memory. `groups`: ids by ARN; of others there is no group.

    `trouble` is raised by what is asked of EC2, `groups_trouble` by what is asked of groups.
    """

    has: list[Holding] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    extended: list[Extension] = field(default_factory=list)
    trouble: TidegateError | None = None
    groups_trouble: TidegateError | None = None

    def held(self) -> tuple[Holding, ...]:
        if self.trouble is not None:
            raise self.trouble
        return tuple(self.has)

    def members(self, group: str) -> tuple[str, ...] | Gone:
        if self.groups_trouble is not None:
            raise self.groups_trouble
        found = self.groups.get(group)
        return Gone(f"GroupName {group} not found.") if found is None else tuple(sorted(found))

    def extensions(self, reservation_ids: Collection[str]) -> tuple[Extension, ...]:
        if self.trouble is not None:
            raise self.trouble
        return tuple(each for each in self.extended if each.reservation_id in reservation_ids)
