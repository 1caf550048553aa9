"""What may be bought in one market, cheapest first, with bit masks that answer what fits.

Bit number i of a mask stands for entry i. Masks are computed once per dimension, so that
asking which of 400 types hold a job costs three searches and three ANDs.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tidegate.core.model.devices import SHARED_GRES
from tidegate.core.model.ec2 import InstanceType, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Shape
from tidegate.core.offers.limits import Load

type Vector = tuple[int, int, int]
"""GPUs, CPUs, MiB of memory."""

# Types within this factor of the cheapest per job are worth a closer look.
NEAR = 1.10
NEAREST_MAX = 4

# So many different jobs are remembered by a catalogue that many plans share.
FITS_MAX = 10_000


# Behind a GRES that GPUs share: of jobs that want a node for themselves.
_ALONE = " alone"


def vector(shape: Shape) -> Vector:
    return shape.gpus, max(shape.cpus, 1), shape.memory_mib


def gres(shape: Shape) -> str:
    """The devices that the shape asks for, as `Catalogue.fit` takes them."""
    alone = _ALONE if shape.is_exclusive and shape.gres in SHARED_GRES else ""
    return f"{shape.gres}:{shape.gpu_type}{alone}" if shape.gpus else ""


def bits(mask: int) -> Iterator[int]:
    """The numbers of the set bits, lowest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def lowest(mask: int) -> int:
    """The number of the lowest set bit; the mask is not 0."""
    return (mask & -mask).bit_length() - 1


@frozen
class Entry:
    """An instance type in one market, with its zones from cheapest to dearest."""

    instance_type: InstanceType
    usd_per_hour: float
    zones: tuple[tuple[float, Offering], ...]
    size: Vector

    @property
    def offering(self) -> Offering:
        return self.zones[0][1]


def entry(instance_type: InstanceType, zones: Sequence[tuple[float, Offering]]) -> Entry:
    """Errors: none; `zones` is not empty."""
    ordered = tuple(sorted(zones))
    size = (instance_type.gpus, instance_type.cpus, instance_type.slurm_memory_mib)
    return Entry(instance_type, ordered[0][0], ordered, size)


@dataclass(slots=True)
class _Ladder:
    """For one dimension: which entries have at least so much."""

    steps: list[float]
    masks: list[int]

    @classmethod
    def of(cls, values: Sequence[float]) -> "_Ladder":
        at: dict[float, int] = {}
        for number, value in enumerate(values):
            at[value] = at.get(value, 0) | 1 << number
        steps = sorted(at)
        masks, above = [0] * len(steps), 0
        for position in range(len(steps) - 1, -1, -1):
            above |= at[steps[position]]
            masks[position] = above
        return cls(steps, masks)

    def at_least(self, value: float) -> int:
        position = bisect_left(self.steps, value)
        return self.masks[position] if position < len(self.masks) else 0

    def above(self, value: float) -> int:
        position = bisect_right(self.steps, value)
        return self.masks[position] if position < len(self.masks) else 0


