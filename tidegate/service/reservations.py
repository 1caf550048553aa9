"""Reading the account's reservations: what is in the cluster's groups, and what has become of those
that its file names.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from tidegate.core.model.capacity import Extension, Gone, Holding
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market
from tidegate.core.model.errors import TidegateError
from tidegate.core.model.frozen import frozen
from tidegate.core.model.seen_reservations import NONE_SEEN, SeenReservations
from tidegate.core.offers.odd_reservations import odd_named
from tidegate.core.offers.seen_reservations import (
    is_read,
    lost_now,
    odd_extensions,
    odd_members,
    seen_now,
    short,
)
from tidegate.ports import Clock, Ledger


class ReservationFeed(Protocol):
    """What the account has in the cluster's region. Each may raise Throttled or NotAuthorized."""

    def held(self) -> tuple[Holding, ...]:
        """All reservations and blocks that the account has or that are shared with it."""
        ...

    def members(self, group: str) -> tuple[str, ...] | Gone:
        """The ids of the reservations in a group, by its ARN; Gone: there is no such group."""
        ...

    def extensions(self, reservation_ids: Collection[str]) -> tuple[Extension, ...]:
        """Those that were bought for these blocks, paid for or not."""
        ...

    def impaired(self) -> frozenset[str]:
        """The ids of UltraServers' blocks whose interconnect EC2 finds impaired."""
        ...


@frozen(kw_only=True)
class Reservations:
    """The reservations that the cluster file names, by their groups or by their ids."""

    cluster: Cluster
    feed: ReservationFeed
    ledger: Ledger
    clock: Clock

    def refresh(self) -> SeenReservations:
        """Read them again, and keep what was learnt.

        What cannot be read is as it was read last, and a trouble. Errors: Throttled and
        NotAuthorized of the ledger.
        """
        if not is_read(self.cluster):
            return NONE_SEEN
        known = self.ledger.view().seen_market
        seen = self._read(known.reservations)
        if seen != known.reservations:
            self.ledger.see_market(replace(known, reservations=seen))
        return seen

    def _read(self, known: SeenReservations) -> SeenReservations:
        troubles = list[str]()
        try:
            held = self.feed.held()
            extensions = self.feed.extensions(self._blocks()) if self._blocks() else ()
        except TidegateError as trouble:
            said = f"the account's reservations cannot be read: {_said(trouble)}"
            return replace(known, troubles=(said,))
        members = dict(self._members(known, troubles))
        grouped = {name for names in members.values() for name in names}
        is_whole, now_s, of = not troubles, self.clock.now_s(), self.cluster
        return SeenReservations(
            found=seen_now(of, held, members, extensions),
            lost=lost_now(of, held, known.lost),
            groups=tuple(members),
            at_s=now_s if is_whole else known.at_s,
            troubles=(
                *troubles,
                *self._impaired(held),
                *odd_named(of.reservations, held, grouped, now_s),
                *odd_members(of, held, members),
                *odd_extensions(of, held, extensions, now_s),
            ),
        )

    def _impaired(self, held: Sequence[Holding]) -> Iterator[str]:
        """EC2 leaves such an UltraServer as it is until its user asks for more."""
        named = {each.id for each in self.cluster.reservations}
        blocks = [each.reservation for each in held if each.reservation.id in named]
        blocks = [each for each in blocks if each.block]
        if not blocks:
            return
        try:
            impaired = self.feed.impaired()
        except TidegateError as trouble:
            yield f"whether UltraServers are impaired cannot be read: {_said(trouble)}"
            return
        for each in blocks:
            if each.block in impaired:
                yield (
                    f"EC2 finds the interconnect of {each.block} ({each.id}) impaired: jobs on"
                    " several of its nodes may fail or be slow; AWS mends it once all its instances"
                    " are ended and a support case is open"
                )

    def _members(
        self, known: SeenReservations, troubles: list[str]
    ) -> Iterator[tuple[str, Sequence[str]]]:
        """Of a group that cannot be read, what was in it; of one that is gone, nothing."""
        for arn in self.cluster.reservation_groups:
            try:
                found = self.feed.members(arn)
            except TidegateError as trouble:
                said = f"the reservation group {short(arn)} cannot be read: {_said(trouble)}"
                troubles.append(said)
                if arn in known.groups:
                    yield arn, [each.id for each in known.found if each.group == arn]
                continue
            if isinstance(found, Gone):
                told = "make it again, or take it out of reservation_groups and deploy"
                troubles.append(f"there is no reservation group {short(arn)}: {told}")
                continue
            yield arn, found

    def _blocks(self) -> tuple[str, ...]:
        of = self.cluster.reservations
        return tuple(each.id for each in of if each.market is Market.CAPACITY_BLOCK)


def _said(trouble: TidegateError) -> str:
    return f"{type(trouble).__name__}: {trouble}"
