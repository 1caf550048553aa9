"""Invariants of nodes that are let go of our own accord."""

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping
from math import inf

from tidegate.core.model.budgets import DisruptionReason, tightest
from tidegate.core.model.cluster import Limits, Pool
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.ec2 import TEMPLATE_TAG, FleetRequest, Instance
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Plan, Send
from tidegate.core.model.pool_history import BREAKER_S
from tidegate.core.model.slurm import SetBy
from tidegate.core.model.snapshot import Snapshot
from tidegate.service.control import Looked
from tidegate.sim.checks.ending import UNREACHABLE
from tidegate.sim.checks.orders import ids_of
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.kept import most_kept
from tidegate.sim.slurm_parts import SimJob, SimNode

# What a plan counted may be that old when its orders are carried out.
COUNTED_AGO_S = 600.0
# An order that a wrong clock takes for fresh, and a fleet that nobody sees.
EXCUSES = ("clock", "lag")
# A busy node is drained within a few looks after its time.
LEFT_SOON_S = 300.0
# While launches fail nothing is replaced for its age, and unhealthy nodes use up the budgets.
BOOTS_FAIL = ("boot", "death", "spot", "sick")
SHUT = frozenset({"DRAIN", "DOWN"})
REASONS = {
    DrainCode.EXPIRED: DisruptionReason.EXPIRED,
    DrainCode.DRIFTED: DisruptionReason.DRIFTED,
    DrainCode.EMPTY: DisruptionReason.EMPTY,
    DrainCode.UNHEALTHY: DisruptionReason.UNHEALTHY,
    DrainCode.CONSOLIDATABLE: DisruptionReason.CONSOLIDATABLE,
}


