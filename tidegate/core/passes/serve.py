"""The queue: a place or a reason for every pending job, in Slurm's order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from tidegate.core.buy.bins import Bin, BinKind
from tidegate.core.buy.blueprint import Blueprint
from tidegate.core.buy.groups import Group, grouped
from tidegate.core.buy.purchase import Purchase, bound
from tidegate.core.demand.demand import Need, demand
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.model.plan import Unmet
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import WhyNot, told
from tidegate.core.passes.doubt import hope
from tidegate.core.passes.freeing import free_soon
from tidegate.core.passes.gangs import complete, give_back, hold
from tidegate.core.passes.queue import Gang, Queue
from tidegate.core.passes.resume import failed_nodes
from tidegate.core.passes.room import Room

# After that many new blueprints around limits, groups are planned one by one.
REDRAWS_MAX = 6

SERVED_BECAUSE = {
    BinKind.EXISTING: "nodes that fit are up: Slurm will start it",
    BinKind.IN_FLIGHT: "nodes are booting for it",
    BinKind.FREEING: "a node that fits is free sooner than a new one has booted",
}
BUYING = "nodes are being bought for it"


def serve_queue(
    snapshot: Snapshot, room: Room, purchase: Purchase, passed_over: Mapping[str, Unmet]
) -> Queue:
    """Existing nodes first for everybody, then purchases, both in the order of the queue.

    `passed_over`: jobs that get nothing in this plan, and what they hear.
    """
    queue = _read_queue(snapshot, room, passed_over)
    needs = queue.needs
    if not needs:
        return queue
    groups, later = grouped(needs), _Later()
    gangs, left = _give_nodes(room, purchase, queue, groups, later)
    if any(left) and hope(room.bins) | free_soon(snapshot, room):
        _give_more(room, queue, groups, left)
    barred = _barred(purchase, needs, left, groups)
    later.rejoin(left, groups)
    buyer = _Buyer(snapshot, room, purchase, queue, groups)
    for number, need in enumerate(needs):
        if need.is_gang:
            buyer.complete(gangs.get(number, ()))
        elif number in barred:
            # Gangs before it may have given back what they held.
            if _fill(room, queue, need, groups[number], left[number]):
                queue.refuse(need.job_id, (barred[number],), barred[number].sentence)
        elif left[number]:
            buyer.serve(need, groups[number], left[number])
    return queue


def _read_queue(snapshot: Snapshot, room: Room, passed_over: Mapping[str, Unmet]) -> Queue:
    """The queue before anybody has a place: what its jobs need, and which need no node now."""
    fleet, steering = room.fleet, room.steering
    lost = frozenset(j.member.instance_id for j in fleet.judged if j.use is Use.LOST)
    reading, cluster = snapshot.heard.reading, snapshot.cluster
    now_s, failed = snapshot.head_now_s, failed_nodes(fleet)
    needs, unmet = demand(reading, cluster, lost, now_s, passed_over, failed=failed)
    needs = _with_moved(fleet, needs)
    steering.needs = needs
    steering.pending = tuple({need.kind: need for need in needs}.values())
    room.bins.sort()
    return Queue(passed_over, needs, unmet={each.job_id: each for each in unmet})


def _give_nodes(
    room: Room, purchase: Purchase, queue: Queue, groups: Sequence[Group], later: "_Later"
) -> tuple[dict[int, list[Gang]], list[int]]:
    """Give out the nodes that are there or coming: gangs hold theirs, single jobs are put on them.

    Returns the gangs by the number of their first need, and of each need how many jobs have no
    node yet. Those in `later` have none for now.
    """
    left: list[int] = []
    gangs: dict[int, list[Gang]] = {}
    together = _components(queue.needs)
    for number, need in enumerate(queue.needs):
        if need.is_gang:
            left.append(need.count)
            if parts := together.pop(need.gang_id, ()) if need.gang_id else [need]:
                gangs[number] = [hold(room, parts) for _ in range(need.count)]
                queue.gangs += gangs[number]
                later.note(gangs[number])
        elif later.waits(room, purchase, need, groups[number]):
            later.counts[number] = need.count
            left.append(0)
        else:
            group, remaining = groups[number], need.count
            if group.position < room.bins.end:
                remaining = _fill(room, queue, need, group, need.count)
            if remaining:
                room.steering.waits(need)
            group.waiting += remaining
            left.append(remaining)
    return gangs, left


def _give_more(room: Room, queue: Queue, groups: Sequence[Group], left: list[int]) -> None:
    """Put single jobs without a node on those that have been added since."""
    for number, need in enumerate(queue.needs):
        if left[number] and not need.is_gang:
            remaining = _fill(room, queue, need, groups[number], left[number])
            groups[number].waiting -= left[number] - remaining
            left[number] = remaining


def _with_moved(fleet: Fleet, needs: tuple[Need, ...]) -> tuple[Need, ...]:
    """A job of one node for which a node is kept closed, since it was moved, is served as a gang:
    the node opens for it when it may begin.
    """
    gated = {gang for each in fleet.judged if (gang := _gated_for(each))}
    if not gated:
        return needs
    return tuple(
        replace(need, is_gang=True, kind=-1) if need.job_id in gated and need.count == 1 else need
        for need in needs
    )


def _gated_for(judged: Judged) -> str:
    """The gang that alone may start on the node, also while it boots; "": anybody may."""
    return judged.member.gated_for if judged.use is Use.IN_FLIGHT else judged.gated_for


def _barred(
    purchase: Purchase, needs: Sequence[Need], left: Sequence[int], groups: Sequence[Group]
) -> dict[int, WhyNot]:
    """Why nothing is bought for some needs, by number: their payer's budget is spent, or they may
    start on certain nodes only. They no longer count among those that a group buys for.
    """
    found: dict[int, WhyNot] = {}
    is_any_bound = any(group.need.where for group in dict.fromkeys(groups))
    for number, need in enumerate(needs) if purchase.usage.used_up or is_any_bound else ():
        why = bound(need) or purchase.barred(need.payers)
        if why and left[number] and not need.is_gang:
            groups[number].waiting -= left[number]
            found[number] = why
    return found


def _components(needs: Sequence[Need]) -> dict[str, list[Need]]:
    """Needs that start together, by their gang: other jobs may stand between them in the queue."""
    found: dict[str, list[Need]] = {}
    for need in needs:
        if need.gang_id:
            found.setdefault(need.gang_id, []).append(need)
    return found


@dataclass(slots=True)
class _Later:
    """Jobs that get their places once gangs are complete, or have given back what they held.

    A booting node that was bought for a job may be held by a gang that cannot be had. Else the job
    takes meanwhile what was bought for another, who is bought a new node.

    `lent`: the jobs whose nodes gangs hold; `contested`: nodes that these may have or leave.
    """

    lent: set[str] = field(default_factory=set)
    contested: set[Bin] = field(default_factory=set)
    counts: dict[int, int] = field(default_factory=dict)

    def note(self, gangs: Iterable[Gang]) -> None:
        held = (each for gang in gangs for part in gang.parts for each in part.held)
        self.lent.update(job_id for each in held for job_id in each.for_jobs)

    def waits(self, room: Room, purchase: Purchase, need: Need, group: Group) -> bool:
        """Whether the job is one of them. Who has no means for a new node takes what is there."""
        if not self.contested and need.job_id not in self.lent:
            return False
        found = room.bins.at(room.bins.first(need, group.position))
        if found is None or found.kind is not BinKind.IN_FLIGHT:
            return False
        found = room.bins.own(need) or found
        is_anothers = bool(found.for_jobs) and need.job_id not in found.for_jobs
        is_contested = found in self.contested or (need.job_id in self.lent and is_anothers)
        if not is_contested or bound(need) or purchase.barred(need.payers):
            return False
        self.contested.add(found)
        return True

    def rejoin(self, left: list[int], groups: Sequence[Group]) -> None:
        """They are in the queue again."""
        for number, count in self.counts.items():
            left[number] = count
            groups[number].waiting += count


def _fill(room: Room, queue: Queue, need: Need, group: Group, count: int) -> int:
    """Put up to `count` jobs on nodes that are there or coming; how many found no place."""
    bins, steering = room.bins, room.steering
    while count:
        group.position = bins.first(need, group.position)
        found = bins.at(group.position)
        if found is None:
            return count
        if found.kind is not BinKind.EXISTING:
            found = bins.own(need) or found
        fitting = min(found.room(need.shape), count)
        found.put(need, fitting)
        count -= fitting
        reason = SERVED_BECAUSE[found.kind]
        if found.kind is BinKind.EXISTING:
            steering.claimed.add(found.name)
            reason += steering.why_here(found, need)
        else:
            steering.waits(need)
            if found.kind is BinKind.FREEING:
                steering.awaited.add(found.name)
        queue.note_served(need.job_id, (found.name,) * fitting, reason)
    return count


class _Buyer:
    """Buys for what waits: nodes of a blueprint of all of it, opened in the queue's order.

    Limits are met job by job, so that the first in the queue is the first to be served; a node
    that a limit refuses leads to a new blueprint without its kind.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        room: Room,
        purchase: Purchase,
        queue: Queue,
        groups: Sequence[Group],
    ) -> None:
        self._room, self._purchase, self._queue = room, purchase, queue
        self._has_reservations = bool(snapshot.cluster.reservations)
        self._groups = [group for group in dict.fromkeys(groups) if group.waiting]
        self._redraws, self._is_outdated = 0, False
        if not self._groups:
            return
        if stopped := purchase.stopped:
            for group in self._groups:
                group.refused, group.refused_because = (stopped,), told((stopped,))
        else:
            self._blueprint.draw(self._groups)
            if not queue.gangs:
                self._open_all()

    @cached_property
    def _blueprint(self) -> Blueprint:
        of = self._purchase
        return Blueprint(of.offer_groups, of.usage, of.in_use)

    def complete(self, gangs: Sequence[Gang]) -> None:
        """Buy what equal gangs, the tasks of one array, lack; none after the first refusal."""
        is_refused = False
        for gang in gangs:
            if is_refused:
                give_back(self._room.bins, gang)
            else:
                is_refused = not complete(self._room, self._purchase, self._queue, gang)

    def serve(self, need: Need, group: Group, count: int) -> None:
        """Give `count` jobs their places on nodes that are bought, or a reason."""
        queue, slots = self._queue, group.slots
        group.waiting -= count
        if group.position < self._room.bins.end:
            wanted, count = count, _fill(self._room, queue, need, group, count)
            # What is paid for and was meant for it is left for others.
            self._is_outdated |= count < wanted and self._has_reservations
        by: list[tuple[str]] = []
        while count and (slots or self._open(group, count)):
            slot = slots[0]
            by.append(slot.take())
            slot.pending_launch.for_jobs.append(need.job_id)
            count -= 1
            if not slot.left:
                slots.popleft()
        if by:
            names = by[0] if len(by) == 1 else tuple(chain.from_iterable(by))
            queue.note_served(need.job_id, names, BUYING)
        if count and not self._purchase.builder.is_full:
            count = self._fill_closed(need, count)
        if count:
            queue.refuse(need.job_id, group.refused, group.refused_because)

    def _fill_closed(self, need: Need, count: int) -> int:
        """Nothing cheaper can be bought: better on a dear node than not at all."""
        for each in self._room.steering.closed:
            if not count:
                break
            fitting = min(each.room(need.shape) if each.suits(need) else 0, count)
            if fitting:
                each.put(need, fitting)
                count -= fitting
                by = (each.name,) * fitting
                self._queue.note_served(need.job_id, by, SERVED_BECAUSE[each.kind])
        return count

    def _open_all(self) -> None:
        """When no limit is in the way of anybody, nobody has to wait for his turn."""
        configs = list(dict.fromkeys(c for group in self._groups for c in group.configs))
        if self._purchase.builder.has_room_for(configs):
            for config in configs:
                self._purchase.builder.open(config, config.left)

    def _is_passed_over(self, group: Group) -> bool:
        """It would be bought by the hour, what is paid for is meant for somebody behind it in the
        queue, and limits leave no room for both.
        """
        if not self._has_reservations:
            return False
        left = [each for each in group.configs if each.left]
        if not left or left[0].offer_group.market.is_prepaid:
            return False
        configs = list(dict.fromkeys(c for each in self._groups for c in each.configs if c.left))
        is_meant = any(each.offer_group.market.is_prepaid for each in configs)
        return is_meant and not self._purchase.builder.has_room_for(configs)

    def _open(self, group: Group, count: int) -> bool:
        """Buy the next node of the group's; False: there is none for it in this plan."""
        if group.refused:
            return False
        group.waiting += count
        is_open = self._try(group)
        group.waiting -= count
        if not is_open:
            group.refused = self._purchase.why_not(group.need, 1)
            group.refused_because = told(group.refused)
        return is_open

    def _try(self, group: Group) -> bool:
        if self._is_outdated:
            self._is_outdated = False
            self._blueprint.draw(self._groups)
        if self._is_passed_over(group):
            self._blueprint.draw([group])
        for is_last in (False, True):
            while group.configs and not group.configs[0].left:
                group.configs.popleft()
            if group.configs and self._purchase.builder.open(group.configs[0]):
                return True
            if is_last or self._purchase.builder.is_full:
                return False
            self._redraws += 1
            is_whole = self._redraws <= REDRAWS_MAX
            self._blueprint.draw(self._groups if is_whole else [group])
        return False
