"""The account's reservations: as a test says, or as the simulated EC2 has them."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from tidegate.core.model.capacity import BlockState, Extension, Gone, Holding
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.errors import TidegateError
from tidegate.core.model.events import ReservationInterruption
from tidegate.sim.ec2 import SimCompute

NOTICE_S = 120.0


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
    is_impaired: frozenset[str] = frozenset()

    def held(self) -> tuple[Holding, ...]:
        if self.trouble is not None:
            raise self.trouble
        return tuple(self.has)

    def members(self, group: str) -> tuple[str, ...] | Gone:
        if self.groups_trouble is not None:
            raise self.groups_trouble
        found = self.groups.get(group)
        return Gone(f"GroupName {group} not found.") if found is None else tuple(sorted(found))

    def impaired(self) -> frozenset[str]:
        if self.trouble is not None:
            raise self.trouble
        return self.is_impaired

    def extensions(self, reservation_ids: Collection[str]) -> tuple[Extension, ...]:
        if self.trouble is not None:
            raise self.trouble
        return tuple(each for each in self.extended if each.reservation_id in reservation_ids)


@dataclass(slots=True)
class Owner:
    """Who owns the account, and changes its reservations under the cluster that uses them.

    Source: EC2 user guide, "Split off capacity from an existing Capacity Reservation", "Move
    capacity between Capacity Reservations", "Cancel a Capacity Reservation".
    """

    compute: SimCompute
    cancelled: list[Reservation] = field(default_factory=list)

    def move(self, source: str, to: str, count: int) -> None:
        """Free places first, then running instances, which only open reservations give; a target
        that is not there is made like the source. What gave everything is cancelled.
        """
        prepaid = self.compute.prepaid
        of = self._named(source)
        inside = prepaid.held_in(of)
        used = max(count - (of.count - len(inside)), 0)
        assert count <= of.count, "EC2 refuses it"
        assert not (used and of.is_targeted), "EC2 moves no instance that names its reservation"
        known = {each.id: each for each in prepaid.reservations}
        target = known.get(to, replace(of, id=to, count=0))
        prepaid.change(made := replace(target, count=target.count + count))
        for name in inside[:used]:
            prepaid.held[name] = made
            self.compute.put(replace(self.compute.everything[name], capacity_reservation_id=to))
        prepaid.change(left := replace(of, count=of.count - count))
        if not left.count:
            self.cancel(source)

    def cancel(self, name: str) -> None:
        """What runs in it runs on, billed on demand."""
        prepaid = self.compute.prepaid
        of = self._named(name)
        prepaid.reservations = tuple(each for each in prepaid.reservations if each is not of)
        self.compute.end_reservation(of)
        self.cancelled.append(of)

    def take_back(self, name: str, count: int) -> list[tuple[float, ReservationInterruption]]:
        """Of what was lent: the notice of each instance, and when EC2 ends it.

        Source: EC2 user guide, "Interruptible Capacity Reservations": two minutes later.
        """
        of, now_s = self._named(name), self.compute.clock.now_s()
        ends_at_s = now_s + NOTICE_S
        told = self.compute.prepaid.held_in(of)[:count]
        self.compute.prepaid.change(replace(of, count=of.count - count))
        return [(ends_at_s, ReservationInterruption(one, now_s, ends_at_s)) for one in told]

    def feed(self) -> SimReservations:
        """What EC2 shows now: cancelled ones for a while, too."""
        prepaid = self.compute.prepaid
        has = [
            Holding(each, BlockState.ACTIVE, free=each.count - len(prepaid.held_in(each)))
            for each in prepaid.reservations
        ]
        return SimReservations(
            [*has, *(Holding(each, BlockState.CANCELLED) for each in self.cancelled)]
        )

    def _named(self, name: str) -> Reservation:
        return next(each for each in self.compute.prepaid.reservations if each.id == name)
