"""Nodes that no job needs: which a pool keeps, and which go."""

from collections import Counter
from collections.abc import Iterator

from tidegate.core.buy.bins import Bin
from tidegate.core.fleet import idle_time
from tidegate.core.fleet.do_not_disrupt import kept_because
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.templates import history_of
from tidegate.core.model.budgets import DisruptionReason
from tidegate.core.model.cluster import Pool
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action
from tidegate.core.model.slurm import Node
from tidegate.core.passes.clearing import in_the_way
from tidegate.core.passes.retire import above_minimum, least_nodes
from tidegate.core.passes.rollout import (
    is_tried,
    lacks_node_to_check,
    resting,
    waits_for_check,
)
from tidegate.core.passes.spares import Ready
from tidegate.core.passes.work import Work


def keep_warm(work: Work) -> None:
    """Launch what a pool lacks of its minimum and of its headroom."""
    wanted = work.snapshot.wanted
    if not wanted.is_up:
        return
    is_new_first = bool(work.departures.replacing or work.departures.tries)
    keeping = [
        pool
        for pool in work.snapshot.cluster.pools
        if is_new_first
        or pool.headroom_nodes
        or least_nodes(work, pool)
        or lacks_node_to_check(work, pool)
    ]
    for pool in sorted(keeping, key=lambda p: (-p.weight, p.name)):
        least = least_nodes(work, pool)
        why = f"pool {pool.name} keeps at least {least} nodes"
        if least > pool.min_nodes:
            why = f"pool {pool.name} has {least} nodes ready: the cluster is {wanted.sentence}"
        going = [each for each in work.departures.replacing if each.pool is pool]
        lacking = least - _num_nodes(work, pool.name) - _returning(work, pool)
        bought = _buy(work, pool, lacking, why)
        surplus = max(-lacking, 0)  # replacements that are on their way
        for each in going[surplus:]:
            bought += _buy(work, pool, 1, f"it comes before {each.node.name} goes ({each.why})")
        if pool.name in work.departures.tries and not work.launch_builder.num_nodes(pool.name):
            waits = work.departures.tries[pool.name]
            why = f"the first node of its new template, before others go ({waits.why})"
            bought += work.launch_builder.keep(pool, why, but=resting(work, pool))
        if lacks_node_to_check(work, pool) and not work.launch_builder.num_nodes(pool.name):
            why = "a node more of its new template, which the site's check needs"
            paid = [each for each in pool.markets if not each.is_prepaid]
            bought += work.launch_builder.keep(pool, why, markets=paid, but=resting(work, pool))
        num_idle = sum(each.judged.member.is_idle for each in going)
        lacking = pool.headroom_nodes + num_idle - len(_unused(work, pool.name)) - bought
        _buy(work, pool, lacking, f"pool {pool.name} keeps {pool.headroom_nodes} nodes free")


def _num_nodes(work: Work, pool: str) -> int:
    """Nodes of the pool that are there to stay, on their way or being bought."""
    return sum(each.pool == pool for each in work.bins.all) + work.launch_builder.num_nodes(pool)


def _returning(work: Work, pool: Pool) -> int:
    """Nodes that leave a reservation: new ones can only take their places."""
    return sum(
        each.use is Use.LEAVING
        and each.member.pool == pool.name
        and work.offer_groups.reserved_capacity.holds(each.member.offering)
        for each in work.fleet.judged
    )


def _unused(work: Work, pool: str) -> list[Bin]:
    """Nodes of the pool that no job of this plan will use."""
    return [b for b in work.bins.all if b.pool == pool and _is_unused(b)]


def _is_unused(each: Bin) -> bool:
    return each.is_empty and not (each.jobs or each.gated_for or each.is_reserved)


def _buy(work: Work, pool: Pool, count: int, why: str) -> int:
    """Buy up to `count` of the cheapest nodes that the limits allow; how many it were."""
    for bought in range(count):
        if not work.launch_builder.keep(pool, why):
            return bought
    return max(count, 0)


