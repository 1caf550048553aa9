"""The cheapest kind of node that a job can ask for by name."""

from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.wire.config import ClusterFile

MARKETS = (Market.ON_DEMAND, Market.SPOT)
LONGEST_H = 0.25
MOST_USD = 1.0


@frozen
class Cheapest:
    """`usd_per_hour`: of the dearest market that the pool may take it from."""

    pool: str
    partition: str
    instance_type: InstanceType
    offering: Offering
    usd_per_hour: float

    @property
    def most_usd(self) -> float:
        """What it costs if it is there for as long as this may take."""
        return self.usd_per_hour * LONGEST_H


def cheapest(file: ClusterFile) -> Cheapest | None:
    """By its price in the cheapest market; None: no pool sells spot or on demand to a partition."""
    cluster = file.cluster
    found: list[tuple[float, str, Cheapest]] = []
    for partition in cluster.partitions:
        for pool in filter(None, map(cluster.pool, partition.pools)):
            prices: dict[str, list[float]] = {}
            sold = [each for each in pool.offerings() if each[1].market in MARKETS]
            for kind, offering in sold:
                prices.setdefault(kind.name, []).append(cluster.prices[offering])
            for kind, offering in sold:
                usd = cluster.prices[offering]
                dearest = max(prices[kind.name])
                one = Cheapest(pool.name, partition.name, kind, offering, dearest)
                found.append((usd, str(offering), one))
    return min(found, key=lambda each: each[:2])[2] if found else None
