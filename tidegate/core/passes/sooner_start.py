"""Whether a stopped node on demand is started where spot would be bought and has to boot."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from tidegate.core.demand.demand import Need
from tidegate.core.demand.fit import satisfies
from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Launch
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.cost import expected
from tidegate.core.offers.limits import Usage
from tidegate.core.offers.places import sick_places

# A start has to save so much more waiting than it costs: what is started stays for a while, and
# other jobs come to it that would have got spot. On spot and on demand, with `stopped_nodes: auto`
# and W = 50, money and waits together come to 0.2 % more on the thinned venus and 4 % less on the
# thinned pai than without any such start; with 1 instead of 1.4 to 1.0 % more and 4 % less.
WORTH_FACTOR = 1.4


@frozen
class _Cost:
    """Of one node until its jobs have ended: its price, and what their waiting costs."""

    node_usd: float
    wait_usd: float


@dataclass(slots=True)
class SoonerStarts:
    """Answers for one plan. `needs`: by job, of those that wait."""

    snapshot: Snapshot
    usage: Usage
    needs: Mapping[str, Need]
    _sick: Set[Offering] = field(init=False)

    def __post_init__(self) -> None:
        self._sick = sick_places(self.snapshot).keys()

    def instead(self, launch: Launch, jobs: Sequence[str]) -> list[tuple[Offering, str]]:
        """What may be started instead of a node of the launch for these jobs, the cheapest first,
        and why it pays; nothing where it does not.
        """
        pool, first = self.snapshot.cluster.pool(launch.pool), launch.offerings[0]
        needs = [need for job in jobs if (need := self.needs.get(job))]
        if pool is None or first.market is not Market.SPOT or len(needs) < len(jobs) or not needs:
            return []
        if Market.ON_DEMAND not in pool.markets or not all(map(_has_its_price, needs)):
            return []
        return sorted(self._paying(launch, pool, needs), key=self._by_price)

    def take(self, launch: Launch, started: Offering, count: int) -> bool:
        """Whether limits leave room for so many nodes that may cost more than the launch's."""
        prices = self.snapshot.cluster.prices
        usd = prices[started]
        counted = self.usage.load_of(started.instance_type, launch.usd_per_hour_each)
        wider = self.usage.load_of(started.instance_type, max(usd, launch.usd_per_hour_each))
        if not self.usage.widen(launch.pool, count, counted, wider):
            return False
        self.usage.expected_usd_per_hour += count * (usd - prices[launch.offerings[0]])
        return True

    def _paying(
        self, launch: Launch, pool: Pool, needs: Sequence[Need]
    ) -> Iterator[tuple[Offering, str]]:
        prices, first = self.snapshot.cluster.prices, launch.offerings[0]
        starts_s = pool.up_in_s(is_started=True)
        hazard = self.snapshot.cluster.hazard_per_hour(first)
        spot = _cost(needs, pool, prices[first], boot_s=pool.boot_s, hazard=hazard)
        for spot_offering in launch.offerings:
            on = replace(spot_offering, market=Market.ON_DEMAND)
            features = pool.features(on.instance_type, Market.ON_DEMAND)
            is_for_all = all(satisfies(need.constraint, features) for need in needs)
            if not prices.get(on) or on in self._sick or not is_for_all:
                continue
            found = _cost(needs, pool, prices[on], boot_s=starts_s, hazard=0.0)
            dearer_usd = found.node_usd - spot.node_usd
            if spot.wait_usd - found.wait_usd > max(WORTH_FACTOR * dearer_usd, 0.0):
                yield on, _why(pool.boot_s - starts_s, dearer_usd)

    def _by_price(self, found: tuple[Offering, str]) -> tuple[float, Offering]:
        return self.snapshot.cluster.prices[found[0]], found[0]


def _has_its_price(need: Need) -> bool:
    """Its waiting costs something, and no deadline, no node of its own and no other part of its
    job, which goes by the same id, decides what it runs on.
    """
    is_free = need.deadline_s is None and need.where is None and not need.gang_id
    return is_free and need.wait_usd_per_hour > 0


def _cost(
    needs: Sequence[Need], pool: Pool, usd_per_hour: float, *, boot_s: float, hazard: float
) -> _Cost:
    found = [
        expected(need, boot_s=boot_s, hazard_per_hour=hazard, checkpoint_s=pool.checkpoint_s)
        for need in needs
    ]
    node_usd = usd_per_hour * max(each.hours for each in found)
    return _Cost(node_usd, sum(each.wait_usd for each in found))


def _why(sooner_s: float, dearer_usd: float) -> str:
    for_usd = f"for {dearer_usd:.2f} USD more" if dearer_usd >= 0.005 else "for no more"
    return f"on spot: it is up {sooner_s:.0f} s sooner, {for_usd}"
