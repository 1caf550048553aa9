"""The planner: one pure function from what was seen to what should be done.

The passes run in a written order: finish what is in doubt, judge every node, serve the queue
(existing nodes, then nodes in flight, then new ones), open complete gangs, release the idle.
"""

from collections.abc import Sequence

from tidegate.core.actions import (
    Action,
    Launch,
    LaunchRecord,
    LaunchStatus,
    Order,
    OrderKind,
    PendingOrder,
    Phase,
    Plan,
    Resume,
    Send,
    Served,
    Terminate,
    Unmet,
)
from tidegate.core.buy import Shop
from tidegate.core.demand import Need, demand
from tidegate.core.interruption import Notice, saves
from tidegate.core.limits import Usage
from tidegate.core.members import Member, members
from tidegate.core.pack import Bin, BinKind, Bins, bin_of_node, bin_of_type, gang_members
from tidegate.core.reconcile import Judged, Use, judge, merged, to_reopen
from tidegate.core.snapshot import Snapshot


def plan(snapshot: Snapshot) -> Plan:
    """What to do about `snapshot`, and one verdict for every pending job.

    The same snapshot, in any order of its parts, gives the same plan.
    """
    return _Planning(snapshot).plan()


class _Planning:
    """The working state of one call of `plan`; nothing of it outlives the call."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._usage = Usage(snapshot.cluster)
        self._bins = Bins()
        self._actions: list[Action] = []
        self._served: dict[str, Served] = {}
        self._unmet: dict[str, Unmet] = {}
        self._gangs: dict[str, int] = {}
        self._orders = 0
        self._shop = Shop(snapshot, self._usage)

    def plan(self) -> Plan:
        snapshot = self._snapshot
        self._resume()
        stale = snapshot.staleness
        if stale:
            self._end_released()
            return Plan(self._sorted_actions(), (), (), (stale,))
        assert snapshot.digest is not None
        judged = self._judge_all()
        self._serve(judged)
        self._open_gangs()
        self._release_idle(judged)
        self._actions.extend(self._shop.launches(str(snapshot.epoch)))
        served = tuple(self._served[key] for key in sorted(self._served))
        unmet = tuple(self._unmet[key] for key in sorted(self._unmet))
        return Plan(self._sorted_actions(), served, unmet, is_cut=self._shop.is_cut)

    def _resume(self) -> None:
        """Pick up launches whose planner died; until then their nodes count as in flight."""
        wanted, timings = self._snapshot.wanted, self._snapshot.cluster.timings
        lease_s = timings.apply_lease_s
        if not wanted.is_up:  # nothing is asked of EC2 again, so all of it must show by then
            lease_s = max(lease_s, timings.describe_lag_s)
        for record in self._in_doubt():
            launch = record.launch
            pool = self._snapshot.cluster.pool(launch.pool)
            instance_type = self._snapshot.cluster.instance_type(launch.offerings[0].instance_type)
            self._usage.debit(
                launch.pool,
                nodes=launch.count,
                gpus_each=max(self._gpus(each.instance_type) for each in launch.offerings),
                usd_per_hour_each=launch.usd_per_hour_each,
            )
            if pool and instance_type and wanted.is_up:
                self._bins.add(
                    bin_of_type(
                        f"{launch.launch_id}.{number}",
                        BinKind.IN_FLIGHT,
                        pool,
                        launch.offerings[0],
                        of=instance_type,
                        gated_for=launch.gated_for,
                    )
                    for number in range(launch.count)
                )
            age_s = self._snapshot.now_s - record.created_at_s
            if age_s >= lease_s:
                reason = f"recorded {age_s:.0f} s ago and never finished: its planner died"
                self._actions.append(Resume(launch.launch_id, reason, may_buy=wanted.is_up))

    def _in_doubt(self) -> list[LaunchRecord]:
        open_records = (r for r in self._snapshot.launches if r.status is LaunchStatus.RECORDED)
        return sorted(open_records, key=lambda r: r.launch.launch_id)

    def _end_released(self) -> None:
        """Nodes that Slurm has already let go may end even while the head is silent."""
        released = [
            member.instance_id
            for member in members(self._snapshot)
            if member.record is not None
            and member.record.phase is Phase.RELEASED
            and member.instance is not None
            and member.instance.is_alive
        ]
        if released:
            self._actions.append(Terminate(tuple(released), "released by Slurm"))

    def _judge_all(self) -> list[Judged]:
        in_doubt = frozenset(r.launch.launch_id for r in self._in_doubt())
        judged = [judge(member, self._snapshot, in_doubt) for member in members(self._snapshot)]
        for each in judged:
            self._debit(each.member, in_doubt)
            self._add_bin(each)
        self._actions.extend(merged(action for each in judged for action in each.actions))
        self._save_jobs(judged)
        self._requeue_lost(judged)
        self._order_out(judged)
        self._reopen(judged)
        return judged

    def _debit(self, member: Member, in_doubt: frozenset[str]) -> None:
        """What EC2 may still bill counts against the limits until it is seen to have ended."""
        snapshot = self._snapshot
        is_counted = member.instance is not None and member.instance.launch_id in in_doubt
        is_gone = member.is_gone(snapshot.now_s, snapshot.cluster.timings.describe_lag_s)
        # One Describe may leave out a node that lives: Slurm's word counts as well.
        node = member.node
        is_seen = member.instance is None and node is not None and not node.state.is_down
        if (is_gone and not is_seen) or (member.record is None and is_counted):
            return
        record = member.record
        usd = record.usd_per_hour if record else snapshot.cluster.prices.get(member.offering, 0.0)
        self._usage.debit(
            member.pool,
            nodes=1,
            gpus_each=self._gpus(member.offering.instance_type),
            usd_per_hour_each=usd,
        )

    def _gpus(self, instance_type: str) -> int:
        found = self._snapshot.cluster.instance_type(instance_type)
        return found.gpus if found else 0

    def _add_bin(self, judged: Judged) -> None:
        member = judged.member
        pool = self._snapshot.cluster.pool(member.pool)
        if pool is None:
            return
        if judged.use in (Use.CAPACITY, Use.GATED) and member.node is not None:
            gated_for = member.gated_for if judged.use is Use.GATED else ""
            self._bins.add([bin_of_node(member.node, pool, member.offering, gated_for)])
        elif judged.use is Use.IN_FLIGHT and self._snapshot.wanted.is_up:
            instance_type = self._snapshot.cluster.instance_type(member.offering.instance_type)
            if instance_type:
                booting = bin_of_type(
                    member.instance_id,
                    BinKind.IN_FLIGHT,
                    pool,
                    member.offering,
                    of=instance_type,
                    gated_for=member.gated_for,
                )
                self._bins.add([booting])

    def _save_jobs(self, judged: Sequence[Judged]) -> None:
        """Signal and requeue what runs on nodes that EC2 will reclaim, also what came late."""
        snapshot = self._snapshot
        assert snapshot.digest is not None
        notices = tuple(
            Notice(record.instance_id, record.reclaim_at_s)
            for record in (j.member.record for j in judged if j.use is Use.LOST)
            if record and record.reclaim_at_s and record.reclaim_at_s > snapshot.now_s
        )
        reading, timings = snapshot.digest.reading, snapshot.cluster.timings
        for order in saves(notices, reading, snapshot.now_s, timings):
            self._actions.append(Send(order, "EC2 reclaims its node"))

    def _requeue_lost(self, judged: Sequence[Judged]) -> None:
        """Jobs on nodes that are gone for good run again elsewhere without waiting for Slurm."""
        gone = {
            j.member.instance_id
            for j in judged
            if j.use is Use.LOST and j.member.is_gone(self._snapshot.now_s, 0.0)
        }
        assert self._snapshot.digest is not None
        for job in sorted(self._snapshot.digest.reading.jobs, key=lambda j: j.job_id):
            on = tuple(sorted(gone.intersection(job.node_names)))
            if job.is_running and job.is_requeueable and on:
                reason = f"job {job.job_id} ran on {', '.join(on)}, which is gone"
                self._send(
                    OrderKind.REQUEUE, (job.job_id,), reason, only_if=("RUNNING",), on_nodes=on
                )

    def _order_out(self, judged: Sequence[Judged]) -> None:
        """Release nodes of no use on which nothing runs; start no new job on the others."""
        now_s = self._snapshot.now_s
        by_reason: dict[str, list[str]] = {}
        for each in judged:
            node = each.member.node
            if node is None or each.order in (None, OrderKind.UNDRAIN):
                continue
            if each.order is OrderKind.RELEASE and not node.state.is_busy:
                if not each.member.was_told(OrderKind.RELEASE, now_s):
                    by_reason.setdefault(each.reason, []).append(node.name)
            elif not node.state.is_drain and not each.member.has_order(OrderKind.DRAIN, now_s):
                self._send(OrderKind.DRAIN, (node.name,), f"tidegate: {each.reason}")
        for reason, names in sorted(by_reason.items()):
            self._send(OrderKind.RELEASE, tuple(sorted(names)), f"tidegate: {reason}")

    def _reopen(self, judged: Sequence[Judged]) -> None:
        """Undrain what was drained for the night; the guard is the reason it was drained with."""
        for reason, names in sorted(to_reopen(judged, self._snapshot.now_s).items()):
            self._send(OrderKind.UNDRAIN, tuple(sorted(names)), reason, only_if=("DRAIN",))

    def _serve(self, judged: Sequence[Judged]) -> None:
        """Give every pending job, in Slurm's order, a place or a reason."""
        snapshot = self._snapshot
        assert snapshot.digest is not None
        lost = frozenset(j.member.instance_id for j in judged if j.use is Use.LOST)
        needs, unmet = demand(snapshot.digest.reading, snapshot.cluster, lost)
        self._unmet.update({each.job_id: each for each in unmet})
        for need in needs:
            for _ in range(need.count):
                if not (self._serve_gang(need) if need.is_gang else self._serve_one(need)):
                    break

    def _serve_one(self, need: Need) -> bool:
        found = self._bins.best(need)
        if found is None:
            bought = self._shop.buy(need, 1)
            if not bought.bins:
                return self._refuse(need, bought.reason)
            self._bins.add(bought.bins)
            found = bought.bins[0]
        self._bins.put(need, found)
        self._note_served(need, (found,))
        return True

    def _serve_gang(self, need: Need) -> bool:
        """All nodes of a gang, or none of the missing ones."""
        self._gangs[need.job_id] = need.nodes + len(need.beside)
        within = self._place(need.beside)
        found = gang_members(self._bins.roomy(need), need, within)
        missing = need.nodes - len(found)
        if missing:
            within = (found[0].pool, found[0].offering.zone) if found else within
            bought = self._shop.buy(need, missing, within=within)
            if not bought.bins and within:
                found, bought = [], self._shop.buy(need, need.nodes + len(need.beside))
            if not bought.bins:
                return self._refuse(need, bought.reason)
            self._bins.add(bought.bins)
            found = [*found, *bought.bins]
        for each in found:
            self._bins.put(need, each)
        self._note_served(need, found)
        return True

    def _place(self, names: Sequence[str]) -> tuple[str, str] | None:
        """Pool and zone of the first of these nodes; None when none is known."""
        wanted = set(names)
        for each in self._bins.all if wanted else ():
            if each.name in wanted:
                return each.pool, each.offering.zone
        return None

    def _refuse(self, need: Need, reason: str) -> bool:
        if need.job_id in self._served:
            reason = f"the rest of its tasks wait: {reason}"
            self._served[need.job_id] = Served(
                need.job_id,
                self._served[need.job_id].by,
                f"{self._served[need.job_id].reason}; {reason}",
            )
        else:
            self._unmet[need.job_id] = Unmet(need.job_id, reason)
        return False

    def _note_served(self, need: Need, bins: Sequence[Bin]) -> None:
        before = self._served.get(need.job_id)
        by = (*(before.by if before else ()), *(b.name for b in bins))
        kinds = {b.kind for b in bins}
        if kinds == {BinKind.EXISTING}:
            reason = "nodes that fit are up: Slurm will start it"
        elif BinKind.NEW in kinds:
            reason = "nodes are being bought for it"
        else:
            reason = "nodes are booting for it"
        self._served[need.job_id] = Served(need.job_id, by, before.reason if before else reason)

    def _open_gangs(self) -> None:
        """Undrain the members of each complete gang in one command; free those of gone gangs."""
        gated: dict[str, list[Bin]] = {}
        for each in self._bins.all:
            if each.gated_for and each.kind is BinKind.EXISTING:
                gated.setdefault(each.gated_for, []).append(each)
        records = {record.instance_id: record for record in self._snapshot.nodes}
        for job_id, bins in sorted(gated.items()):
            names, reason = self._to_open(job_id, bins)
            orders = [records[name].order for name in names]
            if any(o and o.kind is OrderKind.UNDRAIN and self._is_open(o) for o in orders):
                continue
            if names:
                self._send(OrderKind.UNDRAIN, names, reason, only_if=("DRAIN",))

    def _to_open(self, job_id: str, gated: Sequence[Bin]) -> tuple[tuple[str, ...], str]:
        """Which of a gang's gated nodes open now, and why; an array of gangs opens one by one."""
        names = sorted(b.name for b in gated)
        nodes = self._gangs.get(job_id, 0)
        there = [b for b in self._bins.all if job_id in b.jobs and b.kind is BinKind.EXISTING]
        if not nodes or not any(job_id in b.jobs for b in self._bins.all):
            return tuple(names), f"job {job_id} no longer waits for this node"
        num_open = sum(not b.gated_for for b in there)
        num_opening = max(len(there) // nodes * nodes - num_open, 0)
        return tuple(names[:num_opening]), f"all {nodes} nodes of job {job_id} are there"

    def _is_open(self, order: PendingOrder) -> bool:
        """Neither answered in the digest nor expired."""
        assert self._snapshot.digest is not None
        answered = any(r.order_id == order.order_id for r in self._snapshot.digest.results)
        return not answered and self._snapshot.now_s <= order.not_after_s

    def _release_idle(self, judged: Sequence[Judged]) -> None:
        """Let go of nodes that no pending job will use and that idled for their pool's time."""
        unused = {b.name for b in self._bins.all if not b.jobs and not b.gated_for}
        by_reason: dict[str, list[str]] = {}
        assert self._snapshot.digest is not None
        for each in judged:
            node, pool = each.member.node, self._snapshot.cluster.pool(each.member.pool)
            if each.use is not Use.CAPACITY or node is None or not node.state.is_idle:
                continue
            if each.order is OrderKind.UNDRAIN:
                continue
            if each.member.was_told(OrderKind.RELEASE, self._snapshot.now_s):
                continue
            since_s = max(node.last_busy_at_s, each.member.launched_at_s)
            idle_s = self._snapshot.digest.written_at_s - since_s
            if pool is None:
                reason = f"its pool {each.member.pool} is not in the cluster file any more"
                by_reason.setdefault(reason, []).append(node.name)
            elif node.name in unused and idle_s >= pool.idle_s:
                reason = f"idle for {pool.idle_s:.0f} s and no pending job needs it"
                by_reason.setdefault(reason, []).append(node.name)
        for reason, names in sorted(by_reason.items()):
            self._send(
                OrderKind.RELEASE, tuple(sorted(names)), f"tidegate: {reason}", only_if=("IDLE",)
            )

    def _send(
        self,
        kind: OrderKind,
        names: tuple[str, ...],
        text: str,
        *,
        only_if: tuple[str, ...] = (),
        on_nodes: tuple[str, ...] = (),
    ) -> None:
        order = Order(
            order_id=f"{self._snapshot.epoch}-o{self._orders}",
            kind=kind,
            names=names,
            not_after_s=self._snapshot.now_s + self._snapshot.cluster.timings.order_ttl_s,
            only_if=only_if,
            text=text,
            on_nodes=on_nodes,
        )
        self._orders += 1
        self._actions.append(Send(order, text.removeprefix("tidegate: ")))

    def _sorted_actions(self) -> tuple[Action, ...]:
        """What saves money or jobs waits for nothing: orders, then ends, then purchases."""
        rank = {Send: 0, Terminate: 1, Resume: 2, Launch: 3}
        return tuple(sorted(self._actions, key=lambda action: rank.get(type(action), 4)))
