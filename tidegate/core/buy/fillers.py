"""Jobs for what is left of a node: which of the waiting ones are tried, and in which order."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tidegate.core.buy.groups import Group
from tidegate.core.offers.cost import Expected
from tidegate.core.offers.offers import Fitting
from tidegate.core.offers.ranges import OfferGroup

# How many groups are tried for the room that the first leaves on a node.
FILLERS_MAX = 48
PARTNERS_MAX = 6

# After so many looks at groups of one size those without jobs are left out.
PRUNE_EVERY = 64


@dataclass(slots=True, eq=False)
class Item:
    """The jobs of a group as bin packing sees them: its items, of which `left` have no bin yet.

    `worth_usd`: the price of one of them by itself. `is_shared`: they ask for parts of GPUs.
    """

    group: Group
    left: int
    choices: list[tuple[float, OfferGroup, int]]
    fitting: tuple[Fitting, ...]
    worth_usd: float
    hazard_max: float
    known: dict[tuple[float, float, float | None], Expected] = field(default_factory=dict)
    masks: dict[OfferGroup, int] = field(default_factory=dict)
    is_shared: bool = False

    def on(self, offer_group: OfferGroup) -> Expected:
        """What one of them needs of a node."""
        key = offer_group.pool.boot_s, offer_group.hazard_per_hour, offer_group.pool.checkpoint_s
        if key not in self.known:
            self.known[key] = offer_group.expected(self.group.need)
        return self.known[key]


class LargestFirst:
    """Groups with GPUs, those with most of them first."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = sorted(items, key=_most_first)
        self._keys = [-item.group.size[0] for item in self._items]

    def fitting(self, room: Sequence[int]) -> Iterator[Item]:
        """Some that do not ask too many GPUs and have jobs left."""
        start = bisect_left(self._keys, -room[0])
        seen = empty = 0
        for position in range(start, len(self._items)):
            item = self._items[position]
            if not item.left:
                empty += 1
                continue
            seen += 1
            if seen > FILLERS_MAX:
                break
            yield item
        if empty > FILLERS_MAX:
            self._items = [item for item in self._items if item.left]
            self._keys = [-item.group.size[0] for item in self._items]


def _most_first(item: Item) -> tuple[int, int, int]:
    gpus, cpus, _ = item.group.size
    return -gpus, -cpus, item.group.number


class BestFit:
    """Groups without GPUs: of those with most CPUs that fit, the one with most memory that does.

    What is left of a node is then used up in both.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._by_cpus: dict[int, tuple[list[int], list[Item]]] = {}
        for item in sorted(items, key=lambda e: (-e.group.size[2], e.group.number)):
            keys, same = self._by_cpus.setdefault(item.group.size[1], ([], []))
            keys.append(-item.group.size[2])
            same.append(item)
        self._cpus = sorted(self._by_cpus, reverse=True)
        self._asked = dict.fromkeys(self._cpus, 0)

    def fitting(self, room: Sequence[int]) -> Iterator[Item]:
        """Some that fit and have jobs left; `room` shrinks as they are taken.

        First those that take no more than their share of the memory, by the CPUs that they
        take: what is left then suits what comes next. Then whatever fits.
        """
        seen = 0
        for is_share in (True, False):
            for cpus in self._cpus:
                if cpus > room[1]:
                    continue
                keys, items = self._with_jobs(cpus)
                position, end = 0, len(items)
                while cpus <= room[1] and seen < FILLERS_MAX:
                    most = room[2] * cpus // room[1] if is_share else room[2]
                    position = bisect_left(keys, -most, position)
                    while position < end and not items[position].left:
                        position += 1
                    if position == end:
                        break
                    yield items[position]
                    position += 1
                    seen += 1

    def _with_jobs(self, cpus: int) -> tuple[list[int], list[Item]]:
        """The groups with so many CPUs; most of them have jobs left."""
        keys, items = self._by_cpus[cpus]
        self._asked[cpus] += 1
        if self._asked[cpus] > PRUNE_EVERY:
            self._asked[cpus] = 0
            items = [item for item in items if item.left]
            keys = [-item.group.size[2] for item in items]
            self._by_cpus[cpus] = keys, items
        return keys, items


class ByMemory:
    """Groups by their memory per CPU, the least first."""

    def __init__(self, items: Sequence[Item]) -> None:
        def per_cpu(item: Item) -> tuple[float, int]:
            return item.group.size[2] / item.group.size[1], item.group.number

        self._items = sorted(items, key=per_cpu)

    def ends(self, *, is_least: bool) -> list[Item]:
        """A few that have jobs left, with the least or with the most memory per CPU."""
        items = self._items if is_least else reversed(self._items)
        found = list(islice((item for item in items if item.left), PARTNERS_MAX))
        if len(found) < PARTNERS_MAX:
            self._items = [item for item in self._items if item.left]
        return found


def spare_usd(items: Sequence[Item]) -> tuple[float, float]:
    """USD per hour of a CPU and of a MiB that jobs without GPUs would pay for elsewhere.

    What a mix of the two best types for them costs, as a linear program would have it.
    """
    offer_group = next((e.choices[0][1] for e in items if not e.choices[0][1].is_paid_for), None)
    if offer_group is None:
        return 0.0, 0.0
    cpus = sum(item.left * item.group.size[1] for item in items)
    mib = sum(item.left * item.group.size[2] for item in items)
    return offer_group.catalogue.mix(mib / cpus)
