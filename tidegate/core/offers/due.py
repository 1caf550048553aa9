"""What the deadline of a job makes of what is sold: in which order to buy, or for what to wait."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tidegate.core.demand.demand import Need
from tidegate.core.demand.fit import lacks, satisfies
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.durations import clock, moment, span
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.resting import Resting
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.offers.cost import SECONDS_PER_HOUR, allows_time, billed_hours, run_s
from tidegate.core.offers.deadline import Choice, Pressure, choice
from tidegate.core.offers.loss import Losses

# The next look comes within a minute, and what it buys may be refused: the one after it buys
# elsewhere.
MARGIN_S = 120.0


@frozen
class Awaited:
    """Spot that is expected to be had again, which costs the job so much less than what is sold."""

    rest: Resting
    usd_per_hour: float
    saves_usd: float


class Deadlines:
    """What the deadlines of a plan's jobs ask for: on demand, spot, or to wait for spot."""

    def __init__(self, snapshot: Snapshot, losses: Losses) -> None:
        self._snapshot = snapshot
        self._losses = losses

    def pressure(self, need: Need, *, has_spot: bool) -> Pressure:
        """The job before its deadline, as if it started again. It has one."""
        assert need.deadline_s is not None
        found = pressure(need, self._snapshot.cluster, self._snapshot.now_s)
        return replace(found, spot_for_s=0.0 if has_spot else None)

    def is_pressed(self, need: Need) -> bool:
        """Whether an interruption would make it miss a deadline that on demand meets."""
        if need.deadline_s is None:
            return False
        return choice(self.pressure(need, has_spot=True)) is Choice.ON_DEMAND

    def awaited(self, need: Need, *, has_spot: bool, on_demand_usd: float) -> Awaited | None:
        """The spot that it waits for now; None: it waits for none.

        `on_demand_usd`: what a node costs until its end of what could be bought instead.
        """
        if need.deadline_s is None:
            return None
        now = self.pressure(need, has_spot=has_spot)
        if choice(now) is not Choice.WAIT:
            return None
        last_s = self._snapshot.now_s + now.waits_s
        found = [
            each
            for each in self._to_come(need, on_demand_usd)
            if each.rest.until_s <= last_s and self._pays(each, need)
        ]
        return min(found, key=lambda each: (-each.saves_usd, each.rest.offering), default=None)

    def _to_come(self, need: Need, on_demand_usd: float) -> Iterator[Awaited]:
        """Spot that rests now, and on which the job would cost less."""
        cluster = self._snapshot.cluster
        for pool in (pool for pool in cluster.pools if pool.name in need.pools):
            rests = [each for each in self._snapshot.resting if self._is_for(need, pool, each)]
            rests.sort(key=lambda each: (each.until_s, each.key))
            # What rests for several reasons is tried when the last is over.
            for rest in {each.offering: each for each in rests}.values():
                usd = cluster.prices.get(rest.offering, 0.0)
                hours = billed_hours(
                    need,
                    boot_s=pool.boot_s,
                    hazard_per_hour=cluster.hazard_per_hour(rest.offering),
                    checkpoint_s=pool.checkpoint_s,
                )
                if 0.0 < usd * hours < on_demand_usd:
                    nodes = need.nodes + len(need.beside)
                    yield Awaited(rest, usd, (on_demand_usd - usd * hours) * nodes)

    def _is_for(self, need: Need, pool: Pool, rest: Resting) -> bool:
        """Whether the pool would buy it for the job as soon as it rests no more."""
        on = rest.offering
        of = next((each for each in pool.instance_types if each.name == on.instance_type), None)
        is_ours = rest.stops(pool.name) and rest.until_s > self._snapshot.now_s
        if of is None or on.market is not Market.SPOT or not is_ours or not pool.may_have(on):
            return False
        if lacks(need.shape, of) or not allows_time(pool, need):
            return False
        if not satisfies(need.constraint, pool.features(of.name, Market.SPOT)):
            return False
        return not self._losses.is_lossy(pool, on, need)

    def _pays(self, each: Awaited, need: Need) -> bool:
        """Whether it saves more than it costs to wait until it is tried again."""
        wait_s = each.rest.until_s - self._snapshot.now_s
        return each.saves_usd > need.wait_usd_per_hour * wait_s / SECONDS_PER_HOUR

    def waiting(self, need: Need, awaited: Awaited) -> WhyNot:
        """What the job hears meanwhile."""
        assert need.deadline_s is not None
        now_s, rest = self._snapshot.now_s, awaited.rest
        now = self.pressure(need, has_spot=False)
        last_s = now_s + now.waits_s
        said = (
            f"its deadline, {moment(need.deadline_s)} UTC, leaves {span(now.spare_s)} to spare: it "
            f"waits for spot, which saves {awaited.saves_usd:.2f} USD, until {moment(last_s)} UTC "
            f"at the latest, and is bought on demand then; {rest.offering} is tried again at "
            f"{clock(rest.until_s)}"
        )
        return WhyNot(Why.SPARE_TIME, said, rest.pool, str(rest.offering), last_s)


def pressure(need: Need, cluster: Cluster, now_s: float) -> Pressure:
    """A job with a deadline as it stands before its next start. What earlier runs have saved counts
    as far as the job says: else all is still to be done.
    """
    assert need.deadline_s is not None
    pools = [pool for pool in cluster.pools if pool.name in need.pools]
    work_s = (need.time_limit_s or run_s(need)) * (1.0 - need.saved.part)
    return Pressure(
        left_s=need.deadline_s - now_s,
        work_s=work_s,
        change_s=max((pool.boot_s for pool in pools), default=0.0),
        lost_s=min(_lost_s(need, pools, work_s), work_s),
        margin_s=MARGIN_S,
        may_move=need.saved.may_move,
    )


def _lost_s(need: Need, pools: Sequence[Pool], work_s: float) -> float:
    """The work that an interruption costs at most."""
    if need.checkpoint_s is not None:
        return need.checkpoint_s
    losses: Iterable[float] = (
        work_s if pool.checkpoint_s is None else pool.checkpoint_s for pool in pools
    )
    return max(losses, default=work_s)


def late_s(pool: Pool, need: Need, now_s: float) -> float:
    """How long after its deadline the job would end at the soonest on a node bought now.

    Slurm cancels a job that can no longer end in time, so such a node would be for nothing.
    """
    if need.deadline_s is None or need.shortest_s is None:
        return 0.0
    return max(now_s + pool.boot_s + need.shortest_s - need.deadline_s, 0.0)
