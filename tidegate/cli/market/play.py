"""Plays a history in several regions, at the prices of each."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from tidegate.adapters.regions import region_name
from tidegate.cli.market.elsewhere import Moved, moved
from tidegate.cli.market.told import Told
from tidegate.cli.quotas import quota_name
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.market import Quote, SeenMarket
from tidegate.core.model.region_market import Played, QuotaUse, RegionCost
from tidegate.core.offers.market import at_market
from tidegate.sim.replay.market import conditions
from tidegate.sim.replay.outcome import billed_s
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.state import Machine
from tidegate.sim.replay.trace import Trace
from tidegate.sim.replay.world import Setting


@frozen
class Journey:
    """The cluster of `own` region and its history. `beside`: what a node costs beside its
    instance, by type and market.
    """

    cluster: Cluster
    own: str
    trace: Trace
    data_gb: float
    sigma: float
    seed: int
    beside: Mapping[tuple[str, Market], float]

    def to(self, told: Told) -> RegionCost:
        """What it costs there. Errors: BadMarket, of a file."""
        is_own = told.region == self.own
        if told.closed:
            return self._answer(told, None, None, (told.closed,), None)
        there = self._here(told) if is_own else moved(self.cluster, told, self.beside)
        if not there.cluster.pools:
            why = f"no instance type of the cluster is sold in {told.region}"
            return self._answer(told, there, None, (why,), None)
        played, machines = self._play(there, told)
        quotas = None if told.quotas is None else tuple(_used(machines, told.quotas))
        return self._answer(told, there, played, there.not_possible, quotas)

    def _here(self, told: Told) -> Moved:
        """The file's own prices count, and EC2's of now where it has none."""
        at_s = 0.0
        listed = tuple(Quote(name, usd) for name, usd in sorted(told.on_demand.items()))
        seen = SeenMarket(told.spot, at_s, listed, at_s)
        return Moved(at_market(self.cluster, seen, at_s), {}, (), ())

    def _play(self, there: Moved, told: Told) -> tuple[Played, list[Machine]]:
        found = conditions(there.cluster, told.region, told.files, self.trace.starts_at_s)
        capacity = {**there.absent, **found.capacity}
        setting = Setting(None, self.sigma, self.seed, found.prices, capacity)
        ended = replay(self.trace, found.cluster, setting)
        of = ended.outcome
        played = Played(
            usd=round(of.cost_usd, 2),
            jobs=of.jobs,
            jobs_ended=of.jobs_ended,
            never_ran=of.unmet,
            wait_p50_s=of.waits.p50_s,
            wait_p95_s=of.waits.p95_s,
            interruptions=of.interruptions,
        )
        return played, ended.world.gone

    def _answer(
        self,
        told: Told,
        there: Moved | None,
        played: Played | None,
        not_possible: tuple[str, ...],
        quotas: tuple[QuotaUse, ...] | None,
    ) -> RegionCost:
        is_own, rate = told.region == self.own, told.usd_per_gb
        is_moved = not is_own and rate is not None
        pools = there.cluster.pools if there else ()
        return RegionCost(
            region=told.region,
            name=region_name(told.region),
            is_own=is_own,
            played=played,
            zones=tuple((each.name, each.zones) for each in pools),
            unsold=there.unsold if there else (),
            usd_per_gb=rate,
            move_usd=round((rate or 0.0) * self.data_gb, 2) if is_moved else None,
            quotas=quotas,
            not_possible=not_possible,
            unknown=tuple(told.unknown),
        )


def _used(machines: list[Machine], quotas: Mapping[str, float]) -> Iterator[QuotaUse]:
    """The most vCPUs at once that count against each quota, of those that the play used."""
    changes: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for each in machines:
        market = each.offering.market
        if market.is_prepaid:
            continue
        if name := quota_name(each.instance_type.name, market, quotas):
            vcpus = each.instance_type.vcpus
            changes[name] += [(each.launched_s, vcpus), (each.launched_s + billed_s(each), -vcpus)]
    for name, found in sorted(changes.items()):
        now = most = 0
        for _, vcpus in sorted(found):
            now += vcpus
            most = max(most, now)
        yield QuotaUse(name, most, quotas[name])


def beside_of(estimated: Cluster) -> dict[tuple[str, Market], float]:
    """Of a cluster file without prices of its own: what stands beside an instance's."""
    return {
        (offering.instance_type, offering.market): each.beside_usd_per_hour
        for offering, each in estimated.estimates.items()
    }


def without_own_prices(data: Mapping[str, object]) -> dict[str, object]:
    """A cluster file's data whose prices are all the market's."""
    return {key: value for key, value in data.items() if key != "prices_usd_per_hour"}
