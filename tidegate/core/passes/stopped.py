"""Nodes that are stopped instead of terminated, and started instead of bought."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tidegate.core.buy.dealing import all_jobs_of, jobs_of, shares
from tidegate.core.fleet.judge import RELEASED
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.starts import stopped_room
from tidegate.core.fleet.stopped import is_startable, of_stopped, stands, stopped_of, why_outdated
from tidegate.core.model.cluster import Pool
from tidegate.core.model.drain_reason import DrainCode
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import Launch, NodeRecord
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action, Stop, Terminate
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.sooner_start import SoonerStarts

type _Ready = defaultdict[tuple[str, Offering], list[NodeRecord]]
"""What could be started now, by pool and offering."""

type _Taken = tuple[str, NodeRecord, str]
"""A node that is started, the gang for which it is ("": for none), and why it is, where the launch
would have bought something cheaper.
"""


def stop_instead(
    snapshot: Snapshot, ours: Iterable[Member], actions: Iterable[Action]
) -> list[Action]:
    """The same, but what idled out is stopped as far as its pool has room for that.

    Only what was released since it idled and is what its pool makes now, on demand: EC2 stops no
    spot instance of a fleet, and what is paid for in advance would stand empty. Nothing of a
    placement group, in which a stopped instance stays: it would start near the rest of its gang
    alone, and what EC2 has no room for there would rest as if there were none in the zone.
    Source: EC2 user guide, "Placement strategies", cluster placement groups.
    """
    if not any(pool.stopped_nodes for pool in snapshot.cluster.pools):
        return list(actions)
    members = {each.instance_id: each for each in ours}
    room = stopped_room(snapshot)
    found: list[Action] = []
    stopping: dict[str, list[str]] = defaultdict(list)
    for action in actions:
        if not isinstance(action, Terminate) or action.reason != RELEASED:
            found.append(action)
            continue
        ending: list[str] = []
        for name in action.instance_ids:
            pool = _may_stop(members[name], snapshot)
            if pool and room[pool.name] > 0:
                room[pool.name] -= 1
                stopping[pool.name].append(name)
            else:
                ending.append(name)
        if ending:
            found.append(replace(action, instance_ids=tuple(ending)))
    for name, names in sorted(stopping.items()):
        why = f"they idled, and pool {name} keeps such nodes stopped"
        found.append(Stop(tuple(names), why))
    return found


def end_stale(snapshot: Snapshot, ours: Iterable[Member]) -> Iterator[Action]:
    """Stopped nodes that are of no more use end while the head is silent as well: a cluster that is
    stopped over a weekend would pay for their disks. What runs again Slurm may have.
    """
    standing = [each for each in ours if stands(each)]
    for each in standing:
        if each.instance is not None and each.instance.is_stopped:
            found = of_stopped(each, snapshot)
            yield from (action for action in found if isinstance(action, Terminate))


def _may_stop(member: Member, snapshot: Snapshot) -> Pool | None:
    """The pool of a node that may be of use again as it is; None: it may not."""
    record, instance = member.record, member.instance
    pool = snapshot.cluster.pool(member.pool)
    if record is None or instance is None or pool is None or not instance.is_alive:
        return None
    order = record.order
    was_idle = order and order.kind is OrderKind.RELEASE and order.code == DrainCode.EMPTY
    is_well = not (record.reclaim_at_s or record.cordon or record.is_orphan or record.layout)
    is_on_demand = member.offering.market is Market.ON_DEMAND and (
        record.offering.market is Market.ON_DEMAND and not instance.capacity_reservation_id
    )
    is_free = is_on_demand and not instance.placement_group
    is_of_use = was_idle and is_well and is_free and pool.may_have(member.offering)
    return pool if is_of_use and not why_outdated(record, pool, snapshot) else None


def start_stopped(
    sooner: SoonerStarts, ours: Iterable[Member], launches: Sequence[Launch], launches_max: int
) -> Iterator[Launch]:
    """The launches, of which some start what is stopped instead of buying the same.

    Only what a launch would buy before all else: what EC2 gives instead may be dearer. And instead
    of spot that has to boot, where that pays (`tidegate.core.passes.sooner_start`). Of a gang
    all that it lacks, from one zone, or nothing: beside one that boots it would start no sooner.
    Nothing for gangs of a pool with placement groups, in which no stopped node is, nor where GPUs
    are cut in another way than the pool's.
    """
    snapshot = sooner.snapshot
    if not any(pool.stopped_nodes for pool in snapshot.cluster.pools):
        yield from launches
        return
    stock = _Stock(sooner, _ready(snapshot, ours), launches_max - len(launches))
    found = {id(each): taken for gang in _together(launches) for each, taken in stock.take(gang)}
    number = len(launches)
    for planned in launches:
        launch, taken = _explained(planned, snapshot), found[id(planned)]
        for index, each in enumerate(taken):
            launch_id = f"{snapshot.epoch}-{number}"
            yield _start(snapshot, launch, each, jobs_of(launch, index), launch_id)
            number += 1
        if len(taken) < launch.count:
            yield _rest_of(launch, len(taken)) if taken else launch


def _ready(snapshot: Snapshot, ours: Iterable[Member]) -> _Ready:
    """What could be started now, the one that was stopped last first: what is not wanted stands
    longest, and goes.
    """
    ready: _Ready = defaultdict(list)
    resting = {each.offering for each in snapshot.resting if each.until_s > snapshot.now_s}
    for each in ours:
        if each.record and each.record.offering not in resting and is_startable(each, snapshot):
            ready[each.pool, each.record.offering].append(each.record)
    for those in ready.values():
        those.sort(key=lambda one: (-(one.stopped_at_s or 0.0), one.instance_id))
    return ready


def _explained(launch: Launch, snapshot: Snapshot) -> Launch:
    """With why nothing is started instead, where that is not the pool's own doing."""
    is_kept = bool(stopped_of(snapshot, launch.pool))
    if not is_kept or not snapshot.is_start_denied(launch.pool):
        return launch
    said = f"; stopped nodes of pool {launch.pool} are not started: EC2 denies it"
    return replace(launch, reason=launch.reason + said)


