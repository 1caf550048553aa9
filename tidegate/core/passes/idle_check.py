"""Which idle node is checked next, and the orders of the checks.

Checked are nodes that stay anyway: paid for in advance, or their pool's minimum. One at a time in a
pool, none that a waiting job could use, and no more than the day's budget holds.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from tidegate.core.buy.bins import Bins
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.idle_check import (
    LATE_S,
    due_since_s,
    gpus_of,
    idle_check_of,
    used_today,
)
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.fleet.templates import history_of
from tidegate.core.model.cluster import Pool
from tidegate.core.model.durations import span
from tidegate.core.model.frozen import frozen
from tidegate.core.model.idle_check import (
    FOUND,
    AskedCheck,
    IdleCheck,
    IdleChecks,
    idle_check_name,
)
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action, Learn, Send
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.reservations import block_drains_at_s
from tidegate.core.passes.departures import IdleNodes
from tidegate.core.passes.headroom import hold_headroom
from tidegate.core.passes.idle import idled_s
from tidegate.core.passes.orders import ANY_STATE, order
from tidegate.core.passes.queue import Queue
from tidegate.core.passes.retire import candidates

ASKS = "idle-check-asked"

# A node between two jobs is left alone.
QUIET_S = 300.0


@frozen
class Due:
    """A node whose check is due."""

    judged: Judged
    pool: Pool
    since_s: float

    @property
    def turn(self) -> tuple[bool, float, str]:
        """What is paid for in advance lives longest and is first; then who waits longest."""
        member = self.judged.member
        return not member.offering.market.is_prepaid, self.since_s, member.instance_id


def check_idle(
    snapshot: Snapshot,
    fleet: Fleet,
    bins: Bins,
    queue: Queue,
    idle: IdleNodes,
    decided: Iterable[Action],
) -> Iterator[Action]:
    """Orders what is asked for, and asks for what is due. `decided`: what this plan does before."""
    check = snapshot.cluster.idle_check
    if check is None:
        return
    going = {n for each in decided if isinstance(each, Send) for n in each.order.names}
    yield from _told(snapshot, fleet, going)
    if not snapshot.wanted.is_up:
        return
    learnt = (each.pool_history for each in decided if isinstance(each, Learn))
    known = {each.pool: each for each in learnt}
    going |= {each.node.name for each in candidates(snapshot, fleet)}
    staying = [
        each
        for each in fleet.judged
        if each.member.instance_id not in going and _may_check(snapshot, each, idle, check)
    ]
    due = [_first_due(snapshot, staying, bins, queue, pool) for pool in snapshot.cluster.pools]
    used = used_today(snapshot)
    for each in sorted(filter(None, due), key=lambda one: one.turn):
        used += check.most_gpu_hours(gpus_of(snapshot, each.judged.member))
        if used > check.gpu_hours_per_day:
            return  # who waits longest is not overtaken by smaller ones
        history = known.get(each.pool.name, history_of(snapshot, each.pool.name))
        yield from _asked(snapshot, each, check, history, used)


def _told(snapshot: Snapshot, fleet: Fleet, going: Collection[str]) -> Iterator[Action]:
    """The orders of what was asked for or found, where the head is to be told in this plan.

    Who goes anyway is not drained for it.
    """
    stays = {e.member.instance_id for e in fleet.judged if e.use is Use.CAPACITY and not e.order}
    stays.difference_update(going)
    for history in snapshot.pool_history:
        state = history.idle_checks
        if state and state.asked and state.asked.sent_at_s == snapshot.now_s:
            yield _order(state.asked)
        sick = state.sick if state else None
        if sick and sick.sent_at_s == snapshot.now_s and sick.instance_id in stays:
            yield order(OrderKind.DRAIN, (sick.instance_id,), sick.said, only_if=ANY_STATE)


def _order(asked: AskedCheck) -> Send:
    return order(OrderKind.CHECK, (asked.node,), asked.name, why="the site's check of idle nodes")


def _first_due(
    snapshot: Snapshot, staying: Iterable[Judged], bins: Bins, queue: Queue, pool: Pool
) -> Due | None:
    """The node of the pool that is checked next; None: none is due, or none may be."""
    check, history = idle_check_of(snapshot, pool.name), history_of(snapshot, pool.name)
    if check is None or not _may_ask(snapshot, queue, history):
        return None
    state = history.idle_checks or IdleChecks()
    headroom = hold_headroom(snapshot, bins).names
    unused = {
        each.name
        for each in bins.all
        if each.pool == pool.name and each.is_empty and not (each.jobs or each.gated_for)
        if not each.is_reserved and each.name not in headroom
    }
    if len(unused) <= pool.headroom_nodes:
        return None
    found = [
        Due(each, pool, due_since_s(state, each.member, check))
        for each in staying
        if each.member.instance_id in unused
    ]
    due = [each for each in found if each.since_s <= snapshot.now_s]
    return min(due, key=lambda each: each.turn, default=None)


def _may_ask(snapshot: Snapshot, queue: Queue, history: PoolHistory) -> bool:
    """None waits or runs, the check is believed and runs at all, and no job waits for the pool."""
    state = history.idle_checks or IdleChecks()
    if state.asked or state.sick or snapshot.now_s < state.rests_until_s:
        return False
    if any(each.check == FOUND for each in history.stopped_checks):
        return False
    waiting = (need for need in queue.needs if need.job_id in queue.unmet)
    return not any(history.pool in need.pools for need in waiting)


def _may_check(snapshot: Snapshot, each: Judged, idle: IdleNodes, check: IdleCheck) -> bool:
    """It is idle, stays anyway, and does not go before a check would end."""
    member, node = each.member, each.member.node
    if each.use is not Use.CAPACITY or each.order or node is None or member.record is None:
        return False
    if not member.is_idle or not node.state.takes_jobs or not gpus_of(snapshot, member):
        return False
    if member.reservation or idled_s(snapshot, member, node) < QUIET_S:
        return False
    ends_at_s = block_drains_at_s(
        snapshot.cluster, member.offering, member.launched_at_s, member.instance
    )
    over_by_s = snapshot.now_s + check.wait_s + check.minutes * 60.0 + LATE_S
    if ends_at_s is not None and ends_at_s < over_by_s:
        return False
    return member.offering.market.is_prepaid or idle.above.get(member.pool, 1) <= 0


def _asked(
    snapshot: Snapshot, due: Due, check: IdleCheck, history: PoolHistory, used: float
) -> Iterator[Action]:
    member, state, now_s = due.judged.member, history.idle_checks or IdleChecks(), snapshot.now_s
    number = state.number + 1
    name = idle_check_name(due.pool.name, member.instance_id, member.launched_at_s, number)
    asked = AskedCheck(member.instance_id, name, gpus_of(snapshot, member), now_s, now_s)
    last_s = state.last_s(member.instance_id)
    last = "it was never checked" if last_s is None else f"checked {span(now_s - last_s)} ago"
    said = (
        f"pool {due.pool.name}: {member.instance_id} is idle and its check is due ({last}); with "
        f"it at most {used:.2f} of {check.gpu_hours_per_day:g} GPU-hours of today are used"
    )
    after = replace(state, number=number, asked=asked)
    yield Learn(replace(history, idle_checks=after), said, ASKS)
    yield _order(asked)
