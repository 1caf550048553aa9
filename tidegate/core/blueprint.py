"""Which nodes would hold a whole queue of one-node jobs at the lowest cost.

Bin packing by groups: the dearest jobs first; for each the types that are cheapest per job are
filled up with others, and the one with the lowest cost for what it holds is repeated as long
as the groups last. The cost goes with the number of groups, not of jobs.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from tidegate.core.catalogue import Entry, Vector, balance, gres, holds, lowest
from tidegate.core.ec2 import Market, Offering
from tidegate.core.groups import Group
from tidegate.core.limits import Usage
from tidegate.core.shelves import Fitting, Shelf, Shelves

# How many groups are tried for the room that the first leaves on a node.
FILLERS_MAX = 48
PARTNERS_MAX = 6
CHOICES_MAX = 5

# A larger node, or one more CreateFleet call, has to be better by this much.
WORTH = 0.995
NEW_TYPE_FACTOR = 1.01


@dataclass(slots=True, eq=False)
class Config:
    """A node's content, to be bought `times` times. `parts`: how many jobs of each group;
    `mask`: the entries of the shelf on which all of them may run.
    """

    shelf: Shelf
    number: int
    parts: tuple[tuple[Group, int], ...]
    mask: int
    times: int
    left: int

    @property
    def entry(self) -> Entry:
        return self.shelf.catalogue.entries[self.number]

    @property
    def size(self) -> Vector:
        """What all its jobs take together."""
        sizes = [(group.size, count) for group, count in self.parts]
        gpus, cpus, memory_mib = (sum(s[d] * n for s, n in sizes) for d in range(3))
        return gpus, cpus, memory_mib


@dataclass(slots=True, eq=False)
class _Load:
    """A group while the blueprint is drawn. `worth_usd`: the price of one job by itself."""

    group: Group
    left: int
    choices: list[tuple[float, Shelf, int]]
    fitting: tuple[Fitting, ...]
    worth_usd: float
    hazard_max: float
    hours: dict[tuple[float, float, float | None], float] = field(default_factory=dict)
    masks: dict[Shelf, int] = field(default_factory=dict)

    def hours_on(self, shelf: Shelf) -> float:
        key = shelf.pool.boot_s, shelf.hazard_per_hour, shelf.pool.checkpoint_s
        if key not in self.hours:
            self.hours[key] = shelf.hours(self.group.need)
        return self.hours[key]


class _Fillers:
    """Groups by how much they take of one dimension, the largest first."""

    def __init__(self, loads: Sequence[_Load], dimension: int) -> None:
        self._dimension = dimension
        key = lambda e: (-e.group.size[dimension], -e.group.size[1], e.group.number)  # noqa: E731
        self._loads = sorted(loads, key=key)
        self._keys = [-load.group.size[dimension] for load in self._loads]

    def fitting(self, room: Sequence[int]) -> Iterator[_Load]:
        """Some that are not too large in this dimension and have jobs left."""
        start = bisect_left(self._keys, -room[self._dimension])
        seen = empty = 0
        for position in range(start, len(self._loads)):
            load = self._loads[position]
            if not load.left:
                empty += 1
                continue
            seen += 1
            if seen > FILLERS_MAX:
                break
            yield load
        if empty > FILLERS_MAX:
            self._loads = [load for load in self._loads if load.left]
            self._keys = [-load.group.size[self._dimension] for load in self._loads]


class _ByMemory:
    """Groups by their memory per CPU, the least first."""

    def __init__(self, loads: Sequence[_Load]) -> None:
        def per_cpu(load: _Load) -> tuple[float, int]:
            return load.group.size[2] / load.group.size[1], load.group.number

        self._loads = sorted(loads, key=per_cpu)

    def ends(self, *, is_least: bool) -> list[_Load]:
        """A few that have jobs left, with the least or with the most memory per CPU."""
        loads = self._loads if is_least else reversed(self._loads)
        found = list(islice((load for load in loads if load.left), PARTNERS_MAX))
        if len(found) < PARTNERS_MAX:
            self._loads = [load for load in self._loads if load.left]
        return found


@dataclass(slots=True, eq=False)
class _Draw:
    cost_per_worth: float
    shelf: Shelf
    number: int
    parts: list[tuple[_Load, int]]


class Blueprint:
    """Draws configs for groups; `usage` keeps types out of which not one node is allowed."""

    def __init__(self, shelves: Shelves, usage: Usage) -> None:
        self._shelves = shelves
        self._usage = usage
        self._allowed: dict[Shelf, int] = {}
        self._stock: dict[Offering, int] = {}
        self._used: set[tuple[Shelf, int]] = set()
        self._with_gpus = _Fillers([], 0)
        self._without = _Fillers([], 1)
        self._by_memory = _ByMemory([])

    def draw(self, groups: Sequence[Group]) -> None:
        """Give each group the configs that hold all of its unplanned jobs, where there are any."""
        self._allowed.clear()
        self._stock.clear()
        loads = [self._load(group, left) for group in groups if (left := group.unplanned) > 0]
        for group in groups:
            for config in group.configs:
                config.left = 0
            group.configs.clear()
        loads = [load for load in loads if load.choices]
        loads.sort(key=lambda load: (-load.worth_usd, load.group.number))
        self._index(loads)
        for load in loads:
            while load.left > 0:
                drawn = self._best(load)
                if drawn is None:
                    break
                self._keep(drawn)

    def _load(self, group: Group, left: int) -> _Load:
        """What the group may choose from: of the first tier that has anything for it."""
        load = _Load(group, left, [], (), 0.0, 0.0)
        for tier in self._shelves.fitting(group.need):
            allowed = ((shelf, mask & self._affordable(shelf)) for shelf, mask in tier)
            load.fitting = _distinct(load, allowed)
            if load.fitting:
                load.masks = dict(tier)
                self._choose(load)
                break
        return load

    def _choose(self, load: _Load) -> None:
        found: list[tuple[float, int, Shelf, int]] = []
        for order, (shelf, mask) in enumerate(load.fitting):
            catalogue, hours = shelf.catalogue, load.hours_on(shelf)
            if load.group.need.shape.is_exclusive:
                first = lowest(mask)
                near = [(catalogue.entries[first].usd_per_hour, first)]
            else:
                near = catalogue.nearest(load.group.size, mask)
            found.extend((price * hours, order, shelf, number) for price, number in near)
        found.sort(key=lambda each: (each[0], each[1], each[3]))
        load.choices = [(cost, shelf, number) for cost, _, shelf, number in found[:CHOICES_MAX]]
        load.worth_usd = load.choices[0][0]
        load.hazard_max = load.choices[0][1].hazard_per_hour

    def _affordable(self, shelf: Shelf) -> int:
        """The entries of which one more node is within every limit and reservation."""
        if shelf not in self._allowed:
            left = self._usage.left(shelf.pool.name)
            allowed = shelf.catalogue.all
            if left is not None:
                allowed = shelf.catalogue.within(left[1]) if left[0] >= 1 else 0
            if shelf.market.is_prepaid:
                for number, each in enumerate(shelf.catalogue.entries):
                    if self._left(each.offering) <= 0:
                        allowed &= ~(1 << number)
            self._allowed[shelf] = allowed
        return self._allowed[shelf]

    def _left(self, offering: Offering) -> int:
        if offering not in self._stock:
            self._stock[offering] = self._shelves.stock.left(offering)
        return self._stock[offering]

    def _index(self, loads: list[_Load]) -> None:
        """Who may fill the rest of a node."""
        sharing = [load for load in loads if not load.group.need.shape.is_exclusive]
        self._with_gpus = _Fillers([load for load in sharing if load.group.size[0]], 0)
        without = [load for load in sharing if not load.group.size[0]]
        self._without, self._by_memory = _Fillers(without, 1), _ByMemory(without)

    def _best(self, load: _Load) -> _Draw | None:
        best: _Draw | None = None
        for shelf, number in self._candidates(load):
            for start in self._starts(load, shelf, number):
                drawn = self._fill(shelf, number, start)
                if best is None or drawn.cost_per_worth < best.cost_per_worth * WORTH:
                    best = drawn
        return best

    def _starts(self, load: _Load, shelf: Shelf, number: int) -> Iterator[list[tuple[_Load, int]]]:
        """What to begin a node with: as many of the group as fit, or a balance of two groups.

        Two shapes of which one wants more memory and the other less than the type has per CPU
        use up both: what a linear program would do with each type.
        """
        size, need = shelf.catalogue.entries[number].size, load.group.size
        if load.group.need.shape.is_exclusive:
            yield [(load, 1)]
            return
        yield [(load, min(load.left, holds(size, need)))]
        if need[0] or size[0]:
            return
        is_memory_short = need[2] * size[1] > need[1] * size[2]
        for other in self._by_memory.ends(is_least=is_memory_short):
            if other is not load and self._fitting(other, shelf, number, list(size)):
                pair = balance(size, need, other.group.size)
                first, second = min(pair[0], load.left), min(pair[1], other.left)
                if first and second:
                    yield [(load, first), (other, second)]

    def _candidates(self, load: _Load) -> list[tuple[Shelf, int]]:
        """The cheapest per job, and the cheapest that holds all that is left; small ones first."""
        found = {(shelf, number): None for _, shelf, number in load.choices}
        size, devices = load.group.size, gres(load.group.need.shape)
        whole = (size[0] * load.left, size[1] * load.left, size[2] * load.left)
        if not load.group.need.shape.is_exclusive:
            for shelf, mask in load.fitting:
                if not size[0] and not shelf.market.is_prepaid:
                    found.update(((shelf, n), None) for n in shelf.catalogue.efficient(mask))
                mask &= shelf.catalogue.fit(whole, devices)
                if mask:
                    found[shelf, lowest(mask)] = None
        available = [
            (shelf, number)
            for shelf, number in found
            if not shelf.market.is_prepaid
            or self._left(shelf.catalogue.entries[number].offering) > 0
        ]
        if not available:
            available = self._without_stock(load)
        return sorted(available, key=lambda e: e[0].catalogue.entries[e[1]].usd_per_hour)

    def _without_stock(self, load: _Load) -> list[tuple[Shelf, int]]:
        """When the reservations are used up: what is paid for by the hour."""
        load.fitting = tuple(each for each in load.fitting if not each[0].market.is_prepaid)
        if not load.fitting:
            for tier in self._shelves.fitting(load.group.need):
                paid = ((s, m & self._affordable(s)) for s, m in tier if not s.market.is_prepaid)
                load.fitting = _distinct(load, paid)
                if load.fitting:
                    load.masks.update(tier)
                    break
        if not load.fitting:
            return []
        self._choose(load)
        return [(shelf, number) for _, shelf, number in load.choices]

    def _fill(self, shelf: Shelf, number: int, start: list[tuple[_Load, int]]) -> _Draw:
        """A node of this entry that begins with `start`, and what fits beside it."""
        each, load = shelf.catalogue.entries[number], start[0][0]
        room = list(each.size)
        worth = hours = 0.0
        for one, count in start:
            hours = max(hours, one.hours_on(shelf))
            worth += count * one.worth_usd
            for d in range(3):
                room[d] -= count * one.group.size[d]
        parts = list(start)
        present = {one for one, _ in start}
        if not load.group.need.shape.is_exclusive and room[1] > 0:
            fillers = self._without.fitting(room)
            if room[0] > 0:
                fillers = chain(self._with_gpus.fitting(room), fillers)
            for other in fillers:
                if room[1] <= 0:
                    break
                if other in present:
                    continue
                fitting = self._fitting(other, shelf, number, room)
                if not fitting:
                    continue
                longer = other.hours_on(shelf) - hours
                if longer > 0:
                    if longer * each.usd_per_hour > fitting * other.worth_usd:
                        continue
                    hours += longer
                for d in range(3):
                    room[d] -= fitting * other.group.size[d]
                parts.append((other, fitting))
                worth += fitting * other.worth_usd
        cost = hours * each.usd_per_hour
        drawn = _Draw(0.0, shelf, number, parts)
        if shelf.is_strict and self._mask(drawn).bit_count() < shelf.pool.min_types:
            return _Draw(cost / load.worth_usd, shelf, number, [(load, 1)])
        if (shelf, number) not in self._used:  # one more CreateFleet call
            cost *= NEW_TYPE_FACTOR
        drawn.cost_per_worth = cost / worth if worth else 0.0
        return drawn

    def _fitting(self, other: _Load, shelf: Shelf, number: int, room: list[int]) -> int:
        """How many jobs of another group fit beside, when they may be on such a node at all."""
        gpus, cpus, memory_mib = other.group.size
        if gpus > room[0] or cpus > room[1] or memory_mib > room[2]:
            return 0
        if shelf.hazard_per_hour > other.hazard_max:
            return 0
        mask = other.masks.get(shelf)
        if mask is None:
            mask = other.masks[shelf] = self._shelves.mask(other.group.need, shelf)
        if not mask >> number & 1:
            return 0
        free = (room[0], room[1], room[2])
        return min(other.left, holds(free, other.group.size))

    def _mask(self, drawn: _Draw) -> int:
        """The entries on which a whole draw may run and that hold it."""
        mask = drawn.shelf.catalogue.all
        for load, _ in drawn.parts:
            mask &= load.masks[drawn.shelf]
        sizes = [(load.group.size, count) for load, count in drawn.parts]
        gpus, cpus, memory_mib = (sum(s[d] * n for s, n in sizes) for d in range(3))
        return mask & drawn.shelf.catalogue.fit((gpus, cpus, memory_mib))

    def _keep(self, drawn: _Draw) -> None:
        times = min(load.left // count for load, count in drawn.parts)
        if drawn.shelf.market in (Market.RESERVED, Market.CAPACITY_BLOCK):
            offering = drawn.shelf.catalogue.entries[drawn.number].offering
            times = min(times, self._left(offering))
            self._stock[offering] -= times
        self._used.add((drawn.shelf, drawn.number))
        parts = tuple((load.group, count) for load, count in drawn.parts)
        mask = self._mask(drawn)
        config = Config(drawn.shelf, drawn.number, parts, mask, times, times)
        for load, count in drawn.parts:
            load.left -= count * times
            load.group.configs.append(config)


def _distinct(load: _Load, fitting: Iterable[Fitting]) -> tuple[Fitting, ...]:
    """Of pools that sell the same things at the same cost only the first."""
    found: dict[tuple[int, int, float], Fitting] = {}
    for shelf, mask in fitting:
        if mask:
            key = id(shelf.catalogue), mask, load.hours_on(shelf)
            found.setdefault(key, (shelf, mask))
    return tuple(found.values())
