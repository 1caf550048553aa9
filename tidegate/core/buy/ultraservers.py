"""A gang in UltraServers: in one where it fits into one, over several where it is larger.

Its nodes in one share NVLink, those in others are reached by EFA. A launch names one reservation,
and an UltraServer may have several.
"""

from collections.abc import Iterator, Mapping, Sequence, Set

from tidegate.core.demand.demand import Need
from tidegate.core.model.ec2 import Offering
from tidegate.core.model.ultraservers import is_in_ultraserver
from tidegate.core.offers.offers import OfferGroups, Option

type Share = tuple[Option, int]
"""So many nodes from one reservation."""


class Together:
    """Which UltraServers one gang may use. `near`: reservations that it has nodes in, with all
    others of the same UltraServers.
    """

    def __init__(self, offer_groups: OfferGroups, need: Need, near: Set[str]) -> None:
        self._offer_groups, self._reserved = offer_groups, offer_groups.reserved_capacity
        self._nodes = need.nodes + len(need.beside)
        self.near = self._reserved.ultraservers.beside(near)
        self._begun = {self._ultraserver(each) for each in self.near} - {""}
        self._apart: dict[tuple[str, Offering], list[Option]] = {}

    def takes(self, option: Option) -> bool:
        """Whether the gang may be in this reservation alone; noted as one of several."""
        if not is_in_ultraserver(option.offering.instance_type):
            return True
        ours = self._ultraserver(option.offer_group.target)
        if self._begun and self._is_one(option.offering) and ours not in self._begun:
            return False  # its other nodes are in another one
        key = option.offer_group.pool.name, option.offering
        self._apart.setdefault(key, []).append(option)
        return True

    def shares(self, nodes: int) -> Iterator[Sequence[Share]]:
        """How to have so many nodes of one offering from several reservations, where none has all
        of them; each time over as few UltraServers as do.
        """
        for (_, offering), options in self._apart.items():
            rooms: dict[str, list[Option]] = {}
            for option in options:
                rooms.setdefault(self._ultraserver(option.offer_group.target), []).append(option)
            sizes = {name: sum(map(self._places, each)) for name, each in rooms.items()}
            chosen = _chosen(nodes, sizes, self._begun, is_one=self._is_one(offering))
            if chosen:
                yield list(self._filled(nodes, [o for name in chosen for o in rooms[name]]))

    def _filled(self, nodes: int, options: Sequence[Option]) -> Iterator[Share]:
        for option in options:
            count = min(self._places(option), nodes)
            if count:
                yield option, count
            nodes -= count

    def _is_one(self, offering: Offering) -> bool:
        return self._nodes <= self._reserved.ultraservers.largest(offering)

    def _ultraserver(self, target: str) -> str:
        return self._reserved.ultraservers.of(target)

    def _places(self, option: Option) -> int:
        return int(self._offer_groups.places(option.offer_group, option.offering))


def _chosen(
    nodes: int, sizes: Mapping[str, int], begun: Set[str], *, is_one: bool
) -> Sequence[str]:
    """The UltraServers to fill in this order; (): they have too few places. `sizes`: the places of
    each; `begun`: those that the gang has nodes in, which come first; `is_one`: it has to be one.
    """
    enough = [name for name, size in sizes.items() if size >= nodes]
    if enough:
        return [min(enough, key=lambda name: (name not in begun, sizes[name], name))]
    if is_one or sum(sizes.values()) < nodes:
        return ()
    found: list[str] = []
    for name in sorted(sizes, key=lambda name: (name not in begun, -sizes[name], name)):
        if nodes > 0:
            found.append(name)
            nodes -= sizes[name]
    return found