def release_idle(work: Work) -> Iterator[Action]:
    """Let go of nodes that no pending job will use and that idled for their pool's time."""
    idle = [j for j in work.fleet.judged if j.use is Use.CAPACITY and j.member.is_idle]
    if not idle:
        return
    unused = {b.name for b in work.bins.all if not b.jobs and not b.gated_for}
    above, ready = above_minimum(work), Ready(work)
    by_reason: dict[str, list[str]] = {}
    prepaid: list[tuple[Member, float]] = []
    places = Counter(each.member.pool for each in idle if each.member.instance_id in unused)
    # A node that goes soon anyway goes first: what came to replace it stays, and what has to show
    # that its template is good.
    replaced = {each.node.name for each in work.departures.replacing}
    for each in sorted(
        idle,
        key=lambda j: (
            j.member.instance_id not in replaced,
            is_tried(work, j.member),
            -_usd_per_hour(j),
            j.member.instance_id,
        ),
    ):
        node, pool = each.member.node, work.snapshot.cluster.pool(each.member.pool)
        assert node is not None
        if each.order is OrderKind.UNDRAIN:
            continue
        if each.member.was_told(OrderKind.RELEASE, work.snapshot.now_s):
            continue
        idle_s, kept_s = _idle_s(work, each.member, node), 0.0
        if pool and node.name in unused:
            places[pool.name] -= 1
            kept_s = idle_time.idle_s(
                pool, history_of(work.snapshot, pool.name), places[pool.name], work.snapshot.now_s
            )
        if pool is None:
            reason = f"its pool {each.member.pool} is not in the cluster file any more"
            by_reason.setdefault(reason, []).append(node.name)
        elif node.name in unused and idle_s >= kept_s and above[pool.name] > 0:
            if kept_because(each.member, pool, work.head_now_s) or ready.keeps(each.member):
                continue
            if waits_for_check(work, each.member):
                continue
            if each.member.offering.market.is_prepaid:
                prepaid.append((each.member, kept_s))
                continue  # to give it back saves nothing
            if not work.fleet.allowance.take(pool.name, node.name, DisruptionReason.EMPTY):
                continue
            above[pool.name] -= 1
            ready.let_go(each.member)
            reason = f"idle for {kept_s:.0f} s and no pending job needs it"
            by_reason.setdefault(reason, []).append(node.name)
    _clear(work, prepaid, above, by_reason)
    for reason, names in sorted(by_reason.items()):
        yield work.order(
            OrderKind.RELEASE,
            tuple(sorted(names)),
            DrainReason(DrainCode.EMPTY, reason),
            only_if=("IDLE",),
            is_budgeted=True,
        )


def _clear(
    work: Work,
    prepaid: list[tuple[Member, float]],
    above: Counter[str],
    by_reason: dict[str, list[str]],
) -> None:
    """Let go of those that stand in a job's way."""
    if not prepaid:
        return
    kept_s = {member.instance_id: each_s for member, each_s in prepaid}
    going = {name for names in by_reason.values() for name in names}
    job_id, found = in_the_way(work, [member for member, _ in prepaid], going, above)
    for each in found:
        name = each.instance_id
        if not work.fleet.allowance.take(each.pool, name, DisruptionReason.EMPTY):
            continue
        reason = f"idle for {kept_s[name]:.0f} s, and a limit counts it that job {job_id} waits for"
        by_reason.setdefault(reason, []).append(name)


def _idle_s(work: Work, member: Member, node: Node) -> float:
    """How long it has been idle, by the head's clock as far as that can be right."""
    written_at_s = work.digest.written_at_s
    if node.last_busy_at_s > written_at_s:  # the clock was put back since then
        return work.snapshot.now_s - member.launched_at_s
    return written_at_s - max(node.last_busy_at_s, member.launched_at_s)


def _usd_per_hour(judged: Judged) -> float:
    record = judged.member.record
    return record.usd_per_hour if record else 0.0
