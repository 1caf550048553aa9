"""What each idle node is for: kept on purpose, or left to wait until its time is over.

It changes nothing: the ledger of money tells the two apart by it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from tidegate.core.buy.bins import Bins
from tidegate.core.fleet.do_not_disrupt import kept_because
from tidegate.core.fleet.idle_check import asked_on
from tidegate.core.fleet.judge import Judged
from tidegate.core.model.idle_use import IdleUse
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.rollout import waits_for_check
from tidegate.core.passes.spares import Ready


def idle_uses(
    snapshot: Snapshot,
    idle: Iterable[Judged],
    bins: Bins,
    headroom: Collection[str],
    above: Mapping[str, int],
    ready: Ready,
) -> dict[str, IdleUse]:
    """By node. `idle`: in the turn in which they would go; `above`: how many more each pool can do
    without. So many of a pool wait, whichever of them go in the end; the others are kept.
    """
    left, taken = Counter(above), {b.name for b in bins.all if b.jobs or b.gated_for}
    found: dict[str, IdleUse] = {}
    for each in idle:
        name, pool = each.member.instance_id, snapshot.cluster.pool(each.member.pool)
        is_going = each.order is OrderKind.UNDRAIN or each.member.was_told(
            OrderKind.RELEASE, snapshot.now_s
        )
        if pool is None or is_going or name in taken:
            found[name] = IdleUse.WAITING
        elif (
            name in headroom
            or left[pool.name] <= 0
            or each.member.offering.market.is_kept_idle
            or kept_because(each.member, pool, snapshot.head_now_s)
            or ready.keeps(each.member)
            or waits_for_check(snapshot, each.member)
            or asked_on(snapshot, each.member)
        ):
            found[name] = IdleUse.KEPT
        else:
            found[name] = IdleUse.WAITING
            left[pool.name] -= 1
            ready.let_go(each.member)
    return found
