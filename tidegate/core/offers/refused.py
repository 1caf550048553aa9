"""How long a job waits for what EC2 has refused, rather than to be bought what is dearer.

What was refused is taken to be refused as long again as it was, and at least until it is tried. It
is waited for while that time, at what the job's waiting costs, is less than what it saves; no
longer than its rests still grow: what rests for `rest_max_s` is taken to be gone. Where waiting has
no price nothing is waited for: nobody could say for how long.
"""

from collections.abc import Iterable, Iterator, Sequence

from tidegate.core.demand.demand import Need
from tidegate.core.demand.fit import lacks, satisfies, share
from tidegate.core.model.cluster import Pool, Timings
from tidegate.core.model.durations import clock
from tidegate.core.model.ec2 import Cure, InstanceType, Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.resting import Resting, rest_s
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.offers.cost import SECONDS_PER_HOUR, allows_time, expected
from tidegate.core.offers.loss import Losses


@frozen
class Cheaper:
    """What was refused and is waited for: what it saves, and what waiting for it costs."""

    rest: Resting
    saves_usd: float
    wait_usd: float


type Sold = tuple[float, InstanceType]
"""What a node of a type is expected to cost the job until its end."""


class Shortages:
    """What EC2 is short of during one plan, and which jobs had better wait for it."""

    def __init__(self, snapshot: Snapshot, losses: Losses) -> None:
        self._now_s, self._cluster, self._losses = snapshot.now_s, snapshot.cluster, losses
        self._rests = [each for each in snapshot.resting if self._is_short_of_capacity(each)]

    def _is_short_of_capacity(self, rest: Resting) -> bool:
        """What rests for all pools and needs nobody, until EC2 has some again."""
        is_resting = rest.until_s > self._now_s and not rest.pool
        return is_resting and rest.cure is Cure.NONE and not rest.offering.market.is_prepaid

    def concerns(self, need: Need) -> bool:
        """Whether it might wait at all: most plans need not look further."""
        return bool(self._rests and need.wait_usd_per_hour)

    def awaited(self, need: Need, sold: Sequence[Sold], pools: Iterable[Pool]) -> Cheaper | None:
        """What the job waits for now; None: nothing. `sold`: what could be bought instead, at what
        a node costs until its end; `pools`: those that would be bought for it as soon as these.
        """
        if not sold or not self.concerns(need):
            return None
        best_usd, of = min(sold, key=lambda each: each[0])
        jobs_share = share(need.shape, of) * (need.nodes + len(need.beside))
        found = [
            each
            for pool in pools
            for each in self._of_pool(need, pool, best_usd, jobs_share)
            if each.saves_usd > each.wait_usd
        ]
        return min(found, key=_most_first, default=None)

    def _of_pool(
        self, need: Need, pool: Pool, best_usd: float, jobs_share: float
    ) -> Iterator[Cheaper]:
        if pool.name not in need.pools or not allows_time(pool, need):
            return
        types = {each.name: each for each in pool.instance_types}
        for rest in self._rests:
            on = rest.offering
            of = types.get(on.instance_type)
            usd = self._cluster.prices.get(on, 0.0)
            wait_s = _expected_s(rest, self._cluster.timings, self._now_s)
            if of is None or not pool.may_have(on) or usd <= 0.0 or wait_s is None:
                continue
            if lacks(need.shape, of) or self._losses.is_lossy(pool, on, need):
                continue
            if not satisfies(need.constraint, pool.features(of.name, on.market)):
                continue
            there = expected(
                need,
                boot_s=pool.boot_s,
                hazard_per_hour=self._hazard(rest),
                checkpoint_s=pool.checkpoint_s,
            )
            saves_usd = (best_usd - there.usd(usd)) * jobs_share
            yield Cheaper(rest, saves_usd, need.wait_usd_per_hour * wait_s / SECONDS_PER_HOUR)

    def _hazard(self, rest: Resting) -> float:
        is_spot = rest.offering.market is Market.SPOT
        return self._cluster.hazard_per_hour(rest.offering) if is_spot else 0.0


def waiting(need: Need, found: Cheaper) -> WhyNot:
    """What the job hears meanwhile."""
    rest = found.rest
    said = (
        f"EC2 has no {rest.offering} now, which is tried again at {clock(rest.until_s)}: it saves "
        f"{found.saves_usd:.2f} USD, and to wait for it is expected to cost {found.wait_usd:.2f} "
        f"(waiting: {need.wait_usd_per_hour:g} USD per job-hour)"
    )
    return WhyNot(Why.CHEAPER, said, rest.pool, str(rest.offering), rest.until_s)


def _expected_s(rest: Resting, timings: Timings, now_s: float) -> float | None:
    """Until it is had again: as long as it has rested before, and until it is tried. None: it has
    rested so often that it is taken to be gone.
    """
    rested_s = rest_s(rest.failures, timings)
    if rested_s >= timings.rest_max_s:
        return None
    return rest.until_s - now_s + rested_s - timings.rest_min_s


def _most_first(each: Cheaper) -> tuple[float, Sequence[object]]:
    return each.wait_usd - each.saves_usd, (each.rest.offering,)
