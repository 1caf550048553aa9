"""Everything that is for sale in one plan: pool by pool, market by market, around what rests."""

from collections.abc import Iterator, Sequence, Set
from functools import cached_property, partial
from heapq import merge
from math import inf

from tidegate.core.demand.demand import Need
from tidegate.core.model.cluster import OPEN, Pool
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.catalogue import Catalogue, Entry, entry, gres, lowest, vector
from tidegate.core.offers.cost import allows_time
from tidegate.core.offers.due import Awaited, Deadlines, late_s
from tidegate.core.offers.hazards import with_learnt
from tidegate.core.offers.loss import Losses
from tidegate.core.offers.places import SickPlace, sick_places
from tidegate.core.offers.ranges import OfferGroup, Rested, range_of
from tidegate.core.offers.refused import Cheaper, Shortages, Sold
from tidegate.core.offers.reservations import ReservedCapacity
from tidegate.core.offers.savings_plans import Commitments


@frozen
class Option:
    """One offering for one gang. `cost_usd`: what a node is expected to cost until its end, with
    what the gang waits longer than elsewhere; `mask`: all entries of the offer group that would do.
    """

    cost_usd: float
    offer_group: OfferGroup
    number: int
    usd_per_hour: float
    offering: Offering
    mask: int


type _Rank = tuple[bool, float, str, Offering, bool, float]
type Fitting = tuple[OfferGroup, int]
"""A offer group and the mask of its entries that hold one node's share of a job."""


