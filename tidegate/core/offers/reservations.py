"""Reservations and capacity blocks: what is left of them, and for how long."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from math import inf

from tidegate.core.demand.demand import Need
from tidegate.core.model.cluster import OPEN, Cluster, Reservation
from tidegate.core.model.ec2 import Instance, Market, Offering
from tidegate.core.model.ledger import LaunchStatus, NodeRecord, Phase
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.ultraservers import ULTRASERVER_DRAIN_S, is_in_ultraserver

# EC2 begins to end the instances of a capacity block 30 min before its end; Karpenter drains
# 10 min earlier, and so do we.
BLOCK_DRAIN_S = 2400.0
# Source: EC2 user guide, "Monitor Capacity Blocks using EventBridge": its warning comes 40 min
# before the end and says that instances begin to end in 10.
BLOCK_NOTICE_S = 600.0


def drain_before_s(instance_type: str) -> float:
    """How long before the end of a capacity block of this type its nodes take no job any more."""
    return ULTRASERVER_DRAIN_S if is_in_ultraserver(instance_type) else BLOCK_DRAIN_S


def active(cluster: Cluster, now_s: float) -> Iterator[Reservation]:
    """Reservations that have begun and have not ended."""
    for each in cluster.reservations:
        ends_at_s = drains_at_s(each)
        if each.starts_at_s <= now_s and (ends_at_s is None or now_s < ends_at_s):
            yield each


def drains_at_s(reservation: Reservation) -> float | None:
    """When nodes of the reservation must be free; None: never."""
    if reservation.ends_at_s is None or reservation.market is not Market.CAPACITY_BLOCK:
        return reservation.ends_at_s
    return reservation.ends_at_s - drain_before_s(reservation.instance_type)


def block_drains_at_s(
    cluster: Cluster, offering: Offering, launched_at_s: float, instance: Instance | None = None
) -> float | None:
    """When a node of a capacity block must be free; None when no block is known for it.

    EC2 tells which block its `instance` is in. As long as it does not, of several blocks the one
    that ends first counts.
    """
    if offering.market is not Market.CAPACITY_BLOCK:
        return None
    its_id = instance.capacity_reservation_id if instance else ""
    for each in cluster.reservations:
        if each.id == its_id:
            return drains_at_s(each)
    ends = [
        each.ends_at_s - drain_before_s(each.instance_type)
        for each in cluster.reservations
        if each.offering == offering and each.ends_at_s and each.starts_at_s <= launched_at_s
    ]
    # A planner that stood still may have launched it right at an end.
    return min((end for end in ends if launched_at_s < end), default=max(ends, default=None))


def _counted(snapshot: Snapshot) -> dict[str, Reservation]:
    """By id, those that a plan may count on: what ends while a planner still acts may not pay for
    what it buys.
    """
    until_s = snapshot.now_s + snapshot.cluster.timings.apply_lease_s
    found = active(snapshot.cluster, snapshot.now_s)
    return {each.id: each for each in found if not _is_over_by(each, until_s)}


@dataclass(slots=True)
class _Room:
    """What is left of an offering in one target. `ends_at_s`: of a block, whose nodes end then."""

    left: int
    ends_at_s: float | None


def _rooms(snapshot: Snapshot) -> dict[tuple[Offering, str], _Room]:
    """By offering and by what a launch names (`Reservation.target`), what lasts longest first, open
    ones last. A launch names a group as a whole: EC2 takes any of its reservations.
    """
    counted = _counted(snapshot)
    taken = _taken(snapshot, counted)
    found: dict[tuple[Offering, str], _Room] = {}
    for each in sorted(counted.values(), key=_longest_first):
        key = each.offering, each.target
        if key not in found:
            is_block = each.market is Market.CAPACITY_BLOCK
            found[key] = _Room(-taken[key], each.ends_at_s if is_block else None)
        found[key].left += each.count
    for offering in {offering for offering, _ in found}:
        _seat(taken[offering, ""], [room for (of, _), room in found.items() if of == offering])
    return found


def _seat(unknown: int, rooms: Sequence[_Room]) -> None:
    """Those of which nobody has said where they are count as filling them in this order."""
    for room in rooms:
        here = min(unknown, max(room.left, 0))
        room.left -= here
        unknown -= here
    rooms[-1].left -= unknown


def _longest_first(each: Reservation) -> tuple[bool, float, str]:
    return not each.is_named, -(each.ends_at_s or inf), each.id


class Ultraservers:
    """Which UltraServer a reservation is a part of: EC2's id of its block, since each UltraServer
    is one; the reservation's own where EC2 does not say it.
    """

    def __init__(self, cluster: Cluster, now_s: float) -> None:
        self._of: dict[str, str] = {}
        self._sizes: Counter[tuple[Offering, str]] = Counter()
        for each in cluster.reservations:
            if not is_in_ultraserver(each.instance_type):
                continue
            self._of[each.id] = each.block or each.id
            if now_s < (drains_at_s(each) or inf):
                self._sizes[each.offering, self._of[each.id]] += each.count

    def of(self, reservation: str) -> str:
        """By the id of a reservation; "": it is of none."""
        return self._of.get(reservation, "")

    def largest(self, offering: Offering) -> int:
        """How many nodes the largest one of the offering has that goes on or is to begin; 0: there
        is none.
        """
        return max((size for (on, _), size in self._sizes.items() if on == offering), default=0)

    def beside(self, near: Set[str]) -> frozenset[str]:
        """All reservations of the UltraServers that these, or reservations among these, are of."""
        meant = {*near, *(self.of(each) for each in near)} - {""}
        return frozenset(near).union(each for each, of in self._of.items() if of in meant)


class ReservedCapacity:
    """How many instances each reservation still holds for us in this plan, by offering and by what
    a launch names (`Reservation.target`).
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._now_s = snapshot.now_s
        self._rooms = _rooms(snapshot) if snapshot.cluster.reservations else {}
        self.ultraservers = Ultraservers(snapshot.cluster, snapshot.now_s)

    def targets(self, market: Market) -> list[str]:
        """Those with places, in the order in which to fill them: those with the fewest first, which
        leaves the others to gangs; of equal ones what lasts longest. Open ones last: EC2 puts there
        what is bought by the hour as well.
        """
        places: Counter[str] = Counter()
        for (offering, target), room in self._rooms.items():
            if offering.market is market and room.left > 0:
                places[target] += room.left
        return sorted(places, key=lambda target: (target == OPEN, places[target]))

    def offerings(self, market: Market, target: str) -> list[Offering]:
        """What the target has places for."""
        found = ((on, room) for (on, of), room in self._rooms.items() if of == target)
        return sorted(on for on, room in found if on.market is market and room.left > 0)

    def left(self, offering: Offering, target: str) -> int:
        """How many more instances of a prepaid offering the target takes."""
        room = self._rooms.get((offering, target))
        return max(room.left, 0) if room else 0

    def left_in_all(self, offering: Offering) -> int:
        """How many more instances of it all its reservations take together."""
        return sum(max(room.left, 0) for (on, _), room in self._rooms.items() if on == offering)

    def holds(self, offering: Offering) -> bool:
        """Whether one of the reservations is of this offering, used up or not."""
        return any(on == offering for on, _ in self._rooms)

    def has_all(self, offering: Offering, target: str) -> bool:
        """Whether it has a place for everything that counts on it, launches in doubt included.

        `target` "": version 0.1 noted none, all of the offering's reservations count.
        """
        rooms = self._rooms.items()
        found = [room.left for (on, of), room in rooms if on == offering and target in ("", of)]
        return bool(found) and sum(found) >= 0

    def take(self, offering: Offering, target: str, count: int) -> None:
        self._rooms[offering, target].left -= count

    def outlasts(self, offering: Offering, target: str, need: Need, boot_s: float) -> bool:
        """Whether a job on it would have ended in time; only the end of a block ends nodes."""
        room = self._rooms.get((offering, target))
        if room is None or room.ends_at_s is None:
            return True
        if need.time_limit_s is None:
            return False
        drains_at_s = room.ends_at_s - drain_before_s(offering.instance_type)
        return self._now_s + boot_s + need.time_limit_s <= drains_at_s