def _together(launches: Sequence[Launch]) -> Iterable[list[Launch]]:
    """Launches that are parts of one gang, which is started as a whole."""
    found: dict[str, list[Launch]] = {}
    for each in launches:
        found.setdefault(each.gated_for or f"launch {each.launch_id}", []).append(each)
    return found.values()


@dataclass
class _Stock:
    """What could be started yet, and how many launches more the plan may hold."""

    sooner: SoonerStarts
    ready: _Ready
    room: int

    def take(self, gang: Sequence[Launch]) -> list[tuple[Launch, list[_Taken]]]:
        """Which nodes are started for which gang, instead of some or all of each launch's. Of a
        gang of several launches every node is, or none.
        """
        ready, room = {key: list(those) for key, those in self.ready.items()}, self.room
        if len(gang) == 1:
            return [(gang[0], self._take(gang[0]) or self._take_sooner(gang[0]))]
        found = [(each, self._take(each)) for each in gang]
        if any(len(taken) < each.count for each, taken in found):
            self.ready, self.room = defaultdict(list, ready), room
            return [(each, []) for each in gang]
        return found

    def _take(self, launch: Launch) -> list[_Taken]:
        found: list[_Taken] = []
        alike = _alike(launch, self.sooner.snapshot)
        for gang, count in _units(launch):
            records = self._of_one_zone(launch, alike, count)
            if not records or not self._has_room(launch, len(found) + count):
                break
            self._remove(launch, records)
            found.extend((gang, each, "") for each in records)
        self.room -= len(found) - (len(found) == launch.count)
        return found

    def _take_sooner(self, launch: Launch) -> list[_Taken]:
        """Of what costs more than the launch's spot, as far as that pays and limits allow it."""
        found: list[_Taken] = []
        if not _may_start(launch, self.sooner.snapshot):
            return found
        for gang, count in _units(launch):
            jobs = (gang,) if gang else all_jobs_of(launch, len(found))
            whys = dict(self.sooner.instead(launch, jobs))
            records = self._of_one_zone(launch, list(whys), count)
            if not records or not self._has_room(launch, len(found) + count):
                break
            dearest = max((each.offering for each in records), key=list(whys).index)
            if not self.sooner.take(launch, dearest, count):
                break
            self._remove(launch, records)
            found.extend((gang, each, whys[each.offering]) for each in records)
        self.room -= len(found) - (len(found) == launch.count)
        return found

    def _has_room(self, launch: Launch, begun: int) -> bool:
        return begun - (begun == launch.count) <= self.room

    def _remove(self, launch: Launch, records: Iterable[NodeRecord]) -> None:
        for each in records:
            self.ready[launch.pool, each.offering].remove(each)

    def _of_one_zone(
        self, launch: Launch, offerings: Iterable[Offering], count: int
    ) -> list[NodeRecord]:
        """So many of these, of the zone that is tried first; []: no zone has as many."""
        zones: dict[str, list[NodeRecord]] = {}
        for on in offerings:
            those = (one for one in self.ready[launch.pool, on] if _is_made_alike(one, launch))
            zones.setdefault(on.zone, []).extend(those)
        return next((those[:count] for those in zones.values() if len(those) >= count), [])


