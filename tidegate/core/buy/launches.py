"""Launches in the making, within every limit and around resting offerings."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import replace

from tidegate.core.buy.alternatives import alternatives
from tidegate.core.buy.bins import Place
from tidegate.core.buy.blueprint import Config
from tidegate.core.buy.groups import Slot
from tidegate.core.buy.pending_launch import PendingLaunch
from tidegate.core.buy.ultraservers import Together
from tidegate.core.demand.demand import Need
from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import Market, Offering, Template
from tidegate.core.model.ledger import Launch
from tidegate.core.offers.catalogue import bits
from tidegate.core.offers.limits import CLUSTER, Load, Usage
from tidegate.core.offers.offers import OfferGroups, Option
from tidegate.core.offers.ranges import OfferGroup
from tidegate.core.offers.sooner import why_so_soon

# Each launch is a CreateFleet call of a second or two, and a planner lives 45 s.
LAUNCHES_MAX = 20

# Source: CreateFleet, MinTargetCapacity is at most 1,000.
MIN_CAPACITY_MAX = 1000

type _KindOfGang = tuple[OfferGroup, int, int, Offering, int]
"""What may share a launch: the same kind of need, to be bought as the same thing."""


class LaunchBuilder:
    """Collects the launches of one plan. `is_cut`: more could be bought by a further plan."""

    def __init__(self, offer_groups: OfferGroups, usage: Usage, launches_max: int) -> None:
        self._offer_groups = offer_groups
        self._usage = usage
        self.launches_max = launches_max
        self._pending_launches: list[PendingLaunch] = []
        self._shared: dict[tuple[OfferGroup, int, str, str], PendingLaunch] = {}
        self._of_gangs: dict[_KindOfGang, PendingLaunch] = {}
        self._bounds: dict[str, int] = {}
        self._num_nodes = 0
        self.is_cut = False
        self.is_full = False  # why the last purchase failed: no launch more, not a limit

    def bound(self, pool: str, launches: int) -> None:
        """Begin no more than so many launches for the pool in this plan."""
        self._bounds[pool] = launches

    def _may_begin(self, pool: str, launches: int) -> bool:
        begun = sum(each.offer_group.pool.name == pool for each in self._pending_launches)
        return pool not in self._bounds or begun + launches <= self._bounds[pool]

    def has_room_for(self, configs: Sequence[Config]) -> bool:
        """Whether all nodes of all of them may be bought, so that their order does not matter."""
        nodes: Counter[tuple[OfferGroup, int]] = Counter()
        keys = {(each.offer_group, each.number, "", each.layout) for each in configs}
        loads: dict[str, Load] = defaultdict(Load)
        counts: Counter[str] = Counter()
        for config in configs:
            each = self._load(
                config.offer_group, config.number, config.mask, config.entry.usd_per_hour
            )
            nodes[config.offer_group, config.number] += config.left
            for scope in (config.offer_group.pool.name, CLUSTER):
                loads[scope] = loads[scope].plus(each, config.left)
                counts[scope] += config.left
        for (offer_group, number), count in nodes.items():
            if offer_group.pool.name in self._bounds:
                return False
            offering = offer_group.catalogue.entries[number].offering
            if self._offer_groups.places(offer_group, offering) < count:
                return False
        new = sum(key not in self._shared for key in keys)
        return len(self._pending_launches) + new <= self.launches_max and all(
            self._usage.holds(scope, counts[scope], load) for scope, load in loads.items()
        )

    def open(self, config: Config, nodes: int = 1) -> bool:
        """Buy nodes of the config and give its groups their slots; False: a limit is in the
        way, or the plan holds as many launches as it may, and then `is_full` is set.
        """
        offering, layout = config.entry.offering, config.layout
        pending = self._pending_launch_for(
            config.offer_group, config.number, offering, config.mask, layout=layout
        )
        if pending is None:
            return False
        if config.left == config.times:  # its first node
            pending.mask &= config.mask
            pending.needs.update({group.number: group.need for group, _ in config.parts})
        config.left -= nodes
        first = self._take(pending, nodes)
        for group, count in config.parts:
            group.slots.append(Slot(pending, first, nodes, count))
        return True

    def keep(
        self,
        pool: Pool,
        why: str,
        instance_type: str = "",
        markets: Sequence[Market] = (),
        but: Collection[Offering] = (),
        zone: str = "",
    ) -> bool:
        """Buy the cheapest node of the pool for no job in particular, when there may be one.

        `instance_type`, `markets`, `zone`: of these only, each `why` of one; `but`: none of these.
        """
        entries = [
            (order, usd, offering, offer_group, number)
            for order, tier in enumerate(self._offer_groups.tiers)
            for offer_group in tier
            if offer_group.pool is pool and (not markets or offer_group.market in markets)
            for number, each in enumerate(offer_group.catalogue.entries)
            if instance_type in ("", each.instance_type.name)
            for usd, offering in (each.zones if zone else each.zones[:1])
            if offering not in but and zone in ("", offering.zone)
        ]
        for *_, offering, offer_group, number in sorted(entries, key=lambda each: each[:3]):
            mask = 1 << number if instance_type else offer_group.catalogue.all
            pending = self._pending_launch_for(offer_group, number, offering, mask, kept=why)
            if pending is not None:
                pending.zone = zone
                self._take(pending, 1)
                return True
        return False

    @property
    def bought(self) -> set[tuple[str, Offering]]:
        """What is being bought, by pool; what EC2 may give instead is not in it."""
        return {(each.offer_group.pool.name, each.offering) for each in self._pending_launches}

    @property
    def num_launches(self) -> int:
        return len(self._pending_launches)

    def num_nodes(self, pool: str) -> int:
        """How many nodes of the pool are being bought."""
        return sum(
            each.count for each in self._pending_launches if each.offer_group.pool.name == pool
        )

    def undo(self, num_launches: int) -> None:
        """Take back the launches after the first so many; all of them are of one gang."""
        for pending in self._pending_launches[num_launches:]:
            self._offer_groups.take(pending.offer_group, pending.offering, -pending.count)
            pool = pending.offer_group.pool.name
            self._usage.debit(pool, -pending.count, pending.each, pending.expected_usd_per_hour)
        del self._pending_launches[num_launches:]

    def buy_gang(
        self, need: Need, nodes: int, within: Place | None = None, near: Set[str] = frozenset()
    ) -> list[str]:
        """Buy all of `nodes`, or none; their names. `within`: only there. `near`: reservations that
        others of its nodes are in, from which they come first.
        """
        self.is_full = False
        together = Together(self._offer_groups, need, near)
        for option in self._offer_groups.options(need, together.near):
            place = (option.offer_group.pool.name, option.offering.zone)
            if within not in (None, place, ("", option.offering.zone)):
                continue
            if not option.offer_group.market.is_prepaid and (
                names := self._buy_together(need, nodes, together)
            ):
                return names
            if not together.takes(option):
                continue
            each = self._load(option.offer_group, option.number, option.mask, option.usd_per_hour)
            if not self._has_room(option.offer_group, option.offering, nodes, each):
                continue
            shared = self._shared_by(need, option, nodes) if within is None else None
            if shared is not None:
                return list(self._take_share(shared, need))
            chunks = -(-nodes // MIN_CAPACITY_MAX)
            if not self._may_begin(option.offer_group.pool.name, chunks):
                continue
            if len(self._pending_launches) + chunks > self.launches_max:
                self.is_cut = self.is_full = True
                return []
            return list(self._buy_chunks(need, nodes, option, each, is_in_place=within is not None))
        return self._buy_together(need, nodes, together)

    def _buy_together(self, need: Need, nodes: int, together: Together) -> list[str]:
        """Buy all of `nodes` from several reservations of UltraServers, none of which has them."""
        for shares in together.shares(nodes):
            option = shares[0][0]
            pool = option.offer_group.pool.name
            each = self._load(option.offer_group, option.number, option.mask, option.usd_per_hour)
            is_within = self._usage.room(pool, nodes, each)[0] >= nodes
            if not is_within or not self._may_begin(pool, len(shares)):
                continue
            if len(self._pending_launches) + len(shares) > self.launches_max:
                self.is_cut = self.is_full = True
                return []
            return [
                name
                for option, count in shares
                for name in self._buy_chunks(need, count, option, each, is_in_place=True)
            ]
        return []

    def _shared_by(self, need: Need, option: Option, nodes: int) -> PendingLaunch | None:
        """The launch of equal gangs that has room for one more; None: it needs one of its own."""
        if self._stands_alone(need, option):
            return None
        pending = self._of_gangs.get(_kind_of(need, option))
        if (
            pending is not None
            and pending.share == nodes
            and pending.count + nodes <= MIN_CAPACITY_MAX
        ):
            return pending
        return None

    def _stands_alone(self, need: Need, option: Option) -> bool:
        """What is a part of something larger, which may have to be taken back. So does each gang
        where the circuit breaker counts launches.
        """
        is_part = bool(need.gang_id or need.beside)
        return is_part or need.kind < 0 or option.offer_group.pool.name in self._bounds

    def _take_share(self, pending: PendingLaunch, need: Need) -> Iterator[str]:
        pending.gangs.append(need.gang)
        pending.for_jobs.append(need.job_id)
        first = self._take(pending, pending.share)
        for number in range(first, first + pending.share):
            yield f"new {pending.offering.instance_type} {number}"

    def _buy_chunks(
        self, need: Need, nodes: int, option: Option, each: Load, *, is_in_place: bool
    ) -> Iterator[str]:
        """One request can bring all or none of at most 1,000; more have to share a zone."""
        is_whole = nodes <= MIN_CAPACITY_MAX
        is_one_zone = is_in_place or not is_whole or option.offer_group.pool.placement_group
        for start in range(0, nodes, MIN_CAPACITY_MAX):
            pending = PendingLaunch(
                option.offer_group,
                option.number,
                option.offering,
                each,
                option.mask,
                gated_for=need.gang,
                zone=option.offering.zone if is_one_zone else "",
                for_jobs=[need.job_id],
                needs={0: need},
            )
            self._pending_launches.append(pending)
            if is_whole and not is_in_place and not self._stands_alone(need, option):
                pending.share, pending.gangs = nodes, [need.gang]
                self._of_gangs[_kind_of(need, option)] = pending
            count = min(nodes - start, MIN_CAPACITY_MAX)
            first = self._take(pending, count)
            for number in range(first, first + count):
                yield f"new {option.offering.instance_type} {number}"

    def make_from(
        self,
        template: Template,
        pool: str,
        nodes: int,
        *,
        but: frozenset[Offering],
        has_gangs: bool,
    ) -> None:
        """Make up to `nodes` of the pool's new nodes from this template, those for no job first.

        `but`: what rests for it. `has_gangs`: whole gangs too. What is paid for in advance has
        templates of its own.
        """
        ours = [
            each
            for each in self._pending_launches
            if each.offer_group.pool.name == pool and not each.offer_group.market.is_prepaid
        ]
        for each in sorted(ours, key=lambda each: (not each.kept, each.count)):
            if each.offering in but or (each.gated_for and not (has_gangs and each.count <= nodes)):
                continue
            part = each
            if each.count > nodes:
                if not nodes or self._is_bounded(pool):
                    return
                self._pending_launches.append(part := each.split(nodes))
            part.template, part.but = template, but
            nodes -= part.count

    def _is_bounded(self, pool: str) -> bool:
        """No launch more than there are."""
        return pool in self._bounds or len(self._pending_launches) >= self.launches_max

    def launches(self, id_prefix: str) -> tuple[Launch, ...]:
        """The launches collected so far; ids follow from the epoch, so they never repeat.

        What may come instead of the first offering is added here, after every job got its
        node: the size of an alternative must not keep a node from a job. What is paid for in
        advance comes first: EC2 takes any node that it fits into an open reservation.
        """
        made: list[Launch] = []
        for number, pending in enumerate(self._pending_launches):
            offerings = alternatives(pending, self._offer_groups, self._usage)
            usd, group = pending.usd_per_hour, pending.offer_group
            paid = self._offer_groups.commitments.why(group.plan)
            launch = pending.launch(offerings, f"{id_prefix}-{number}", paid)
            also = self._offer_groups.why_here(group.pool, pending.offering, usd)
            also += why_so_soon(self._offer_groups, pending.needs.values(), group, usd)
            made.append(replace(launch, reason=launch.reason + also))
        return tuple(sorted(made, key=_is_paid_by_the_hour))

    def _pending_launch_for(
        self,
        offer_group: OfferGroup,
        number: int,
        offering: Offering,
        mask: int,
        *,
        kept: str = "",
        layout: str = "",
    ) -> PendingLaunch | None:
        """The launch that one more such node goes to; None when there may be none."""
        self.is_full = False
        key = (offer_group, number, kept, layout)
        pending = self._shared.get(key)
        zones = offer_group.catalogue.entries[number].zones
        usd = next(usd for usd, each in zones if each == offering)
        each = pending.each if pending else self._load(offer_group, number, mask, usd)
        if not self._has_room(offer_group, offering, 1, each):
            return None
        if pending is None:
            if not self._may_begin(offer_group.pool.name, 1):
                return None
            if len(self._pending_launches) >= self.launches_max:
                self.is_cut = self.is_full = True
                return None
            pending = self._shared[key] = PendingLaunch(
                offer_group, number, offering, each, mask, kept=kept, layout=layout
            )
            self._pending_launches.append(pending)
        return pending

    def _has_room(
        self, offer_group: OfferGroup, offering: Offering, nodes: int, each: Load
    ) -> bool:
        if self._offer_groups.places(offer_group, offering) < nodes:
            return False
        return self._usage.room(offer_group.pool.name, nodes, each)[0] >= nodes

    def _load(self, offer_group: OfferGroup, number: int, mask: int, usd_per_hour: float) -> Load:
        """What a node counts; where several types are demanded, the largest of them counts."""
        entries = offer_group.catalogue.entries
        on, of = entries[number].offering, entries[number].instance_type
        load = Load.of(of, self._offer_groups.usd_in_limits(offer_group, on, usd_per_hour))
        if offer_group.is_strict:
            for _, other in zip(range(offer_group.pool.min_types), bits(mask), strict=False):
                each = entries[other]
                load = load.most(Load.of(each.instance_type, each.usd_per_hour))
        return load

    def _take(self, pending: PendingLaunch, nodes: int) -> int:
        """The number of the first of the nodes."""
        self._offer_groups.take(pending.offer_group, pending.offering, nodes)
        pool = pending.offer_group.pool.name
        self._usage.debit(pool, nodes, pending.each, pending.expected_usd_per_hour)
        pending.count += nodes
        first = self._num_nodes + 1
        self._num_nodes += nodes
        return first


def _is_paid_by_the_hour(launch: Launch) -> bool:
    return not launch.offerings[0].market.is_prepaid


def _kind_of(need: Need, option: Option) -> _KindOfGang:
    return option.offer_group, option.number, option.mask, option.offering, need.kind
