"""Nodes that have had their time: which leave now, and what comes before them.

The order is written down: unhealthy (`nodes.order_out`), expired, drifted, empty (`idle`). Each
is under the budgets of its pool, the oldest node first. A busy node is drained and waited for,
an idle one released. Where a pool keeps a minimum the new node comes before the old one goes; the
old one goes first where a reservation or a limit leaves no room for both. Nodes that are made from
another template wait for what the pool's roll-out allows.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from tidegate.core.buy.bins import BinKind
from tidegate.core.fleet.do_not_disrupt import kept_because
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
from tidegate.core.offers.limits import Load
from tidegate.core.passes.departures import Outdated
from tidegate.core.passes.rollout import share_left
from tidegate.core.passes.work import Work

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


def retire(work: Work) -> Iterator[Action]:
    """Choose the nodes that go under the budgets; drain busy ones that their pool can spare.

    Before the queue is served, so that no job counts on them. An idle one waits until the
    queue has been served: a job that is about to take it comes first.
    """
    if not work.snapshot.wanted.is_up:
        return
    found = list(outdated(work))
    if not found:
        return
    joined = Counter(
        bin.pool for bin in work.bins.all if bin.kind is BinKind.EXISTING and not bin.gated_for
    )
    shares = {pool.name: _share(work, pool) for pool in work.snapshot.cluster.pools}
    for each in found:
        pool = each.pool
        if not _may_go(work, each, shares):
            continue
        if not work.fleet.allowance.take(pool.name, each.node.name, each.reason):
            continue
        if each.judged.member.is_idle:
            work.departures.idle.append(each)
        elif joined[pool.name] > least_nodes(work, pool):
            joined[pool.name] -= 1
            yield from _drain(work, each)
        else:
            yield from _replace(work, each)


def _may_go(work: Work, each: Outdated, shares: dict[str, int]) -> bool:
    """Whether the nodes that come now are good enough. `shares`: how many nodes of each pool may
    go for a roll-out that has come to its share.
    """
    match how_far(work, each):
        case Roll.PROVEN:
            return True
        case Roll.SHARED:
            shares[each.pool.name] -= 1
            return shares[each.pool.name] >= 0
        case Roll.UNTRIED:
            return _try(work, each)
        case _:
            return False


def _share(work: Work, pool: Pool) -> int:
    """How many nodes of the pool may go for its roll-out: those that its share has room for, or for
    which the new one is there already, where the pool keeps some.
    """
    left, keeps = share_left(work, pool), least_nodes(work, pool) or pool.headroom_nodes
    is_rolled = rollout_of(work.snapshot, pool.name) is not None
    return max(left, above_minimum(work)[pool.name]) if keeps and is_rolled else left


def how_far(work: Work, each: Outdated) -> Roll:
    """Whether nodes like those that come now have shown that they are good."""
    if each.reason is DisruptionReason.DRIFTED:
        return roll(work.snapshot, each.pool, work.fleet.judged)
    pool_history = history_of(work.snapshot, each.pool.name)
    return Roll.STOPPED if pool_history.recent(work.snapshot.now_s) else Roll.PROVEN


def _try(work: Work, each: Outdated) -> bool:
    """Ask for a first node of the new template; True: this one must make room for it."""
    pool, tries = each.pool, work.departures.tries
    is_needed = not each.judged.member.is_idle or pool.min_nodes or pool.headroom_nodes
    if not is_needed or pool.name in tries or work.fleet.allowance.held(pool.name, each.reason):
        return False
    tries[pool.name] = each
    return not _has_room(work, each)


def outdated(work: Work) -> Iterator[Outdated]:
    """Nodes that should go, reason by reason, the oldest first."""
    found = list(candidates(work))
    for each in found:
        if not kept_because(each.judged.member, each.pool, work.head_now_s):
            yield each


def candidates(work: Work) -> Iterator[Outdated]:
    """Nodes that have had their time, whatever holds them."""
    staying = [j for j in work.fleet.judged if j.use is Use.CAPACITY and not j.order]
    if not staying:
        return
    oldest_first = sorted(staying, key=lambda j: (j.member.launched_at_s, j.member.instance_id))
    pools = {pool.name: pool for pool in work.snapshot.cluster.pools}
    seen: set[str] = set()
    for reason, find in PASSES:
        finds = {name: find(pool, work.snapshot) for name, pool in pools.items()}
        for judged in oldest_first if any(finds.values()) else ():
            node, tells = judged.member.node, finds.get(judged.member.pool)
            why = tells(judged) if tells else ""
            if why and node is not None and node.name not in seen:
                seen.add(node.name)
                yield Outdated(judged, node, pools[judged.member.pool], reason, why)


def release_outdated(work: Work) -> Iterator[Action]:
    """Release chosen nodes that idle: no pending job takes them and their pool can spare
    them; the others wait for a new one.
    """
    if not work.departures.idle:
        return
    bins = {each.name: each for each in work.bins.all}
    above = above_minimum(work)
    for each in work.departures.idle:
        found = bins.get(each.node.name)
        if found is None or found.jobs or found.gated_for:
            continue
        if above[each.pool.name] > 0:
            above[each.pool.name] -= 1
            yield from _go(work, each)
        else:
            yield from _replace(work, each)


def _replace(work: Work, each: Outdated) -> Iterator[Action]:
    """New before old; old before new where nothing new may stand beside it."""
    if _has_room(work, each):
        work.departures.replacing.append(each)
    else:
        why = f"{each.why}; a limit or a reservation has no room for a new one beside it"
        yield from _go(work, replace(each, why=why))


def least_nodes(work: Work, pool: Pool) -> int:
    """How many nodes the pool has in any case: its own minimum, or more at certain hours."""
    return max(pool.min_nodes, work.snapshot.wanted.warm_nodes.get(pool.name, 0))


def above_minimum(work: Work) -> Counter[str]:
    """How many nodes each pool may lose and still have its minimum and its headroom up."""
    above: Counter[str] = Counter()
    for pool in work.snapshot.cluster.pools:
        up = [b for b in work.bins.all if b.pool == pool.name and b.kind is BinKind.EXISTING]
        unused = sum(b.is_empty and not b.jobs and not b.gated_for for b in up)
        above[pool.name] = min(len(up) - least_nodes(work, pool), unused - pool.headroom_nodes)
    return above


def _go(work: Work, each: Outdated) -> Iterator[Action]:
    if each.judged.member.is_idle:
        _forget(work, each)
        if not each.judged.member.was_told(OrderKind.RELEASE, work.snapshot.now_s):
            names = (each.node.name,)
            reason = each.drain_reason
            yield work.order(OrderKind.RELEASE, names, reason, only_if=("IDLE",), is_budgeted=True)
    else:
        yield from _drain(work, each)


def _drain(work: Work, each: Outdated) -> Iterator[Action]:
    """No new job starts there; what runs there is waited for."""
    _forget(work, each)
    if not each.judged.member.has_order(OrderKind.DRAIN, work.snapshot.now_s):
        yield work.order(OrderKind.DRAIN, (each.node.name,), each.drain_reason, is_budgeted=True)


def _forget(work: Work, each: Outdated) -> None:
    """It is no capacity any more, for no job and for no minimum."""
    work.fleet.leaves(each.judged, each.why)
    work.bins.remove(each.node.name)


def _has_room(work: Work, each: Outdated) -> bool:
    """Whether limits and reservations allow a new node beside this one; a rest will pass."""
    reserved_capacity = work.offer_groups.reserved_capacity
    if each.judged.member.offering.market.is_prepaid:
        return reserved_capacity.left(each.judged.member.offering) > 0
    for kind, offering in each.pool.offerings():
        usd = work.snapshot.cluster.prices.get(offering, 0.0)
        is_sold = reserved_capacity.left(offering) > 0 if offering.market.is_prepaid else usd > 0
        if is_sold and work.usage.room(each.pool.name, 1, Load.of(kind, usd))[0]:
            return True
    return False
