"""Passes over every node that is ours."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from tidegate.core.buy.bins import Bin, bin_of_node, bin_of_type
from tidegate.core.buy.purchase import Purchase
from tidegate.core.demand.demand import Need
from tidegate.core.fleet.drains import is_at_gate
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.judge import RELEASED, Judged, Use
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.node_price import committed, marginal_usd_per_hour, usd_per_hour
from tidegate.core.fleet.stopped import is_back
from tidegate.core.fleet.templates import is_to_blame
from tidegate.core.interruption.save import RECLAIMED, InterruptionNotice, reclaim_at_s, saves
from tidegate.core.model.calendar import NOTICE_S
from tidegate.core.model.cluster import Pool
from tidegate.core.model.drain_reason import DrainCode, DrainReason, sentence_of
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action, Reprice, Rest, Send, Terminate
from tidegate.core.model.slurm import asked_by_name
from tidegate.core.model.slurm_names import is_instance_id
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.ultraservers import is_in_ultraserver
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.offers.reservations import (
    BLOCK_NOTICE_S,
    billed_as,
    block_drains_at_s,
)
from tidegate.core.passes.doubt import dearest
from tidegate.core.passes.orders import ANY_STATE, order
from tidegate.core.passes.queue import Gang
from tidegate.core.passes.room import Room


def end_released(snapshot: Snapshot, ours: Iterable[Member]) -> Iterator[Action]:
    """Nodes that Slurm has already let go may end even while the head is silent.

    Not those that were stopped: what runs again somebody has started, and Slurm may have it.
    """
    now_s, lag_s = snapshot.now_s, snapshot.cluster.timings.describe_lag_s
    released = [
        member.instance_id
        for member in ours
        if member.record is not None
        and member.record.phase is Phase.RELEASED
        and member.record.stopped_at_s is None
        and member.is_let_go
        and member.instance is not None
        and member.instance.is_alive
        and not member.was_just_ended(now_s, lag_s)
    ]
    if released:
        yield Terminate(tuple(released), RELEASED)


def judge_nodes(snapshot: Snapshot, room: Room, purchase: Purchase) -> list[Action]:
    """What each node is good for, what it costs, and what room it has."""
    in_doubt = snapshot.doubted
    for each in room.fleet.judged:
        _debit(snapshot, purchase, each.member, in_doubt)
        _add_bin(snapshot, room, purchase, each)
    _bound_launches(snapshot, room.fleet, purchase, in_doubt)
    return _merged(
        action
        for each in room.fleet.judged
        for action in each.actions
        if not (isinstance(action, Rest) and is_to_blame(each, snapshot))
    )


def _merged(actions: Iterable[Action]) -> list[Action]:
    """The actions with all terminations of one reason in one: an API call takes many ids."""
    ends: dict[str, list[str]] = {}
    others: list[Action] = []
    for action in actions:
        if isinstance(action, Terminate):
            ends.setdefault(action.reason, []).extend(action.instance_ids)
        else:
            others.append(action)
    return [*(Terminate(tuple(ids), reason) for reason, ids in sorted(ends.items())), *others]


def _bound_launches(
    snapshot: Snapshot, fleet: Fleet, purchase: Purchase, in_doubt: frozenset[str]
) -> None:
    """The circuit breaker: where launches fail, few are begun at a time."""
    flying: dict[str, set[str]] = {}
    for each in fleet.judged:
        record = each.member.record
        if record and each.use is Use.IN_FLIGHT:
            flying.setdefault(record.pool, set()).add(record.launch_id)
    for launch in (r.launch for r in snapshot.launches if r.launch.launch_id in in_doubt):
        flying.setdefault(launch.pool, set()).add(launch.launch_id)
    for pool_history in snapshot.pool_history:
        left = pool_history.launches_left(snapshot.now_s, len(flying.get(pool_history.pool, ())))
        if left is not None:
            purchase.builder.bound(pool_history.pool, left)
    for pool in {each.member.pool for each in fleet.judged if each.is_held_back}:
        purchase.shut(pool, _held_back(pool))


def _held_back(pool: str) -> WhyNot:
    said = (
        f"pool {pool}: nodes are held back that a check drained which may err, and nothing is "
        "bought instead"
    )
    remedy = (
        f"mend the check, or let the nodes go: tidegate status names both, tidegate retry {pool}"
    )
    return WhyNot(Why.DOUBTED, said, pool, remedy=remedy)


def _debit(
    snapshot: Snapshot, purchase: Purchase, member: Member, in_doubt: frozenset[str]
) -> None:
    """What EC2 may still bill counts against the limits until it is seen to have ended."""
    is_counted = member.instance is not None and member.instance.launch_id in in_doubt
    if is_counted and member.record and member.record.stopped_at_s is not None:
        return
    is_gone = member.is_gone(snapshot.now_s, snapshot.cluster.timings.describe_lag_s)
    # One Describe may leave out what lives: while it boots or Slurm has it, it counts.
    is_seen = member.may_boot or (member.instance is None and member.node is not None)
    if (is_gone and not is_seen) or (member.record is None and is_counted):
        return
    usd = usd_per_hour(snapshot, member)
    offering, known_s = member.offering, snapshot.now_s
    if member.instance is None and member.record:  # EC2's last word on it is older
        record = member.record
        offering, known_s = billed_as(record), record.priced_at_s or record.launched_at_s
    paid = committed(member)
    if not paid:
        most_usd = dearest(snapshot, offering, usd, known_s)
    else:  # of one that EC2 does not show nobody says whether the plan still pays
        most_usd = usd + (0.0 if member.instance else paid.saved_usd_per_hour)
    most = purchase.usage.load_of(offering.instance_type, most_usd)
    purchase.usage.debit(member.pool, 1, most, usd)


def _add_bin(snapshot: Snapshot, room: Room, purchase: Purchase, judged: Judged) -> None:
    member, cluster = judged.member, snapshot.cluster
    pool = cluster.pool(member.pool)
    if pool is None:
        return
    if judged.use in (Use.CAPACITY, Use.GATED) and member.node is not None:
        gated_for = judged.gated_for if judged.use is Use.GATED else ""
        found = bin_of_node(member.node, pool, member.offering, gated_for, member.jobs)
        found.is_empty = not member.is_busy
        found.usd_per_hour = marginal_usd_per_hour(snapshot, member)
        found.is_closed = judged.is_closed
        found.opened_for = member.opened_for(snapshot.now_s)
        _place(found, member, purchase)
        if member.offering.market is Market.SPOT:
            found.is_lossy = _lossy(purchase, pool, member.offering)
        room.bins.add([found])
        if judged.is_closed:
            room.steering.watch(found)
    elif judged.use is Use.IN_FLIGHT and snapshot.wanted.is_up:
        instance_type = cluster.instance_type(member.offering.instance_type)
        if instance_type:
            booting = bin_of_type(
                member.instance_id,
                pool,
                member.offering,
                of=instance_type,
                gated_for=member.gated_for,
                layout=member.record.layout if member.record else "",
            )
            booting.for_jobs = member.record.for_jobs if member.record else ()
            booting.usd_per_hour = marginal_usd_per_hour(snapshot, member)
            _place(booting, member, purchase)
            if member.offering.market is Market.SPOT:
                booting.is_lossy = _lossy(purchase, pool, member.offering)
            if member.was_told(OrderKind.DRAIN, snapshot.now_s):  # it joins closed
                room.steering.watch(booting)
            room.bins.add([booting])


def _place(found: Bin, member: Member, purchase: Purchase) -> None:
    """By EC2's word, else by what the launch has named."""
    if not is_in_ultraserver(member.offering.instance_type):
        return
    told = member.instance.capacity_reservation_id if member.instance else ""
    named = member.record.reservation if member.record else ""
    ultraservers = purchase.offer_groups.reserved_capacity.ultraservers
    found.ultraserver = ultraservers.of(told or named)
    found.ultraserver_nodes = ultraservers.largest(member.offering)


