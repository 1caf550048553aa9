"""Invariants of what the agent does to Slurm: its orders, gangs, and what people want."""

from collections.abc import Iterable, Sequence, Set

from tidegate.core.buy.dealing import shares
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.ec2 import FleetRequest, Instance
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.slurm import SetBy
from tidegate.core.model.slurm_names import faults
from tidegate.service.control import Looked
from tidegate.sim.checks.witness import ORDERS_LAST_S, Check, Witness
from tidegate.sim.happenings import OPERATORS
from tidegate.sim.kept import is_block_ending
from tidegate.sim.slurm_parts import SimJob, SimNode
from tidegate.sim.slurm_rows import node_row
from tidegate.sim.slurm_table import SILENT_S

FIRST_EFFECT = {
    OrderKind.DRAIN: "drain",
    OrderKind.UNDRAIN: "undrain",
    OrderKind.RELEASE: "drain",
    OrderKind.REBOOT: "reboot",
    OrderKind.REQUEUE: "requeue",
    OrderKind.SIGNAL: "signal",
    OrderKind.DELETE: "down",
}

# What changes no node: Slurm starts a job that names a drained one only once that is open.
LEAVE_DRAINS = ("weigh", "check")


def ids_of(job: SimJob) -> tuple[str, str, str]:
    """By which orders and launches may name it."""
    return job.job_id, job.array_job_id, job.het_job_id


