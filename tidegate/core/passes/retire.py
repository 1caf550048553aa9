"""Nodes that have had their time: which leave now, and what comes before them.

The order is written down: unhealthy (`nodes.order_out`), expired, drifted, empty (`idle`). Each
is under the budgets of its pool, the oldest node first. A busy node is drained and waited for,
an idle one released. Where a pool keeps a minimum the new node comes before the old one goes; the
old one goes first where a reservation or a limit leaves no room for both. Nodes that are made from
another template wait for what the pool's roll-out allows.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from tidegate.core.buy.bins import BinKind, Bins
from tidegate.core.buy.purchase import Purchase
from tidegate.core.fleet.do_not_disrupt import kept_because
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.fleet.templates import (
    Roll,
    drifted,
    history_of,
    roll,
    rollout_of,
)
from tidegate.core.model.budgets import DisruptionReason
from tidegate.core.model.cluster import Pool
from tidegate.core.model.durations import span
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.departures import Departures, Outdated
from tidegate.core.passes.headroom import allowed, hold_headroom, may_buy
from tidegate.core.passes.orders import order
from tidegate.core.passes.rollout import resting, share_left

type Find = Callable[[Pool, Snapshot], Callable[[Judged], str] | None]
"""What tells why a node of the pool should go, in words, "": it should not; None: none should."""


def expired(pool: Pool, snapshot: Snapshot) -> Callable[[Judged], str] | None:
    most_s = pool.disruption.expire_after_s
    if most_s is None:
        return None
    now_s, why = snapshot.now_s, f"expired: pool {pool.name} keeps nodes for {span(most_s)}"
    return lambda judged: why if now_s - judged.member.launched_at_s >= most_s else ""


PASSES: tuple[tuple[DisruptionReason, Find], ...] = (
    (DisruptionReason.EXPIRED, expired),
    (DisruptionReason.DRIFTED, drifted),
)


def retire(snapshot: Snapshot, fleet: Fleet, purchase: Purchase, bins: Bins) -> Departures:
    """Choose the nodes that go under the budgets; drain busy ones that their pool can spare.

    Before the queue is served, so that no job counts on them. An idle one waits until the
    queue has been served: a job that is about to take it comes first.
    """
    found = list(outdated(snapshot, fleet)) if snapshot.wanted.is_up else ()
    if not found:
        return Departures()
    actions: list[Action] = []
    idle: list[Outdated] = []
    replacing: list[Outdated] = []
    tries: dict[str, Outdated] = {}
    joined = Counter(
        bin.pool for bin in bins.all if bin.kind is BinKind.EXISTING and not bin.gated_for
    )
    shares = {pool.name: _share(snapshot, fleet, bins, pool) for pool in snapshot.cluster.pools}
    for each in found:
        pool = each.pool
        if not _may_go(snapshot, fleet, purchase, each, shares, tries):
            continue
        if not fleet.allowance.take(pool.name, each.node.name, each.reason):
            continue
        if each.judged.member.is_idle:
            idle.append(each)
        elif joined[pool.name] > least_nodes(snapshot, pool):
            joined[pool.name] -= 1
            actions += _drain(snapshot, fleet, bins, each)
        elif _has_room(snapshot, purchase, each):
            replacing.append(each)
        else:
            actions += _go(snapshot, fleet, bins, _old_first(each))
    return Departures(tuple(actions), tuple(idle), tuple(replacing), tries)


def _may_go(
    snapshot: Snapshot,
    fleet: Fleet,
    purchase: Purchase,
    each: Outdated,
    shares: dict[str, int],
    tries: dict[str, Outdated],
) -> bool:
    """Whether the nodes that come now are good enough. `shares`: how many nodes of each pool may
    go for a roll-out that has come to its share; `tries`: who waits for a first new one.
    """
    match how_far(snapshot, fleet, each):
        case Roll.PROVEN:
            return True
        case Roll.SHARED:
            shares[each.pool.name] -= 1
            return shares[each.pool.name] >= 0
        case Roll.UNTRIED:
            return _try(snapshot, fleet, purchase, each, tries)
        case _:
            return False


def _share(snapshot: Snapshot, fleet: Fleet, bins: Bins, pool: Pool) -> int:
    """How many nodes of the pool may go for its roll-out: those that its share has room for, or for
    which the new one is there already, where the pool keeps some.
    """
    left = share_left(snapshot, fleet, pool)
    keeps = least_nodes(snapshot, pool) or pool.keeps_free
    is_rolled = rollout_of(snapshot, pool.name) is not None
    return max(left, above_minimum(snapshot, bins)[pool.name]) if keeps and is_rolled else left


def how_far(snapshot: Snapshot, fleet: Fleet, each: Outdated) -> Roll:
    """Whether nodes like those that come now have shown that they are good."""
    if each.reason is DisruptionReason.DRIFTED:
        if each.judged.member.offering in resting(snapshot, each.pool):
            return Roll.RESTING
        return roll(snapshot, each.pool, fleet.judged)
    pool_history = history_of(snapshot, each.pool.name)
    return Roll.STOPPED if pool_history.recent(snapshot.now_s) else Roll.PROVEN


def _try(
    snapshot: Snapshot, fleet: Fleet, purchase: Purchase, each: Outdated, tries: dict[str, Outdated]
) -> bool:
    """Ask for a first node of the new template; True: this one must make room for it."""
    pool = each.pool
    is_needed = not each.judged.member.is_idle or pool.min_nodes or pool.keeps_free
    if not is_needed or pool.name in tries or fleet.allowance.held(pool.name, each.reason):
        return False
    tries[pool.name] = each
    return not _has_room(snapshot, purchase, each)


def outdated(snapshot: Snapshot, fleet: Fleet) -> Iterator[Outdated]:
    """Nodes that should go, reason by reason, the oldest first."""
    found = list(candidates(snapshot, fleet))
    for each in found:
        if not kept_because(each.judged.member, each.pool, snapshot.head_now_s):
            yield each


def candidates(snapshot: Snapshot, fleet: Fleet) -> Iterator[Outdated]:
    """Nodes that have had their time, whatever holds them."""
    staying = [j for j in fleet.judged if j.use is Use.CAPACITY and not j.order]
    if not staying:
        return
    oldest_first = sorted(staying, key=lambda j: (j.member.launched_at_s, j.member.instance_id))
    pools = {pool.name: pool for pool in snapshot.cluster.pools}
    seen: set[str] = set()
    for reason, find in PASSES:
        finds = {name: find(pool, snapshot) for name, pool in pools.items()}
        for judged in oldest_first if any(finds.values()) else ():
            node, tells = judged.member.node, finds.get(judged.member.pool)
            why = tells(judged) if tells else ""
            if why and node is not None and node.name not in seen:
                seen.add(node.name)
                yield Outdated(judged, node, pools[judged.member.pool], reason, why)


def release_outdated(
    snapshot: Snapshot,
    fleet: Fleet,
    purchase: Purchase,
    bins: Bins,
    departures: Departures,
    headroom: Collection[str] = (),
) -> Departures:
    """Release chosen nodes that idle: no pending job takes them and their pool can spare
    them; the others wait for a new one. `headroom`: those whose room is kept free; where limits
    leave no room for as much beside all of them, they go one after another.
    """
    if not departures.idle:
        return replace(departures, actions=())
    actions: list[Action] = []
    replacing = list(departures.replacing)
    by_name = {each.name: each for each in bins.all}
    above = above_minimum(snapshot, bins, headroom)
    for each in departures.idle:
        found = by_name.get(each.node.name)
        if found is None or found.jobs or found.gated_for:
            continue
        if above[each.pool.name] > 0 and each.node.name not in headroom:
            above[each.pool.name] -= 1
            actions += _go(snapshot, fleet, bins, each)
        elif not _has_room(snapshot, purchase, each):
            actions += _go(snapshot, fleet, bins, _old_first(each))
        elif each.node.name not in headroom or _has_headroom_beside(
            snapshot, purchase, bins, each, replacing
        ):
            replacing.append(each)
        elif not any(e.pool is each.pool and e.node.name in headroom for e in replacing):
            actions += _go(snapshot, fleet, bins, _old_first(each))
    return replace(departures, actions=tuple(actions), replacing=tuple(replacing))


def _has_headroom_beside(
    snapshot: Snapshot,
    purchase: Purchase,
    bins: Bins,
    each: Outdated,
    replacing: Iterable[Outdated],
) -> bool:
    """Whether what a headroom loses with this node too may be bought while they are all there."""
    but = {each.node.name, *(other.node.name for other in replacing)}
    return may_buy(snapshot, purchase, each.pool, hold_headroom(snapshot, bins, but=but))


def _old_first(each: Outdated) -> Outdated:
    """New before old, but for this one."""
    why = f"{each.why}; a limit or a reservation has no room for a new one beside it"
    return replace(each, why=why)


def least_nodes(snapshot: Snapshot, pool: Pool) -> int:
    """How many nodes the pool has in any case: its own minimum, or more at certain hours."""
    return max(pool.min_nodes, snapshot.wanted.warm_nodes.get(pool.name, 0))


def above_minimum(snapshot: Snapshot, bins: Bins, headroom: Collection[str] = ()) -> Counter[str]:
    """How many nodes each pool may lose and still have its minimum and its headroom up.

    `headroom`: nodes whose room is kept free for certain jobs.
    """
    above: Counter[str] = Counter()
    for pool in snapshot.cluster.pools:
        up = [b for b in bins.all if b.pool == pool.name and b.kind is BinKind.EXISTING]
        unused = sum(
            b.is_empty and not b.jobs and not b.gated_for and b.name not in headroom for b in up
        )
        above[pool.name] = min(len(up) - least_nodes(snapshot, pool), unused - pool.headroom_nodes)
    return above


def _go(snapshot: Snapshot, fleet: Fleet, bins: Bins, each: Outdated) -> Iterator[Action]:
    if each.judged.member.is_idle:
        _forget(fleet, bins, each)
        if not each.judged.member.was_told(OrderKind.RELEASE, snapshot.now_s):
            names = (each.node.name,)
            reason = each.drain_reason
            yield order(OrderKind.RELEASE, names, reason, only_if=("IDLE",), is_budgeted=True)
    else:
        yield from _drain(snapshot, fleet, bins, each)


def _drain(snapshot: Snapshot, fleet: Fleet, bins: Bins, each: Outdated) -> Iterator[Action]:
    """No new job starts there; what runs there is waited for."""
    _forget(fleet, bins, each)
    if not each.judged.member.has_order(OrderKind.DRAIN, snapshot.now_s):
        yield order(OrderKind.DRAIN, (each.node.name,), each.drain_reason, is_budgeted=True)


def _forget(fleet: Fleet, bins: Bins, each: Outdated) -> None:
    """It is no capacity any more, for no job and for no minimum."""
    fleet.leaves(each.judged, each.why)
    bins.remove(each.node.name)


def _has_room(snapshot: Snapshot, purchase: Purchase, each: Outdated) -> bool:
    """Whether limits and reservations allow a new node beside this one; a rest will pass."""
    reserved_capacity = purchase.offer_groups.reserved_capacity
    if each.judged.member.offering.market.is_prepaid:
        return reserved_capacity.left_in_all(each.judged.member.offering) > 0
    return any(room > 0 for *_, room in allowed(snapshot, purchase, each.pool, 1))