def _lossy(purchase: Purchase, pool: Pool, offering: Offering) -> Callable[[Need], bool]:
    return partial(purchase.offer_groups.losses.is_lossy, pool, offering)


def save_jobs(snapshot: Snapshot, fleet: Fleet) -> Iterator[Action]:
    """Signal and requeue what runs on nodes that EC2 will reclaim, also what came late."""
    timings = snapshot.cluster.timings
    notices = tuple(
        InterruptionNotice(each.member.instance_id, at_s)
        for each in fleet.judged
        if (at_s := _taken_at_s(each, snapshot)) is not None
    )
    if not notices:
        return
    for saving in saves(notices, snapshot.heard.reading, snapshot.now_s, timings):
        yield Send(saving, RECLAIMED)


def _taken_at_s(judged: Judged, snapshot: Snapshot) -> float | None:
    """When EC2 takes a node that lives, by its notice or by the end of its capacity block.

    What should have happened already, a maintenance that had begun when it was announced, may
    happen at any time: its jobs get as long as a notice would give them, from now on.
    """
    record, now_s = judged.member.record, snapshot.now_s
    if record is None or judged.order is not OrderKind.RELEASE:
        return None
    at_s = None
    if judged.use is Use.LOST:
        at_s = reclaim_at_s(record, now_s)
        if at_s is not None and at_s <= now_s and record.reclaim_at_s is not None:
            return None  # they were saved before its time was over
    elif judged.use is Use.LEAVING:
        closes_s = block_drains_at_s(
            snapshot.cluster, record.offering, record.launched_at_s, judged.member.instance
        )
        at_s = closes_s + BLOCK_NOTICE_S if closes_s is not None and closes_s <= now_s else None
    if at_s is None:
        return None
    return at_s if at_s > now_s else now_s + snapshot.cluster.timings.spot_notice_s