class BudgetsHold(Check):
    """No more nodes of a pool leave at once of our own accord than its budgets allow."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.going: defaultdict[str, dict[str, Order]] = defaultdict(dict)
        self.changes = -1  # of Slurm's table, when the nodes were counted
        self.totals = {pool.name: deque([(0.0, 0)]) for pool in self.world.cluster.pools}

    def passed(self, seconds: float) -> None:
        self._count()

    def ended(self, instance: Instance) -> None:
        self.changes = -1

    def _count(self) -> None:
        """Remember how many nodes each pool had: when a count changed, and to what. One that has
        left Slurm is a node of its pool until its instance ends, as it is one that leaves.
        """
        if self.world.slurm.table.changes == self.changes:
            return
        self.changes = self.world.slurm.table.changes
        self._forget_staying()
        counts = dict.fromkeys(self.totals, 0)
        everything, live = self.world.compute.everything, self.world.compute.is_live
        leaving = {name for going in self.going.values() for name in going if live(name)}
        for name in self.world.slurm.nodes.keys() | leaving:
            if name in everything:
                counts[everything[name].pool] += 1
        now_s = self.witness.now_s
        for pool, totals in self.totals.items():
            if totals[-1][1] != counts[pool]:
                totals.append((now_s, counts[pool]))

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        if verb not in ("drain", "delete") or not self.world.in_hand:
            return
        orders, _ = self.world.in_hand[-1]
        self._count()  # some may have joined in this very moment
        self._forget_staying()  # before: of these names none is drained yet
        for name in names:
            order = next((o for o in orders if name in o.names and _reason(o)), None)
            if verb == "delete" and order and _reason(order) is not DisruptionReason.UNHEALTHY:
                continue  # counted as it was drained
            instance = self.world.compute.everything.get(name)
            pool = self.world.cluster.pool(instance.pool) if instance else None
            if order and pool:
                self._hold(pool, name, order)

    def _hold(self, pool: Pool, name: str, order: Order) -> None:
        going = self.going[pool.name]
        if name in going:
            return  # it was let go before, and needs no further place
        going[name] = order
        if any(not self.witness.chaos.was_calm_since(1.0, excuse) for excuse in EXCUSES):
            return
        totals = self.totals[pool.name]
        while len(totals) > 1 and totals[1][0] < self.witness.now_s - COUNTED_AGO_S:
            totals.popleft()
        for its_name, its_order in going.items():
            # One that was carried out already, and decided later, knew of this one.
            if its_order is order or _is_decided_after(its_order, order):
                self._hold_one(pool, its_name, its_order)

    def _hold_one(self, pool: Pool, name: str, order: Order) -> None:
        """Those that were decided before it, and it, are no more than its budgets allow."""
        reason, going = _reason(order), self.going[pool.name]
        assert reason is not None
        total = max(count for _, count in self.totals[pool.name])
        leaving = sum(not _is_decided_after(other, order) for other in going.values())
        # A budget may count at certain hours only, and an order takes its time: one that was
        # decided later, when more might leave, may be carried out before this one.
        ttl_s, budgets = self.world.cluster.timings.order_ttl_s, pool.disruption.budgets
        until_s = sorted({order.not_after_s, *(each.not_after_s for each in going.values())})
        later_s = [at_s - ttl_s for at_s in until_s if at_s >= order.not_after_s]
        deciding = [tightest(budgets, reason, total, decided_s) for decided_s in later_s]
        if all(one is not None and leaving > one[0] for one in deciding) and deciding[0]:
            said = f"{deciding[0][1]} of {total}"
            raise self.broken(f"{name} is {reason}, {leaving} leave of pool {pool.name}: {said}")

    def _forget_staying(self) -> None:
        for going in self.going.values():
            for name in [name for name in going if not self._is_going(name)]:
                del going[name]

    def _is_going(self, name: str) -> bool:
        """Drained by us still, whatever Slurm has said since, or out of Slurm and not yet ended.
        One that is kept for a gang meanwhile stays.
        """
        node = self.world.slurm.nodes.get(name)
        if node is None:
            return self.world.compute.is_live(name)
        code = code_of(node.reason)
        is_ours = node.set_by is SetBy.US and code is not DrainCode.KEPT
        return node.is_drain and (is_ours or code in REASONS)


class OldNodesGo(Check):
    """A node goes for its age when it has reached it, not before, and for a new template once a
    node of that has joined; it takes no job long after.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        pools = self.world.cluster.pools
        self.expires = any(pool.disruption.expire_after_s is not None for pool in pools)
        self.left_s: dict[str, float] = {}
        self.promised: set[tuple[str, str]] = set()
        self.blind_s = float("-inf")  # when a planner last had no digest that it may act on
        self.templates_read: dict[int, Mapping[str, str]] = {}  # by each planner, as it began
        self.templates_of: dict[str, Mapping[str, str]] = {}  # those that an order was decided by
        self.joined_from: set[tuple[str, str]] = set()  # pools, and templates of nodes of them

    def joined(self, node: SimNode) -> None:
        """It counts as well when it was stopped since, and boots again."""
        if instance := self.world.compute.everything.get(node.name):
            self.joined_from.add((instance.pool, instance.template))

    def begun(self) -> None:
        self.templates_read[self.witness.depth] = self._newest()

    def sent(self, order: Order) -> None:
        """Another template may be deployed before the head carries it out."""
        if self.world.actors[-1:] == ["planner"]:
            read = self.templates_read.get(self.witness.depth)
            self.templates_of.setdefault(order.order_id, read or self._newest())

    def _newest(self) -> Mapping[str, str]:
        """The template that new nodes of each pool are to be made from."""
        templates = self.world.control.placement.templates
        return {name: template.digest for name, template in templates.items()}

    def looked(self, looked: Looked) -> None:
        """A job that is about to take an idle node comes first; a busy one is drained then."""
        for done in looked.rounds[-1:] if self.expires else ():
            if done.snapshot.staleness:
                self.blind_s = self.witness.now_s
            self.promised = {(one.job_id, name) for one in done.plan.served for name in one.by}
            for name in self._forgotten(done.snapshot, done.plan):
                age_s, most_s = self._ages(name)
                raise self.broken(f"a plan leaves {name}, {age_s:.0f} s old of {most_s} s")

    def _forgotten(self, snapshot: Snapshot, plan: Plan) -> Iterator[str]:
        """Open nodes that the plan finds too old, lets no job have, and gives no order about."""
        is_calm = self.witness.chaos.was_calm_since(1.0, *BOOTS_FAIL)
        if snapshot.staleness or not snapshot.wanted.is_up or not is_calm:
            return
        shown, since_s = snapshot.heard.reading.nodes, snapshot.now_s - BREAKER_S
        failed = [(each.pool, one) for each in snapshot.pool_history for one in each.failed]
        failing = {pool for pool, one in failed if one.launched_at_s > since_s}
        names = {node.name for node in shown}
        untold = {node.name for node in shown if not node.state.words & SHUT}
        untold -= {name for a in plan.actions if isinstance(a, Send) for name in a.order.names}
        untold -= {name for _, name in self.promised} | self.witness.chaos.touched
        for record in snapshot.nodes:
            name = record.instance_id
            age_s, most_s = self._ages(name)
            is_old = min(snapshot.now_s - record.launched_at_s, age_s) >= most_s
            is_old &= record.pool not in failing  # new nodes there are no good
            is_open = record.phase is Phase.JOINED and not (record.order or record.cordon)
            if is_old and is_open and name in untold and self._is_alone(name, names):
                yield name

    def ended(self, instance: Instance) -> None:
        self.left_s[instance.pool] = self.witness.now_s

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        if verb != "drain" or not self.world.in_hand:
            return
        orders, _ = self.world.in_hand[-1]
        for name in names:
            reasons = {_reason(each): each for each in orders if name in each.names}
            age_s, most_s = self._ages(name)
            if DisruptionReason.EXPIRED in reasons and age_s < most_s:
                raise self.broken(f"{name} expires after {age_s:.0f} s, its pool allows {most_s}")

            order = reasons.get(DisruptionReason.DRIFTED)
            if order and not self._is_proven(name, order):
                raise self.broken(
                    f"{name} goes before a node of its pool's new template has joined"
                )

    def _is_proven(self, name: str, order: Order) -> bool:
        """A node like those that came when it was decided has joined, or a limit or a reservation
        leaves no room for one.
        """
        everything, cluster = self.world.compute.everything, self.world.cluster
        pool = cluster.pool(everything[name].pool)
        if pool is None or (pool.limits, cluster.limits) != (Limits(), Limits()) or cluster.budgets:
            return True
        if name in self.world.compute.prepaid.held:
            return True
        newest = self.templates_of.get(order.order_id, self._newest())[pool.name]
        return (pool.name, newest) in self.joined_from

    def started(self, job: SimJob) -> None:
        since_s = self.witness.now_s - LEFT_SOON_S
        for name in job.node_names:
            if name in self.witness.chaos.touched:
                continue  # a person held it, and opens it at a time of their own
            age_s, most_s = self._ages(name)
            is_calm = self.witness.chaos.was_calm_since(since_s, *UNREACHABLE)
            is_calm &= self.witness.chaos.was_calm_since(1.0, *BOOTS_FAIL)
            is_calm &= self.blind_s < since_s
            is_calm &= self.promised.isdisjoint((each, name) for each in ids_of(job))
            is_calm &= not self._was_asked_for(name, since_s)
            if (
                age_s > most_s + LEFT_SOON_S
                and is_calm
                and self._is_alone(name, self.world.slurm.nodes)
            ):
                raise self.broken(
                    f"job {job.job_id} starts on {name}, which is {age_s:.0f} s old, {most_s} are "
                    "allowed"
                )

    def _was_asked_for(self, name: str, since_s: float) -> bool:
        """Until lately a job waited for this very node, which kept it."""
        jobs = self.world.slurm.jobs.values()
        asking = [job for job in jobs if name in job.submit.node_name.split(",")]
        return any(job.state == "PENDING" or job.ended_at_s > since_s for job in asking)

    def _ages(self, name: str) -> tuple[float, float]:
        """How old the node is, and how old its pool lets it become."""
        instance = self.world.compute.everything.get(name)
        pool = self.world.cluster.pool(instance.pool) if instance else None
        most_s = pool.disruption.expire_after_s if pool else None
        age_s = self.witness.now_s - instance.launched_at_s if instance else 0.0
        return age_s, float("inf") if most_s is None else most_s

    def _is_alone(self, name: str, shown: Collection[str]) -> bool:
        """No budget and no minimum has made it wait for another node of its pool lately. `shown`:
        those that Slurm has, of which budgets count the dead ones too.
        """
        everything = self.world.compute.everything
        left_s = self.left_s.get(everything[name].pool, 0.0)
        if self.witness.now_s - left_s <= LEFT_SOON_S:
            return False
        pool = self.world.cluster.pool(everything[name].pool)
        is_held = pool is None or most_kept(self.world, pool)
        lives = {one.instance_id for one in self.world.compute.live()}
        others = lives.union(shown) - {name}
        pools = {everything[other].pool for other in others & everything.keys()}
        return not is_held and everything[name].pool not in pools


