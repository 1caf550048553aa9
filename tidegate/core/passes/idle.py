"""Nodes that no job needs: which a pool keeps, and which go."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from tidegate.core.buy.bins import Bin, Bins
from tidegate.core.buy.purchase import Purchase
from tidegate.core.fleet import idle_time
from tidegate.core.fleet.do_not_disrupt import kept_because
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.idle_check import asked_on
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.node_price import marginal_usd_per_hour, usd_per_hour
from tidegate.core.fleet.starts import stopped_room
from tidegate.core.fleet.templates import history_of
from tidegate.core.model.budgets import DisruptionReason
from tidegate.core.model.cluster import Pool, PoolType
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.ec2 import Market
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action
from tidegate.core.model.slurm import Node
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.clearing import in_the_way
from tidegate.core.passes.departures import Departures, IdleNodes, Outdated
from tidegate.core.passes.headroom import buy_headroom, hold_headroom
from tidegate.core.passes.idle_use import idle_uses
from tidegate.core.passes.orders import order
from tidegate.core.passes.queue import Queue
from tidegate.core.passes.recut import cut_otherwise
from tidegate.core.passes.retire import above_minimum, least_nodes
from tidegate.core.passes.rollout import (
    is_tried,
    lacks_node_to_check,
    resting,
    waits_for_check,
)
from tidegate.core.passes.spares import Ready, Spares


def keep_warm(
    snapshot: Snapshot, fleet: Fleet, purchase: Purchase, bins: Bins, departures: Departures
) -> None:
    """Launch what a pool lacks of its minimum and of its headroom."""
    wanted = snapshot.wanted
    if not wanted.is_up:
        return
    warm = hold_headroom(snapshot, bins, but={e.node.name for e in departures.replacing})
    is_new_first = bool(departures.replacing or departures.tries)
    keeping = [
        pool
        for pool in snapshot.cluster.pools
        if is_new_first
        or pool.keeps_free
        or least_nodes(snapshot, pool)
        or lacks_node_to_check(snapshot, fleet, pool)
    ]
    for pool in sorted(keeping, key=lambda p: (-p.weight, p.name)):
        least = least_nodes(snapshot, pool)
        why = f"pool {pool.name} keeps at least {least} nodes"
        if least > pool.min_nodes:
            why = f"pool {pool.name} has {least} nodes ready: the cluster is {wanted.sentence}"
        going = [each for each in departures.replacing if each.pool is pool]
        free = buy_headroom(purchase, pool, warm)
        lacking = least - _num_nodes(purchase, bins, pool.name) - _returning(fleet, purchase, pool)
        bought = free + _buy(purchase, pool, lacking, why)
        surplus = max(-lacking, 0)  # replacements that are on their way
        for each in going[surplus:]:
            bought += _buy(purchase, pool, 1, f"it comes before {each.node.name} goes ({each.why})")
        if pool.name in departures.tries and not purchase.builder.num_nodes(pool.name):
            waits = departures.tries[pool.name]
            why = f"the first node of its new template, before others go ({waits.why})"
            bought += purchase.builder.keep(pool, why, but=resting(snapshot, pool))
        if lacks_node_to_check(snapshot, fleet, pool) and not purchase.builder.num_nodes(pool.name):
            why = "a node more of its new template, which the site's check needs"
            paid = [each for each in pool.markets if not each.is_prepaid]
            bought += purchase.builder.keep(pool, why, markets=paid, but=resting(snapshot, pool))
        num_idle = sum(each.judged.member.is_idle for each in going)
        lacking = pool.headroom_nodes + num_idle - len(_unused(bins, pool.name)) - bought
        _buy(purchase, pool, lacking, f"pool {pool.name} keeps {pool.headroom_nodes} nodes free")


def _num_nodes(purchase: Purchase, bins: Bins, pool: str) -> int:
    """Nodes of the pool that are there to stay, on their way or being bought."""
    return sum(each.pool == pool for each in bins.all) + purchase.builder.num_nodes(pool)


def _returning(fleet: Fleet, purchase: Purchase, pool: Pool) -> int:
    """Nodes that leave a reservation: new ones can only take their places."""
    return sum(
        each.use is Use.LEAVING
        and each.member.pool == pool.name
        and purchase.offer_groups.reserved_capacity.holds(each.member.offering)
        for each in fleet.judged
    )


def _unused(bins: Bins, pool: str) -> list[Bin]:
    """Nodes of the pool that no job of this plan will use."""
    return [b for b in bins.all if b.pool == pool and _is_unused(b)]


def _is_unused(each: Bin) -> bool:
    return each.is_empty and not (each.jobs or each.gated_for or each.is_reserved)


def _buy(purchase: Purchase, pool: Pool, count: int, why: str) -> int:
    """Buy up to `count` of the cheapest nodes that the limits allow; how many it were."""
    for bought in range(count):
        if not purchase.builder.keep(pool, why):
            return bought
    return max(count, 0)


def idle_nodes(
    snapshot: Snapshot,
    fleet: Fleet,
    bins: Bins,
    replacing: Iterable[Outdated],
    spares: Mapping[PoolType, Spares],
) -> IdleNodes:
    """Which nodes go that no pending job will use and that idled for their pool's time."""
    idle = [j for j in fleet.judged if j.use is Use.CAPACITY and j.member.is_idle]
    if not idle:
        return IdleNodes()
    replaced = {each.node.name for each in replacing}
    headroom = hold_headroom(snapshot, bins, last=replaced).names
    unused = {b.name for b in bins.all if not (b.jobs or b.gated_for or b.name in headroom)}
    above, ready = above_minimum(snapshot, bins, headroom), Ready(snapshot, bins, spares)
    in_turn = _in_turn(snapshot, idle, replaced)
    uses = idle_uses(snapshot, in_turn, bins, headroom, above, Ready(snapshot, bins, spares))
    by_reason: dict[str, list[str]] = {}
    prepaid: list[tuple[Member, float]] = []
    places = Counter(each.member.pool for each in idle if each.member.instance_id in unused)
    room = stopped_room(snapshot)
    for each in in_turn:
        node, pool = each.member.node, snapshot.cluster.pool(each.member.pool)
        assert node is not None
        if each.order is OrderKind.UNDRAIN:
            continue
        if each.member.was_told(OrderKind.RELEASE, snapshot.now_s):
            continue
        idle_s, kept_s = idled_s(snapshot, each.member, node), 0.0
        if pool and node.name in unused:
            places[pool.name] -= 1
            kept_s = idle_time.idle_s(
                pool,
                history_of(snapshot, pool.name),
                places[pool.name],
                now_s=snapshot.now_s,
                boot_worth_s=_boot_worth_s(snapshot, pool, each, room),
            )
        if pool is None:
            reason = f"its pool {each.member.pool} is not in the cluster file any more"
            by_reason.setdefault(reason, []).append(node.name)
        elif node.name in unused and idle_s >= kept_s and above[pool.name] > 0:
            if kept_because(each.member, pool, snapshot.head_now_s) or ready.keeps(each.member):
                continue
            if waits_for_check(snapshot, each.member) or asked_on(snapshot, each.member):
                continue
            if each.member.offering.market.is_kept_idle:
                prepaid.append((each.member, kept_s))
                continue  # to give it back saves nothing
            if not fleet.allowance.take(pool.name, node.name, DisruptionReason.EMPTY):
                continue
            above[pool.name] -= 1
            ready.let_go(each.member)
            room[pool.name] -= _is_on_demand(each)
            reason = f"idle for {kept_s:.0f} s and no pending job needs it"
            by_reason.setdefault(reason, []).append(node.name)
    going = {reason: tuple(names) for reason, names in by_reason.items()}
    return IdleNodes(going, tuple(prepaid), above, uses)