def end_jobs(snapshot: Snapshot, fleet: Fleet) -> Iterator[Action]:
    """Signal and requeue what still runs when a stopped cluster waits for it no longer.

    It is as with a spot reclaim: jobs that ask for it hear of it two minutes before.
    """
    wanted = snapshot.wanted
    ends_at_s, now_s = wanted.jobs_end_at_s, snapshot.now_s
    if wanted.is_up or ends_at_s is None or now_s < ends_at_s - NOTICE_S:
        return
    timings = snapshot.cluster.timings
    # A look that comes late still has a minute for its orders to arrive.
    late_s = max(0.0, now_s + timings.order_ttl_s - ends_at_s)
    notices = tuple(
        InterruptionNotice(node.name, ends_at_s + late_s)
        for each in fleet.judged
        if (node := each.member.node) and each.is_leaving and each.member.is_busy
    )
    if not notices:
        return
    margin_s = timings.requeue_margin_s + late_s
    hurried = replace(timings, requeue_margin_s=margin_s)
    for saving in saves(notices, snapshot.heard.reading, now_s, hurried, wanted.reason):
        yield Send(saving, wanted.reason)


def order_out(snapshot: Snapshot, fleet: Fleet) -> Iterator[Action]:
    """Release or reboot nodes of no use on which nothing runs; start no new job on the others, nor
    on those for which a job waits (-w), since with its node Slurm would end it.

    Nodes whose instance is gone leave with whatever seems to run on them.
    """
    now_s = snapshot.now_s
    asked = asked_by_name(snapshot.heard.reading.jobs)
    alike: dict[_Ordered, list[str]] = {}
    for each in fleet.judged:
        node = each.member.node
        if node is None or each.order in (None, OrderKind.UNDRAIN):
            continue
        if each.disruption and not fleet.allowance.take(
            each.member.pool, node.name, each.disruption
        ):
            continue
        if (
            each.order is OrderKind.DELETE
            or (each.order is OrderKind.REBOOT and not each.member.is_busy)
            or (
                each.order is OrderKind.RELEASE
                and not each.member.is_busy
                and node.name not in asked
                and not node.state.is_reserved  # until then it is closed
            )
        ):
            if not each.member.was_told(each.order, now_s):
                # A guard: its machine lives, and the agent keeps it where a person has it now.
                lives = each.order is OrderKind.DELETE and each.use is Use.LEAVING
                is_budgeted = each.disruption is not None
                key = _Ordered(each.order, each.drain_reason, is_budgeted, lives, each.despite)
                alike.setdefault(key, []).append(node.name)
        elif not node.state.is_drain and not each.member.has_order(OrderKind.DRAIN, now_s):
            yield order(OrderKind.DRAIN, (node.name,), each.drain_reason)
    for key in sorted(alike, key=lambda key: (key.kind, key.reason.sentence, *key[2:])):
        yield order(
            key.kind,
            tuple(sorted(alike[key])),
            key.reason,
            only_if=ANY_STATE if key.lives else (),
            is_budgeted=key.is_budgeted,
            despite=key.despite,
        )


