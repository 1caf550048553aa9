"""What pools sell by the hour, around what rests: shared by the plans of one cluster."""

from collections import deque
from dataclasses import dataclass, field, replace
from math import log

from tidegate.core.demand.demand import Need
from tidegate.core.demand.fit import satisfies
from tidegate.core.model.cluster import DEFAULT_HAZARD_PER_HOUR, Cluster, Pool
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.offers.catalogue import Catalogue, Entry, entry
from tidegate.core.offers.cost import Expected, expected

# Offerings whose hazards differ by less than this factor are compared by price alone.
HAZARD_STEP = 4.0

# How many ranges are kept: planners that overlap see different offerings rest.
RANGES_KEPT = 4

# So many catalogues are shared by the ranges of one cluster before they are made anew.
CATALOGUES_KEPT = 200


@dataclass(slots=True, eq=False)
class OfferGroup:
    """What one pool sells in one market at about one hazard; what is paid for in advance, by what a
    launch names (`Reservation.target`), or on demand by the `plan` that pays for it, a Savings
    Plan's ARN; "": none does.
    """

    pool: Pool
    market: Market
    hazard_per_hour: float
    catalogue: Catalogue
    target: str = ""
    plan: str = ""
    _constraints: dict[str, int] = field(default_factory=dict)

    @property
    def is_paid_for(self) -> bool:
        """Whether there is only so much of it."""
        return self.market.is_prepaid or bool(self.plan)

    @property
    def is_strict(self) -> bool:
        """Whether a launch has to name several types."""
        return self.pool.is_min_types_strict and not self.market.is_prepaid

    def expected(self, need: Need) -> Expected:
        """What a node of this offer group is paid for, for this job, and what that one waits."""
        return expected(
            need,
            boot_s=self.pool.boot_s,
            hazard_per_hour=self.hazard_per_hour,
            checkpoint_s=self.pool.checkpoint_s,
        )

    def meets(self, constraint: str) -> int:
        """The entries whose nodes carry the features that the constraint asks for."""
        found = self._constraints.get(constraint)
        if found is None:
            found = 0
            for number, each in enumerate(self.catalogue.entries):
                if satisfies(constraint, self.pool.features(each.instance_type.name, self.market)):
                    found |= 1 << number
            self._constraints[constraint] = found
        return found


type Rested = tuple[str, Offering]
"""What is not bought now, and for which pool; "": for none."""


class Range:
    """What the pools of a cluster sell by the hour, without the offerings that rest.

    It depends on nothing else, so that plans share it: to sort hundreds of offerings costs
    more than most plans. Pools that sell the same things share their catalogues, and so do
    ranges between which only offerings of other markets came to rest.
    """

    def __init__(self, cluster: Cluster, resting: frozenset[Rested], like: "Range | None") -> None:
        self.cluster = cluster
        self.resting = resting
        self._offer_groups: dict[tuple[str, Market], tuple[OfferGroup, ...]] = {}
        self._shared: dict[tuple[object, ...], dict[float, Catalogue]] = {}
        if like is not None and len(like._shared) < CATALOGUES_KEPT:
            self._shared = like._shared

    def offer_groups(self, pool: Pool, market: Market) -> tuple[OfferGroup, ...]:
        key = pool.name, market
        if key not in self._offer_groups:
            by_hazard = sorted(self._catalogues(pool, market).items())
            self._offer_groups[key] = tuple(OfferGroup(pool, market, *each) for each in by_hazard)
        return self._offer_groups[key]

    def _catalogues(self, pool: Pool, market: Market) -> dict[float, Catalogue]:
        """Catalogues by hazard."""
        whose = ("", pool.name)
        resting = frozenset(on for of, on in self.resting if on.market is market and of in whose)
        key = (tuple(each.name for each in pool.instance_types), pool.zones, market, resting)
        if key not in self._shared:
            types = {each.name: each for each in pool.instance_types}
            found: dict[float, dict[str, list[tuple[float, Offering]]]] = {}
            for instance_type in pool.instance_types:
                for zone in pool.zones:
                    offering = Offering(instance_type.name, zone, market)
                    usd = self.cluster.prices.get(offering)
                    is_sold = usd is not None and usd > 0 and not is_dear(self.cluster, offering)
                    if usd is not None and is_sold and offering not in resting:
                        hazard = _stepped(self.cluster.hazard_per_hour(offering))
                        of_type = found.setdefault(hazard, {}).setdefault(instance_type.name, [])
                        of_type.append((usd, offering))
            self._shared[key] = {
                hazard: Catalogue(
                    tuple(sorted((entry(types[n], z) for n, z in zones.items()), key=_by_price))
                )
                for hazard, zones in found.items()
            }
        return self._shared[key]


_RANGES: deque[Range] = deque(maxlen=RANGES_KEPT)


def range_of(cluster: Cluster, resting: frozenset[Rested]) -> Range:
    """The range of these very pools and prices: to compare them would cost more than it saves."""
    like: Range | None = None
    for kept in _RANGES:
        is_theirs = kept.cluster.pools is cluster.pools and kept.cluster.prices is cluster.prices
        if is_theirs and kept.cluster.hazards == cluster.hazards:
            like = kept
            if kept.resting == resting:
                return kept
    _RANGES.appendleft(Range(cluster, resting, like))
    return _RANGES[0]


def is_dear(cluster: Cluster, offering: Offering) -> bool:
    """Whether this is spot that costs what the same costs on demand, where nobody takes it back."""
    if offering.market is not Market.SPOT:
        return False
    steady_usd = cluster.prices.get(replace(offering, market=Market.ON_DEMAND), 0.0)
    return 0.0 < steady_usd <= cluster.prices.get(offering, 0.0)


def _by_price(each: Entry) -> tuple[float, Offering]:
    return each.usd_per_hour, each.offering


def _stepped(hazard_per_hour: float) -> float:
    """The hazard, rounded so that few different ones remain."""
    if hazard_per_hour <= 0:
        return 0.0
    steps = round(log(hazard_per_hour / DEFAULT_HAZARD_PER_HOUR, HAZARD_STEP))
    return DEFAULT_HAZARD_PER_HOUR * HAZARD_STEP**steps
