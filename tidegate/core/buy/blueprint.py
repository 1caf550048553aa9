"""Which nodes would hold a whole queue of one-node jobs at the lowest cost.

Bin packing by groups: the dearest jobs first; for each the types that are cheapest per job are
filled up with others, and the one with the lowest cost for what it holds is repeated as long
as the groups last. The cost goes with the number of groups, not of jobs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from tidegate.core.buy.fillers import BestFit, ByMemory, Item, LargestFirst, spare_usd
from tidegate.core.buy.groups import Group
from tidegate.core.buy.shares import fill, largest_first, shared_ones, usd_of_part
from tidegate.core.model.ec2 import Offering
from tidegate.core.offers.catalogue import Entry, balance, bits, gres, holds, lowest
from tidegate.core.offers.cost import Expected
from tidegate.core.offers.limits import Usage
from tidegate.core.offers.offers import Fitting, OfferGroups
from tidegate.core.offers.ranges import OfferGroup

CHOICES_MAX = 5
ROOMY_MAX = 2

# A larger node, or one more CreateFleet call, has to be better by this much.
WORTH = 0.995
NEW_TYPE_FACTOR = 1.01


@dataclass(slots=True, eq=False)
class Config:
    """A node's content, to be bought `times` times. `parts`: how many jobs of each group;
    `mask`: the entries of the offer group on which all of them may run, and which hold them;
    `layout`: what its GPUs are cut into for them, "": they are not.
    """

    offer_group: OfferGroup
    number: int
    parts: tuple[tuple[Group, int], ...]
    mask: int
    times: int
    left: int
    layout: str = ""

    @property
    def entry(self) -> Entry:
        return self.offer_group.catalogue.entries[self.number]


@dataclass(slots=True, eq=False)
class _Draw:
    cost_per_worth: float
    offer_group: OfferGroup
    number: int
    parts: list[tuple[Item, int]]
    layout: str = ""


class Blueprint:
    """Draws configs for groups; `usage` keeps types out of which not one node is allowed."""

    def __init__(self, offer_groups: OfferGroups, usage: Usage, in_use: Mapping[str, int]) -> None:
        self._offer_groups = offer_groups
        self._usage, self._in_use = usage, in_use
        self._allowed: dict[OfferGroup, int] = {}
        self._reserved_capacity: dict[tuple[Offering, str], float] = {}
        self._drawn_usd: dict[str, float] = {}
        self._used: set[tuple[OfferGroup, int]] = set()
        self._with_gpus = LargestFirst([])
        self._without = BestFit([])
        self._spare: tuple[float, float] = (0.0, 0.0)
        self._roomy: dict[tuple[OfferGroup, int, int], list[int]] = {}
        self._by_memory = ByMemory([])
        self._shared: list[Item] = []

    def draw(self, groups: Sequence[Group]) -> None:
        """Give each group the configs that hold all of its unplanned jobs, where there are any."""
        self._allowed.clear()
        self._reserved_capacity.clear()
        self._drawn_usd.clear()
        items = [self._item(group, left) for group in groups if (left := group.unplanned) > 0]
        for group in groups:
            for config in group.configs:
                config.left = 0
            group.configs.clear()
        items = [item for item in items if item.choices]
        # With GPUs first: what they leave of a node is cheap room for the others.
        items.sort(key=lambda item: (not item.group.size[0], -item.worth_usd, item.group.number))
        self._index(items)
        for item in items:
            while item.left > 0:
                drawn = self._best(item)
                if drawn is None:
                    break
                self._keep(drawn)

    def _item(self, group: Group, left: int) -> Item:
        """What the group may choose from: of the first tier that has anything for it."""
        item = Item(group, left, [], (), 0.0, 0.0)
        for tier in self._offer_groups.fitting(group.need):
            allowed = (
                (offer_group, mask & self._affordable(offer_group)) for offer_group, mask in tier
            )
            item.fitting = _distinct(item, allowed)
            if item.fitting:
                item.masks = dict(tier)
                if shared := tuple(shared_ones(item)):
                    item.is_shared, item.fitting = True, shared
                self._choose(item)
                break
        return item

    def _choose(self, item: Item) -> None:
        found: list[tuple[float, int, OfferGroup, int]] = []
        for order, (offer_group, mask) in enumerate(item.fitting):
            catalogue, expected = offer_group.catalogue, item.on(offer_group)
            if item.is_shared:
                near = [(usd_of_part(item, catalogue.entries[n]), n) for n in bits(mask)]
            elif item.group.need.shape.is_exclusive:
                first = lowest(mask)
                near = [(catalogue.entries[first].usd_per_hour, first)]
            else:
                near = catalogue.nearest(item.group.size, mask)
            found.extend((expected.usd(usd), order, offer_group, number) for usd, number in near)
        found.sort(key=lambda each: (each[0], each[1], each[3]))
        item.choices = [
            (cost, offer_group, number) for cost, _, offer_group, number in found[:CHOICES_MAX]
        ]
        item.worth_usd = item.choices[0][0]
        item.hazard_max = item.choices[0][1].hazard_per_hour

    def _affordable(self, offer_group: OfferGroup) -> int:
        """The entries of which one more node is within every limit and reservation."""
        if offer_group not in self._allowed:
            left = self._usage.left(offer_group.pool.name)
            allowed = offer_group.catalogue.all
            if left is not None:
                allowed = offer_group.catalogue.within(left[1]) if left[0] >= 1 else 0
            if offer_group.is_paid_for:
                for number, each in enumerate(offer_group.catalogue.entries):
                    usd = self._offer_groups.usd_in_limits(offer_group, each.offering, 0.0)
                    is_over = left is not None and usd > left[1].usd_per_hour
                    if is_over or self._left(offer_group, each.offering) <= 0:
                        allowed &= ~(1 << number)
            self._allowed[offer_group] = allowed
        return self._allowed[offer_group]

    def _left(self, offer_group: OfferGroup, offering: Offering) -> float:
        """Pools may share a reservation, and all that is on demand a Savings Plan."""
        if plan := offer_group.plan:
            drawn_usd = self._drawn_usd.get(plan, 0.0)
            return self._offer_groups.places(offer_group, offering, drawn_usd=drawn_usd)
        key = offering, offer_group.target
        if key not in self._reserved_capacity:
            self._reserved_capacity[key] = self._offer_groups.places(offer_group, offering)
        return self._reserved_capacity[key]

    def _index(self, items: list[Item]) -> None:
        """Who may fill the rest of a node."""
        self._shared = largest_first(item for item in items if item.is_shared)
        sharing = [i for i in items if not (i.is_shared or i.group.need.shape.is_exclusive)]
        self._with_gpus = LargestFirst([item for item in sharing if item.group.size[0]])
        without = [item for item in sharing if not item.group.size[0]]
        self._without, self._by_memory = BestFit(without), ByMemory(without)
        self._spare = spare_usd(without)
        self._roomy.clear()

    def _best(self, item: Item) -> _Draw | None:
        best: _Draw | None = None
        if item.is_shared:
            return min(self._shared_nodes(item), key=lambda each: each.cost_per_worth, default=None)
        for offer_group, number in self._candidates(item):
            for start in self._starts(item, offer_group, number):
                drawn = self._fill(offer_group, number, start)
                if best is None or drawn.cost_per_worth < best.cost_per_worth * WORTH:
                    best = drawn
        return best

    def _shared_nodes(self, item: Item) -> Iterator[_Draw]:
        """Nodes whose GPUs are shared, with what each costs per GPU that jobs have of it."""
        found = [(group, number) for group, mask in item.fitting for number in bits(mask)]
        in_stock = [each for each in found if self._is_in_stock(*each)] or self._without_stock(item)
        for offer_group, number in in_stock:
            others = self._joining(offer_group, number)
            filled = fill(offer_group, number, item, others, self._in_use)
            if filled.parts:
                usd_per_hour = offer_group.catalogue.entries[number].usd_per_hour
                usd = filled.hours * usd_per_hour + filled.wait_usd
                yield _Draw(usd / filled.gpus, offer_group, number, filled.parts, filled.layout)

    def _joining(self, offer_group: OfferGroup, number: int) -> list[Item]:
        """Who else may be on such a node, the largest parts first."""
        return [
            other
            for other in self._shared
            if other.left
            and offer_group.hazard_per_hour <= other.hazard_max
            and self._mask_of(other, offer_group) >> number & 1
        ]

    def _is_in_stock(self, offer_group: OfferGroup, number: int) -> bool:
        offering = offer_group.catalogue.entries[number].offering
        return not offer_group.is_paid_for or self._left(offer_group, offering) > 0

    def _starts(
        self, item: Item, offer_group: OfferGroup, number: int
    ) -> Iterator[list[tuple[Item, int]]]:
        """What to begin a node with: as many of the group as fit, or a balance of two groups.

        Two shapes of which one wants more memory and the other less than the type has per CPU
        use up both: what a linear program would do with each type.
        """
        size, need = offer_group.catalogue.entries[number].size, item.group.size
        if item.group.need.shape.is_exclusive:
            yield [(item, 1)]
            return
        yield [(item, min(item.left, holds(size, need)))]
        if need[0] or size[0]:
            return
        is_memory_short = need[2] * size[1] > need[1] * size[2]
        for other in self._by_memory.ends(is_least=is_memory_short):
            if other is not item and self._fitting(other, offer_group, number, list(size)):
                pair = balance(size, need, other.group.size)
                first, second = min(pair[0], item.left), min(pair[1], other.left)
                if first and second:
                    yield [(item, first), (other, second)]

    def _candidates(self, item: Item) -> list[tuple[OfferGroup, int]]:
        """The cheapest per job, and the cheapest that holds all that is left; small ones first."""
        found = {(offer_group, number): None for _, offer_group, number in item.choices}
        size, devices = item.group.size, gres(item.group.need.shape)
        whole = (size[0] * item.left, size[1] * item.left, size[2] * item.left)
        if not item.group.need.shape.is_exclusive:
            for offer_group, mask in item.fitting:
                if not offer_group.market.is_prepaid:
                    more = self._with_room(offer_group, mask, size[0]) if size[0] else None
                    more = offer_group.catalogue.efficient(mask) if more is None else more
                    found.update(((offer_group, number), None) for number in more)
                mask &= offer_group.catalogue.fit(whole, devices)
                if mask:
                    found[offer_group, lowest(mask)] = None
        available = [each for each in found if self._is_in_stock(*each)]
        if not available:
            available = self._without_stock(item)
        return sorted(available, key=lambda e: e[0].catalogue.entries[e[1]].usd_per_hour)

    def _with_room(self, offer_group: OfferGroup, mask: int, gpus: int) -> list[int]:
        """The types on which so many GPUs are cheapest when jobs without GPUs pay for the rest."""
        key = offer_group, mask, gpus
        if key not in self._roomy:
            cpu_usd, mib_usd = self._spare
            entries = offer_group.catalogue.entries
            net = (
                (
                    (e.usd_per_hour - cpu_usd * e.size[1] - mib_usd * e.size[2])
                    / (e.size[0] // gpus),
                    n,
                )
                for n in bits(mask)
                for e in (entries[n],)
            )
            found = sorted(net)[:ROOMY_MAX] if cpu_usd or mib_usd else []
            self._roomy[key] = [number for _, number in found]
        return self._roomy[key]

    def _without_stock(self, item: Item) -> list[tuple[OfferGroup, int]]:
        """When the reservations that it chose from are used up: others that are free, and what is
        paid for by the hour.
        """
        left = (
            (group, sum(1 << n for n in bits(mask) if self._is_in_stock(group, n)))
            for group, mask in item.fitting
        )
        item.fitting = tuple(each for each in left if each[1])
        if not item.fitting:
            for tier in self._offer_groups.fitting(item.group.need):
                paid = ((s, m & self._affordable(s)) for s, m in tier if not s.is_paid_for)
                item.fitting = _distinct(item, paid)
                if item.fitting:
                    item.masks.update(tier)
                    break
        if not item.fitting:
            return []
        self._choose(item)
        return [(offer_group, number) for _, offer_group, number in item.choices]

    def _fill(self, offer_group: OfferGroup, number: int, start: list[tuple[Item, int]]) -> _Draw:
        """A node of this entry that begins with `start`, and what fits beside it."""
        each, item = offer_group.catalogue.entries[number], start[0][0]
        room = list(each.size)
        worth = hours = wait_usd = 0.0
        for one, count in start:
            alone = one.on(offer_group)
            hours, wait_usd = max(hours, alone.hours), wait_usd + count * alone.wait_usd
            worth += count * one.worth_usd
            for d in range(3):
                room[d] -= count * one.group.size[d]
        parts = list(start)
        present = {one for one, _ in start}
        if not item.group.need.shape.is_exclusive and room[1] > 0:
            fillers = self._without.fitting(room)
            if room[0] > 0:
                fillers = chain(self._with_gpus.fitting(room), fillers)
            for other in fillers:
                if room[1] <= 0:
                    break
                if other in present:
                    continue
                fitting = self._fitting(other, offer_group, number, room)
                if not fitting:
                    continue
                beside = other.on(offer_group)
                longer = beside.hours - hours
                if longer > 0 or beside.wait_usd > 0:
                    saves_usd = fitting * (other.worth_usd - beside.wait_usd)
                    if max(longer, 0.0) * each.usd_per_hour > saves_usd:
                        continue
                    hours = max(hours, beside.hours)
                    wait_usd += fitting * beside.wait_usd
                for d in range(3):
                    room[d] -= fitting * other.group.size[d]
                parts.append((other, fitting))
                present.add(other)  # who fills up offers some twice
                worth += fitting * other.worth_usd
        cost = hours * each.usd_per_hour + wait_usd
        drawn = _Draw(0.0, offer_group, number, parts)
        if offer_group.is_strict and self._mask(drawn).bit_count() < offer_group.pool.min_types:
            return _Draw(cost / item.worth_usd, offer_group, number, [(item, 1)])
        if (offer_group, number) not in self._used:  # one more CreateFleet call
            cost *= NEW_TYPE_FACTOR
        drawn.cost_per_worth = cost / worth if worth else 0.0
        return drawn

    def _fitting(self, other: Item, offer_group: OfferGroup, number: int, room: list[int]) -> int:
        """How many jobs of another group fit beside, when they may be on such a node at all."""
        gpus, cpus, memory_mib = other.group.size
        if gpus > room[0] or cpus > room[1] or memory_mib > room[2]:
            return 0
        if offer_group.hazard_per_hour > other.hazard_max:
            return 0
        if not self._mask_of(other, offer_group) >> number & 1:
            return 0
        free = (room[0], room[1], room[2])
        return min(other.left, holds(free, other.group.size))

    def _mask_of(self, other: Item, offer_group: OfferGroup) -> int:
        if offer_group not in other.masks:
            other.masks[offer_group] = self._offer_groups.mask(other.group.need, offer_group)
        return other.masks[offer_group]

    def _mask(self, drawn: _Draw) -> int:
        """The entries on which a whole draw may run and that hold it."""
        if drawn.parts[0][0].is_shared:  # another type has other GPUs, or cuts them in another way
            return 1 << drawn.number
        mask = drawn.offer_group.catalogue.all
        for item, _ in drawn.parts:
            mask &= item.masks[drawn.offer_group]
        sizes = [(item.group.size, count) for item, count in drawn.parts]
        gpus, cpus, memory_mib = (sum(s[d] * n for s, n in sizes) for d in range(3))
        return mask & drawn.offer_group.catalogue.fit((gpus, cpus, memory_mib))

    def _from_stock(self, drawn: _Draw, times: int) -> int:
        """How many of `times` there are; they are others' no more."""
        group, offering = (
            drawn.offer_group,
            drawn.offer_group.catalogue.entries[drawn.number].offering,
        )
        times = min(times, int(self._left(group, offering)))
        if plan := group.plan:
            usd = self._offer_groups.commitments.rate_usd(plan, offering.instance_type)
            self._drawn_usd[plan] = self._drawn_usd.get(plan, 0.0) + times * usd
        else:
            self._reserved_capacity[offering, group.target] -= times
        return times

    def _keep(self, drawn: _Draw) -> None:
        times = min(item.left // count for item, count in drawn.parts)
        if drawn.offer_group.is_paid_for:
            times = self._from_stock(drawn, times)
        self._used.add((drawn.offer_group, drawn.number))
        parts = tuple((item.group, count) for item, count in drawn.parts)
        mask = self._mask(drawn)
        config = Config(drawn.offer_group, drawn.number, parts, mask, times, times, drawn.layout)
        for item, count in drawn.parts:
            item.left -= count * times
            item.group.configs.append(config)


def _distinct(item: Item, fitting: Iterable[Fitting]) -> tuple[Fitting, ...]:
    """Of pools that sell the same things at the same cost only the first."""
    found: dict[tuple[int, int, Expected], Fitting] = {}
    for offer_group, mask in fitting:
        if mask:
            key = id(offer_group.catalogue), mask, item.on(offer_group)
            found.setdefault(key, (offer_group, mask))
    return tuple(found.values())
