"""What budgets leave over in one plan: how many more nodes each pool may lose now."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from tidegate.core.fleet.judge import Judged, Use
from tidegate.core.fleet.members import Member
from tidegate.core.model.budgets import DisruptionReason, tightest
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.snapshot import Snapshot

# Why nodes are let go that budgets are asked for first.
BUDGETED = frozenset(
    {
        *(DrainCode.EXPIRED, DrainCode.DRIFTED, DrainCode.EMPTY, DrainCode.UNHEALTHY),
        DrainCode.CONSOLIDATABLE,
    }
)

# The agent tries for ten seconds to release a node, and its digest tells of it soon after.
ORDER_LASTS_S = 30.0


class Allowance:
    """How many nodes budgets still let go, debited node by node.

    A node that is leaving counts, whatever it leaves for.

    Unhealthy nodes that Slurm has drained are of no use and count for every other reason; which
    of them may go is still undecided. So are those that are held back.
    """

    def __init__(self, snapshot: Snapshot, judged: Iterable[Judged]) -> None:
        self._snapshot = snapshot
        self._total: defaultdict[str, int] = defaultdict(int)
        self._leaving: defaultdict[str, set[str]] = defaultdict(set)
        self._undecided: set[str] = set()
        self._let_go: set[str] = set()
        for each in judged:
            goes = is_leaving(each, snapshot)
            if each.member.node is None and not goes:
                continue
            self._total[each.member.pool] += 1
            if goes:
                self._leaving[each.member.pool].add(each.member.instance_id)
                if _was_let_go(each.member):
                    self._let_go.add(each.member.instance_id)
                elif each.is_held_back or (each.disruption and not _is_told(each.member, snapshot)):
                    self._undecided.add(each.member.instance_id)

    def take(self, pool: str, name: str, reason: DisruptionReason) -> bool:
        """Let this node go, if every budget allows it; asking again changes nothing.

        One that leaves already, or may, takes no further place, but its reason now has to have one:
        an order to drain it for a gang is none to let it go.
        """
        if name not in self._let_go and self.held(pool, reason, besides=name):
            return False
        self._leaving[pool].add(name)
        self._undecided.discard(name)
        return True

    def take_all(
        self, nodes: Sequence[Member], reason: DisruptionReason
    ) -> Sequence[Member] | None:
        """Let all of these nodes go or none; those that take a place which they had not yet.

        None: not all may.
        """
        new = [each for each in nodes if each.instance_id not in self._leaving[each.pool]]
        if all(self.take(each.pool, each.instance_id, reason) for each in nodes):
            return new
        self.give_back(new)
        return None

    def give_back(self, nodes: Iterable[Member]) -> None:
        """The places of nodes that do not go after all."""
        for each in nodes:
            self._leaving[each.pool].discard(each.instance_id)

    def held(self, pool: str, reason: DisruptionReason, besides: str = "") -> str:
        """Why no more nodes of the pool may go for this reason now; "": one may.

        `besides`: this node is not counted.
        """
        found = self._snapshot.cluster.pool(pool)
        if found is None:
            return ""
        others = self._leaving[pool] - {besides}
        if reason is DisruptionReason.UNHEALTHY:
            others -= self._undecided  # or each of two would wait for the other
        total, leaving = self._total[pool], len(others)
        budgets = found.disruption.budgets
        deciding = tightest(budgets, reason, total, self._snapshot.now_s)
        if deciding is None or leaving < deciding[0]:
            return ""
        allows, budget = deciding
        return (
            f"pool {pool}'s budget of {budget} for {reason} nodes lets {allows} of {total} leave "
            f"at once, {leaving} do"
        )


def is_leaving(judged: Judged, snapshot: Snapshot) -> bool:
    """It is on its way out, or an order that sends it there may still be carried out."""
    member = judged.member
    if member.node is not None and member.node.state.is_rebooting:
        return True
    if judged.use in (Use.CAPACITY, Use.GATED, Use.IN_FLIGHT):
        return _is_told(member, snapshot)
    if judged.disruption and not _is_told(member, snapshot):
        return member.node is not None and member.node.state.is_drain
    if member.node is not None:
        return True
    if member.instance is not None:
        return member.instance.is_alive
    # EC2 may not show yet what sickened as it joined, and ends by this plan.
    lag_s = snapshot.cluster.timings.describe_lag_s
    return member.was_released and not member.is_gone(snapshot.now_s, lag_s)


def _was_let_go(member: Member) -> bool:
    """Within the budgets, of which it needs no further place, though Slurm finds it DOWN now."""
    node = member.node
    return node is not None and node.state.is_drain and code_of(node.reason) in BUDGETED


def _is_told(member: Member, snapshot: Snapshot) -> bool:
    """An order whose answer is still to come, also after its time: it was in hand by then."""
    order = member.record.order if member.record else None
    if order is None or order.kind not in (OrderKind.DRAIN, OrderKind.RELEASE):
        return False
    seen_at_s = snapshot.now_s - snapshot.digest_age_s
    return member.result is None and seen_at_s <= order.not_after_s + ORDER_LASTS_S
