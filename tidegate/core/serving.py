"""The queue: a place or a reason for every pending job, in Slurm's order."""

from collections.abc import Sequence

from tidegate.core.blueprint import Blueprint
from tidegate.core.demand import Need, demand
from tidegate.core.gangs import complete, give_back, hold
from tidegate.core.groups import Group, grouped
from tidegate.core.pack import BinKind
from tidegate.core.reconcile import Use
from tidegate.core.why import Why, WhyNot, told
from tidegate.core.work import Gang, Work

# After that many new blueprints around limits, groups are planned one by one.
REDRAWS_MAX = 6

SERVED_BECAUSE = {
    BinKind.EXISTING: "nodes that fit are up: Slurm will start it",
    BinKind.IN_FLIGHT: "nodes are booting for it",
    BinKind.FREEING: "a node that fits is free sooner than a new one has booted",
}
BUYING = "nodes are being bought for it"


def serve_queue(work: Work) -> None:
    """Existing nodes first for everybody, then purchases, both in the order of the queue."""
    lost = frozenset(j.member.instance_id for j in work.judged if j.use is Use.LOST)
    needs, unmet = demand(work.digest.reading, work.snapshot.cluster, lost, work.head_now_s)
    work.unmet.update({each.job_id: each for each in unmet})
    queue = grouped(needs)
    work.bins.sort()
    waiting: list[tuple[Need, Group, int, Gang | None]] = []
    for need, group in queue:
        if need.is_gang:
            waiting.extend((need, group, 1, hold(work, need)) for _ in range(need.count))
        elif left := _fill(work, need, group, need.count):
            waiting.append((need, group, left, None))
            group.waiting += left
    _Purchase(work, [group for _, group, _, gang in waiting if gang is None]).run(waiting)


def _fill(work: Work, need: Need, group: Group, count: int) -> int:
    """Put up to `count` jobs on nodes that are there or coming; how many found no place."""
    while count:
        group.position = work.bins.first(need, group.position)
        found = work.bins.at(group.position)
        if found is None:
            return count
        fitting = min(found.room(need.shape), count)
        found.put(need, fitting)
        count -= fitting
        work.note_served(need.job_id, (found.name,) * fitting, SERVED_BECAUSE[found.kind])
    return 0


class _Purchase:
    """Buys for what waits: nodes of a blueprint of all of it, opened in the queue's order.

    Limits are met job by job, so that the first in the queue is the first to be served; a node
    that a limit refuses leads to a new blueprint without its kind.
    """

    def __init__(self, work: Work, groups: Sequence[Group]) -> None:
        self._work = work
        self._groups = list(dict.fromkeys(groups))
        self._blueprint = Blueprint(work.shelves, work.usage)
        self._redraws = 0

    def run(self, waiting: Sequence[tuple[Need, Group, int, Gang | None]]) -> None:
        work = self._work
        if work.snapshot.wanted.is_up:
            self._blueprint.draw(self._groups)
            if not work.gangs:
                self._open_all()
        else:
            stopped = (WhyNot(Why.STOPPED, work.snapshot.wanted.reason),)
            for group in self._groups:
                group.refused, group.refused_because = stopped, told(stopped)
        refused: set[str] = set()
        for need, group, count, gang in waiting:
            if gang is not None:
                if need.job_id in refused:
                    give_back(work, gang)
                elif not complete(work, gang):
                    refused.add(need.job_id)
                continue
            left = _fill(work, need, group, count)
            group.waiting -= count - left
            if left:
                self._buy(need, group, left)

    def _open_all(self) -> None:
        """When no limit is in the way of anybody, nobody has to wait for his turn."""
        configs = list(dict.fromkeys(c for group in self._groups for c in group.configs))
        if self._work.shop.has_room_for(configs):
            for config in configs:
                self._work.shop.open(config, config.left)

    def _buy(self, need: Need, group: Group, count: int) -> None:
        by: list[str] = []
        slots = group.slots
        while len(by) < count:
            if slots:
                slot = slots[0]
                by.append(slot.take())
                slot.draft.for_jobs.append(need.job_id)
                group.waiting -= 1
                if not slot.left:
                    slots.popleft()
            elif not self._open(group):
                break
        if by:
            self._work.note_served(need.job_id, tuple(by), BUYING)
        if len(by) < count:
            group.waiting -= count - len(by)
            self._work.refuse(need.job_id, group.refused, group.refused_because)

    def _open(self, group: Group) -> bool:
        """Buy the next node of the group's; False: there is none for it in this plan."""
        if group.refused:
            return False
        for _ in range(2):
            while group.configs and not group.configs[0].left:
                group.configs.popleft()
            if group.configs and self._work.shop.open(group.configs[0]):
                return True
            if self._work.shop.is_full:
                break
            self._redraw(group)
        group.refused = self._work.refuse_reasons(group.need, 1)
        group.refused_because = told(group.refused)
        return False

    def _redraw(self, group: Group) -> None:
        self._redraws += 1
        is_whole = self._redraws <= REDRAWS_MAX
        self._blueprint.draw(self._groups if is_whole else [group])