@dataclass(slots=True)
class Catalogue:
    """Entries sorted by price and name; `uncut`: those whose GPUs are not cut for their jobs."""

    entries: tuple[Entry, ...]
    all: int = 0
    uncut: int = 0
    _ladders: tuple[_Ladder, ...] = ()
    _loads: tuple[_Ladder, ...] = ()
    _gpu_types: dict[str, int] = field(default_factory=dict)
    _shares: dict[str, _Ladder] = field(default_factory=dict)
    _cheapest_per_unit: tuple[tuple[list[float], list[int]], ...] = ()
    _fits: dict[tuple[Vector, str], int] = field(default_factory=dict)
    _per_cpu: list[tuple[float, float, int]] = field(default_factory=list)
    _efficient: dict[int, list[int]] = field(default_factory=dict)
    _by_zone: list[tuple[float, int, Offering]] = field(default_factory=list)

    def __post_init__(self) -> None:
        entries = self.entries
        self.all = (1 << len(entries)) - 1
        self._ladders = tuple(_Ladder.of([e.size[d] for e in entries]) for d in range(3))
        types = [each.instance_type for each in entries]
        self.uncut = sum(1 << number for number, each in enumerate(types) if not each.profiles)
        self._loads = (
            self._ladders[0],
            _Ladder.of([each.vcpus for each in types]),
            _Ladder.of([each.memory_mib for each in types]),
            _Ladder.of([each.usd_per_hour for each in entries]),
        )
        for number, each in enumerate(types):
            if each.gpus and not each.profiles:
                for key in (f"{each.gres}:{each.gpu_type}", f"{each.gres}:"):
                    self._gpu_types[key] = self._gpu_types.get(key, 0) | 1 << number
        self._shares = _share_ladders(types)
        self._cheapest_per_unit = tuple(_per_unit(entries, d) for d in range(3))

    def fit(self, need: Vector, gres: str = "") -> int:
        """The entries that hold this much on one node. `gres`: "gpu:a10g", "gpu:" for GPUs of
        any type, "" for devices of any kind.
        """
        key = need, gres
        found = self._fits.get(key)
        if found is None:
            if len(self._fits) >= FITS_MAX:
                self._fits.clear()
            found = self.all
            for ladder, value in zip(self._ladders[1:], need[1:], strict=True):
                if value > 0:
                    found &= ladder.at_least(value)
            if need[0]:
                whole = self._ladders[0].at_least(need[0])
                whole &= self._gpu_types.get(gres, 0) if gres else self.all
                shares = self._shares.get(gres)
                found &= whole | (shares.at_least(need[0]) if shares else 0)
            self._fits[key] = found
        return found

    def within(self, left: Load) -> int:
        """The entries of which one node is no more than `left`."""
        values = left.gpus, left.vcpus, left.memory_mib, left.usd_per_hour
        over = 0
        for ladder, value in zip(self._loads, values, strict=True):
            over |= ladder.above(value)
        return self.all & ~over

    def nearest(self, need: Vector, mask: int) -> list[tuple[float, int]]:
        """The entries of `mask` that are cheapest per job, with that price; best first.

        No entry is cheaper per job than its price per unit of any dimension allows, which
        cuts the search short.
        """
        best = min(self._first_prices(need, mask), default=float("inf"))
        if best == float("inf"):
            return []
        found: list[tuple[float, int]] = []
        shortest = min(
            (
                (bisect_right(prices, best * NEAR / need[d]), order)
                for d, (prices, order) in enumerate(self._cheapest_per_unit)
                if need[d] > 0
            ),
            key=lambda each: each[0],
        )
        for number in shortest[1][: shortest[0]]:
            if mask >> number & 1:
                price = self.price_per_job(need, number)
                if price <= best * NEAR:
                    found.append((price, number))
                    best = min(best, price)
        found = sorted(each for each in found if each[0] <= best * NEAR)
        return found[:NEAREST_MAX]

    def efficient(self, mask: int) -> list[int]:
        """The entries of `mask` that give most for their price, each for another mix of CPUs and
        memory: groups that complement each other fill such a type without loss.
        """
        found = self._efficient.get(mask)
        if found is None:
            if not self._per_cpu:
                self._per_cpu = _per_cpu(self.entries)
            found = self._efficient[mask] = _hull(
                each for each in self._per_cpu if mask >> each[2] & 1
            )
        return found

    def mix(self, mib_per_cpu: float) -> tuple[float, float]:
        """USD per hour of a CPU and of a MiB in the cheapest mix of nodes with so much of both."""
        hull = [self.entries[number] for number in self.efficient(self.all)]
        points = [(e.size[2] / e.size[1], e.usd_per_hour / e.size[1]) for e in hull]
        if not points or mib_per_cpu <= points[0][0]:
            return (points[0][1], 0.0) if points else (0.0, 0.0)
        for (less, at_less), (more, at_more) in pairwise(points):
            if mib_per_cpu <= more:
                mib_usd = (at_more - at_less) / (more - less)
                return at_less - mib_usd * less, mib_usd
        return 0.0, points[-1][1] / points[-1][0]

    def by_zone(self) -> list[tuple[float, int, Offering]]:
        """Every offering with its price and the number of its entry, cheapest first."""
        if not self._by_zone:
            self._by_zone = sorted(
                (usd, number, offering)
                for number, each in enumerate(self.entries)
                for usd, offering in each.zones
            )
        return self._by_zone

    def price_per_job(self, need: Vector, number: int) -> float:
        """What a job costs on a node that is full of such jobs; the entry holds at least one."""
        each = self.entries[number]
        return each.usd_per_hour / holds(each.size, need)

    def _first_prices(self, need: Vector, mask: int) -> Iterator[float]:
        """Good prices to begin with: those of the entries best by one dimension."""
        if mask:
            yield self.price_per_job(need, lowest(mask))
        for dimension, (_, order) in enumerate(self._cheapest_per_unit):
            if need[dimension] > 0:
                fitting = (number for number in order if mask >> number & 1)
                for number in fitting:
                    yield self.price_per_job(need, number)
                    break


