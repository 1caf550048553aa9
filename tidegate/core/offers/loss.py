"""Whether spot is worth its interruptions to a job, beside the same nodes on demand."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tidegate.core.demand.demand import Need
from tidegate.core.demand.fit import lacks, satisfies
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.durations import span
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Shape
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.offers.catalogue import Catalogue, bits
from tidegate.core.offers.cost import allows_time, billed_hours, run_s

# Where nothing but spot is sold for a job, it waits only when it is expected to cost so many times
# what it would cost without interruptions: it would be started again and again.
HOPELESS_FACTOR = 20.0


type _OnDemand = Mapping[str, Mapping[InstanceType, float]]
"""What the pools that may run a job sell on demand, whatever it asks of a node: by name, what it is
in the pools (one may slice its GPUs, another not), and the lowest price of each.
"""


type _Offered = tuple[InstanceType, Offering]
"""What is sold, and where."""


@frozen
class _Dearest:
    """Spot entries of one hazard, by what they cost beside the same type on demand.

    `least_first`: the pairs of prices; `masks[n]`: the entries from the n-th on.
    """

    least_first: Sequence[tuple[float, float]]
    masks: Sequence[int]

    def lossy(self, steady: float, hours: float) -> int:
        """Those that cost no less than on demand, for so many hours instead of the steady ones."""

        def is_lossy(prices: tuple[float, float]) -> bool:
            return prices[0] * hours / (prices[1] * steady) >= 1.0

        return self.masks[bisect_left(self.least_first, True, key=is_lossy)]


class Losses:
    """On which spot a job is expected to lose more than it saves, during one plan.

    What is the same for many jobs is found once.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._ratios: dict[tuple[object, str, Offering], float] = {}
        self._on_demands: dict[object, _OnDemand] = {}
        self._elsewhere: dict[object, dict[str, float]] = {}
        self._dearest: dict[tuple[int, int, bool], tuple[dict[float, _Dearest], int]] = {}
        self._catalogues: list[Catalogue] = []  # as long as their ids count
        self._asks: Need | None = None
        self._masks: dict[tuple[object, ...], int] = {}  # of the job that asked last
        self._sold_to: dict[object, _OnDemand] = {}

    def is_lossy(self, pool: Pool, offering: Offering, need: Need) -> bool:
        """Whether the job is not expected to end there at less than its cost elsewhere.

        Limits and refusals do not come into it: a job that they keep from elsewhere waits.
        """
        if offering.market is not Market.SPOT or (need.where and need.where.is_bound):
            return False
        return self.ratio(need, pool, offering) >= 1.0

    def mask(
        self,
        need: Need,
        pool: Pool,
        catalogue: Catalogue,
        fitting: int,
        *,
        is_by_zone: bool = False,
    ) -> int:
        """Of the spot entries that fit the job those that are lossy, by their cheapest zones.

        `is_by_zone`: `fitting` and what is found are places in `Catalogue.by_zone`, each judged by
        its own zone.
        """
        if need.where and need.where.is_bound:
            return 0
        sold = self._on_demand(need)
        key = id(catalogue), id(sold), is_by_zone
        if key not in self._dearest:
            self._catalogues.append(catalogue)
            self._dearest[key] = self._sorted(_offered(catalogue, is_by_zone), sold)
        by_hazard, others = self._dearest[key]
        found = self._lossy(need, pool, key, by_hazard)
        offered = _offered(catalogue, is_by_zone) if others & fitting else ()
        for number in bits(others & fitting):
            if self.is_lossy(pool, offered[number][1], need):
                found |= 1 << number
        return found & fitting

    def _lossy(
        self,
        need: Need,
        pool: Pool,
        key: tuple[int, int, bool],
        by_hazard: Mapping[float, _Dearest],
    ) -> int:
        """What is the same for all pools that boot as long and sell the same: they come in turn."""
        if need is not self._asks:
            self._asks, self._masks = need, {}
        about = *key, pool.boot_s, pool.checkpoint_s
        if about not in self._masks:
            found, steady = 0, self._steady(need, pool)
            for hazard, dearest in by_hazard.items():
                found |= dearest.lossy(steady, self._hours(need, pool, hazard))
            self._masks[about] = found
        return self._masks[about]

    def _sorted(
        self, offered: Sequence[_Offered], sold: _OnDemand
    ) -> tuple[dict[float, _Dearest], int]:
        """By hazard; and those of types that are not sold on demand, or not as the same."""
        others = 0
        prices: dict[float, list[tuple[float, float, float, int]]] = {}
        for number, (of, offering) in enumerate(offered):
            spot_usd = self.cluster.prices.get(offering, 0.0)
            variants = sold.get(of.name, {})
            usd = variants.get(of) if len(variants) == 1 else None
            if usd is None:
                others |= 1 << number
                continue
            of_hazard = prices.setdefault(self.cluster.hazard_per_hour(offering), [])
            of_hazard.append((spot_usd / usd, spot_usd, usd, number))
        found: dict[float, _Dearest] = {}
        for hazard, each_price in prices.items():
            each_price.sort()
            masks = [0]
            for *_, number in reversed(each_price):
                masks.append(masks[-1] | 1 << number)
            pairs = [(spot_usd, usd) for _, spot_usd, usd, _ in each_price]
            found[hazard] = _Dearest(pairs, masks[::-1])
        return found, others

    def ratio(self, need: Need, pool: Pool, offering: Offering) -> float:
        """What the job is expected to cost on such spot nodes, by its cost elsewhere: on the same
        nodes on demand, or where none of its pools sells these, on the cheapest that hold it.
        """
        key = asked(need), pool.name, offering
        if key not in self._ratios:
            steady = self._steady(need, pool)
            hours = self._hours(need, pool, self.cluster.hazard_per_hour(offering))
            spot_usd = self.cluster.prices.get(offering, 0.0)
            usd = self._usd_on_demand(need, offering.instance_type)
            if usd is None:
                usd = min(self.elsewhere(need).values(), default=spot_usd * HOPELESS_FACTOR)
            self._ratios[key] = spot_usd * hours / (usd * steady) if usd else 0.0
        return self._ratios[key]

    def _steady(self, need: Need, pool: Pool) -> float:
        return billed_hours(need, boot_s=pool.boot_s, hazard_per_hour=0.0, checkpoint_s=None)

    def _hours(self, need: Need, pool: Pool, hazard_per_hour: float) -> float:
        return billed_hours(
            need,
            boot_s=pool.boot_s,
            hazard_per_hour=hazard_per_hour,
            checkpoint_s=pool.checkpoint_s,
        )

    def _usd_on_demand(self, need: Need, name: str) -> float | None:
        """Of a type that holds one node's share of the job; None: none of its pools sells it."""
        return _least(self._on_demand(need).get(name, {}), need.shape)

    def is_elsewhere(self, need: Need) -> bool:
        """Whether any of its pools sells it a node on demand."""
        sold = self._on_demand(need).values()
        return any(not lacks(need.shape, of) for variants in sold for of in variants)

    def elsewhere(self, need: Need) -> Mapping[str, float]:
        """The on-demand price of each instance type that the job's pools sell and that holds one
        node's share of it.
        """
        sold = self._on_demand(need)
        key = id(sold), need.shape
        if key not in self._elsewhere:
            named = ((name, _least(variants, need.shape)) for name, variants in sold.items())
            self._elsewhere[key] = {name: usd for name, usd in named if usd is not None}
        return self._elsewhere[key]

    def _on_demand(self, need: Need) -> _OnDemand:
        key = need.pools, need.constraint, need.time_limit_s
        if key not in self._sold_to:
            self._sold_to[key] = self._of_pools(need)
        return self._sold_to[key]

    def _of_pools(self, need: Need) -> _OnDemand:
        pools = [
            pool
            for pool in self.cluster.pools
            if pool.name in need.pools and Market.ON_DEMAND in pool.markets
            if allows_time(pool, need)
        ]
        key = tuple(pool.name for pool in pools), need.constraint
        if key not in self._on_demands:
            found: dict[str, dict[InstanceType, float]] = {}
            for usd, each in self._sold(pools, need.constraint):
                variants = found.setdefault(each.name, {})
                variants[each] = min(usd, variants.get(each, usd))
            self._on_demands[key] = found
        return self._on_demands[key]

    def _sold(self, pools: Iterable[Pool], constraint: str) -> Iterator[tuple[float, InstanceType]]:
        for pool in pools:
            for each in pool.instance_types:
                if not satisfies(constraint, pool.features(each.name, Market.ON_DEMAND)):
                    continue
                for zone in pool.zones:
                    usd = self.cluster.prices.get(Offering(each.name, zone, Market.ON_DEMAND))
                    if usd:
                        yield usd, each


