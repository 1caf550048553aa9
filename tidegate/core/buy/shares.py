"""Nodes whose GPUs are shared: which jobs a new one holds, and into what its GPUs are cut for them.

The largest parts first, each where it first fits; with NVIDIA's placements as the test of what fits
this leaves little of a GPU, and takes no time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.core.buy.fillers import Item
from tidegate.core.demand.fit import part_of_gpu
from tidegate.core.model.devices import SHARED_GRES
from tidegate.core.model.ec2 import TAG_VALUE_MAX
from tidegate.core.model.mig import SLICES, Counts, Profile, layout_text, layouts, plus
from tidegate.core.model.slurm import Shape
from tidegate.core.offers.catalogue import Entry, bits, holds, lowest
from tidegate.core.offers.offers import Fitting
from tidegate.core.offers.ranges import OfferGroup


def usd_of_part(item: Item, entry: Entry) -> float:
    """What an hour of the parts of GPUs costs that a job has of such a node; 0.0: it has none."""
    of = entry.instance_type
    part = part_of_gpu(item.group.need.shape, of)
    return entry.usd_per_hour * part / of.gpus if part else 0.0


def shared_ones(item: Item) -> Iterator[Fitting]:
    """Of what fits the entries whose nodes are cut for jobs, where there are any."""
    for offer_group, mask in item.fitting:
        entries = offer_group.catalogue.entries
        shape = item.group.need.shape
        parts = sum(1 << n for n in bits(mask) if part_of_gpu(shape, entries[n].instance_type))
        if parts:
            yield offer_group, parts


def largest_first(items: Iterable[Item]) -> list[Item]:
    """Jobs that ask for parts of GPUs, those of the largest parts first, then with most of them."""
    return sorted(items, key=_by_part)


def _by_part(item: Item) -> tuple[float, int, int]:
    entries = (
        offer_group.catalogue.entries[lowest(mask)].instance_type
        for offer_group, mask in item.fitting
    )
    shape = item.group.need.shape
    part = max((part_of_gpu(shape, each) for each in entries), default=0.0)
    return (
        (-part if shape.gres in SHARED_GRES else -part / shape.gpus),
        -shape.gpus,
        item.group.number,
    )


@dataclass(slots=True)
class Filled:
    """What a node holds: how many jobs of each item, and the layout of its GPUs ("": not cut).

    `gpus`: that the jobs have of it; `hours`: for which the longest of them keeps it; `wait_usd`:
    what it costs that they wait for it.
    """

    parts: list[tuple[Item, int]] = field(default_factory=list)
    layout: str = ""
    gpus: float = 0.0
    hours: float = 0.0
    wait_usd: float = 0.0


def fill(
    offer_group: OfferGroup,
    number: int,
    first: Item,
    others: Sequence[Item],
    in_use: Mapping[str, int],
) -> Filled:
    """A node of this entry with as many jobs of the first item as fit, and others beside them.

    `in_use`: MIG instances that running jobs have, by GRES type.
    """
    of = offer_group.catalogue.entries[number].instance_type
    for gpus in range(of.gpus, 0, -1):
        items = list(dict.fromkeys([first, *others]))
        found = _fill(offer_group, number, items, gpus, in_use)
        if len(found.layout) <= TAG_VALUE_MAX:
            return found
    raise AssertionError("GPUs that are all alike have a short layout")


def _fill(
    offer_group: OfferGroup,
    number: int,
    items: Sequence[Item],
    gpus: int,
    in_use: Mapping[str, int],
) -> Filled:
    """The same, with jobs on so many of the GPUs; the others are cut as the first of them is."""
    entry = offer_group.catalogue.entries[number]
    of, found = entry.instance_type, Filled()
    devices = _Cut(of.profiles, gpus) if of.profiles else _Counted(of.shards_per_gpu, gpus)
    cpus, memory_mib = of.cpus, of.slurm_memory_mib
    turns = [(item, devices.first_turn(item.group.need.shape, items)) for item in items]
    turns += [(item, None) for item, jobs in turns if jobs is not None]
    given = dict.fromkeys(items, 0)
    for item, jobs in turns:
        shape, alone = item.group.need.shape, item.on(offer_group)
        left = item.left - given[item]
        left = left if jobs is None else min(left, jobs)
        most = min(left, holds((1, cpus, memory_mib), (0, *item.group.size[1:])))
        most = min(most, 1) if shape.is_exclusive else most
        longer_usd = max(alone.hours - found.hours, 0.0) * entry.usd_per_hour
        saves_usd = most * (item.worth_usd - alone.wait_usd)
        is_first = item is items[0]
        if not is_first and (shape.is_exclusive or longer_usd > saves_usd):
            continue
        if fitting := devices.put(shape, most, is_apart=jobs is not None):
            given[item] += fitting
            found.gpus += fitting * part_of_gpu(shape, of)
            found.hours = max(found.hours, alone.hours)
            found.wait_usd += fitting * alone.wait_usd
            cpus -= fitting * item.group.size[1]
            memory_mib -= fitting * item.group.size[2]
        if is_first and shape.is_exclusive:
            break
    found.parts = [(item, jobs) for item, jobs in given.items() if jobs]
    found.layout = devices.layout(of.gpus, items, in_use)
    return found


class _Cut:
    """GPUs that are cut while jobs are put on them."""

    def __init__(self, profiles: tuple[Profile, ...], gpus: int) -> None:
        self._profiles = profiles
        self._number = {each.gpu_type: number for number, each in enumerate(profiles)}
        self._allowed = layouts(profiles)
        self._gpus: list[Counts] = [(0,) * len(profiles)] * gpus

    def first_turn(self, shape: Shape, items: Sequence[Item]) -> int | None:
        """How many jobs get their place before smaller ones do; None: all.

        Two halves fill a GPU, and so do one and small instances beside it; small ones alone leave
        an eighth of it free. So as many halves are put apart as small ones can stand beside.
        """
        half = SLICES // 2
        if self._size(shape) != half or shape.gpus > 1 or shape.is_exclusive:
            return None
        asked = [(each.group.need.shape, each.left) for each in items]
        small = sum(s.gpus * left * self._size(s) for s, left in asked if self._size(s) < half)
        return min(-(-small // half), len(self._gpus))

    def _size(self, shape: Shape) -> int:
        return self._profiles[self._number[shape.gpu_type]].size

    def put(self, shape: Shape, jobs: int, *, is_apart: bool) -> int:
        """How many of these jobs have found their instances; `is_apart`: on a GPU each, if it can
        be.
        """
        number = self._number[shape.gpu_type]
        for job in range(jobs):
            before = list(self._gpus)
            if not all(self._add(number, is_apart=is_apart) for _ in range(shape.gpus)):
                self._gpus = before
                return job
        return jobs

    def _add(self, number: int, *, is_apart: bool) -> bool:
        order = enumerate(self._gpus)
        for position, counts in sorted(order, key=lambda e: e[1][number]) if is_apart else order:
            if (more := plus(counts, number)) in self._allowed:
                self._gpus[position] = more
                return True
        return False

    def layout(self, gpus: int, items: Sequence[Item], in_use: Mapping[str, int]) -> str:
        """With the rest of each GPU cut into what is asked for most, else into small ones.

        Whole GPUs that are left are shared out among the profiles by the memory of what is asked
        for and in use, and one goes to each profile that nobody has yet: whoever comes next finds
        a node that is up.
        """
        asked = dict.fromkeys(range(len(self._profiles)), 0)
        for item in items:
            shape = item.group.need.shape
            if shape.gpu_type in self._number:
                asked[self._number[shape.gpu_type]] += item.left * shape.gpus
        order = sorted(asked, key=lambda n: (-asked[n], self._profiles[n].size, n))
        wanted = [
            (asked[n] + in_use.get(each.gpu_type, 0)) * each.size
            for n, each in enumerate(self._profiles)
        ]
        cut, given = list[Counts](), [0] * len(order)
        for counts in self._gpus:
            shares = order
            if not any(counts):
                shares = sorted(order, key=lambda n: -_due(wanted[n], given[n]))
            cut.append(self._whole(counts, shares))
            given = [had + cut[-1][n] * self._profiles[n].size for n, had in enumerate(given)]
        return layout_text(cut + [cut[0]] * (gpus - len(cut)), self._profiles)

    def _whole(self, counts: Counts, order: Sequence[int]) -> Counts:
        for number in order:
            while (more := plus(counts, number)) in self._allowed:
                counts = more
        return counts


def _due(wanted: int, given: int) -> float:
    """How much a profile is due a GPU more, by slices; one that nobody has or asks for, once."""
    return (wanted + SLICES) / (given + SLICES) if wanted or not given else 0.0


class _Counted:
    """GPUs that Slurm gives away in shards, or by MPS."""

    def __init__(self, per_gpu: int, gpus: int) -> None:
        self._free = [per_gpu] * gpus

    def first_turn(self, shape: Shape, items: Sequence[Item]) -> int | None:
        """All of them."""
        return None

    def put(self, shape: Shape, jobs: int, *, is_apart: bool) -> int:
        """How many of these jobs have found their shards, each on one GPU."""
        for job in range(jobs):
            fitting = [free for free in self._free if free >= shape.gpus]
            if not fitting:
                return job
            self._free.remove(least := min(fitting))
            self._free.append(least - shape.gpus)
        return jobs

    def layout(self, gpus: int, items: Sequence[Item], in_use: Mapping[str, int]) -> str:
        """They are not cut."""
        return ""
