"""Whether spot is worth its interruptions to a job, beside the same nodes on demand."""

from collections.abc import Iterator, Mapping

from tidegate.core.demand.demand import Need
from tidegate.core.demand.fit import lacks, satisfies
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.durations import span
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.offers.cost import allows_time, billed_hours, run_s

# Where nothing but spot is sold for a job, it waits only when it is expected to cost so many times
# what it would cost without interruptions: it would be started again and again.
HOPELESS_FACTOR = 20.0


class Losses:
    """Answers for one plan; what is the same for many jobs is found once."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._ratios: dict[tuple[object, str, Offering], float] = {}
        self._elsewhere: dict[object, dict[str, float]] = {}

    def is_lossy(self, pool: Pool, offering: Offering, need: Need) -> bool:
        """Whether the job is not expected to end there at less than its cost elsewhere.

        Limits and refusals do not come into it: a job that they keep from elsewhere waits.
        """
        if offering.market is not Market.SPOT or (need.where and need.where.is_bound):
            return False
        return self.ratio(need, pool, offering) >= 1.0

    def ratio(self, need: Need, pool: Pool, offering: Offering) -> float:
        """What the job is expected to cost on such spot nodes, by its cost elsewhere: on the same
        nodes on demand, or where none of its pools sells these, on the cheapest that hold it.
        """
        key = asked(need), pool.name, offering
        if key not in self._ratios:
            cluster, boot_s = self.cluster, pool.boot_s
            steady = billed_hours(need, boot_s=boot_s, hazard_per_hour=0.0, checkpoint_s=None)
            hours = billed_hours(
                need,
                boot_s=boot_s,
                hazard_per_hour=cluster.hazard_per_hour(offering),
                checkpoint_s=pool.checkpoint_s,
            )
            spot_usd, elsewhere = cluster.prices.get(offering, 0.0), self.elsewhere(need)
            of_type = elsewhere.get(offering.instance_type)
            usd = of_type or min(elsewhere.values(), default=spot_usd * HOPELESS_FACTOR)
            self._ratios[key] = spot_usd * hours / (usd * steady) if usd else 0.0
        return self._ratios[key]

    def elsewhere(self, need: Need) -> Mapping[str, float]:
        """The on-demand price of each instance type that the job's pools sell and that holds one
        node's share of it.
        """
        key = need.pools, need.shape, need.constraint, need.time_limit_s
        if key not in self._elsewhere:
            found = self._elsewhere[key] = {}
            for usd, name in self._sold(need):
                found[name] = min(usd, found.get(name, usd))
        return self._elsewhere[key]

    def _sold(self, need: Need) -> Iterator[tuple[float, str]]:
        for pool in self.cluster.pools:
            is_its = pool.name in need.pools and Market.ON_DEMAND in pool.markets
            for each in pool.instance_types if is_its and allows_time(pool, need) else ():
                features = pool.features(each.name, Market.ON_DEMAND)
                if lacks(need.shape, each) or not satisfies(need.constraint, features):
                    continue
                for zone in pool.zones:
                    usd = self.cluster.prices.get(Offering(each.name, zone, Market.ON_DEMAND))
                    if usd:
                        yield usd, each.name


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
    ratio, is_elsewhere = losses.ratio(need, pool, offering), bool(losses.elsewhere(need))
    hazard = losses.cluster.hazard_per_hour(offering)
    of = f"each of its {need.nodes} nodes is" if need.nodes > 1 else "its node is"
    before = f", was requeued {need.restarts} times" if need.restarts else ""
    saves = "is known to write no checkpoints" if need.is_requeueable else "may not be requeued"
    times = f"{ratio:.1f}" if ratio < 100 else "over 100"
    elsewhere = "on demand" if is_elsewhere else "without interruptions"
    said = (
        f"pool {pool.name} on spot: {of} taken back {hazard:.2g} times an hour, and the job, which "
        f"is expected to run {span(run_s(need))}{before}, {saves}: with what it would lose, "
        f"{offering} counts {times} times what it costs {elsewhere}"
    )
    remedy = "or have the pool's checkpoint_s set, if its jobs write checkpoints by themselves"
    if not is_elsewhere:
        remedy = f"or have pool {pool.name} buy on demand too (capacity_types)"
    return WhyNot(Why.LOSSY, said, pool.name, str(offering), remedy=remedy)