def billed_as(record: NodeRecord) -> Offering:
    """As what EC2 bills a node by its last word: one that costs nothing more was taken in by an
    open reservation.
    """
    is_taken_in = record.usd_per_hour <= 0 and record.offering.market is Market.ON_DEMAND
    return replace(record.offering, market=Market.RESERVED) if is_taken_in else record.offering


def may_leave(cluster: Cluster, offering: Offering, *, known_s: float, until_s: float) -> bool:
    """Whether a node in an open reservation may be out of it by `until_s`, where its price was
    last known at `known_s`: EC2 bills it on demand from the end on.
    """
    ours = (each for each in cluster.reservations if each.offering == offering)
    return any(_is_over_by(each, until_s) and known_s <= (each.ends_at_s or 0.0) for each in ours)


def _is_over_by(each: Reservation, at_s: float) -> bool:
    """Whether EC2 bills by then what an open reservation has paid for."""
    is_open_one = each.market is Market.RESERVED
    return is_open_one and each.ends_at_s is not None and each.ends_at_s <= at_s


def _in_slurm(snapshot: Snapshot) -> Collection[str] | None:
    """The nodes that Slurm has; None: nobody knows them now."""
    if snapshot.digest is None or snapshot.staleness:
        return None
    return {node.name for node in snapshot.digest.reading.nodes}


def _taken(snapshot: Snapshot, counted: Mapping[str, Reservation]) -> Counter[tuple[Offering, str]]:
    """Instances of ours by what they take a place of, those of launches in doubt included: by EC2's
    word, else by what their launch has named; "": nobody has said. What EC2 has in a reservation
    that ends takes none.

    One Describe may leave out what lives: while it boots, or Slurm has it, it counts.
    """
    held: Counter[tuple[Offering, str]] = Counter()
    records = {record.instance_id: record for record in snapshot.nodes}
    shown, in_slurm, in_doubt = set[str](), _in_slurm(snapshot), snapshot.doubted
    for one in snapshot.instances:
        shown.add(one.instance_id)
        if not one.is_alive or one.launch_id in in_doubt:
            continue
        if told := one.capacity_reservation_id:
            if told in counted:
                held[one.offering, counted[told].target] += 1
        else:
            held[one.offering, _named_by(records.get(one.instance_id))] += 1
    for record in snapshot.nodes:
        name, is_booting = record.instance_id, record.phase is Phase.LAUNCHED
        is_seen = is_booting or in_slurm is None or name in in_slurm
        if name not in shown and record.phase.is_alive and is_seen:
            held[billed_as(record), _named_by(record)] += 1
    for recorded in snapshot.launches:
        if recorded.status is LaunchStatus.RECORDED:
            launch = recorded.launch
            held[launch.offerings[0], launch.reservation] += launch.count
    return held


def _named_by(record: NodeRecord | None) -> str:
    if record is None:
        return ""
    return record.reservation if billed_as(record) == record.offering else OPEN