class OrdersGuarded(Check):
    """No order acts after its `not_after`, against its `only_if` or beside its good names."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.drains: dict[str, float] = {}

    def ordered(self, orders: Sequence[Order]) -> None:
        """The agent drains a node that joins later as long as the order lasts."""
        for order in orders:
            for fault in faults(order):
                raise self.broken(f"{order.kind} {order.order_id}: {fault}")
            if order.kind is OrderKind.DRAIN:
                for name in order.names:
                    self.drains[name] = max(order.not_after_s, self.drains.get(name, 0.0))

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        if not self.world.in_hand:
            self._without_order(verb, names)
            return
        orders, began_s = self.world.in_hand[-1]
        for name in names:
            parts = self._parts(name)
            named = parts | self._dying_nodes(parts, verb)
            named |= self._held_beside(name, orders) if verb == "drain" else set()
            mine = [order for order in orders if not named.isdisjoint(order.names)]
            if not mine:
                raise self.broken(f"{verb} of {name}, which no order names")
            whys = [self._why_not(order, name, verb, began_s) for order in mine]
            if all(whys):
                raise self.broken(f"{verb} by {mine[0].kind} {mine[0].order_id}: {whys[0]}")

    def _parts(self, name: str) -> set[str]:
        """The name itself, and with the first component of a heterogeneous job all of them."""
        jobs = self.world.slurm.jobs
        if name not in jobs or jobs[name].het_job_id != name:
            return {name}
        return {job_id for job_id, job in jobs.items() if job.het_job_id == name}

    def _dying_nodes(self, parts: set[str], verb: str) -> set[str]:
        """A heterogeneous job is requeued before a node of it is set DOWN by an order."""
        jobs = self.world.slurm.jobs
        together = [jobs[part] for part in parts if part in jobs and jobs[part].het_job_id]
        return {n for job in together for n in job.node_names} if verb == "requeue" else set()

    def _held_beside(self, name: str, orders: Sequence[Order]) -> set[str]:
        """What of these orders takes a node from a job that has this one as well, which is kept
        for the job's next run.
        """
        taking = [o for o in orders if o.kind in (OrderKind.REQUEUE, OrderKind.DELETE)]
        asked = {each for order in taking for each in order.names}
        jobs = self.world.slurm.table.active.values()
        gangs = {j.het_job_id or j.job_id for j in jobs if name in j.node_names}
        parts = [job for job in jobs if (job.het_job_id or job.job_id) in gangs]
        ids = {each for job in parts for each in (job.job_id, *job.node_names)}
        return ids & asked

    def _without_order(self, verb: str, names: tuple[str, ...]) -> None:
        """By itself the agent only starts jobs that were requeued, and drains late joiners."""
        jobs, now_s = self.world.slurm.jobs, self.world.head_clock.now_s()
        if verb == "drain" and all(now_s <= self.drains.get(name, 0.0) for name in names):
            return
        if verb != "start" or not all(jobs[name].requeues for name in names):
            raise self.broken(f"{verb} of {names} without an order")

    def _why_not(self, order: Order, name: str, verb: str, began_s: float) -> str:
        if began_s > order.not_after_s:
            return f"it acts on {name} {began_s - order.not_after_s:.0f} s after its time"
        if verb != FIRST_EFFECT.get(order.kind):
            return ""
        jobs = self.world.slurm.jobs
        job, node = jobs.get(name), self.world.slurm.nodes.get(name)
        # Slurm requeues the components of a heterogeneous job with its first one, waiting or not.
        states = {jobs[part].state for part in self._parts(name) if part in jobs}
        words = node_row(node).state.words if node else states
        if order.only_if and not words & set(order.only_if):
            return f"{name} is {'+'.join(sorted(words))}, not {' or '.join(order.only_if)}"
        used = {n for part in self._parts(name) if part in jobs for n in jobs[part].node_names}
        # Of a heterogeneous job Slurm may have started one component anew alone.
        runs = {jobs[part].requeues for part in self._parts(name) & {*order.names} if part in jobs}
        if job and order.restarts is not None and order.restarts not in (runs or {job.requeues}):
            return f"the run of job {name} that the order is about is over"
        if job and order.on_nodes and used.isdisjoint(order.on_nodes):
            return f"job {name} does not run on {', '.join(order.on_nodes)}"
        return ""


class PlannedNodesKept(Check):
    """A node that backfill has planned for is not deleted: slurmctld 22.05 crashes of it."""

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        for name in names if verb == "delete" else ():
            node = self.world.slurm.nodes.get(name)
            if node is not None and node.is_planned:
                raise self.broken(f"{name} is deleted while PLANNED")


class SuspendedNodesKept(Check):
    """A node that a suspended job has is not deleted: slurmctld 22.05 crashes of it."""

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        for name in names if verb == "delete" else ():
            node = self.world.slurm.nodes.get(name)
            for job in node.jobs.values() if node is not None else ():
                if job.state == "SUSPENDED":
                    raise self.broken(f"{name} is deleted, suspended job {job.job_id} has it")


class RequiredNodesKept(Check):
    """A node that lives and that a pending job insists on is not deleted: Slurm cancels the job."""

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        if verb != "delete":
            return
        nodes = self.world.slurm.nodes
        for job in self.world.slurm.table.active.values():
            wanted = job.submit.node_name.split(",") if job.state == "PENDING" else ()
            for name in nodes.keys() & set(names) & set(wanted):
                if not self.witness.is_machine_dead(nodes[name]):
                    raise self.broken(f"{name} is deleted, job {job.job_id} wants it")


class OperatorsKeepNodes(Check):
    """What a person has drained stays drained, for that person's reason."""

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        for name in names:
            node = self.world.slurm.nodes.get(name)
            if node is None or not node.is_drain or verb in LEAVE_DRAINS:
                continue
            if not _is_a_persons(node):
                continue
            if not self._goes(node):
                raise self.broken(f"{verb} of {name}, which a person has drained")

    def _goes(self, node: SimNode) -> bool:
        return node.name in self.witness.chaos.announced or self.witness.is_machine_dead(node)


class HoldsKept(Check):
    """What a person holds to look into it nobody touches before the hold is over, or AWS takes it,
    or its capacity block ends.
    """

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        chaos = self.witness.chaos
        for name in names:
            node = self.world.slurm.nodes.get(name)
            lasts = self.witness.now_s < chaos.held.get(name, 0.0)
            if not lasts or node is None or verb in LEAVE_DRAINS:
                continue
            is_held = node.is_drain and code_of(node.reason) is DrainCode.HELD
            is_taken = name in chaos.announced or not self.world.compute.is_live(name)
            is_taken |= is_block_ending(self.world, name)
            if is_held and not is_taken:
                raise self.broken(f"{verb} of {name}, which a person holds")


def _is_a_persons(node: SimNode) -> bool:
    """Slurm drains a node that somebody has opened again with the reason that it had."""
    return node.reason in OPERATORS and node.set_by is not SetBy.SLURM


