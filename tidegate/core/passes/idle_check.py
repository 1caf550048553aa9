"""Which idle nodes are checked next, and the orders of the checks.

Checked are nodes that stay anyway: paid for in advance, or their pool's minimum. One check at a
time in a pool, of one node or of two, none that a waiting job could use, and no more than the day's
budget holds.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from tidegate.core.buy.bins import Bins
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.idle_check import (
    AT_ONCE_S,
    LATE_S,
    due_since_s,
    gpus_of,
    idle_check_of,
    used_today,
)
from tidegate.core.fleet.idle_pairs import next_pair, suspects
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.templates import history_of
from tidegate.core.model.cluster import Pool
from tidegate.core.model.durations import span
from tidegate.core.model.frozen import frozen
from tidegate.core.model.idle_check import (
    FOUND,
    FOUND_PAIR,
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
    """A node whose check is due. `partner`: the other one of a pair. `is_open`: a pair that tells
    which of others is sick.
    """

    judged: Judged
    pool: Pool
    since_s: float
    partner: Judged | None = None
    is_open: bool = False

    @property
    def turn(self) -> tuple[bool, bool, float, str, bool]:
        """Jobs may begin on who is suspected. Then what is paid for in advance, which lives
        longest; then who waits longest.
        """
        member = self.judged.member
        is_by_hour = not member.offering.market.is_prepaid
        is_pair = self.partner is not None
        return not self.is_open, is_by_hour, self.since_s, member.instance_id, is_pair

    @property
    def members(self) -> tuple[Member, ...]:
        return tuple(each.member for each in (self.judged, self.partner) if each)

    def gpus(self, snapshot: Snapshot) -> int:
        return sum(gpus_of(snapshot, each) for each in self.members)


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
        used += check.most_gpu_hours(each.gpus(snapshot), is_pair=each.partner is not None)
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
    return order(OrderKind.CHECK, asked.nodes, asked.name, why="the site's check of idle nodes")


def _first_due(
    snapshot: Snapshot, staying: Iterable[Judged], bins: Bins, queue: Queue, pool: Pool
) -> Due | None:
    """What of the pool is checked next, a node or a pair; None: none is due, or none may be."""
    check, history = idle_check_of(snapshot, pool.name), history_of(snapshot, pool.name)
    if check is None or not _may_ask(queue, history):
        return None
    state = history.idle_checks or IdleChecks()
    headroom = hold_headroom(snapshot, bins).names
    unused = {
        each.name
        for each in bins.all
        if each.pool == pool.name and each.is_empty and not (each.jobs or each.gated_for)
        if not each.is_reserved and each.name not in headroom
    }
    spare = len(unused) - pool.headroom_nodes
    free = [each for each in staying if each.member.instance_id in unused]
    stopped = {each.check for each in history.stopped_checks}
    found: list[Due] = []
    if spare >= 1 and snapshot.now_s >= state.rests_until_s and FOUND not in stopped:
        found = [Due(each, pool, due_since_s(history, each.member, check)) for each in free]
    if check.pair and spare >= 2 and snapshot.now_s >= state.pairs.rests_until_s:
        found += _pairs(history, check, pool, free) if FOUND_PAIR not in stopped else ()
    due = [each for each in found if each.since_s <= snapshot.now_s]
    return min(due, key=lambda each: each.turn, default=None)


def _pairs(
    history: PoolHistory, check: IdleCheck, pool: Pool, free: Sequence[Judged]
) -> Iterator[Due]:
    """In each place the pair that answers an open question, and the one that is due first.

    Only nodes of one type and zone are tested together: what two good ones reach is one figure.
    """
    tried = (history.idle_checks or IdleChecks()).pairs.tried
    places: defaultdict[tuple[str, str], list[Due]] = defaultdict(list)
    for each in free:
        offering, since_s = (
            each.member.offering,
            due_since_s(history, each.member, check, is_pair=True),
        )
        places[offering.instance_type, offering.zone].append(Due(each, pool, since_s))
    in_doubt = suspects(tried)
    for dues in places.values():
        dues.sort(key=lambda each: each.turn)
        by_name = {each.judged.member.instance_id: each for each in dues}
        if chosen := next_pair(tried, list(by_name)):
            first, other = (by_name[name] for name in chosen)
            yield replace(first, since_s=0.0, partner=other.judged, is_open=True)
        clear = [each for name, each in by_name.items() if name not in in_doubt]
        if len(clear) >= 2:
            yield replace(clear[0], partner=clear[1].judged)


def _may_ask(queue: Queue, history: PoolHistory) -> bool:
    """None waits or runs, nobody is being drained for one, and no job waits for the pool."""
    state = history.idle_checks or IdleChecks()
    if state.asked or state.sick:
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
    limit_s = max(check.limit_s(), check.limit_s(is_pair=True))
    over_by_s = snapshot.now_s + check.wait_s + limit_s + LATE_S
    if ends_at_s is not None and ends_at_s < over_by_s:
        return False
    return member.offering.market.is_prepaid or idle.above.get(member.pool, 1) <= 0


def _asked(
    snapshot: Snapshot, due: Due, check: IdleCheck, history: PoolHistory, used: float
) -> Iterator[Action]:
    state, now_s = history.idle_checks or IdleChecks(), snapshot.now_s
    member, *others = due.members
    nodes = (member.instance_id, *(each.instance_id for each in others))
    number = state.number + 1
    name = idle_check_name(due.pool.name, nodes[0], member.launched_at_s, number, *nodes[1:])
    gpus = due.gpus(snapshot)
    asked = AskedCheck(nodes[0], name, gpus, now_s, now_s, partner="".join(nodes[1:]))
    said = (
        f"pool {due.pool.name}: {_why(due, state, now_s)}; with it at most {used:.2f} of "
        f"{check.gpu_hours_per_day:g} GPU-hours of today are used"
    )
    after = replace(state, number=number, asked=asked)
    yield Learn(replace(history, idle_checks=after), said, ASKS)
    yield _order(asked)


def _why(due: Due, state: IdleChecks, now_s: float) -> str:
    name = due.judged.member.instance_id
    last_s = state.last_s(name, is_pair=due.partner is not None)
    last = "it was never checked" if last_s is None else f"checked {span(now_s - last_s)} ago"
    if due.partner is None and state.is_suspect(name):
        return f"{name} is idle and did not pass its last check, so it has another"
    if due.partner is None and due.since_s == AT_ONCE_S:
        return f"{name} is idle, was rebooted, and only a test shows that it is mended ({last})"
    if due.partner is None:
        return f"{name} is idle and its check is due ({last})"
    other = due.partner.member.instance_id
    if due.is_open:
        return f"{name} has failed with another node and is tried with {other}"
    return f"{name} is idle and its check with another node, {other}, is due ({last})"
