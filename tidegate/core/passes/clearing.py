"""Prepaid nodes that idle within a limit which keeps a job waiting.

To give back what is paid for saves nothing, so such nodes stay. But a limit of nodes, GPUs, CPUs or
memory counts them too, and without this they would stand in a job's way for ever.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice

from tidegate.core.buy.bins import Bins, gang_members
from tidegate.core.buy.purchase import Purchase
from tidegate.core.demand.demand import Need, demand
from tidegate.core.demand.fit import part_of_gpu
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.judge import Judged
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.node_price import usd_per_hour
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Unmet
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why
from tidegate.core.offers.limits import Load, Usage
from tidegate.core.passes.departures import IdleNodes
from tidegate.core.passes.queue import Queue

# Of 36,000 offerings: who cannot have the cheapest within a limit can seldom have a dearer one.
OPTIONS_MAX = 100


def in_the_way(
    snapshot: Snapshot, fleet: Fleet, purchase: Purchase, bins: Bins, queue: Queue, idle: IdleNodes
) -> tuple[str, list[Member]]:
    """A job that a limit keeps waiting, and which of the idle nodes have to go for it.

    For one job at a time, the first in the queue that can be helped; "": there is none. Those
    that this plan lets go may be enough, with those that leave already.
    """
    prepaid = [member for member, _ in idle.prepaid]
    going = {name for names in idle.going.values() for name in names}
    needs = list(_limited(snapshot, bins, queue)) if prepaid else []
    leaving = [each.member for each in fleet.judged if needs and _leaves(snapshot, each, going)]
    gone = [*leaving, *(prepaid if needs else ())]
    for each in gone:
        _count(snapshot, purchase, each, -1)
    in_vain: set[tuple[object, ...]] = set()
    ways = (
        (need.job_id, found)
        for need in needs
        for found in _ways(snapshot, purchase, bins, need, prepaid, in_vain)
        if all(n <= idle.above[pool] for pool, n in Counter(each.pool for each in found).items())
    )
    chosen = next(ways, ("", []))
    for each in gone:
        _count(snapshot, purchase, each, 1)
    return chosen


def _limited(snapshot: Snapshot, bins: Bins, queue: Queue) -> Iterator[Need]:
    """One of each kind, also of jobs that this attempt at the plan passes over, so that others
    have their places.
    """
    passed = {key for key, unmet in queue.passed_over.items() if _is_limited(unmet)}
    if passed:
        whole, _ = demand(
            snapshot.heard.reading, snapshot.cluster, frozenset(), snapshot.head_now_s
        )
        yield from _unlike(bins, (need for need in whole if need.job_id in passed))
    refused = {key for key, unmet in queue.unmet.items() if _is_limited(unmet)}
    yield from _unlike(bins, (need for need in queue.needs if need.job_id in refused))


def _is_limited(unmet: Unmet) -> bool:
    return any(each.kind is Why.LIMIT for each in unmet.why_nots)


def _unlike(bins: Bins, needs: Iterable[Need]) -> Iterator[Need]:
    """The first of each kind: what helps none of them helps no other. A gang with nodes behind
    their gates is like no other one.
    """
    gated, seen = {key for key, _ in bins.gated()}, set[int]()
    for need in needs:
        if need.kind in seen and need.gang not in gated:
            continue
        if need.kind >= 0:
            seen.add(need.kind)
        yield need


def _leaves(snapshot: Snapshot, judged: Judged, going: Collection[str]) -> bool:
    """It makes room soon, whatever is decided here."""
    member = judged.member
    if member.node is None:
        return member.record is not None and member.record.phase is Phase.RELEASED
    is_told = judged.is_leaving or member.was_told(OrderKind.RELEASE, snapshot.now_s)
    return member.instance_id in going or (is_told and not member.is_busy)


def _ways(
    snapshot: Snapshot,
    purchase: Purchase,
    bins: Bins,
    need: Need,
    idle: Sequence[Member],
    in_vain: set[tuple[object, ...]],
) -> Iterator[list[Member]]:
    """For each place the fewest nodes without which the limits hold what the job lacks there.

    None of the idle nodes is counted here. `in_vain`: what is too much all the same.
    """
    usage, shape = purchase.usage, need.shape
    least = Load(0 if is_part(snapshot, need) else shape.gpus, shape.cpus, shape.memory_mib)
    free = sum(each.is_empty and each.takes(need) for each in bins.for_gang(need))
    lacks = max(need.nodes - free, 1) if need.is_gang else 1
    if not any(_is_within(usage, pool, lacks, least) for pool in need.pools):
        return
    for option in islice(purchase.offer_groups.options(need), OPTIONS_MAX):
        pool, offering = option.offer_group.pool.name, option.offering
        place = (pool, offering.zone)
        held = gang_members(bins.for_gang(need), need, place) if need.is_gang else []
        lacks = need.nodes - len(held) if need.is_gang else 1
        if purchase.offer_groups.places(option.offer_group, offering) < lacks:
            continue
        load = purchase.usage.load_of(offering.instance_type, option.usd_per_hour)
        if (pool, lacks, load) in in_vain:
            continue
        if not _is_within(usage, pool, lacks, load):
            in_vain.add((pool, lacks, load))
            continue
        is_enough = partial(_is_within, usage, pool, lacks, load)
        if found := _fewest(snapshot, purchase, idle, {each.name for each in held}, is_enough):
            yield found


def is_part(snapshot: Snapshot, need: Need) -> bool:
    """Whether it may ask for parts of GPUs: many of them are fewer GPUs."""
    pools = (snapshot.cluster.pool(name) for name in need.pools)
    types = (each for pool in pools if pool for each in pool.instance_types)
    return bool(need.shape.gpus) and any(part_of_gpu(need.shape, each) for each in types)


def _is_within(usage: Usage, pool: str, nodes: int, load: Load) -> bool:
    return usage.room(pool, nodes, load)[0] >= nodes


def _fewest(
    snapshot: Snapshot,
    purchase: Purchase,
    idle: Sequence[Member],
    held: Collection[str],
    is_enough: Callable[[], bool],
) -> list[Member]:
    """Which of the idle nodes may not count, so that it is enough; what the job holds counts."""
    counted = [each for each in idle if each.instance_id in held]
    for each in counted:
        _count(snapshot, purchase, each, 1)
    found: list[Member] = []
    for each in reversed(idle) if is_enough() else ():
        if each.instance_id in held:
            continue
        _count(snapshot, purchase, each, 1)
        counted.append(each)
        if not is_enough():
            _count(snapshot, purchase, counted.pop(), -1)
            found.insert(0, each)
    for each in counted:
        _count(snapshot, purchase, each, -1)
    return found


def _count(snapshot: Snapshot, purchase: Purchase, member: Member, times: int) -> None:
    usd = usd_per_hour(snapshot, member)
    purchase.usage.debit(
        member.pool, times, purchase.usage.load_of(member.offering.instance_type, usd)
    )