class GangsWhole(Check):
    """A gang gets all its nodes in one place; they join closed, and no lesser job takes them
    meanwhile.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.promised: dict[str, str] = {}
        self.planned_s = 0.0  # when the look began whose plan counts
        self.told_commits = 0  # how many commits there were when a look last told its plan
        self.seen_s = 0.0  # when what that plan saw was written
        self.beside: dict[str, set[str]] = {}  # nodes that were opened with each for its gang
        self.opened_s: dict[str, float] = {}  # when that was written by which each was opened
        self.closing_s: dict[str, float] = {}  # until when an order to close each may come
        self.given_up: set[str] = set()
        self.dealt: dict[str, str] = {}

    def _gang_of(self, name: str) -> str:
        """Whom a node was bought for, also when its gate is open."""
        node = self.world.ledger.all_nodes.get(name)
        if node is not None and node.gated_for:
            self.dealt[name] = node.gated_for
        return self.dealt.get(name, "")

    def requested(self, request: FleetRequest) -> None:
        record = self.witness.record_of(request)
        if record is None or not record.launch.gated_for:
            return
        if request.min_count * len(shares(record.launch)) != request.count:
            raise self.broken(f"a gang's request takes {request.min_count} of {request.count}")
        zones = {each.zone for each in request.overrides}
        asking = set(record.launch.for_jobs)
        gang = next((j for j in self._jobs() if not asking.isdisjoint(ids_of(j)[:2])), None)
        is_part = gang is not None and request.min_count < gang.submit.nodes
        if is_part and len(zones) > 1 and self._is_recorded(asking):
            found = ", ".join(sorted(zones))
            raise self.broken(f"a part of gang {record.launch.gated_for} may come to {found}")

    def _is_recorded(self, asking: Set[str]) -> bool:
        """Where the rest of the gang stands is known: no planner died before it noted a node that
        EC2 does not show any more.
        """
        digest = self.witness.digests.get(self.witness.depth)
        jobs = digest.reading.jobs if digest else ()
        rest = (name for job in jobs if job.job_id in asking for name in job.node_names)
        view = self.witness.view()
        return {each.instance_id for each in view.nodes}.issuperset(rest) if view else True

    def _jobs(self) -> Iterable[SimJob]:
        return self.world.slurm.table.active.values()

    def launched(self, instance: Instance) -> None:
        launch = self.witness.launch_of(instance)
        if launch is None or not launch.gated_for:
            return
        mates = [m for m in self.world.compute.live() if m.launch_id == instance.launch_id]
        zones = sorted({mate.offering.zone for mate in mates})
        if len(zones) > 1:
            raise self.broken(f"the gang {launch.gated_for} is spread over {', '.join(zones)}")

    def joined(self, node: SimNode) -> None:
        """An open one would be anybody's until the head hears of it."""
        instance = self.world.compute.everything.get(node.name)
        launch = self.witness.launch_of(instance) if instance else None
        self._gang_of(node.name)
        if launch and launch.gated_for and not node.is_drain:
            raise self.broken(f"{node.name} joins open, it is meant for gang {launch.gated_for}")

    def looked(self, looked: Looked) -> None:
        for name in self.world.ledger.all_nodes:
            self._gang_of(name)
        for done in looked.rounds:
            # By neither anybody acts: it was overtaken, or it ended after a plan that is newer.
            if done.outcome.is_stale or done.snapshot.now_s < self.planned_s:
                continue
            self.planned_s = done.snapshot.now_s
            # A small job may have what a gang leaves of a node: whose nodes are several comes last.
            served = sorted(done.plan.served, key=lambda one: len(set(one.by)) > 1)
            self.promised = {name: one.job_id for one in served for name in one.by}
            self.seen_s = done.snapshot.now_s - done.snapshot.digest_age_s
        if not looked.trouble:
            self.told_commits = self.witness.commits

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        """A gate that opens before its gang is complete gives the node away."""
        if verb == "undrain":
            self.given_up = (self.given_up - set(names)) | {n for n in names if self._is_freed(n)}
            for name in names:
                gang = self.promised.get(name)
                kept = {each for each, its in self.promised.items() if gang and its == gang}
                self.beside[name] = kept | set(names)
                self.opened_s[name] = self.seen_s
                self.closing_s.pop(name, None)

    def _is_freed(self, name: str) -> bool:
        """By an order that opens it for no gang. The text of one that opens a kept node is the
        reason that it was kept with.
        """
        orders = self.world.in_hand[-1][0] if self.world.in_hand else ()
        if any(code_of(each.text) is DrainCode.FREED for each in orders):
            return True
        record = self.world.ledger.all_nodes.get(name)
        if record is None or record.order is None or record.order.opens_for:
            return False
        return record.order.order_id in {each.order_id for each in orders}

    def sent(self, order: Order) -> None:
        if order.kind is OrderKind.DRAIN:
            self.closing_s.update(dict.fromkeys(order.names, order.not_after_s))

    def _opened_with(self, name: str) -> set[str]:
        """Whom the gang may have lost since this node was opened, and an order to close it again is
        on its way.
        """
        is_sent = self.witness.now_s <= self.closing_s.get(name, 0.0)
        return self.beside.get(name, set()) if is_sent else set()

    def started(self, job: SimJob) -> None:
        for name in job.node_names:
            gang = self._gang_of(name)
            is_others = gang and gang not in ids_of(job)
            if is_others and name not in self.given_up | self.witness.chaos.touched:
                self._is_fair(job, name, gang)

    def _is_fair(self, job: SimJob, name: str, gang: str) -> None:
        """A node that a plan has given up for its gang is free for all."""
        table = self.world.slurm.table
        owner = next((j for j in self._jobs() if gang in ids_of(j)), None)
        if owner is None or owner.state != "PENDING" or self.promised.get(name) != gang:
            return
        if self.witness.commits > self.told_commits:
            return  # of a plan whose look stands still, has failed or died nobody hears
        if owner.het_job_id:  # only backfill starts it: the main scheduler goes past it
            return
        is_ready = owner.eligible_at_s <= self.witness.now_s and not owner.submit.is_held
        is_greater = owner.submit.priority > job.submit.priority
        if not is_ready or not is_greater or table.is_throttled(owner) or table.over_cap(owner):
            return
        # Orders that a wrong clock takes for expired open nothing, and close nothing.
        if not self.witness.chaos.was_calm_since(self.witness.now_s - ORDERS_LAST_S, "clock"):
            return
        mates = {name for name in self.world.compute.everything if self._gang_of(name) == gang}
        promised = {n for n, job_id in self.promised.items() if job_id in ids_of(owner)}
        kept = (promised | self._opened_with(name)) - mates - {name}
        gone = any(map(self._goes, mates | promised | self._opened_with(name)))
        gone |= any(self._died_unseen(each, name) for each in mates | kept)
        is_broken_up = gone or any(map(self._is_held, mates | kept))
        is_broken_up |= any(self._is_dealt_anew(each, owner) for each in self._opened_with(name))
        # A more important job that has taken one of them leaves the gang waiting for another.
        taken = any(self._takers(mate) - {job.job_id} for mate in mates)
        if not (is_broken_up or taken or any(self._is_taken(name, owner) for name in kept)):
            raise self.broken(f"job {job.job_id} starts on {name}, which waits for gang {gang}")

    def _died_unseen(self, mate: str, name: str) -> bool:
        """Its slurmd has died, which slurmctld had not seen as the one beside it was opened."""
        node = self.world.slurm.nodes.get(mate)
        if node is None or node.died_at_s is None or name not in self.opened_s:
            return False
        return node.died_at_s + SILENT_S > self.opened_s[name]

    def _is_dealt_anew(self, name: str, owner: SimJob) -> bool:
        """The newest plan gives the node to a job that is no less important and has lost one of its
        own; the order that closes those opened with it may come after Slurm has looked at them.
        """
        job_id = self.promised.get(name)
        its = next((job for job in self._jobs() if job_id in ids_of(job)), None)
        if its is None or its is owner:
            return False
        return its.submit.priority >= owner.submit.priority

    def _takers(self, name: str) -> set[str]:
        node = self.world.slurm.nodes.get(name)
        return set(node.jobs) if node else set()

    def _is_held(self, name: str) -> bool:
        """By a person or by software, who have drained it."""
        return name in self.witness.chaos.touched or name in self.witness.chaos.sickened

    def _is_taken(self, name: str, owner: SimJob) -> bool:
        """An open node that was kept for a gang has a job that Slurm may start before it, or one
        that came after the plan had seen the node idle.
        """
        jobs = [self.world.slurm.jobs[job_id] for job_id in self._takers(name)]
        return any(
            job.submit.priority >= owner.submit.priority or job.started_at_s > self.seen_s
            for job in jobs
        )

    def _goes(self, name: str) -> bool:
        is_gone = not self.world.compute.is_live(name)
        chaos = self.witness.chaos
        return is_gone or name in chaos.announced or name in chaos.cordoned
