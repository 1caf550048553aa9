"""Why nothing was bought for a job: pool by pool, everything that stands in its way."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import islice

from tidegate.core.demand.constraint import without_feature
from tidegate.core.demand.demand import Need
from tidegate.core.demand.fit import has_devices, lacks, satisfies
from tidegate.core.fleet.cures import remedy, words
from tidegate.core.model.cluster import OPEN, Pool
from tidegate.core.model.durations import clock
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.pool_history import DOUBT_AFTER
from tidegate.core.model.resting import BOOT_FAILURES, Resting
from tidegate.core.model.slurm import Shape
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import PASSING, Why, WhyNot
from tidegate.core.offers.catalogue import Entry, bits
from tidegate.core.offers.cost import allows_time
from tidegate.core.offers.due import late_s
from tidegate.core.offers.limits import Load, Usage
from tidegate.core.offers.loss import lossy
from tidegate.core.offers.offers import OfferGroups
from tidegate.core.offers.ranges import OfferGroup, is_dear
from tidegate.core.offers.refused import waiting
from tidegate.core.offers.reservations import drain_before_s

# Entries of a offer group that are tried against the limits; the sentences of others are the same.
TRIED_MAX = 3

LATE_REMEDY = "give it a later deadline, or ask less time: scontrol update JobId={id} TimeLimit=..."


class Refusals:
    """Answers for one plan; what is the same for many jobs is found once."""

    def __init__(self, snapshot: Snapshot, offer_groups: OfferGroups, usage: Usage) -> None:
        self._snapshot = snapshot
        self._offer_groups = offer_groups
        self._usage = usage
        self._unfit: dict[tuple[str, Shape], WhyNot | None] = {}
        self._shut: dict[str, WhyNot] = {}
        self._shut_prepaid: dict[str, WhyNot] = {}

    def shut(self, pool: str, because: WhyNot) -> None:
        """Nothing is bought for the pool in this plan."""
        self._shut[pool] = because

    def shut_prepaid(self, pool: str, because: WhyNot) -> None:
        """Nothing that is paid for already is used for the pool in this plan."""
        self._shut_prepaid[pool] = because

    @cached_property
    def _resting(self) -> list[Resting]:
        found = (r for r in self._snapshot.resting if r.until_s > self._snapshot.now_s)
        return sorted(found, key=lambda each: each.key)

    def of(self, need: Need, nodes: int) -> tuple[WhyNot, ...]:
        """Every obstacle: first what passes (limits, rests), last pools of another kind of GPU."""
        pools = [p for p in self._snapshot.cluster.pools if p.name in need.pools]
        if not pools:
            return (WhyNot(Why.NO_POOL, "no pool serves its partition"),)
        pools.sort(key=lambda p: (-p.weight, p.name))
        found = [each for pool in pools for each in self._of_pool(need, nodes, pool)]
        if awaited := self._offer_groups.awaited(need):
            found.insert(0, self._offer_groups.due.waiting(need, awaited))
        if cheaper := self._offer_groups.cheaper(need):
            found.insert(0, waiting(need, cheaper))
        found.sort(key=_rank)
        if not found:
            said = "what fits it was used up by other jobs of this plan"
            found = [WhyNot(Why.NEXT_PLAN, said)]
        return tuple(dict.fromkeys(found))

    def _of_pool(self, need: Need, nodes: int, pool: Pool) -> Iterator[WhyNot]:
        if late := late_s(pool, need, self._snapshot.now_s):
            said = (
                f"pool {pool.name} boots a node in {pool.boot_s:.0f} s: the job would end "
                f"{late:.0f} s after its deadline"
            )
            yield WhyNot(Why.DEADLINE, said, pool.name, remedy=LATE_REMEDY)
            return
        if too_small := self._too_small(pool, need.shape):
            yield too_small
            return
        if not allows_time(pool, need):
            yield _too_long(pool, need)
            return
        if closed := self._usage.closed(pool.name):
            yield replace(closed, pool=pool.name)
            return
        if shut := self._shut.get(pool.name) or self._failing(pool):
            yield shut
            return
        offer_groups = [s for tier in self._offer_groups.tiers for s in tier if s.pool is pool]
        fitting = [(s, mask) for s in offer_groups if (mask := self._offer_groups.mask(need, s))]
        whole = need.nodes + len(need.beside)
        is_never = not any(
            self._usage.most(pool.name, load)[0] >= whole
            for offer_group, mask in fitting
            for _, load in _loads(offer_group, mask)
        )
        for offer_group, mask in fitting:
            yield from self._limits(offer_group, mask, nodes, whole if is_never else 0)
        yield from self._rests(need, pool)
        yield from self._others(need, pool, offer_groups)

    def _too_small(self, pool: Pool, shape: Shape) -> WhyNot | None:
        key = pool.name, shape
        if key not in self._unfit:
            self._unfit[key] = too_small(pool.instance_types, shape)
        found = self._unfit[key]
        if found is None:
            return None
        return WhyNot(found.kind, found.sentence, pool.name, found.offering, None, found.missing)

    def _failing(self, pool: Pool) -> WhyNot | None:
        """The circuit breaker: nodes of the pool that were launched lately are no good."""
        now_s = self._snapshot.now_s
        pool_history = next(
            (each for each in self._snapshot.pool_history if each.pool == pool.name), None
        )
        failures = len(pool_history.recent(now_s)) if pool_history else 0
        if pool_history is None or failures < DOUBT_AFTER:
            return None
        until_s = pool_history.closed_until_s(now_s)
        said = f"pool {pool.name}: the last {failures} launches gave no good node, "
        said += f"nothing is bought until {clock(until_s)}" if until_s else "one is tried at a time"
        names = {each.name for each in pool.instance_types}
        broken = (
            each
            for each in self._resting
            if each.code in BOOT_FAILURES
            and each.stops(pool.name)
            and each.offering.instance_type in names
        )
        does = ""
        if last := next(broken, None):
            said += f"; the last said: {last.message}"
            does = remedy(last, self._snapshot.cluster.name, pool.name)
        return WhyNot(Why.FAILING, said, pool.name, until_s=until_s, remedy=does)

    def _limits(
        self, offer_group: OfferGroup, mask: int, nodes: int, never: int
    ) -> Iterator[WhyNot]:
        """`never`: how many nodes the job asks, where no limit of the pool allows so many."""
        pool = offer_group.pool.name
        for each, load in islice(_loads(offer_group, mask), TRIED_MAX):
            room, sentence = self._usage.room(pool, nodes, load)
            if never:
                yield _over_limit(pool, each, never, *self._usage.most(pool, load))
            elif room < nodes:
                more = f"{nodes} more node{'s are' if nodes > 1 else ' is'} needed"
                said, on = f"{sentence} and {more}", str(each.offering)
                yield WhyNot(Why.LIMIT, said, pool, on, remedy=_raised(sentence))
            elif (left := self._offer_groups.places(offer_group, each.offering)) < nodes:
                into = offer_group.target
                which = "the reservation" if into == OPEN else into
                said = f"{which} of {each.offering} has {left:.0f} left and {nodes} are needed"
                yield WhyNot(Why.LIMIT, said, pool, str(each.offering))

    def _rests(self, need: Need, pool: Pool) -> Iterator[WhyNot]:
        types = {each.name: each for each in pool.instance_types}
        for resting in self._resting:
            on = resting.offering
            found = types.get(on.instance_type) if resting.stops(pool.name) else None
            if found is None or on.zone not in pool.zones or lacks(need.shape, found):
                continue
            if on.market in pool.markets and satisfies(
                need.constraint, pool.features(found.name, on.market)
            ):
                yield _rest(resting, pool.name, self._snapshot)

    def _others(self, need: Need, pool: Pool, offer_groups: list[OfferGroup]) -> Iterator[WhyNot]:
        """What does not pass by itself: features, prices, flexibility, the end of a block."""
        resting = {each.offering for each in self._resting if each.stops(pool.name)}
        kept_off = list(self._kept_off(need, pool))
        for market in pool.markets:
            types = [
                each
                for each in pool.instance_types
                if not need.constraint
                or satisfies(need.constraint, pool.features(each.name, market))
            ]
            if not types:
                said = f"pool {pool.name} on {market} does not meet {need.constraint!r}"
                if market is not Market.SPOT or not kept_off:
                    yield WhyNot(Why.CONSTRAINT, said, pool.name)
                continue
            fitting = [each.name for each in types if not lacks(need.shape, each)]
            if not fitting:
                said = f"pool {pool.name} on {market}: no type that meets {need.constraint!r} is "
                yield WhyNot(Why.TOO_SMALL, f"{said}large enough", pool.name)
                continue
            for offering in (
                Offering(name, zone, market) for name in fitting for zone in pool.zones
            ):
                if market.is_prepaid:
                    shut = self._shut_prepaid.get(pool.name)
                    yield from (shut,) if shut else self._reserved(offering, pool.name)
                    continue
                is_priced = self._snapshot.cluster.prices.get(offering, 0.0) > 0
                if not is_priced and offering not in resting:
                    said = f"the price of {offering} is not known"
                    yield WhyNot(Why.NO_PRICE, said, pool.name, str(offering))
                if is_dear(self._snapshot.cluster, offering):
                    said = f"{offering} costs no less than on demand"
                    yield WhyNot(Why.DEAR, said, pool.name, str(offering))
            if pool.is_min_types_strict and len(fitting) < pool.min_types:
                said = (
                    f"pool {pool.name} wants {pool.min_types} types to choose from, "
                    f"{len(fitting)} fit"
                )
                yield WhyNot(Why.MIN_TYPES, said, pool.name)
        yield from kept_off
        for offer_group in offer_groups:
            if offer_group.market.is_prepaid:
                yield from self._blocks(need, offer_group)

    def _kept_off(self, need: Need, pool: Pool) -> Iterator[WhyNot]:
        """Why the job gets no spot of the pool: what that would cost it is more than it saves, or
        its deadline is near. Of what limits and rests might allow, some may be kept from it, and
        the rest not.
        """
        # Whoever was kept off spot that is there asks for on-demand since: that is not the reason.
        freed = without_feature(need.constraint, Market.ON_DEMAND.feature)
        if freed is not None:
            need = replace(need, constraint=freed)
        spot = [
            offering
            for each, offering in pool.offerings()
            if offering.market is Market.SPOT
            and self._snapshot.cluster.prices.get(offering, 0.0) > 0
            and not is_dear(self._snapshot.cluster, offering)
            and not lacks(need.shape, each)
            and satisfies(need.constraint, pool.features(each.name, Market.SPOT))
        ]
        losses = self._offer_groups.losses
        kept = [each for each in spot if losses.is_lossy(pool, each, need)]
        if kept and (freed is None or len(kept) == len(spot)):
            best = min(kept, key=lambda each: (losses.ratio(need, pool, each), each))
            yield lossy(losses, need, pool, offering=best)
        elif spot and freed is not None and self._offer_groups.due.is_pressed(need):
            said = f"pool {pool.name} on spot: its deadline leaves no time for an interruption"
            yield WhyNot(Why.DEADLINE, said, pool.name, remedy=LATE_REMEDY)

    def _reserved(self, offering: Offering, pool: str) -> Iterator[WhyNot]:
        """What is paid for later, and what is full or over."""
        now_s, name = self._snapshot.now_s, str(offering)
        to_come = [
            each
            for each in self._snapshot.cluster.reservations
            if each.offering == offering and each.starts_at_s > now_s
        ]
        for each in to_come:
            said = f"reservation {each.id} of {offering} begins at {clock(each.starts_at_s)}"
            yield WhyNot(Why.NOT_BEGUN, said, pool, name, each.starts_at_s)
        if not to_come and not self._offer_groups.reserved_capacity.left_in_all(offering):
            yield WhyNot(Why.LIMIT, f"no reservation of {offering} has a place left", pool, name)

    def _blocks(self, need: Need, offer_group: OfferGroup) -> Iterator[WhyNot]:
        for each in offer_group.catalogue.entries:
            if not self._offer_groups.reserved_capacity.outlasts(
                each.offering, offer_group.target, need, offer_group.pool.boot_s
            ):
                drained_s = drain_before_s(each.offering.instance_type)
                said = (
                    f"the capacity block of {each.offering} ends before the job would "
                    f"({drained_s / 60:.0f} min before its end its nodes are drained)"
                )
                yield WhyNot(Why.JOB_TIME, said, offer_group.pool.name, str(each.offering))


def _rank(each: WhyNot) -> int:
    """What passes, then what less time or less of it would cure, then what nothing of the kind."""
    if each.kind in PASSING:
        return 0
    if each.kind is Why.JOB_TIME:
        return 1
    has_none = each.kind is Why.TOO_SMALL and any(most == 0 for _, _, most in each.missing)
    return 3 if has_none else 2


def too_small(types: tuple[InstanceType, ...], shape: Shape) -> WhyNot | None:
    """Why none of the types holds the shape, and which comes nearest; None when one does."""
    if any(not lacks(shape, each) for each in types):
        return None
    nearest = min(types, key=lambda each: (_shortage(shape, each), each.name))
    asked = (
        ("gpus", shape.gpus, max(has_devices(shape, t) for t in types)),
        ("cpus", shape.cpus, max(t.cpus for t in types)),
        ("memory_mib", shape.memory_mib, max(t.slurm_memory_mib for t in types)),
    )
    missing = tuple((name, float(asks), float(has)) for name, asks, has in asked if asks > has)
    return WhyNot(Why.TOO_SMALL, lacks(shape, nearest), "", nearest.name, None, missing)


def _shortage(shape: Shape, each: InstanceType) -> float:
    """How far the type is from holding the shape: the sum of the missing parts, each 0 to 1."""
    pairs = (
        (shape.gpus, has_devices(shape, each)),
        (shape.cpus, each.cpus),
        (shape.memory_mib, each.slurm_memory_mib),
    )
    return sum(max(asks - has, 0) / asks for asks, has in pairs if asks)


def _loads(offer_group: OfferGroup, mask: int) -> Iterator[tuple[Entry, Load]]:
    """Those that would fit, the cheapest first, and what a node of each counts against limits."""
    for number in bits(mask):
        each = offer_group.catalogue.entries[number]
        yield each, Load.of(each.instance_type, each.usd_per_hour)


def _over_limit(pool: str, each: Entry, asked: int, most: float, limit: str) -> WhyNot:
    """Waiting cures nothing: the limit is too low for this one job."""
    allows = "" if limit.endswith(" nodes") else f", which allows {most:.0f} such nodes"
    said = f"{limit}{allows}; the job asks {asked}"
    missing = (("nodes", asked, most),)
    return WhyNot(Why.LIMIT, said, pool, str(each.offering), missing=missing, remedy=_raised(limit))


def _raised(limit: str) -> str:
    """What lifts a limit that was said: its subject is the pool or the cluster."""
    return f"have the limits of {limit.partition(' is limited')[0]} raised"


def _too_long(pool: Pool, need: Need) -> WhyNot:
    has = "no time limit" if need.time_limit_s is None else f"{need.time_limit_s / 3600:.1f} h"
    most_s = pool.max_job_time_s or 0.0
    said = f"pool {pool.name} takes jobs of at most {most_s / 3600:.1f} h, the job has {has}"
    missing = (("time_limit_s", need.time_limit_s, most_s),)
    return WhyNot(Why.JOB_TIME, said, pool.name, missing=missing)


def _rest(resting: Resting, pool: str, snapshot: Snapshot) -> WhyNot:
    on, until_s = resting.offering, resting.until_s
    does = remedy(resting, snapshot.cluster.name, pool)
    if resting.code in BOOT_FAILURES:
        said = f"{on} rests after a node of it failed: {resting.message}"
        return WhyNot(Why.BROKEN, said, pool, str(on), until_s, remedy=does)
    own = words(resting)
    if does:
        said = f"EC2 refuses {on.market} of pool {pool}, and waiting does not help: {own}"
        return WhyNot(Why.REFUSED, said, pool, str(on), until_s, remedy=does, words=own)
    rests = f"{resting.what} rests for {until_s - snapshot.now_s:.0f} s more"
    said = f"{rests} after EC2 said {resting.code}"
    more = f"free addresses in {resting.subnet}, or name another subnet of {on.zone} under "
    more = f"{more}pools.{pool}.subnets" if resting.subnet else ""
    return WhyNot(Why.RESTING, said, pool, str(on), until_s, remedy=more, words=own)
