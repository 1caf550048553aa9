"""Spare nodes: ready before a job asks for them, where the waiting they save is worth more.

Slurm starts on an idle node whatever fits, before any plan can keep a long job off spot. So spare
nodes are spot only in pools whose jobs lose little by an interruption (`checkpoint_s`).

What comes is judged by what came lately, see `tidegate.core.fleet.arrivals`. A spare node costs
its price while it idles; a job that finds one starts a boot sooner. Without a price of waiting
there are none.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tidegate.core.buy.bins import Bin, BinKind, Bins
from tidegate.core.buy.purchase import Purchase
from tidegate.core.demand.demand import Need, kinds_running
from tidegate.core.demand.fit import share
from tidegate.core.fleet.arrivals import SPARE_MAX, remembered, saved, until, used, with_jobs
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.templates import history_of
from tidegate.core.fleet.week import Forecast, forecast, hour_at, is_trusted
from tidegate.core.fleet.worth import start_share
from tidegate.core.model.cluster import Pool, PoolType
from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.plan import COUNTED, Action, Learn
from tidegate.core.model.pool_history import Arrivals, PoolHistory, SpareNode
from tidegate.core.model.slurm import Reading
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why
from tidegate.core.offers.offers import OfferGroups, Option
from tidegate.core.passes.queue import Queue

# A node is bought when it saves so much more than it costs, and kept while it saves more: its
# boot is paid for as well, and what came lately goes up and down. With 1 instead of 1.4 philly
# costs and waits the same at 20 USD, with 9,845 nodes launched instead of 8,051; on the windows
# thinned to 1/20 a tenth more are launched and jobs wait up to 8 % shorter, for the same money.
BUY_FACTOR = 1.4

# Numbers of jobs that are so far behind the newest one begin anew: another slurmctld counts.
RESTARTED = 1000


@frozen
class Spares:
    """How many spare nodes of one type are bought, how many that are there are kept, and why."""

    bought: int
    kept: int
    why: str


def learn_arrivals(
    snapshot: Snapshot, offer_groups: OfferGroups, needs: Sequence[Need]
) -> Iterator[Action]:
    """Count the jobs that have come since the last plan, by the node each would be bought."""
    cluster = snapshot.cluster
    if not cluster.waiting.most_usd:
        return
    newest, known = _newest(snapshot.heard.reading), _known(snapshot)
    if not newest or known - RESTARTED <= newest <= known:
        return
    # Where another slurmctld counts, no pool's may stay higher.
    found = {each.pool: each for each in snapshot.pool_history if each.newest_job > newest}
    if known and newest > known:
        for need, jobs in _came(snapshot, needs, known):
            _count(snapshot, offer_groups, found, need, jobs)
    if not found:  # nobody's, but the next plan has to know
        pool = cluster.pools[0].name
        found[pool] = history_of(snapshot, pool)
    for history in found.values():
        said = f"pool {history.pool}: which nodes jobs came for"
        yield Learn(replace(history, newest_job=newest), said, COUNTED)


def want_spares(
    snapshot: Snapshot, offer_groups: OfferGroups, starts: Mapping[PoolType, int]
) -> dict[PoolType, Spares]:
    """How many spare nodes of each type are worth what they cost.

    `starts`: how many stopped nodes of each type could be started.
    """
    return dict(_wanted(snapshot, offer_groups, starts))


def buy_spares(
    snapshot: Snapshot,
    purchase: Purchase,
    bins: Bins,
    queue: Queue,
    spares: Mapping[PoolType, Spares],
) -> Mapping[PoolType, Spares]:
    """Buy those that are missing; none are bought or kept while a job waits for their room.

    Returns those that are kept.
    """
    if _is_short_of_room(queue):
        return {}
    for pool_type, each in sorted(spares.items()):
        pool = snapshot.cluster.pool(pool_type[0])
        assert pool is not None
        for _ in range(int(each.bought - spare_room(snapshot, bins, pool_type))):
            if not purchase.builder.keep(pool, each.why, pool_type[1], markets_of(pool)):
                break
    return spares


def _wanted(
    snapshot: Snapshot, offer_groups: OfferGroups, starts: Mapping[PoolType, int]
) -> Iterator[tuple[PoolType, Spares]]:
    most_usd = snapshot.cluster.waiting.most_usd
    if not most_usd or not snapshot.wanted.is_up:
        return
    for history in snapshot.pool_history:
        pool = snapshot.cluster.pool(history.pool)
        if pool is None:
            continue
        for arrivals in history.arrivals:
            usd_per_hour = _cheapest_usd(offer_groups, pool, arrivals.instance_type)
            if usd_per_hour is None:
                continue
            now = until(arrivals, pool.boot_s, snapshot.now_s)
            ahead = forecast(now.week, hour_at(snapshot.now_s + pool.boot_s), pool.boot_s)
            pool_type = pool.name, now.instance_type
            saving = _Saving(most_usd, starts.get(pool_type, 0), start_share(pool))
            yield pool_type, _spares(now, ahead, saving, usd_per_hour)


class Ready:
    """Which idle nodes stay as spare ones while others are let go."""

    def __init__(self, snapshot: Snapshot, bins: Bins, spares: Mapping[PoolType, Spares]) -> None:
        self._snapshot, self._bins, self._spares = snapshot, bins, spares
        self._room: dict[PoolType, float] = {}

    def keeps(self, member: Member) -> bool:
        """Whether the spare nodes of its type would be too few without it."""
        pool_type = member.pool, member.offering.instance_type
        spares = self._spares.get(pool_type)
        pool = self._snapshot.cluster.pool(member.pool)
        if spares is None or not spares.kept or pool is None:
            return False
        if member.offering.market not in markets_of(pool):
            return False
        if pool_type not in self._room:
            self._room[pool_type] = spare_room(self._snapshot, self._bins, pool_type)
        return self._room[pool_type] - 1 < spares.kept

    def let_go(self, member: Member) -> None:
        pool_type = member.pool, member.offering.instance_type
        if pool_type in self._room:
            self._room[pool_type] -= 1


def spare_room(snapshot: Snapshot, bins: Bins, pool_type: PoolType) -> float:
    """How many such nodes no job takes: those that are partly free count in part."""
    every = bins.with_room()
    return sum(_free(snapshot, each) for each in every if pool_type_of(each) == pool_type)


@frozen
class _Saving:
    """What a spare node saves at this price of waiting beside so many stopped ones, whose start
    takes this part of a boot.
    """

    most_usd: float
    stopped: int
    start_share: float

    def usd(self, spare: SpareNode, behind: SpareNode) -> float:
        """The job that finds it saves a start where one stands stopped. `behind`: the place that
        many further on, whose job then finds the last of these, and saves the rest of a boot.
        """
        if not self.stopped:
            return self.most_usd * saved(spare)
        share = self.start_share
        return self.most_usd * (share * saved(spare) + (1 - share) * saved(behind))


def _spares(arrivals: Arrivals, ahead: Forecast, saving: _Saving, usd_per_hour: float) -> Spares:
    """How many spare nodes of one type pay for themselves, by what came lately or, where that has
    been less wrong, by what comes at this hour.
    """
    bought, why, kept = 0, "", 0
    for number in range(SPARE_MAX):
        late = _late(arrivals, number)
        each = _expected(arrivals, ahead, number)
        behind = _expected(arrivals, ahead, number + saving.stopped)
        saves_usd, costs_usd = saving.usd(each, behind), usd_per_hour * (1 - used(each))
        if saves_usd <= 0 or saves_usd < costs_usd:
            break
        if bought == kept and saves_usd >= BUY_FACTOR * costs_usd:
            bought += 1
            by = _by_late(ahead) if each == late else _by_week(arrivals.instance_type, ahead)
            why = (
                f"by {by} a spare {arrivals.instance_type} saves {saves_usd:.2f} USD of"
                f" waiting an hour, and idles for {costs_usd:.2f}"
            )
        kept += 1
    return Spares(bought, kept, why)


def _late(arrivals: Arrivals, number: int) -> SpareNode:
    return arrivals.spare[number] if number < len(arrivals.spare) else SpareNode()


def _expected(arrivals: Arrivals, ahead: Forecast, number: int) -> SpareNode:
    """Whichever of the two forecasts asks for more."""
    late = _late(arrivals, number)
    return max(late, ahead.spare(number), key=saved) if is_trusted(arrivals.week) else late


def _by_late(ahead: Forecast) -> str:
    return "the jobs of late" + ("" if ahead.times else f" (no {ahead.name} was seen yet)")


def _by_week(instance_type: str, ahead: Forecast) -> str:
    """The forecast with its error: the standard deviation of what came in that hour."""
    came = f"{ahead.nodes:.1f} +- {ahead.off:.1f} {instance_type}"
    return f"what {ahead.name} brought in {ahead.times} weeks ({came} filled)"


def markets_of(pool: Pool) -> tuple[Market, ...]:
    """The markets of the pool whose nodes may be spare ones."""
    is_safe = pool.checkpoint_s is not None
    return tuple(
        each
        for each in pool.markets
        if each is Market.ON_DEMAND or (each is Market.SPOT and is_safe)
    )


def _cheapest_usd(offer_groups: OfferGroups, pool: Pool, instance_type: str) -> float | None:
    """The price of such a node, if it is for sale now; what is paid for already is kept anyway."""
    prices = [
        each.usd_per_hour
        for tier in offer_groups.tiers
        for offer_group in tier
        if offer_group.pool.name == pool.name
        and offer_group.market in markets_of(pool)
        and not offer_group.is_paid_for
        for each in offer_group.catalogue.entries
        if each.instance_type.name == instance_type
    ]
    return min(prices, default=None)


def _is_short_of_room(queue: Queue) -> bool:
    """A job waits for a limit or a budget, which idle nodes use up as well."""
    held = (Why.LIMIT, Why.BUDGET)
    # Those that this attempt of the plan passes over were refused by the one before.
    waiting = (*queue.refused.values(), *queue.passed_over.values())
    return any(why.kind in held for unmet in waiting for why in unmet.why_nots)


def pool_type_of(each: Bin) -> PoolType:
    return each.pool, each.offering.instance_type


def _free(snapshot: Snapshot, each: Bin) -> float:
    """The part of the node that new jobs may have; a closed one is opened for those it is for."""
    of = snapshot.cluster.instance_type(each.offering.instance_type)
    is_open = each.kind in (BinKind.EXISTING, BinKind.IN_FLIGHT)
    if of is None or not is_open or each.gated_for or each.is_reserved:
        return 0.0
    if each.parts is not None and each.cpus == of.cpus:
        return 1.0  # of many parts, how many are all of them is not told
    return min(each.gpus / of.gpus, 1.0) if of.gpus else each.cpus / of.cpus


def _newest(reading: Reading) -> int:
    return max((_number(job.job_id) for job in reading.jobs), default=0)


def _known(snapshot: Snapshot) -> int:
    return max((each.newest_job for each in snapshot.pool_history), default=0)


def _number(job_id: str) -> int:
    """17 of 17, 17_3 and 17+1: Slurm counts up."""
    digits = re.match(r"\d+", job_id)
    return int(digits[0]) if digits else 0


def _came(snapshot: Snapshot, needs: Sequence[Need], known: int) -> Iterator[tuple[Need, int]]:
    """The jobs with a higher number: those that wait for nodes and those that started at once.
    Not root's: a probe or a check of the cluster comes once, and brings nobody after it.
    """
    reading = snapshot.heard.reading
    of_root = {job.job_id for job in reading.jobs if job.user == "root"}
    for need in needs:
        if _number(need.job_id) > known and need.job_id not in of_root:
            yield need, need.count
    for need, jobs in kinds_running(reading, snapshot.cluster):
        new = (job for job in jobs if _number(job.job_id) > known)
        if count := sum(job.job_id not in of_root for job in new):
            yield need, count


def _count(
    snapshot: Snapshot,
    offer_groups: OfferGroups,
    found: dict[str, PoolHistory],
    need: Need,
    jobs: int,
) -> None:
    option = next(offer_groups.options(need), None)
    if option is None or option.offer_group.market not in markets_of(option.offer_group.pool):
        return
    pool, of = option.offer_group.pool, _type_of(option)
    history = found.get(pool.name) or history_of(snapshot, pool.name)
    before = next((e for e in history.arrivals if e.instance_type == of.name), Arrivals(of.name))
    weight = need.wait_usd_per_hour / snapshot.cluster.waiting.most_usd
    after = with_jobs(
        until(before, pool.boot_s, snapshot.now_s),
        jobs * weight,
        jobs * need.nodes * share(need.shape, of),
    )
    others = (each for each in history.arrivals if each.instance_type != of.name)
    found[pool.name] = replace(history, arrivals=remembered((*others, after)))


def _type_of(option: Option) -> InstanceType:
    return option.offer_group.catalogue.entries[option.number].instance_type
