"""Jobs for what is left of a node: which of the waiting ones are tried, and in which order."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from tidegate.core.buy.groups import Group
from tidegate.core.offers.offers import Fitting, OfferGroup

# How many groups are tried for the room that the first leaves on a node.
FILLERS_MAX = 48
PARTNERS_MAX = 6

# After so many looks at groups of one size those without jobs are left out.
PRUNE_EVERY = 64


@dataclass(slots=True, eq=False)
class Lot:
    """A group while the blueprint is drawn. `worth_usd`: the price of one job by itself."""

    group: Group
    left: int
    choices: list[tuple[float, OfferGroup, int]]
    fitting: tuple[Fitting, ...]
    worth_usd: float
    hazard_max: float
    hours: dict[tuple[float, float, float | None], float] = field(default_factory=dict)
    masks: dict[OfferGroup, int] = field(default_factory=dict)

    def hours_on(self, offer_group: OfferGroup) -> float:
        key = offer_group.pool.boot_s, offer_group.hazard_per_hour, offer_group.pool.checkpoint_s
        if key not in self.hours:
            self.hours[key] = offer_group.hours(self.group.need)
        return self.hours[key]


class LargestFirst:
    """Groups with GPUs, those with most of them first."""

    def __init__(self, loads: Sequence[Lot]) -> None:
        self._loads = sorted(loads, key=_most_first)
        self._keys = [-load.group.size[0] for load in self._loads]

    def fitting(self, room: Sequence[int]) -> Iterator[Lot]:
        """Some that do not ask too many GPUs and have jobs left."""
        start = bisect_left(self._keys, -room[0])
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
            self._keys = [-load.group.size[0] for load in self._loads]


def _most_first(load: Lot) -> tuple[int, int, int]:
    gpus, cpus, _ = load.group.size
    return -gpus, -cpus, load.group.number


class BestFit:
    """Groups without GPUs: of those with most CPUs that fit, the one with most memory that does.

    What is left of a node is then used up in both.
    """

    def __init__(self, loads: Sequence[Lot]) -> None:
        self._by_cpus: dict[int, tuple[list[int], list[Lot]]] = {}
        for load in sorted(loads, key=lambda e: (-e.group.size[2], e.group.number)):
            keys, same = self._by_cpus.setdefault(load.group.size[1], ([], []))
            keys.append(-load.group.size[2])
            same.append(load)
        self._cpus = sorted(self._by_cpus, reverse=True)
        self._asked = dict.fromkeys(self._cpus, 0)

    def fitting(self, room: Sequence[int]) -> Iterator[Lot]:
        """Some that fit and have jobs left; `room` shrinks as they are taken.

        First those that take no more than their share of the memory, by the CPUs that they
        take: what is left then suits what comes next. Then whatever fits.
        """
        seen = 0
        for is_share in (True, False):
            for cpus in self._cpus:
                if cpus > room[1]:
                    continue
                keys, loads = self._with_jobs(cpus)
                position, end = 0, len(loads)
                while cpus <= room[1] and seen < FILLERS_MAX:
                    most = room[2] * cpus // room[1] if is_share else room[2]
                    position = bisect_left(keys, -most, position)
                    while position < end and not loads[position].left:
                        position += 1
                    if position == end:
                        break
                    yield loads[position]
                    position += 1
                    seen += 1

    def _with_jobs(self, cpus: int) -> tuple[list[int], list[Lot]]:
        """The groups with so many CPUs; most of them have jobs left."""
        keys, loads = self._by_cpus[cpus]
        self._asked[cpus] += 1
        if self._asked[cpus] > PRUNE_EVERY:
            self._asked[cpus] = 0
            loads = [load for load in loads if load.left]
            keys = [-load.group.size[2] for load in loads]
            self._by_cpus[cpus] = keys, loads
        return keys, loads


class ByMemory:
    """Groups by their memory per CPU, the least first."""

    def __init__(self, loads: Sequence[Lot]) -> None:
        def per_cpu(load: Lot) -> tuple[float, int]:
            return load.group.size[2] / load.group.size[1], load.group.number

        self._loads = sorted(loads, key=per_cpu)

    def ends(self, *, is_least: bool) -> list[Lot]:
        """A few that have jobs left, with the least or with the most memory per CPU."""
        loads = self._loads if is_least else reversed(self._loads)
        found = list(islice((load for load in loads if load.left), PARTNERS_MAX))
        if len(found) < PARTNERS_MAX:
            self._loads = [load for load in self._loads if load.left]
        return found


def spare_usd(loads: Sequence[Lot]) -> tuple[float, float]:
    """USD per hour of a CPU and of a MiB that jobs without GPUs would pay for elsewhere.

    What a mix of the two best types for them costs, as a linear program would have it.
    """
    offer_group = next(
        (e.choices[0][1] for e in loads if not e.choices[0][1].market.is_prepaid), None
    )
    if offer_group is None:
        return 0.0, 0.0
    cpus = sum(load.left * load.group.size[1] for load in loads)
    mib = sum(load.left * load.group.size[2] for load in loads)
    return offer_group.catalogue.mix(mib / cpus)
