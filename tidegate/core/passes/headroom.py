"""Headroom in the shape of jobs: room on open nodes that no pending job takes.

A running node's free GPUs count as well as an idle one, also on a node that is dear for such a job:
what counted only sometimes would be bought again and again. What is lacking is bought as it would
be for one such job, the nodes of one in one zone.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from tidegate.core.buy.alternatives import OVERRIDE_PRICE_FACTOR
from tidegate.core.buy.bins import Bin, BinKind, Bins
from tidegate.core.buy.purchase import Purchase
from tidegate.core.demand.demand import Need
from tidegate.core.demand.fit import lacks
from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import InstanceType, Market, Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.model.headroom import Headroom
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.catalogue import Entry, holds, vector
from tidegate.core.offers.limits import Load

NOBODY = ""


@frozen
class Lack:
    """Jobs of a headroom that have no room: `jobs` of them, or of one the last `nodes`, which have
    to be in `zone` where the others are.
    """

    headroom: Headroom
    jobs: int
    nodes: int = 0
    zone: str = ""


@frozen
class Warm:
    """`names`: nodes whose room is kept free; `lacks`: what there is no room for, by pool."""

    names: frozenset[str] = frozenset()
    lacks: tuple[tuple[str, Lack], ...] = ()


def hold_headroom(
    snapshot: Snapshot, bins: Bins, last: Collection[str] = (), but: Collection[str] = ()
) -> Warm:
    """Which nodes the pools keep for their headroom, and what those do not hold.

    `last`: nodes that count only where the others do not do; `but`: those that do not count.
    """
    pools = [pool for pool in snapshot.cluster.pools if pool.headroom]
    if not pools:
        return Warm()
    names: set[str] = set()
    lacking: list[tuple[str, Lack]] = []
    for pool in pools:
        free = [replace(each, jobs=[], worth=None, is_lossy=None) for each in _open(bins, pool)]
        free = [each for each in free if each.name not in but]
        free.sort(key=lambda each: (each.name in last, each.is_closed, *_cheapest_first(each)))
        for headroom in sorted(pool.headroom, key=_largest_first):
            found = (
                _hold_gangs(pool, headroom, free, names, last)
                if headroom.nodes > 1
                else _hold_jobs(pool, headroom, free, names)
            )
            lacking += ((pool.name, each) for each in found)
    return Warm(frozenset(names), tuple(lacking))


def buy_headroom(purchase: Purchase, pool: Pool, warm: Warm) -> int:
    """Buy what the pool lacks, as far as limits allow; how many nodes that are."""
    before = purchase.builder.num_nodes(pool.name)
    for lack in (each for name, each in warm.lacks if name == pool.name):
        if lack.headroom.nodes == 1:
            _buy_jobs(purchase, pool, lack)
            continue
        is_begun = lack.nodes and _buy_gang(purchase, pool, lack, lack.nodes, lack.zone)
        for _ in range(0 if is_begun else max(lack.jobs, 1)):
            _buy_gang(purchase, pool, lack, lack.headroom.nodes)
    return purchase.builder.num_nodes(pool.name) - before


def may_buy(snapshot: Snapshot, purchase: Purchase, pool: Pool, warm: Warm) -> bool:
    """Whether limits and reservations allow something of what the pool lacks; a rest will pass."""
    lacking = [lack for name, lack in warm.lacks if name == pool.name]
    return not lacking or any(_may_buy(snapshot, purchase, pool, lack) for lack in lacking)


def _may_buy(snapshot: Snapshot, purchase: Purchase, pool: Pool, lack: Lack) -> bool:
    headroom = lack.headroom
    for kind, offering, room in allowed(snapshot, purchase, pool, headroom.nodes):
        rest = lack.nodes if lack.nodes and offering.zone == lack.zone else headroom.nodes
        if room >= rest and not lacks(headroom.shape, kind):
            return True
    return False


def allowed(
    snapshot: Snapshot, purchase: Purchase, pool: Pool, nodes: int
) -> Iterator[tuple[InstanceType, Offering, int]]:
    """What the pool may be made of, and how many of `nodes` more limits and reservations allow,
    whether or not it rests.
    """
    for kind, offering in pool.offerings():
        usd = snapshot.cluster.prices.get(offering, 0.0)
        if offering.market.is_prepaid or usd > 0:
            yield kind, offering, _room(purchase, pool, offering, Load.of(kind, usd), nodes)


def _open(bins: Bins, pool: Pool) -> Iterator[Bin]:
    """Nodes of the pool on which Slurm starts jobs, or will."""
    for each in bins.with_room():
        is_open = each.kind in (BinKind.EXISTING, BinKind.IN_FLIGHT) and not each.is_reserved
        if each.pool == pool.name and is_open and not each.gated_for:
            yield each


def _largest_first(headroom: Headroom) -> tuple[object, ...]:
    shape = headroom.shape
    return -headroom.nodes, -shape.gpus, -shape.cpus, -shape.memory_mib, str(headroom)


def _cheapest_first(each: Bin) -> tuple[object, ...]:
    """What is up in any case, busy or paid for in advance, then what costs least."""
    is_there_anyway = not each.is_empty or each.offering.market.is_prepaid
    return not is_there_anyway, each.kind, each.gpus, each.cpus, each.memory_mib, each.name


def _need(pool: Pool, headroom: Headroom) -> Need:
    is_gang = headroom.nodes > 1
    return Need(NOBODY, 1, headroom.nodes, headroom.shape, "", (pool.name,), is_gang=is_gang)


def _hold_jobs(pool: Pool, headroom: Headroom, free: Iterable[Bin], names: set[str]) -> list[Lack]:
    need, left = _need(pool, headroom), headroom.jobs
    for each in free:
        fitting = min(each.room(need.shape), left) if left and each.holds(need) else 0
        if fitting:
            each.put(need, fitting)
            names.add(each.name)
            left -= fitting
    return [Lack(headroom, left)] if left else []


def _hold_gangs(
    pool: Pool,
    headroom: Headroom,
    free: Sequence[Bin],
    names: set[str],
    last: Collection[str],
) -> list[Lack]:
    need = _need(pool, headroom)
    lacking: list[Lack] = []
    for number in range(headroom.jobs):
        found = _together(need, free, last)
        if not found:
            return [*lacking, Lack(headroom, headroom.jobs - number)]
        for each in found:
            each.put(need)
            names.add(each.name)
        if len(found) < need.nodes:
            zone = found[0].offering.zone
            lacking.append(Lack(headroom, 0, need.nodes - len(found), zone))
    return lacking


def _together(need: Need, free: Iterable[Bin], last: Collection[str]) -> list[Bin]:
    """Empty nodes of one zone for one job, or for most of it."""
    zones: dict[str, list[Bin]] = {}
    for each in free:
        if each.is_empty and not each.is_anywhere and each.holds(need):
            zones.setdefault(each.offering.zone, []).append(each)
    found = [members[: need.nodes] for members in zones.values()]

    def worth(members: list[Bin]) -> tuple[int, int]:
        return len(members), -sum(each.name in last for each in members)

    return max(found, key=worth, default=[])


def _buy_jobs(purchase: Purchase, pool: Pool, lack: Lack) -> None:
    """The node on which each costs least, again and again, of those about as cheap as one's own:
    a dearer one would be closed to it, see `tidegate.core.buy.steering`.
    """
    left, of_one = lack.jobs, vector(lack.headroom.shape)
    sold = list(_sold(purchase, pool, lack.headroom))
    least_usd = {order: min(e.usd_per_hour for o, _, e in sold if o == order) for order, *_ in sold}
    while left > 0:
        offers = [
            (order, each.usd_per_hour / min(holds(each.size, of_one), left), each)
            for order, _, each in sold
            if each.usd_per_hour <= OVERRIDE_PRICE_FACTOR * least_usd[order]
        ]
        for _, _, each in sorted(offers, key=lambda offer: (*offer[:2], offer[2].offering)):
            if purchase.builder.keep(pool, _why(pool, lack), each.instance_type.name):
                left -= holds(each.size, of_one)
                break
        else:
            return


def _buy_gang(purchase: Purchase, pool: Pool, lack: Lack, nodes: int, zone: str = "") -> bool:
    """All of them of one type in one zone, or none. `zone`: only there."""
    offers = [
        (order, usd, offering, market, each.instance_type)
        for order, market, each in _sold(purchase, pool, lack.headroom)
        for usd, offering in each.zones
        if zone in ("", offering.zone)
    ]
    for _, usd, offering, market, kind in sorted(offers, key=lambda offer: offer[:3]):
        if _room(purchase, pool, offering, Load.of(kind, usd), nodes) < nodes:
            continue
        why = f"{_why(pool, lack)} in {offering.zone}"
        bought = [
            purchase.builder.keep(pool, why, kind.name, (market,), zone=offering.zone)
            for _ in range(nodes)
        ]
        if all(bought):
            return True
    return False


def _room(purchase: Purchase, pool: Pool, offering: Offering, each: Load, nodes: int) -> int:
    room = purchase.usage.room(pool.name, nodes, each)[0]
    if offering.market.is_prepaid:
        return min(room, purchase.offer_groups.reserved_capacity.left_in_all(offering))
    return room


def _sold(
    purchase: Purchase, pool: Pool, headroom: Headroom
) -> Iterator[tuple[int, Market, Entry]]:
    """What is for sale now and holds one node's share, with the place of its market in the pool's
    order.
    """
    for order, tier in enumerate(purchase.offer_groups.tiers):
        for offer_group in tier:
            for each in offer_group.catalogue.entries if offer_group.pool is pool else ():
                if not lacks(headroom.shape, each.instance_type):
                    yield order, offer_group.market, each


def _why(pool: Pool, lack: Lack) -> str:
    return f"pool {pool.name} keeps room for {lack.headroom}"
