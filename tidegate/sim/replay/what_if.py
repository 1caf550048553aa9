"""What an offer of capacity would do: the queue is played with it and without, by the planner."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from statistics import fmean

from tidegate.core.model.capacity import BlockOffer
from tidegate.core.model.capacity_advice import Offered, Sooner
from tidegate.core.model.cluster import Cluster, Pool, Reservation
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.snapshot import Snapshot
from tidegate.sim.replay.outcome import cost_usd
from tidegate.sim.replay.queued import Queued
from tidegate.sim.replay.state import EPOCH_S, Run
from tidegate.sim.replay.steps import Steps
from tidegate.sim.replay.tidegate_policy import Tidegate
from tidegate.sim.replay.trace import TraceJob
from tidegate.sim.replay.world import Setting, World

# Between looks while jobs wait and nothing happens. What happens (a job comes or ends, a node
# joins or idles, a block begins) is looked at anyway; what is refused for good is asked for seldom.
HEARTBEAT_S = 6 * 3600.0
# The same where EC2 sells again at some time: an answer in days is exact enough by the hour.
ASKING_S = 3600.0
# Starts that differ by less are the same: a boot may have been caught by another look.
SAME_S = 120.0


@frozen
class WhatIf:
    """A queue, its cluster, and what EC2 refuses now: offering -> the nodes of it that there are.

    `refused_s`: for how long EC2 goes on to refuse; None: for good.
    """

    cluster: Cluster
    queue: Queued
    refused: Mapping[Offering, int]
    now_s: float
    refused_s: float | None = None

    def offered(self, offers: Iterable[BlockOffer]) -> Iterator[Offered]:
        """Each offer, in their order. What a pool could not use starts nothing."""
        offers = list(offers)
        patience_s = max((each.ends_at_s - self.now_s for each in offers), default=0.0)
        refused = self._play(self.cluster, is_refusing=True, patience_s=patience_s)
        sold = self._play(self.cluster, is_refusing=False, patience_s=0.0)
        for offer in offers:
            yield self._offered(offer, refused, sold)

    def _offered(self, offer: BlockOffer, refused: World, sold: World) -> Offered:
        ends_s = offer.ends_at_s - self.now_s
        bought = with_offer(self.cluster, offer)
        world = self._play(bought, is_refusing=True, patience_s=ends_s)
        on = offer.offering
        inside = [place for place, run in enumerate(world.runs) if run.first_on == on]
        waiting = [place for place in inside if place in self.queue.waiting]
        work = [world.runs[place].job for place in inside]
        used_s = sum(each.gpu_busy_s for each in world.gone if each.offering == on)
        instance_type = bought.instance_type(offer.instance_type)
        assert instance_type, "offers are asked for what pools have"
        gpus = instance_type.gpus * offer.count
        return Offered(
            offer=offer,
            jobs=tuple(dict.fromkeys(world.runs[place].job.job_id for place in waiting)),
            later=len(inside) - len(waiting),
            if_refused=_sooner(world, refused, waiting, ends_s),
            if_sold=_sooner(world, sold, waiting, ends_s),
            idle_share=max(1.0 - used_s / (gpus * offer.hours * 3600.0), 0.0),
            spot_usd=self._usd(work, Market.SPOT, offer),
            on_demand_usd=self._usd(work, Market.ON_DEMAND, offer),
        )

    def _usd(self, work: list[TraceJob], market: Market, offer: BlockOffer) -> float | None:
        """What the same work costs bought so, of any pool; None: not all of it would end."""
        alone = only(self.cluster, market, offer)
        if alone is None or not work:
            return None
        world = World(work, alone, Setting(error_sigma=0.0, heartbeat_s=HEARTBEAT_S), Tidegate())
        world.play()
        if any(run.ended_s < 0 for run in world.runs):
            return None
        return sum(cost_usd(each) for each in world.gone)

    def _play(self, cluster: Cluster, *, is_refusing: bool, patience_s: float) -> World:
        shift_s = EPOCH_S - self.now_s
        shifted = tuple(_shifted(each, shift_s) for each in cluster.reservations)
        plans = tuple(each.later(shift_s) for each in cluster.savings_plans)
        capacity = {
            offering: Steps(
                ((0.0, there),)
                if self.refused_s is None
                else ((0.0, there), (self.refused_s, 1_000_000.0))
            )
            for offering, there in self.refused.items()
        }
        world = World(
            self.queue.jobs,
            replace(cluster, reservations=shifted, savings_plans=plans),
            Setting(
                error_sigma=0.0,
                capacity=capacity if is_refusing else {},
                patience_s=max(patience_s, self.refused_s or 0.0),
                heartbeat_s=HEARTBEAT_S if self.refused_s is None else ASKING_S,
            ),
            Tidegate(),
        )
        world.play()
        return world


def with_offer(cluster: Cluster, offer: BlockOffer) -> Cluster:
    """The cluster once the offer was bought and its file says so."""

    def using(pool: Pool) -> Pool:
        types = {each.name for each in pool.instance_types}
        if offer.instance_type not in types or offer.zone not in pool.zones:
            return pool
        others = (each for each in pool.markets if each is not Market.CAPACITY_BLOCK)
        return replace(pool, markets=(Market.CAPACITY_BLOCK, *others))

    return replace(
        cluster,
        pools=tuple(map(using, cluster.pools)),
        reservations=(*cluster.reservations, *offer.unnamed()),
        prices={**cluster.prices, offer.offering: 0.0},
    )


def only(cluster: Cluster, market: Market, offer: BlockOffer) -> Cluster | None:
    """The cluster that buys this way alone; None: no price for it is known.

    Pools that have the type of the offer buy it so whatever their file says.
    """
    pools: list[Pool] = []
    for pool in cluster.pools:
        has_type = any(each.name == offer.instance_type for each in pool.instance_types)
        if not (has_type or market in pool.markets):
            continue
        types = tuple(
            each
            for each in pool.instance_types
            if all(Offering(each.name, zone, market) in cluster.prices for zone in pool.zones)
        )
        if types:
            pools.append(replace(pool, markets=(market,), instance_types=types))
    if not pools:
        return None
    names = {each.name for each in pools}
    partitions = tuple(
        replace(each, pools=tuple(name for name in each.pools if name in names))
        for each in cluster.partitions
    )
    made = replace(cluster, pools=tuple(pools), partitions=partitions)
    return replace(made, reservations=(), savings_plans=())


def refused_now(snapshot: Snapshot) -> dict[Offering, int]:
    """What rests now since EC2 refused it to everybody, and how many nodes of it there are."""
    alive = [each.offering for each in snapshot.instances if each.is_alive]
    return {
        each.offering: alive.count(each.offering)
        for each in snapshot.resting
        if each.until_s > snapshot.now_s and not each.pool
    }


def _shifted(each: Reservation, by_s: float) -> Reservation:
    ends_at_s = None if each.ends_at_s is None else each.ends_at_s + by_s
    return replace(each, starts_at_s=each.starts_at_s + by_s, ends_at_s=ends_at_s)


def _sooner(world: World, other: World, places: list[int], ends_s: float) -> Sooner | None:
    """Of the jobs at these places, until the block's end; None: there are none."""
    if not places:
        return None
    until_s = EPOCH_S + ends_s

    def starts_s(run: Run) -> float:
        return run.first_started_s if run.first_started_s >= 0 else until_s

    saved = [starts_s(other.runs[place]) - world.runs[place].first_started_s for place in places]
    is_at_least = any(other.runs[place].first_started_s < 0 for place in places)
    mean_s = fmean(saved)
    return Sooner(mean_s if abs(mean_s) > SAME_S else 0.0, is_at_least)