class OneFirstNode(Check):
    """A node for no job is bought only as the first of a new template, one at a time."""

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        if record is None or record.launch.for_jobs or not self.witness.is_new(request):
            return
        pool = self.world.cluster.pool(record.launch.pool)
        if pool and most_kept(self.world, pool):
            return  # `NoDoubleBuy` counts them
        launch, digest = record.launch, dict(request.tags).get(TEMPLATE_TAG, "")
        if record.launch.count != 1 or digest == "one-1":
            raise self.broken(f"{launch.launch_id}: {launch.count} nodes of {digest} for no job")
        chaos = self.witness.chaos
        for one in self.world.compute.live():
            if one.instance_id in chaos.announced or one.instance_id in chaos.cordoned:
                continue
            age_s = record.created_at_s - one.launched_at_s
            is_booting = 0 < age_s < self.world.cluster.timings.given_up_s
            is_alike = (one.pool, one.template) == (launch.pool, digest)
            if is_alike and is_booting and one.instance_id not in self.witness.registered:
                raise self.broken(f"{launch.launch_id}: {one.instance_id} is a first node already")


def replaced(witness: Witness, pool: Pool) -> list[Instance]:
    """Nodes of the pool in whose place others may come: those that have had their time, also where
    they ended while one that was to come before was on its way, and those that Describe hides.
    """
    world, hidden = witness.world, witness.chaos.left_out
    now_s, most_s = world.clock.now_s(), pool.disruption.expire_after_s
    newest = world.control.placement.templates[pool.name].digest
    nodes = world.ledger.all_nodes.values()
    booting = {each.launch_id for each in nodes if each.phase is Phase.LAUNCHED}
    records = (world.ledger.all_launches[launch_id] for launch_id in booting)
    ours_s = (
        each.created_at_s
        for each in records
        if each.launch.pool == pool.name and not each.launch.for_jobs
    )
    since_s = min(ours_s, default=inf)
    ours = (one for one in world.compute.everything.values() if one.pool == pool.name)
    return [
        one
        for one in ours
        if one.template != newest
        or one.instance_id in hidden
        or (most_s is not None and now_s - one.launched_at_s >= most_s)
        if world.compute.ended_at_s.get(one.instance_id, inf) >= since_s
    ]


def _is_decided_after(other: Order, order: Order) -> bool:
    """By the same plan, which numbers its orders as it decides, or by a later one, which finds the
    first written down.

    Nodes are let go one after another, and each finds only those before it leaving: a head that
    hears of them in another order does nothing that the plans did not allow.
    """
    (lineage, *at), (others, *others_at) = _decided(order), _decided(other)
    return lineage == others and others_at > at


def _decided(order: Order) -> tuple[str, int, int]:
    """Its ledger, its epoch, and its number in the plan."""
    epoch, _, number = order.order_id.rpartition("-o")
    lineage, _, count = epoch.rpartition("-")
    return lineage, int(count), int(number)


def _reason(order: Order) -> DisruptionReason | None:
    if order.kind not in (OrderKind.DRAIN, OrderKind.RELEASE):
        return None
    code = code_of(order.text)
    return REASONS.get(code) if code else None
