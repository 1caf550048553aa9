"""Launches in the making, within every limit and around resting offerings."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tidegate.core.buy.bins import Place
from tidegate.core.buy.blueprint import Config
from tidegate.core.buy.groups import Slot
from tidegate.core.demand.demand import Need
from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import Offering
from tidegate.core.model.ledger import Launch
from tidegate.core.model.slurm import Job
from tidegate.core.offers.catalogue import Vector, bits, vector
from tidegate.core.offers.limits import CLUSTER, Load, Usage
from tidegate.core.offers.offers import Option, Shelf, Shelves

# Each launch is a CreateFleet call of a second or two, and a planner lives 45 s.
LAUNCHES_MAX = 20

# EC2 weighs capacity above our order on spot, so a much dearer type in the same request
# could come although the cheap one is to be had.
OVERRIDE_PRICE_FACTOR = 1.5

# Source: CreateFleet, at most 100 overrides in a request of type instant.
OVERRIDES_MAX = 100

# Source: CreateFleet, MinTargetCapacity is at most 1,000.
MIN_CAPACITY_MAX = 1000

type _KindOfGang = tuple[Shelf, int, int, Offering, int]
"""What may share a launch: the same kind of need, to be bought as the same thing."""


@dataclass(slots=True, eq=False)
class Draft:
    """A launch in the making.

    `each`: what a node of it counts against the limits. `mask`: the entries of the shelf on
    which all its jobs may run; `size`: what the fullest of its nodes holds. `zone` "": any.
    """

    shelf: Shelf
    number: int
    offering: Offering
    each: Load
    mask: int
    size: Vector = (0, 0, 0)
    count: int = 0
    gated_for: str = ""
    zone: str = ""
    kept: str = ""
    for_jobs: list[str] = field(default_factory=list)
    gangs: list[str] = field(default_factory=list)
    share: int = 0

    @property
    def min_count(self) -> int:
        """With fewer none of it is of use."""
        return (self.share or self.count) if self.gated_for else 1

    @property
    def usd_per_hour(self) -> float:
        """The price of its first offering."""
        prices = self.shelf.catalogue.entries[self.number].zones
        return next(usd for usd, offering in prices if offering == self.offering)


class Shop:
    """Collects the launches of one plan. `is_cut`: more could be bought by a further plan."""

    def __init__(self, shelves: Shelves, usage: Usage, launches_max: int) -> None:
        self._shelves = shelves
        self._usage = usage
        self._launches_max = launches_max
        self._drafts: list[Draft] = []
        self._shared: dict[tuple[Shelf, int, str], Draft] = {}
        self._of_gangs: dict[_KindOfGang, Draft] = {}
        self._bounds: dict[str, int] = {}
        self._num_nodes = 0
        self.is_cut = False
        self.is_full = False  # why the last purchase failed: no launch more, not a limit

    def bound(self, pool: str, launches: int) -> None:
        """Begin no more than so many launches for the pool in this plan."""
        self._bounds[pool] = launches

    def _may_begin(self, pool: str, launches: int) -> bool:
        begun = sum(each.shelf.pool.name == pool for each in self._drafts)
        return pool not in self._bounds or begun + launches <= self._bounds[pool]

    def has_room_for(self, configs: Sequence[Config]) -> bool:
        """Whether all nodes of all of them may be bought, so that their order does not matter."""
        nodes: Counter[tuple[Shelf, int]] = Counter()
        loads: dict[str, Load] = defaultdict(Load)
        counts: Counter[str] = Counter()
        for config in configs:
            each = self._load(config.shelf, config.number, config.mask, config.entry.usd_per_hour)
            nodes[config.shelf, config.number] += config.left
            for scope in (config.shelf.pool.name, CLUSTER):
                loads[scope] = loads[scope].plus(each, config.left)
                counts[scope] += config.left
        for (shelf, number), count in nodes.items():
            if shelf.pool.name in self._bounds:
                return False
            offering = shelf.catalogue.entries[number].offering
            if shelf.market.is_prepaid and self._shelves.stock.left(offering) < count:
                return False
        new = sum((shelf, number, "") not in self._shared for shelf, number in nodes)
        return len(self._drafts) + new <= self._launches_max and all(
            self._usage.holds(scope, counts[scope], load) for scope, load in loads.items()
        )

    def open(self, config: Config, nodes: int = 1) -> bool:
        """Buy nodes of the config and give its groups their slots; False: a limit is in the
        way, or the plan holds as many launches as it may, and then `is_full` is set.
        """
        draft = self._draft_for(config.shelf, config.number, config.entry.offering, config.mask)
        if draft is None:
            return False
        if config.left == config.times:  # its first node
            draft.mask &= config.mask
            draft.size = _most(draft.size, config.size)
        config.left -= nodes
        first = self._take(draft, nodes)
        for group, count in config.parts:
            group.slots.append(Slot(draft, first, nodes, count))
        return True

    def keep(self, pool: Pool, why: str) -> bool:
        """Buy the cheapest node of the pool for no job in particular, when there may be one."""
        shelves = [shelf for tier in self._shelves.tiers for shelf in tier if shelf.pool is pool]
        entries = [
            (each.usd_per_hour, each.offering, shelf, number)
            for shelf in shelves
            for number, each in enumerate(shelf.catalogue.entries)
        ]
        for _, offering, shelf, number in sorted(entries, key=lambda each: each[:2]):
            draft = self._draft_for(shelf, number, offering, shelf.catalogue.all, kept=why)
            if draft is not None:
                self._take(draft, 1)
                return True
        return False

    @property
    def bought(self) -> set[tuple[str, Offering]]:
        """What is being bought, by pool; what EC2 may give instead is not in it."""
        return {(each.shelf.pool.name, each.offering) for each in self._drafts}

    @property
    def num_launches(self) -> int:
        return len(self._drafts)

    def num_nodes(self, pool: str) -> int:
        """How many nodes of the pool are being bought."""
        return sum(each.count for each in self._drafts if each.shelf.pool.name == pool)

    def undo(self, num_launches: int) -> None:
        """Take back the launches after the first so many; all of them are of one gang."""
        for draft in self._drafts[num_launches:]:
            if draft.shelf.market.is_prepaid:
                self._shelves.stock.take(draft.offering, -draft.count)
            pool = draft.shelf.pool.name
            self._usage.debit(pool, -draft.count, draft.each, draft.usd_per_hour)
        del self._drafts[num_launches:]

    def buy_gang(self, need: Need, nodes: int, within: Place | None = None) -> list[str]:
        """Buy all of `nodes`, or none; their names. `within`: only there."""
        self.is_full = False
        for option in self._shelves.options(need):
            place = (option.shelf.pool.name, option.offering.zone)
            if within not in (None, place, ("", option.offering.zone)):
                continue
            each = self._load(option.shelf, option.number, option.mask, option.usd_per_hour)
            if not self._has_room(option.shelf, option.offering, nodes, each):
                continue
            shared = self._shared_by(need, option, nodes) if within is None else None
            if shared is not None:
                return list(self._take_share(shared, need))
            chunks = -(-nodes // MIN_CAPACITY_MAX)
            if not self._may_begin(option.shelf.pool.name, chunks):
                continue
            if len(self._drafts) + chunks > self._launches_max:
                self.is_cut = self.is_full = True
                return []
            return list(self._buy_chunks(need, nodes, option, each, is_in_place=within is not None))
        return []

    def _shared_by(self, need: Need, option: Option, nodes: int) -> Draft | None:
        """The launch of equal gangs that has room for one more; None: it needs one of its own.

        What is a part of something larger stands alone: it may have to be taken back. So does
        each gang where the circuit breaker counts launches.
        """
        if need.kind < 0 or need.gang_id or need.beside or option.shelf.pool.name in self._bounds:
            return None
        draft = self._of_gangs.get(_kind_of(need, option))
        if draft is not None and draft.share == nodes and draft.count + nodes <= MIN_CAPACITY_MAX:
            return draft
        return None

    def _take_share(self, draft: Draft, need: Need) -> Iterator[str]:
        draft.gangs.append(need.gang)
        draft.for_jobs.append(need.job_id)
        first = self._take(draft, draft.share)
        for number in range(first, first + draft.share):
            yield f"new {draft.offering.instance_type} {number}"

    def _buy_chunks(
        self, need: Need, nodes: int, option: Option, each: Load, *, is_in_place: bool
    ) -> Iterator[str]:
        """One request can bring all or none of at most 1,000; more have to share a zone."""
        is_whole = nodes <= MIN_CAPACITY_MAX
        is_one_zone = is_in_place or not is_whole or option.shelf.pool.placement_group
        for start in range(0, nodes, MIN_CAPACITY_MAX):
            draft = Draft(
                option.shelf,
                option.number,
                option.offering,
                each,
                option.mask,
                vector(need.shape),
                gated_for=need.gang,
                zone=option.offering.zone if is_one_zone else "",
                for_jobs=[need.job_id],
            )
            self._drafts.append(draft)
            if is_whole and not is_in_place:
                draft.share, draft.gangs = nodes, [need.gang]
                self._of_gangs[_kind_of(need, option)] = draft
            count = min(nodes - start, MIN_CAPACITY_MAX)
            first = self._take(draft, count)
            for number in range(first, first + count):
                yield f"new {option.offering.instance_type} {number}"

    def launches(self, id_prefix: str) -> tuple[Launch, ...]:
        """The launches collected so far; ids follow from the epoch, so they never repeat.

        What may come instead of the first offering is added here, after every job got its
        node: the size of an alternative must not keep a node from a job. What is paid for in
        advance comes first: EC2 takes any node that it fits into an open reservation.
        """
        made: list[Launch] = []
        for number, draft in enumerate(self._drafts):
            offerings = self._offerings(draft)
            made.append(_launch(draft, offerings, f"{id_prefix}-{number}"))
        return tuple(sorted(made, key=_is_paid_by_the_hour))

    def _draft_for(
        self, shelf: Shelf, number: int, offering: Offering, mask: int, *, kept: str = ""
    ) -> Draft | None:
        """The launch that one more such node goes to; None when there may be none."""
        self.is_full = False
        key = (shelf, number, kept)
        draft = self._shared.get(key)
        usd = shelf.catalogue.entries[number].usd_per_hour
        each = draft.each if draft else self._load(shelf, number, mask, usd)
        if not self._has_room(shelf, offering, 1, each):
            return None
        if draft is None:
            if not self._may_begin(shelf.pool.name, 1):
                return None
            if len(self._drafts) >= self._launches_max:
                self.is_cut = self.is_full = True
                return None
            draft = self._shared[key] = Draft(shelf, number, offering, each, mask, kept=kept)
            self._drafts.append(draft)
        return draft

    def _has_room(self, shelf: Shelf, offering: Offering, nodes: int, each: Load) -> bool:
        if shelf.market.is_prepaid and self._shelves.stock.left(offering) < nodes:
            return False
        return self._usage.room(shelf.pool.name, nodes, each)[0] >= nodes

    def _load(self, shelf: Shelf, number: int, mask: int, usd_per_hour: float) -> Load:
        """What a node counts; where several types are demanded, the largest of them counts."""
        entries = shelf.catalogue.entries
        load = Load.of(entries[number].instance_type, usd_per_hour)
        if shelf.is_strict:
            for _, other in zip(range(shelf.pool.min_types), bits(mask), strict=False):
                each = entries[other]
                load = load.most(Load.of(each.instance_type, each.usd_per_hour))
        return load

    def _take(self, draft: Draft, nodes: int) -> int:
        """The number of the first of the nodes."""
        if draft.shelf.market.is_prepaid:
            self._shelves.stock.take(draft.offering, nodes)
        self._usage.debit(draft.shelf.pool.name, nodes, draft.each, draft.usd_per_hour)
        draft.count += nodes
        first = self._num_nodes + 1
        self._num_nodes += nodes
        return first

    def _offerings(self, draft: Draft) -> tuple[Offering, ...]:
        """The first offering and what may stand beside it: same pool and market, like price.

        Beyond a like price only as many types as the pool wants at least.
        """
        if draft.shelf.market.is_prepaid:
            return (draft.offering,)
        catalogue = draft.shelf.catalogue
        mask = draft.mask & catalogue.fit(draft.size) | 1 << draft.number
        found, types = [draft.offering], {draft.number}
        for usd, number, offering in catalogue.by_zone():
            if offering == draft.offering or not mask >> number & 1:
                continue
            if draft.zone not in ("", offering.zone):
                continue
            is_like = usd <= draft.usd_per_hour * OVERRIDE_PRICE_FACTOR
            if not is_like and (number in types or len(types) >= draft.shelf.pool.min_types):
                continue
            wider = draft.each.most(Load.of(catalogue.entries[number].instance_type, usd))
            if self._usage.widen(draft.shelf.pool.name, draft.count, draft.each, wider):
                draft.each = wider
                found.append(offering)
                types.add(number)
            if len(found) == OVERRIDES_MAX:
                break
        return tuple(found)


def owned(launches: Sequence[Launch], jobs: Iterable[Job]) -> Iterator[Launch]:
    """The launches with account and user of the first job of each, who pays for its nodes."""
    first = {each.for_jobs[0] for each in launches if each.for_jobs}
    owners = {job.job_id: job for job in jobs if job.job_id in first} if first else {}
    for each in launches:
        owner = owners.get(each.for_jobs[0]) if each.for_jobs else None
        yield replace(each, account=owner.account, user=owner.user) if owner else each


def _is_paid_by_the_hour(launch: Launch) -> bool:
    return not launch.offerings[0].market.is_prepaid


def _most(one: Vector, other: Vector) -> Vector:
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])


def _kind_of(need: Need, option: Option) -> _KindOfGang:
    return option.shelf, option.number, option.mask, option.offering, need.kind


def _relaxed(draft: Draft, offerings: tuple[Offering, ...]) -> str:
    """What became of the pool's `flexibility`, where there is too little to choose from."""
    pool, named = draft.shelf.pool, len({each.instance_type for each in offerings})
    if named >= pool.min_types or draft.shelf.market.is_prepaid:
        return ""
    return (
        f"; it names {named} of the {pool.min_types} instance types that the pool wants at least "
        "(flexibility), since no other fits the jobs and the limits and is to be had"
    )


def _launch(draft: Draft, offerings: tuple[Offering, ...], launch_id: str) -> Launch:
    jobs = tuple(dict.fromkeys(draft.for_jobs))
    named = ", ".join(jobs[:5]) + (f" and {len(jobs) - 5} more" if len(jobs) > 5 else "")
    gang = ", all or none" if draft.gated_for else ""
    if len(draft.gangs) > 1:
        gang = f", {draft.share} each or none"
    pool = draft.shelf.pool.name
    what = f"{draft.count} x {draft.offering} at {draft.usd_per_hour:.3f} USD per hour"
    if draft.kept:
        reason = f"{what}: {draft.kept}"
    else:
        reason = (
            f"{what} for job {named}{gang}: nothing that exists or boots fits, and this is the "
            f"cheapest in pool {pool}"
        )
    reason += _relaxed(draft, offerings)
    return Launch(
        launch_id=launch_id,
        pool=pool,
        offerings=offerings,
        count=draft.count,
        min_count=draft.min_count,
        for_jobs=jobs,
        usd_per_hour_each=draft.each.usd_per_hour,
        gated_for=draft.gated_for,
        reason=reason,
        gangs=tuple(draft.gangs) if len(draft.gangs) > 1 else (),
    )
