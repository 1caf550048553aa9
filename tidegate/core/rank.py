"""Which offerings could hold a job, in the order in which they should be bought."""

from dataclasses import dataclass

from tidegate.core.demand import Need
from tidegate.core.ec2 import InstanceType, Offering
from tidegate.core.fit import lacks, satisfies
from tidegate.core.pool import Cluster, Pool

# EC2 weighs capacity above our order on spot, so a much dearer type in the same request
# could come although the cheap one is to be had.
OVERRIDE_PRICE_FACTOR = 1.5
OVERRIDES_MAX = 100


@dataclass(frozen=True, slots=True)
class Candidate:
    """An offering that can hold one node's share of a job."""

    pool: Pool
    instance_type: InstanceType
    offering: Offering
    usd_per_hour: float


def candidates(need: Need, cluster: Cluster) -> tuple[list[Candidate], list[str]]:
    """Every fitting offering, best first, and why each unfit instance type is not one.

    Pool weight decides before price; the offering's own name breaks the last tie.
    """
    found: list[Candidate] = []
    unfit: dict[str, None] = {}
    for pool in cluster.pools:
        if pool.name not in need.pools:
            continue
        for instance_type, offering in pool.offerings():
            why_not = _unfit(need, pool, instance_type, offering, cluster)
            if why_not:
                unfit[why_not] = None
            else:
                price = cluster.prices[offering]
                found.append(Candidate(pool, instance_type, offering, price))
    found.sort(key=lambda c: (-c.pool.weight, c.usd_per_hour, c.pool.name, c.offering))
    return found, list(unfit)


def _unfit(
    need: Need, pool: Pool, instance_type: InstanceType, offering: Offering, cluster: Cluster
) -> str:
    too_small = lacks(need.shape, instance_type)
    if too_small:
        return too_small
    if not satisfies(need.constraint, pool.features(instance_type.name, offering.market)):
        return f"pool {pool.name} on {offering.market} does not meet {need.constraint!r}"
    if offering not in cluster.prices:
        return f"the price of {offering} is not known"
    return ""


def alternatives(best: Candidate, ranked: list[Candidate]) -> list[Candidate]:
    """What may stand beside `best` in one fleet request: same pool, same market, like price."""
    return [
        each
        for each in ranked
        if each.pool.name == best.pool.name
        and each.offering.market == best.offering.market
        and each.usd_per_hour <= best.usd_per_hour * OVERRIDE_PRICE_FACTOR
    ][:OVERRIDES_MAX]