class _Ordered(NamedTuple):
    """What nodes have in common that one order is about. `lives`: their machines do."""

    kind: OrderKind
    reason: DrainReason
    is_budgeted: bool
    lives: bool
    despite: str


def reprice(
    snapshot: Snapshot, ours: Iterable[Member], decided: Iterable[Action]
) -> Iterator[Action]:
    """Note which nodes EC2 bills otherwise than the ledger holds: an open reservation took them in,
    or has ended, the spot price changed, or a Savings Plan covers them or does no more. What ends
    in this plan is counted at its end.
    """
    ending = {name for a in decided if isinstance(a, Terminate) for name in a.instance_ids}
    for member in ours:
        record, instance = member.record, member.instance
        if record is None or instance is None or not instance.is_alive:
            continue
        if record.ended_at_s is not None or member.instance_id in ending:
            continue
        if record.stopped_at_s is not None and not is_back(record, snapshot):
            continue
        usd, paid = usd_per_hour(snapshot, member), committed(member)
        if usd != record.usd_per_hour or paid != record.committed:
            reason = f"EC2 bills it as {member.offering.market} now, {usd:.3f} USD per hour"
            if paid:
                reason += f", of which a Savings Plan pays {paid.usd_per_hour:.3f}"
            yield Reprice(member.instance_id, usd, reason, paid)


def bury(snapshot: Snapshot, fleet: Fleet) -> Iterator[Action]:
    """Delete dead nodes that only Slurm still knows: they died as they joined."""
    known = {each.member.instance_id for each in fleet.judged}
    pools = {pool.name for pool in snapshot.cluster.pools}
    names = tuple(
        node.name
        for node in sorted(snapshot.heard.reading.nodes, key=lambda node: node.name)
        if node.state.is_down
        and node.name not in known
        and is_instance_id(node.name)
        and not pools.isdisjoint(node.features)
    )
    if names:
        gone = DrainReason(DrainCode.GONE, "its instance is gone for good")
        yield order(OrderKind.RELEASE, names, gone)


def reopen(
    fleet: Fleet, waiting: Iterable[Gang], gangs: Iterable[Gang], now_s: float
) -> Iterator[Action]:
    """Undrain what was drained for a while; the guard is the reason it was drained with.

    Not what waiting gangs hold: opened first it would be anybody's until it is closed again. Nor
    what complete gangs hold at a gate: it opens with the rest of theirs.
    """
    kept = {name for gang in waiting for name in gang.held_names}
    nodes = (each.member.node for each in fleet.judged)
    at_gates = {node.name for node in nodes if node and is_at_gate(node)}
    kept |= {name for g in gangs if g.is_complete for name in g.held_names & at_gates}
    opening = (each for each in fleet.judged if each.member.instance_id not in kept)
    for (reason, said), names in sorted(_to_reopen(opening, now_s).items()):
        why = sentence_of(reason) or said
        yield order(OrderKind.UNDRAIN, tuple(sorted(names)), reason, only_if=("DRAIN",), why=why)


def _to_reopen(judged: Iterable[Judged], now_s: float) -> dict[tuple[str, str], list[str]]:
    """Nodes that were drained for the night, by the very reason that they carry; those at a gate
    carry none, and are opened for another.
    """
    by_reason: dict[tuple[str, str], list[str]] = {}
    for each in judged:
        node, is_kept = each.member.node, each.use is Use.GATED
        if node is None or each.order is not OrderKind.UNDRAIN or is_kept:
            continue
        if not each.member.has_order(OrderKind.UNDRAIN, now_s):
            said = "" if node.reason else each.reason
            by_reason.setdefault((node.reason, said), []).append(node.name)
    return by_reason