def _offered(catalogue: Catalogue, is_by_zone: bool) -> Sequence[_Offered]:
    """Each entry with its cheapest zone, or each of `Catalogue.by_zone`."""
    if not is_by_zone:
        return [(each.instance_type, each.offering) for each in catalogue.entries]
    by_zone = catalogue.by_zone()
    return [(catalogue.entries[number].instance_type, each) for _, number, each in by_zone]


def _least(variants: Mapping[InstanceType, float], shape: Shape) -> float | None:
    """The lowest price of those that hold the shape; None: none does."""
    return min((usd for of, usd in variants.items() if not lacks(shape, of)), default=None)


def asked(need: Need) -> tuple[object, ...]:
    """What its cost depends on. Waiting and running jobs number their kinds apart."""
    return (
        need.pools,
        need.shape,
        need.constraint,
        need.nodes + len(need.beside),
        need.time_limit_s,
        need.expected_s,
        need.is_requeueable,
        need.checkpoint_s,
        need.restarts,
    )


def lossy(losses: Losses, need: Need, pool: Pool, *, offering: Offering) -> WhyNot:
    """Why the job gets no spot of the pool; `offering`: what is best there."""
    ratio, is_elsewhere = losses.ratio(need, pool, offering), losses.is_elsewhere(need)
    hazard = losses.cluster.hazard_per_hour(offering)
    of = f"each of its {need.nodes} nodes is" if need.nodes > 1 else "its node is"
    often = f"{hazard:.2g} times an hour"
    if offering in losses.cluster.seen_hazards:
        often += " as seen here"
    before = f", was requeued {need.restarts} times" if need.restarts else ""
    saves_s = pool.checkpoint_s if need.checkpoint_s is None else need.checkpoint_s
    saves = "is known to write no checkpoints" if saves_s is None else "writes checkpoints"
    if not need.is_requeueable:
        saves = "may not be requeued"
    times = f"{ratio:.1f}" if ratio < 100 else "over 100"
    elsewhere = "on demand" if is_elsewhere else "without interruptions"
    said = (
        f"pool {pool.name} on spot: {of} taken back {often}, and the job, which "
        f"is expected to run {span(run_s(need))}{before}, {saves}: with what it would lose, "
        f"{offering} counts {times} times what it costs {elsewhere}"
    )
    remedy = ""
    if saves_s is None:
        remedy = "or have the pool's checkpoint_s set, if its jobs write checkpoints by themselves"
    if not is_elsewhere:
        remedy = f"or have pool {pool.name} buy on demand too (capacity_types)"
    return WhyNot(Why.LOSSY, said, pool.name, str(offering), remedy=remedy)