def _boot_worth_s(snapshot: Snapshot, pool: Pool, each: Judged, room: Mapping[str, int]) -> float:
    """`room`: how many more nodes pools keep stopped, of which the next boot is a start."""
    is_stopped = room.get(pool.name, 0) > 0 and _is_on_demand(each)
    usd = usd_per_hour(snapshot, each.member)
    return idle_time.boot_worth_s(snapshot.cluster, pool, usd, is_stopped=is_stopped)


def _is_on_demand(each: Judged) -> bool:
    return each.member.offering.market is Market.ON_DEMAND


def _in_turn(snapshot: Snapshot, idle: Iterable[Judged], replaced: Collection[str]) -> list[Judged]:
    """A node that goes soon anyway goes first: what came to replace it stays, and what has to show
    that its template is good. Then that whose end saves most.
    """

    def turn(each: Judged) -> tuple[bool, bool, float, str]:
        member = each.member
        stays = member.instance_id not in replaced
        usd = marginal_usd_per_hour(snapshot, member)
        return stays, is_tried(snapshot, member), -usd, member.instance_id

    return sorted(idle, key=turn)


def release_idle(
    snapshot: Snapshot,
    fleet: Fleet,
    purchase: Purchase,
    bins: Bins,
    queue: Queue,
    idle: IdleNodes,
) -> Iterator[Action]:
    """Let them go, and what is paid for where it, or how it is cut, stands in a job's way."""
    by_reason = {reason: list(names) for reason, names in idle.going.items()}
    kept_s = {member.instance_id: each_s for member, each_s in idle.prepaid}
    job_id, found = in_the_way(snapshot, fleet, purchase, bins, queue, idle)
    for each in found:
        name = each.instance_id
        if not fleet.allowance.take(each.pool, name, DisruptionReason.EMPTY):
            continue
        reason = f"idle for {kept_s[name]:.0f} s, and a limit counts it that job {job_id} waits for"
        by_reason.setdefault(reason, []).append(name)
    gone = {name for names in by_reason.values() for name in names}
    pools = {member.instance_id: member.pool for member, _ in idle.prepaid}
    for name, reason in cut_otherwise(snapshot, queue, idle, gone):
        if fleet.allowance.take(pools[name], name, DisruptionReason.EMPTY):
            by_reason.setdefault(reason, []).append(name)
    for reason, names in sorted(by_reason.items()):
        yield order(
            OrderKind.RELEASE,
            tuple(sorted(names)),
            DrainReason(DrainCode.EMPTY, reason),
            only_if=("IDLE",),
            is_budgeted=True,
        )


def idled_s(snapshot: Snapshot, member: Member, node: Node) -> float:
    """How long it has been idle, by the head's clock as far as that can be right."""
    written_at_s = snapshot.heard.written_at_s
    if node.last_busy_at_s > written_at_s:  # the clock was put back since then
        return snapshot.now_s - member.launched_at_s
    return written_at_s - max(node.last_busy_at_s, member.launched_at_s)