class OfferGroups:
    """All offer groups of a plan, in tiers of equal pool weight, the highest first; the last tier
    sells what nodes become sick of, whatever its weight.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._resting = frozenset(
            (r.pool, r.offering)
            for r in snapshot.resting
            if r.until_s > snapshot.now_s and not r.reservation
        )
        self._resting_in = frozenset(
            (r.pool, r.offering, r.reservation)
            for r in snapshot.resting
            if r.until_s > snapshot.now_s and r.offering.market.is_prepaid
        )
        self.reserved_capacity = ReservedCapacity(snapshot)
        self.commitments = Commitments(snapshot)
        self.losses = Losses(snapshot.cluster)
        self.due = Deadlines(snapshot, self.losses)
        self._refused = Shortages(snapshot, self.losses)
        self._prepaid_by: dict[tuple[object, ...], Catalogue] = {}
        self._shut: set[str] = set()
        self._shut_prepaid: set[str] = set()
        self._sick: dict[Offering, SickPlace] = {}
        if any(each.findings for each in snapshot.pool_history):
            self._sick = sick_places(snapshot)

    def shut(self, pool: str) -> None:
        """Sell nothing of the pool; to be said before anybody buys."""
        self._shut.add(pool)

    def shut_prepaid(self, pool: str) -> None:
        """Sell the pool nothing that is paid for already; to be said before anybody buys."""
        self._shut_prepaid.add(pool)

    @cached_property
    def tiers(self) -> tuple[tuple[OfferGroup, ...], ...]:
        """Stocked when somebody comes to buy: most plans buy nothing."""
        tiers: dict[int, list[OfferGroup]] = {}
        closed = self._shut | {
            each.pool
            for each in self._snapshot.pool_history
            if each.closed_until_s(self._snapshot.now_s)
        }
        open_pools = [pool for pool in self._snapshot.cluster.pools if pool.name not in closed]
        for pool in sorted(open_pools, key=lambda p: (-p.weight, p.name)):
            tiers.setdefault(pool.weight, []).extend(self._offer_groups(pool))
        last = [each for pool in open_pools for each in self._bought_last(pool)]
        return tuple(tuple(groups) for groups in (*tiers.values(), last) if groups)

    def why_here(self, pool: Pool, bought: Offering, usd_per_hour: float) -> str:
        """What sick places have to do with buying this for the pool; "": nothing."""
        now_s, prices = self._snapshot.now_s, self._snapshot.cluster.prices
        if place := self._sick.get(bought):
            return f"; {place.sentence(now_s)}, and nothing else is to be had"
        shunned = [
            place.sentence(now_s)
            for offering, place in sorted(self._sick.items())
            if pool.may_have(offering) and 0 < prices.get(offering, 0.0) <= usd_per_hour
        ]
        return f"; {', '.join(shunned)}: bought elsewhere first" if shunned else ""

    def fitting(self, need: Need) -> Iterator[tuple[Fitting, ...]]:
        """Tier by tier, the offer groups that have something for the job."""
        tiers = self._tiers_for(need)
        if need.deadline_s is not None:
            if self._awaited(need, tiers):
                tiers = [tuple(f for f in tier if f[0].is_paid_for) for tier in tiers]
            elif self.due.is_pressed(need):
                steady = [tuple(f for f in tier if not f[0].hazard_per_hour) for tier in tiers]
                # Spot that may be too late is better than nothing.
                tiers = steady + [tuple(f for f in tier if f[0].hazard_per_hour) for tier in tiers]
        elif self._cheaper(need, tiers):
            tiers = [tuple(f for f in tier if f[0].is_paid_for) for tier in tiers]
        yield from (tier for tier in tiers if tier)

    def _tiers_for(self, need: Need) -> list[tuple[Fitting, ...]]:
        return [tuple(f for s in tier if (f := (s, self.mask(need, s)))[1]) for tier in self.tiers]

    def awaited(self, need: Need) -> Awaited | None:
        """The spot for which a job with a deadline waits rather than to be bought on demand."""
        return self._awaited(need, self._tiers_for(need)) if need.deadline_s is not None else None

    def cheaper(self, need: Need) -> Cheaper | None:
        """What was refused and the job waits for rather than to be bought what is dearer."""
        is_free = need.deadline_s is None and self._refused.concerns(need)
        return self._cheaper(need, self._tiers_for(need)) if is_free else None

    def _cheaper(self, need: Need, tiers: Sequence[tuple[Fitting, ...]]) -> Cheaper | None:
        if not self._refused.concerns(need):
            return None
        paid = ([f for f in tier if not f[0].is_paid_for] for tier in tiers)
        best = next((tier for tier in paid if tier), [])
        sold: list[Sold] = []
        for group, mask in best:
            cheapest = group.catalogue.entries[lowest(mask)]
            usd = group.expected(need).usd(cheapest.usd_per_hour)
            sold.append((usd, cheapest.instance_type))
        least = min((group.pool.weight for group, _ in best), default=0)
        pools = [pool for pool in self._snapshot.cluster.pools if pool.weight >= least]
        return self._refused.awaited(need, sold, [p for p in pools if p.name not in self._shut])

    def _awaited(self, need: Need, tiers: Sequence[tuple[Fitting, ...]]) -> Awaited | None:
        sold = [each for tier in tiers for each in tier if not each[0].is_paid_for]
        costs = [
            group.catalogue.entries[lowest(mask)].usd_per_hour * group.expected(need).hours
            for group, mask in sold
            if group.market is Market.ON_DEMAND
        ]
        has_spot = any(group.market is Market.SPOT for group, _ in sold)
        usd = min(costs, default=0.0)
        return self.due.awaited(need, has_spot=has_spot, on_demand_usd=usd)

    def mask(self, need: Need, offer_group: OfferGroup) -> int:
        """The entries of the offer group that hold one node's share of the job."""
        pool = offer_group.pool
        if pool.name not in need.pools or not allows_time(pool, need):
            return 0
        if need.deadline_s is not None and late_s(pool, need, self._snapshot.now_s) > 0:
            return 0
        shape = need.shape
        found = offer_group.catalogue.fit(vector(shape), gres(shape))
        if found and need.constraint:
            found &= offer_group.meets(need.constraint)
        if found and offer_group.market is Market.CAPACITY_BLOCK:
            found = self._outlasting(need, offer_group, found)
        elif offer_group.is_strict and found.bit_count() < pool.min_types:
            return 0
        if found and offer_group.market is Market.SPOT:
            found &= ~self.losses.mask(need, pool, offer_group.catalogue, found)
        return found

    def options(self, need: Need, near: Set[str] = frozenset()) -> Iterator[Option]:
        """Every offering for the job, zone by zone, in the order in which to buy; first those of
        the reservations `near`.
        """
        rank = partial(self._rank, near)
        for tier in self.fitting(need):
            for option in merge(*(_options(need, *each) for each in tier), key=rank):
                if not self.losses.is_lossy(option.offer_group.pool, option.offering, need):
                    yield option

    def _outlasting(self, need: Need, offer_group: OfferGroup, mask: int) -> int:
        """Without the entries whose reservation ends before the job would."""
        for number, each in enumerate(offer_group.catalogue.entries):
            into, boot_s = offer_group.target, offer_group.pool.boot_s
            if not self.reserved_capacity.outlasts(each.offering, into, need, boot_s):
                mask &= ~(1 << number)
        return mask

    def places(
        self, offer_group: OfferGroup, offering: Offering, *, drawn_usd: float = 0.0
    ) -> float:
        """How many nodes more of it there are: only what is paid for is counted. `drawn_usd`: what
        of a Savings Plan is meant for others.
        """
        into, plan = offer_group.target, offer_group.plan
        if plan:
            return self.commitments.places(plan, offering.instance_type, drawn_usd=drawn_usd)
        return self.reserved_capacity.left(offering, into) if into else inf

    def take(self, offer_group: OfferGroup, offering: Offering, count: int) -> None:
        if offer_group.target:
            self.reserved_capacity.take(offering, offer_group.target, count)
        elif offer_group.market is Market.ON_DEMAND:
            self.commitments.take(offering.instance_type, count, offer_group.plan)

    def usd_in_limits(self, offer_group: OfferGroup, offering: Offering, usd: float) -> float:
        """What limits count where the group's own price is `usd`: who else uses a Savings Plan may
        use it up, and then EC2 bills all of it.
        """
        return self._snapshot.cluster.prices[offering] if offer_group.plan else usd

    def _rank(self, near: Set[str], option: Option) -> _Rank:
        """The cheapest first; of reservations the one with the least room, which leaves the others
        to larger gangs.
        """
        group, offering = option.offer_group, option.offering
        is_open, places = group.target == OPEN, self.places(group, offering)
        return group.target not in near, option.cost_usd, group.pool.name, offering, is_open, places

    def _offer_groups(self, pool: Pool) -> Iterator[OfferGroup]:
        if self._snapshot.cluster.reservations and pool.name not in self._shut_prepaid:
            yield from self._prepaid_groups(pool)
        without = self._resting | {("", each) for each in self._sick}
        for plan in self.commitments.plans(pool):
            found = self._committed(pool, plan, without)
            if found.entries:
                yield OfferGroup(pool, Market.ON_DEMAND, 0.0, found, plan=plan)
        yield from self._by_the_hour(pool, without)

    def _bought_last(self, pool: Pool) -> Iterator[OfferGroup]:
        """All that the pool sells by the hour where some of it is from a sick place: a launch that
        has to name several types may name both.
        """
        if any(pool.may_have(each) for each in self._sick):
            yield from self._by_the_hour(pool, self._resting)

    def _by_the_hour(self, pool: Pool, without: frozenset[Rested]) -> Iterator[OfferGroup]:
        paid = range_of(with_learnt(self._snapshot.cluster, self._snapshot.resting), without)
        for market in pool.markets:
            if not market.is_prepaid:
                yield from paid.offer_groups(pool, market)

    def _committed(self, pool: Pool, plan: str, without: frozenset[Rested]) -> Catalogue:
        """What of the plan's the pool buys on demand, at what it costs beyond the plan."""
        rests = frozenset(on for of, on in without if of in ("", pool.name))
        key = (pool.instance_types, pool.zones, plan, rests)
        if key not in self._prepaid_by:
            found: list[Entry] = []
            for of in pool.instance_types:
                sold = (Offering(of.name, zone, Market.ON_DEMAND) for zone in pool.zones)
                priced = ((self.commitments.usd_per_hour(plan, on), on) for on in sold)
                zones = [(usd, on) for usd, on in priced if usd is not None and on not in rests]
                if zones:
                    found.append(entry(of, zones))
            ordered = sorted(found, key=lambda each: (each.usd_per_hour, each.offering))
            self._prepaid_by[key] = Catalogue(tuple(ordered))
        return self._prepaid_by[key]

    def _prepaid_groups(self, pool: Pool) -> Iterator[OfferGroup]:
        for market in (Market.RESERVED, Market.CAPACITY_BLOCK, Market.INTERRUPTIBLE):
            if market not in pool.markets:
                continue
            for target in self.reserved_capacity.targets(market):
                found = self._prepaid(pool, market, target)
                if found.entries:
                    yield OfferGroup(pool, market, 0.0, found, target)

    def _prepaid(self, pool: Pool, market: Market, target: str) -> Catalogue:
        whose, into = ("", pool.name), ("", target)
        rests = (on for of, on, where in self._resting_in if of in whose and where in into)
        resting = frozenset(rests)
        key = (pool.instance_types, pool.zones, market, target, resting)
        if key not in self._prepaid_by:
            types = {each.name: each for each in pool.instance_types}
            self._prepaid_by[key] = Catalogue(
                tuple(
                    entry(types[offering.instance_type], [(0.0, offering)])
                    for offering in self.reserved_capacity.offerings(market, target)
                    if offering.instance_type in types
                    and offering.zone in pool.zones
                    and offering not in resting
                )
            )
        return self._prepaid_by[key]


def _options(need: Need, offer_group: OfferGroup, mask: int) -> Iterator[Option]:
    expected = offer_group.expected(need)
    for usd, number, offering in offer_group.catalogue.by_zone():
        if mask >> number & 1:
            yield Option(expected.usd(usd), offer_group, number, usd, offering, mask)