def _share_ladders(types: Sequence[InstanceType]) -> dict[str, _Ladder]:
    """By the GRES of a part of a GPU: of how many parts a node of each type is made at most, of
    shards one GPU of it.
    """
    most: dict[str, list[float]] = {}
    for number, each in enumerate(types):
        parts = {f"gpu:{one.gpu_type}": each.gpus * one.most for one in each.profiles}
        if each.shards_per_gpu:
            names = (f"{each.shared_gres}:", f"{each.shared_gres}:{each.gpu_type}")
            alone = tuple(f"{name}{_ALONE}" for name in names) if each.gpus == 1 else ()
            parts |= dict.fromkeys((*names, *alone), each.shards_per_gpu)
        for gres, count in parts.items():
            most.setdefault(gres, [0.0] * len(types))[number] = count
    return {gres: _Ladder.of(counts) for gres, counts in most.items()}


def _per_unit(entries: Sequence[Entry], dimension: int) -> tuple[list[float], list[int]]:
    """Price per unit of a dimension, ascending, and whose it is."""
    priced = sorted(
        (each.usd_per_hour / each.size[dimension], number)
        for number, each in enumerate(entries)
        if each.size[dimension]
    )
    return [price for price, _ in priced], [number for _, number in priced]


def _per_cpu(entries: Sequence[Entry]) -> list[tuple[float, float, int]]:
    """Price and memory per CPU, the cheapest first, of like ones that with most memory."""
    return sorted(
        (e.usd_per_hour / e.size[1], -e.size[2] / e.size[1], n) for n, e in enumerate(entries)
    )


def _hull(priced: Iterable[tuple[float, float, int]]) -> list[int]:
    """Of entries by price those on the lower convex hull of price over memory.

    Whatever a MiB counts where a CPU counts 1, one of these gives most for its price.
    """
    kept: list[tuple[float, float, int]] = []
    most = -1.0
    for usd, minus_mib, number in priced:
        mib = -minus_mib
        if mib <= most:
            continue
        most = mib
        while len(kept) > 1 and _is_above(kept[-2], kept[-1], (usd, mib, number)):
            kept.pop()
        kept.append((usd, mib, number))
    return [number for _, _, number in kept]


def _is_above(
    left: tuple[float, float, int],
    middle: tuple[float, float, int],
    right: tuple[float, float, int],
) -> bool:
    """Whether a mix of the outer two is no dearer than the one between them."""
    rise, run = right[0] - left[0], right[1] - left[1]
    return (middle[0] - left[0]) * run >= rise * (middle[1] - left[1])


def balance(room: Vector, one: Vector, other: Vector) -> tuple[int, int]:
    """How many of two kinds of jobs use up both CPUs and memory; (0, 0): no such numbers."""
    determinant = one[1] * other[2] - other[1] * one[2]
    if not determinant:
        return 0, 0
    first = (room[1] * other[2] - room[2] * other[1]) / determinant
    second = (room[2] * one[1] - room[1] * one[2]) / determinant
    return (int(first), int(second)) if first >= 1 and second >= 1 else (0, 0)


def holds(room: Vector, need: Vector) -> int:
    """How many such jobs a node with this much room holds; every job takes a CPU."""
    gpus, cpus, memory_mib = need
    count = room[1] // cpus
    if gpus:
        count = min(count, room[0] // gpus)
    if memory_mib:
        count = min(count, room[2] // memory_mib)
    return count
