"""What each launch of a plan is made from: a roll-out tries the new template on a few nodes."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tidegate.core.buy.bins import Bins
from tidegate.core.buy.purchase import Purchase
from tidegate.core.fleet import rollout
from tidegate.core.fleet.fleet import Fleet
from tidegate.core.fleet.judge import Use
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.rollout_told import remedy
from tidegate.core.fleet.site_check import check_of, fit_nodes, job_name, lacks_check
from tidegate.core.fleet.templates import chosen, given_up, rollout_of
from tidegate.core.model.cluster import Pool
from tidegate.core.model.drain_reason import DrainCode, DrainReason
from tidegate.core.model.ec2 import Offering, Template
from tidegate.core.model.ledger import Launch
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Action
from tidegate.core.model.rollout import Step
from tidegate.core.model.slurm import asked_by_name
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.model.why import Why, WhyNot
from tidegate.core.passes.orders import order


def launches(snapshot: Snapshot, fleet: Fleet, purchase: Purchase) -> tuple[Launch, ...]:
    """What the plan buys. Nodes that a roll-out tries are launches of their own."""
    for pool in snapshot.cluster.pools:
        _try_new(snapshot, fleet, purchase, pool)
    made = purchase.builder.launches(str(snapshot.epoch))
    return tuple(from_templates(made, snapshot))


def from_templates(made: Iterable[Launch], snapshot: Snapshot) -> Iterator[Launch]:
    """The launches, with what their nodes are made from where nothing else was said yet."""
    used: dict[str, Template | None] = {}
    for each in made:
        if each.template is None and each.pool not in used:
            used[each.pool] = chosen(snapshot, each.pool)
        yield each if each.template else replace(each, template=used[each.pool])


def leave_given_up(
    snapshot: Snapshot, fleet: Fleet, purchase: Purchase, bins: Bins
) -> Iterator[Action]:
    """Start no more jobs on what is made from a template that was given up, and let go of what is
    idle. No budget counts and no minimum: a pool is better without such a node.
    """
    pools = {pool.name: given_up(pool, snapshot) for pool in snapshot.cluster.pools}
    for pool in snapshot.cluster.pools:
        if pools[pool.name] and any(market.is_prepaid for market in pool.markets):
            _shut_prepaid(snapshot, purchase, pool.name)
    if not any(pools.values()):
        return
    asked = asked_by_name(snapshot.heard.reading.jobs)
    for each in list(fleet.judged):
        tells, node = pools.get(each.member.pool), each.member.node
        why = tells(each) if tells else ""
        if not why or node is None or each.use is not Use.CAPACITY or each.order:
            continue
        fleet.leaves(each, why)
        bins.remove(node.name)
        # Slurm deletes no node that is in a reservation, and would end a job that waits for this
        # very node (-w) with it: until that ends it is closed.
        is_free = not node.state.is_reserved and node.name not in asked
        is_idle = each.member.is_idle and is_free
        kind, now_s = OrderKind.RELEASE if is_idle else OrderKind.DRAIN, snapshot.now_s
        if not each.member.has_order(kind, now_s):
            reason = DrainReason(DrainCode.GIVEN_UP, why)
            yield order(kind, (node.name,), reason, only_if=("IDLE",) if is_idle else ())


def _shut_prepaid(snapshot: Snapshot, purchase: Purchase, pool: str) -> None:
    """Blocks and places in reservations have templates of their own, of which only the deployed
    version is known: nodes from there would be let go as soon as they have joined. What is bought
    on demand from the good template EC2 puts into an open reservation by itself.

    Source: EC2 API, CapacityReservationSpecification, the preference `open`.
    """
    found = rollout_of(snapshot, pool)
    assert found is not None
    said = (
        f"pool {pool}: what is paid for is made from template {found.template.digest} alone, "
        "which is given up"
    )
    because = WhyNot(Why.FAILING, said, pool, remedy=remedy(pool, found))
    purchase.shut_prepaid(pool, because)


def check_new(snapshot: Snapshot) -> Iterator[Action]:
    """Order the check of what roll-outs try, when this plan asks for one."""
    for pool in snapshot.cluster.pools:
        found = rollout_of(snapshot, pool.name)
        state = found.checked if found and not found.is_stopped else None
        is_asked = state and state.asked_at_s is not None and not state.is_passed
        if found and state and is_asked and state.sent_at_s == snapshot.now_s:
            why = f"the site's check of template {found.template.digest}"
            name = job_name(found, pool.name)
            yield order(OrderKind.CHECK, state.nodes, name, why=why)


def lacks_node_to_check(snapshot: Snapshot, fleet: Fleet, pool: Pool) -> bool:
    """The pool's check needs one node more than there will be without this plan."""
    found, check = rollout_of(snapshot, pool.name), check_of(snapshot, pool.name)
    if not found or not check or not lacks_check(found, check) or found.step_since_s is None:
        return False
    if all(market.is_prepaid for market in pool.markets):
        return False  # launched from templates of their own
    ours = _ours(fleet, pool)
    is_short = len(fit_nodes(found, ours, snapshot)) < check.nodes
    return is_short and rollout.room(found, snapshot, ours, 0) > 0


def waits_for_check(snapshot: Snapshot, member: Member) -> bool:
    """The check of its template needs it, now or once there are others; for a bounded time."""
    found = rollout_of(snapshot, member.pool)
    check = check_of(snapshot, member.pool)
    if not found or found.is_stopped or not lacks_check(found, check):
        return False
    return found.step_since_s is not None and bool(fit_nodes(found, [member], snapshot))


def share_left(snapshot: Snapshot, fleet: Fleet, pool: Pool) -> int:
    """How many nodes of the pool may go for its roll-out now."""
    found = rollout_of(snapshot, pool.name)
    return rollout.share_left(found, snapshot, _ours(fleet, pool)) if found else 0


def resting(snapshot: Snapshot, pool: Pool) -> frozenset[Offering]:
    """What is not made from the template that the pool rolls out."""
    found = rollout_of(snapshot, pool.name)
    return rollout.resting(found, pool.name, snapshot) if found else frozenset()


def is_tried(snapshot: Snapshot, member: Member) -> bool:
    """It is made from the template that its pool rolls out."""
    found = rollout_of(snapshot, member.pool)
    return found is not None and rollout.is_made_from(member, found)


def _try_new(snapshot: Snapshot, fleet: Fleet, purchase: Purchase, pool: Pool) -> None:
    """Make as many nodes from the new template as the pool's roll-out allows."""
    found, builder = rollout_of(snapshot, pool.name), purchase.builder
    buys = builder.num_nodes(pool.name)
    if found is None or not buys:
        return
    left = rollout.room(found, snapshot, _ours(fleet, pool), buys)
    has_gangs = found.step is not Step.CANARY
    builder.make_from(
        found.template, pool.name, left, but=resting(snapshot, pool), has_gangs=has_gangs
    )


def _ours(fleet: Fleet, pool: Pool) -> list[Member]:
    return [each for each in fleet.members if each.pool == pool.name]
