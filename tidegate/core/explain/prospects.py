"""Why each node is still there: what should end it, and what holds it, as a plan sees it now."""

from collections.abc import Mapping

from tidegate.core.fleet.do_not_disrupt import kept_because
from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.fleet.templates import Roll, chosen
from tidegate.core.model.budgets import DisruptionReason
from tidegate.core.model.cluster import Pool
from tidegate.core.model.frozen import frozen
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.retire import candidates, how_far, least_nodes, spare_nodes
from tidegate.core.passes.work import Outdated, Work
from tidegate.core.planner import considered


@frozen
class Prospect:
    """Whether a node is to go.

    `goes`: why it should go, or does. `held`: what holds it. "": nothing.
    """

    goes: str = ""
    held: str = ""


def prospects(seen: Snapshot) -> Mapping[str, Prospect]:
    """By node; nothing while the head is silent, when no node is let go."""
    if seen.staleness:
        return {}
    work = considered(seen)
    should = {each.node.name: each for each in candidates(work)}
    spare = spare_nodes(work)
    found: dict[str, Prospect] = {}
    for each in work.judged:
        name, pool = each.member.instance_id, seen.cluster.pool(each.member.pool)
        if pool is None or each.member.node is None:
            continue
        if each.disruption:
            held = work.allowance.held(pool.name, each.disruption, besides=name)
            found[name] = Prospect(each.reason, held)
        elif each.use is Use.LEAVING and each.order is None:
            found[name] = Prospect(each.reason)
        elif each.use is Use.CAPACITY:
            outdated = should.get(name)
            held = kept_because(each.member, pool, work.head_now_s)
            held = held or (_why_still(work, outdated) if outdated else "")
            if not held and not outdated and each.member.is_idle:
                held = _why_kept(work, each, pool, spare[pool.name])
            found[name] = Prospect(outdated.why if outdated else "", held)
    return found


def _why_still(work: Work, each: Outdated) -> str:
    """What holds a node that has had its time."""
    pool = each.pool.name
    if any(each.node.name == other.node.name for other in work.replacing):
        return f"a new node of pool {pool} comes first"
    roll = how_far(work, each)
    template = chosen(work.snapshot, pool)
    if roll is Roll.STOPPED:
        return f"new nodes of pool {pool} are no good: nothing is replaced"
    if roll is not Roll.PROVEN and template:
        return f"a first node made from {template.digest} has to join well before"
    return work.allowance.held(pool, each.reason) or "a pending job is about to take it"


def _why_kept(work: Work, each: Judged, pool: Pool, spare: int) -> str:
    """What holds a node that idles."""
    if each.member.offering.market.is_prepaid:
        return "its reservation is paid for"
    if any(b.name == each.member.instance_id and b.jobs for b in work.bins.all):
        return "a pending job is about to take it"
    if spare <= 0 and (least_nodes(work, pool) or pool.headroom_nodes):
        return f"pool {pool.name} keeps {least_nodes(work, pool)} nodes, {pool.headroom_nodes} idle"
    return work.allowance.held(pool.name, DisruptionReason.EMPTY)