def _units(launch: Launch) -> Sequence[tuple[str, int]]:
    """What is started whole or not at all: its gangs with their nodes, else each node."""
    return shares(launch) if launch.gated_for else (("", 1),) * launch.count


def _alike(launch: Launch, snapshot: Snapshot) -> list[Offering]:
    """What is started instead: offerings of the launch that cost no more than its first."""
    first, prices = launch.offerings[0], snapshot.cluster.prices
    if first.market is not Market.ON_DEMAND or not _may_start(launch, snapshot):
        return []
    usd = prices.get(first, launch.usd_per_hour_each)
    return [each for each in launch.offerings if prices.get(each, usd) <= usd]


def _may_start(launch: Launch, snapshot: Snapshot) -> bool:
    """No stopped node is in a placement group, nor are its GPUs cut in another way than its
    pool's.
    """
    pool = snapshot.cluster.pool(launch.pool)
    is_grouped = bool(launch.gated_for and pool and pool.placement_group)
    return not (is_grouped or launch.layout)


def _is_made_alike(record: NodeRecord, launch: Launch) -> bool:
    digest = launch.template.digest if launch.template else ""
    return not digest or record.template in ("", digest)


def _start(
    snapshot: Snapshot,
    launch: Launch,
    taken: _Taken,
    jobs: tuple[str, ...],
    launch_id: str,
) -> Launch:
    gang, record, why = taken
    instead = f"instead of a new one {why}; " if why else "instead of a new one: "
    usd = snapshot.cluster.prices.get(record.offering, launch.usd_per_hour_each)
    return replace(
        launch,
        launch_id=launch_id,
        offerings=(record.offering,),
        count=1,
        min_count=min(launch.min_count, 1),
        for_jobs=(gang,) if gang in launch.for_jobs else jobs,
        usd_per_hour_each=usd,
        gated_for=gang,
        gangs=(),
        reason=f"{record.instance_id}, which was stopped, {instead}{launch.reason}",
        starts=record.instance_id,
    )


def _rest_of(launch: Launch, num_started: int) -> Launch:
    """What is left to buy, for the jobs that the started ones are not for."""
    count, jobs = launch.count - num_started, launch.for_jobs
    if launch.gangs:
        gangs = launch.gangs[num_started // launch.min_count :]
        return replace(
            launch,
            count=count,
            gated_for=gangs[0],
            gangs=gangs if len(gangs) > 1 else (),
            for_jobs=tuple(dict.fromkeys(gangs)),
        )
    left = jobs[num_started * len(jobs) // launch.count :] if len(jobs) > 1 else jobs
    return replace(launch, count=count, for_jobs=left)
