"""Reservations and capacity blocks: what is left of them, and for how long."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import inf

from tidegate.core.demand.demand import Need
from tidegate.core.model.cluster import Cluster, Reservation
from tidegate.core.model.ec2 import Instance, Market, Offering
from tidegate.core.model.ledger import LaunchStatus, NodeRecord, Phase
from tidegate.core.model.snapshot import Snapshot

# EC2 begins to end the instances of a capacity block 30 min before its end; Karpenter drains
# 10 min earlier, and so do we.
BLOCK_DRAIN_S = 2400.0
# Source: EC2 user guide, "Monitor Capacity Blocks using EventBridge": its warning comes 40 min
# before the end and says that instances begin to end in 10.
BLOCK_NOTICE_S = 600.0


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
    return reservation.ends_at_s - BLOCK_DRAIN_S


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
        each.ends_at_s - BLOCK_DRAIN_S
        for each in cluster.reservations
        if each.offering == offering and each.ends_at_s and each.starts_at_s <= launched_at_s
    ]
    # A planner that stood still may have launched it right at an end.
    return min((end for end in ends if launched_at_s < end), default=max(ends, default=None))


def named_by(snapshot: Snapshot, offering: Offering) -> Reservation | None:
    """The block or targeted reservation that a launch of this offering has to name now.

    None: it is not prepaid, or goes into open reservations.
    """
    if not offering.market.is_prepaid:
        return None
    counted = _counted(snapshot)
    found = [each for each in counted.values() if each.offering == offering]
    if not any(each.is_named for each in found):
        return None
    return _next_room(found, snapshot, _held(snapshot, counted)[offering])[0]


def _counted(snapshot: Snapshot) -> dict[str, Reservation]:
    """By id, those that a plan may count on: what ends while a planner still acts may not pay for
    what it buys.
    """
    until_s = snapshot.now_s + snapshot.cluster.timings.apply_lease_s
    found = active(snapshot.cluster, snapshot.now_s)
    return {each.id: each for each in found if not _is_over_by(each, until_s)}


def _held(snapshot: Snapshot, counted: Collection[str]) -> Counter[Offering]:
    """Instances that take places of these reservations: those of which EC2 says that they are in
    another one, which ends, take none.
    """
    held = in_reservations(snapshot)
    held.subtract(
        one.offering
        for one in snapshot.instances
        if one.is_alive and one.capacity_reservation_id not in ("", *counted)
    )
    return held


def _next_room(
    found: Sequence[Reservation], snapshot: Snapshot, held: int
) -> tuple[Reservation | None, int]:
    """Where the next launch into one of these reservations of an offering goes, and for how many
    instances there is room: into the named one that lasts longest and has room, else into open
    ones (None). A launch names a group as a whole: EC2 takes any of its reservations.

    `held`: how many instances are in them. Those of which EC2 has not said yet in which one they
    are have filled them in this order.
    """
    inside = Counter(i.capacity_reservation_id for i in snapshot.instances if i.is_alive)
    unknown = max(held - sum(inside[each.id] for each in found), 0)
    named = sorted((each for each in found if each.is_named), key=_longest_first)
    of_target: dict[str, list[Reservation]] = {}
    for each in named:
        of_target.setdefault(each.target, []).append(each)
    for these in of_target.values():
        left = sum(max(each.count - inside[each.id], 0) for each in these)
        if unknown < left:
            return these[0], left - unknown
        unknown -= left
    open_ones = [each for each in found if not each.is_named]
    if not open_ones:
        return (named[0] if named else None), 0
    in_open = held - sum(each.count for each in named)
    return None, sum(each.count for each in open_ones) - in_open


def _longest_first(each: Reservation) -> tuple[float, str]:
    return -(each.ends_at_s or inf), each.id


class ReservedCapacity:
    """How many instances each reservation still holds for us in this plan."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._now_s = snapshot.now_s
        self._left: dict[Offering, int] = {}
        self._ends: dict[Offering, float | None] = {}
        if not snapshot.cluster.reservations:
            return
        counted = _counted(snapshot)
        of: dict[Offering, list[Reservation]] = {}
        for _, each in sorted(counted.items()):
            of.setdefault(each.offering, []).append(each)
        held = _held(snapshot, counted) if of else Counter[Offering]()
        for offering, found in of.items():
            # A launch names one of them: the next one waits for the next plan.
            named, self._left[offering] = _next_room(found, snapshot, held[offering])
            is_block = offering.market is Market.CAPACITY_BLOCK
            self._ends[offering] = named.ends_at_s if named and is_block else None

    def offerings(self, market: Market) -> list[Offering]:
        return sorted(o for o, left in self._left.items() if o.market is market and left > 0)

    def left(self, offering: Offering) -> int:
        """How many more instances of a prepaid offering there are."""
        return max(self._left.get(offering, 0), 0)

    def holds(self, offering: Offering) -> bool:
        """Whether one of the reservations is of this offering, used up or not."""
        return offering in self._ends

    def has_all(self, offering: Offering) -> bool:
        """Whether it has a place for everything that counts on it, launches in doubt included."""
        return self.holds(offering) and self._left[offering] >= 0

    def take(self, offering: Offering, count: int) -> None:
        self._left[offering] -= count

    def outlasts(self, offering: Offering, need: Need, boot_s: float) -> bool:
        """Whether a job on it would have ended in time; only the end of a block ends nodes."""
        ends_at_s = self._ends.get(offering)
        if offering.market is not Market.CAPACITY_BLOCK or ends_at_s is None:
            return True
        if need.time_limit_s is None:
            return False
        return self._now_s + boot_s + need.time_limit_s <= ends_at_s - BLOCK_DRAIN_S


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


def in_reservations(snapshot: Snapshot) -> Counter[Offering]:
    """Instances of ours that are in a reservation, those of launches in doubt included.

    One Describe may leave out what lives: while it boots, or Slurm has it, it counts.
    """
    held: Counter[Offering] = Counter()
    alive = {i.instance_id: i.offering for i in snapshot.instances if i.is_alive}
    shown = {i.instance_id for i in snapshot.instances}
    in_slurm = _in_slurm(snapshot)
    for record in snapshot.nodes:
        name, is_booting = record.instance_id, record.phase is Phase.LAUNCHED
        is_seen = is_booting or in_slurm is None or name in in_slurm
        if name not in shown and record.phase.is_alive and is_seen:
            alive[name] = billed_as(record)
    held.update(alive.values())
    in_doubt = snapshot.doubted
    for each in snapshot.instances:
        if each.is_alive and each.launch_id in in_doubt:
            held[each.offering] -= 1
    for recorded in snapshot.launches:
        if recorded.status is LaunchStatus.RECORDED:
            held[recorded.launch.offerings[0]] += recorded.launch.count
    return held
