"""Invariants of how nodes and jobs come to their end."""

from collections.abc import Iterator

from tidegate.core.fleet.resume import is_failed
from tidegate.core.model.budgets import DEFAULT_BUDGETS
from tidegate.core.model.cluster import Pool
from tidegate.core.model.digest import Digest
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.ec2 import Instance
from tidegate.core.model.slurm import SetBy
from tidegate.service.control import Looked
from tidegate.sim.checks.idle_gpus import may_be_requeued
from tidegate.sim.checks.moves import is_moving, may_be_moved
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.kept import is_block_ending, most_free, most_kept
from tidegate.sim.slurm_parts import SimJob, SimNode
from tidegate.sim.slurm_rows import node_row

RECONCILE_S = 300.0
# Two heartbeats of an empty cluster, orders that expire and are sent again, and bad luck.
PATIENCE_S = 1200.0
BAD_LUCK_S = 900.0
TIME_TO_DRAIN_S = 30.0
# Whatever of these came in between, the head could not always be reached, or dropped orders.
UNREACHABLE = ("clock", "head", "slurm", "orders", "kill", "throttle", "lost", "looks")


class NoStrayInstances(Check):
    """No instance runs for longer than its boot bound and one reconcile without being a node, nor
    is one left that EC2 has stopped as it announced. It may run twice as long where every planner
    failed or died since it was to be given up.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.stray_s: dict[str, float] = {}
        # In rounds that did their work when it was too late already: of which no record was known,
        # and which were judged, by a record or since they had been seen without one before.
        self.seen: set[str] = set()
        self.judged: set[str] = set()
        self.bound_s = self.world.cluster.timings.given_up_s + RECONCILE_S + BAD_LUCK_S

    def looked(self, looked: Looked) -> None:
        least_s = self.world.cluster.timings.given_up_s + RECONCILE_S
        late = {name for name, for_s in self.stray_s.items() if for_s > least_s}
        for done in looked.rounds if late else ():
            if done.outcome.is_stale:
                continue
            snapshot = done.snapshot
            # What a launch in doubt has brought is first written down.
            doubted = snapshot.doubted
            shown = {e.instance_id for e in snapshot.instances if e.launch_id not in doubted}
            recorded = {each.instance_id for each in snapshot.nodes}
            self.judged |= late & (recorded | (shown & self.seen))
            self.seen |= late & shown

    def passed(self, seconds: float) -> None:
        if not self.witness.is_head_well:
            return
        nodes = self.world.slurm.nodes
        for one in self.world.compute.live():
            name = one.instance_id
            if name in nodes:
                self.stray_s.pop(name, None)
                continue
            self.stray_s[name] = self.stray_s.get(name, 0.0) + seconds
            bound_s = self.bound_s * (1 if name in self.judged else 2)
            if self.stray_s[name] > bound_s:
                raise self.broken(f"{name} has run for {self.stray_s[name]:.0f} s without a node")
        for name, at_s in self.world.compute.stopped.items():
            stopped_s = self.witness.now_s - at_s
            if stopped_s > self.bound_s and self._was_told(name, at_s):
                raise self.broken(f"{name} was stopped {stopped_s:.0f} s ago and its disk costs")

    def _was_told(self, name: str, stopped_at_s: float) -> bool:
        """AWS had told its end before, for this time. News that come after it find no node."""
        hinted_s = self.witness.hinted.get(name)
        ends_at_s = self.witness.announced.get(name)
        is_known = hinted_s is not None and hinted_s <= stopped_at_s
        return is_known and ends_at_s is not None and ends_at_s <= stopped_at_s

    def ended(self, instance: Instance) -> None:
        self.stray_s.pop(instance.instance_id, None)
        self.judged.discard(instance.instance_id)
        self.seen.discard(instance.instance_id)


class IdleNodesGo(Check):
    """With no job waiting, an idle node goes after its pool's idle time and one reconcile."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.idle_s: dict[str, float] = {}

    def passed(self, seconds: float) -> None:
        if not self.witness.is_head_well:
            return
        slurm = self.world.slurm
        if any(job.state == "PENDING" for job in slurm.table.active.values()):
            self.idle_s.clear()
            return
        kept = self._kept()
        prepaid = self.world.compute.prepaid.held
        reserved = {name for each in slurm.table.reservations for name in each.nodes}
        for name, node in slurm.nodes.items():
            if (
                name in kept
                or name in prepaid
                or name in reserved
                or node.jobs
                or self._is_behind(name)
                or (node.is_drain and node.reason and node.set_by is not SetBy.US)
            ):
                self.idle_s.pop(name, None)
                continue
            self.idle_s[name] = self.idle_s.get(name, 0.0) + seconds
            if self.idle_s[name] > self._bound_s(name):
                raise self.broken(f"{name} has idled for {self.idle_s[name]:.0f} s")

    def _bound_s(self, name: str) -> float:
        pool = self._pool(name)
        return (pool.idle_s if pool else 0.0) + RECONCILE_S + PATIENCE_S

    def ended(self, instance: Instance) -> None:
        """Under a budget the nodes of a pool may go one by one, each at a look of its own."""
        pool = self._pool(instance.instance_id)
        if pool and pool.disruption.budgets != DEFAULT_BUDGETS:
            self.idle_s.update((n, 0.0) for n in self.idle_s if self._pool(n) is pool)

    def _pool(self, name: str) -> Pool | None:
        instance = self.world.compute.everything.get(name)
        return self.world.cluster.pool(instance.pool) if instance else None

    def _is_behind(self, name: str) -> bool:
        """A budget lets it go only after one that leaves when its job has ended."""
        pool, this = self._pool(name), self.world.slurm.nodes[name]
        is_free = pool is not None and pool.disruption.budgets == DEFAULT_BUDGETS
        if pool is None or (is_free and not (this.is_down or this.is_drain)):
            return False  # the usual budgets do not count empty ones
        nodes = self.world.slurm.nodes.items()
        return any(self._pool(n) is pool and node.is_drain and node.jobs for n, node in nodes)

    def _kept(self) -> set[str]:
        """The nodes of pools that keep some, where no more than those are there beside what is paid
        for in advance, which may be of no use for it, and those without a job, where no more than a
        pool's headroom and spare nodes have none. One that leaves is none of them, nor one that is
        DOWN; one that is closed to small jobs is room for large ones.
        """
        nodes = self.world.slurm.nodes
        found: set[str] = set()
        prepaid = self.world.compute.prepaid.held
        for pool in self.world.cluster.pools:
            if most := most_kept(self.world, pool):
                here = [n for n in nodes if self._pool(n) is pool and n not in prepaid]
                here = [n for n in here if not (nodes[n].is_down or _leaves(nodes[n]))]
                found.update(here if len(here) <= most else ())
                free = [name for name in here if not nodes[name].jobs]
                found.update(free if len(free) <= most_free(self.world, pool) else ())
        return found


def _leaves(node: SimNode) -> bool:
    return node.is_drain and code_of(node.reason) is not DrainCode.CLOSED


class NoJobKilled(Check):
    """Nothing that lives and runs a job is terminated, nor set DOWN unless a stop ends all."""

    def terminating(self, instance_ids: tuple[str, ...]) -> None:
        for name, job in _running_on(self.world.slurm.nodes, instance_ids):
            if not self.witness.is_machine_dead(self.world.slurm.nodes[name]):
                raise self.broken(f"{name} is terminated, job {job.job_id} runs on it")

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        if verb != "down" or any(stop.ends_all for stop in self.witness.lately_ended_jobs()):
            return
        for name, job in _running_on(self.world.slurm.nodes, names):
            if not self.witness.is_machine_dead(self.world.slurm.nodes[name]):
                raise self.broken(f"{name} is set DOWN, job {job.job_id} runs on it")


class NoJobFailed(Check):
    """No job fails by what is done to it: nobody starts it in the second in which its old run was
    told to end.
    """

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        if verb != "start":
            return
        for name in names:
            job = self.world.slurm.jobs[name]
            is_same = int(job.killed_at_s) == int(self.world.head_clock.now_s())
            if is_same and job.state == "PENDING":
                raise self.broken(f"job {name} is started, its old run ended in this second")


class LeftSlurmFirst(Check):
    """A node leaves Slurm, drained and deleted, before its instance is terminated.

    One that joins as its boot bound ends, after the planner looked, has no job yet.
    """

    def terminating(self, instance_ids: tuple[str, ...]) -> None:
        digest = self.witness.digests.get(self.witness.depth)
        known = {node.name for node in digest.reading.nodes} if digest else set()
        for name in instance_ids:
            node = self.world.slurm.nodes.get(name)
            if node is not None and name not in known and not node.jobs:
                continue
            if node is not None and not self.witness.is_machine_dead(node):
                state = "drained" if node.is_drain else "open"
                raise self.broken(f"{name} is terminated, it is a node of Slurm still, {state}")


class RequeuedOnlyForAReason(Check):
    """A running job is signalled or requeued only when one of its nodes goes, if it may be, when a
    stopped cluster waits for it no longer, by the rule of idle GPUs, or when it goes to spot and
    has said that it may. Of who was told to save its work for that the requeue comes, whatever
    becomes of spot meanwhile.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.told: dict[str, int] = {}  # job -> which run of it was signalled to go to spot
        self.failed: set[str] = set()  # nodes that were, whatever a person has said of them since

    def read(self, digest: Digest) -> None:
        self.failed.update(each.name for each in digest.reading.nodes if is_failed(each))

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        if verb not in ("requeue", "signal"):
            return
        for job_id in names:
            job = self.world.slurm.jobs.get(job_id)
            if job is None or job.state != "RUNNING":
                continue
            if verb == "requeue" and not job.submit.is_requeueable:
                raise self.broken(f"job {job_id} may not be requeued")
            parts = self.world.slurm.table.active.values() if job.het_job_id else (job,)
            used = [n for p in parts if p.het_job_id == job.het_job_id for n in p.node_names]
            if may_be_requeued(self.witness, job_id):
                continue
            if any(self._goes(name) for name in used) or self._was_hit(job):
                continue
            if may_be_moved(job) and is_moving(job, self.world.slurm.table):
                self.told[job_id] = job.starts
                continue
            if verb == "requeue" and self.told.get(job_id) == job.starts:
                continue
            if not any(self.witness.lately_ended_jobs()):
                raise self.broken(f"{verb} of job {job_id}, whose nodes are all well")

    def _was_hit(self, job: SimJob) -> bool:
        """A GPU failed in this run, whatever a person has said of the node since."""
        return job.starts in self.witness.chaos.gpu_faults.get(job.job_id, {})

    def _goes(self, name: str) -> bool:
        node = self.world.slurm.nodes.get(name)
        is_announced = name in self.witness.chaos.announced or is_block_ending(self.world, name)
        if is_announced or node is None or self.witness.is_machine_dead(node):
            return True
        return name in self.failed or is_failed(node_row(node))


class DrainedInTime(Check):
    """When a notice came and the head could be reached, the node is drained before the reclaim
    and its requeueable jobs have left it.
    """

    def reclaimed(self, instance_id: str) -> None:
        noticed_s = self.witness.noticed.get(instance_id)
        node = self.world.slurm.nodes.get(instance_id)
        if noticed_s is None or node is None or self.witness.is_machine_dead(node):
            return
        since_s = max(noticed_s, self.witness.registered.get(instance_id, 0.0))
        chaos, now_s = self.witness.chaos, self.witness.now_s
        if now_s - since_s < TIME_TO_DRAIN_S or not self.witness.is_head_well:
            return
        # What the head dropped before, its clock being wrong, is waited for that long.
        before_s = noticed_s - self.world.cluster.timings.order_ttl_s
        if not chaos.was_calm_since(before_s, *UNREACHABLE):
            return
        if not node.is_drain:
            raise self.broken(f"{instance_id} is reclaimed and still takes jobs")
        for job in node.jobs.values():
            if job.state == "RUNNING" and job.submit.is_requeueable:
                raise self.broken(f"{instance_id} is reclaimed, job {job.job_id} still runs on it")


class HintsHeeded(Check):
    """A node that is to be left is closed soon after AWS's word on it was acted on, and no job
    starts there any more.
    """

    def started(self, job: SimJob) -> None:
        for name in job.node_names:
            if self._must_be_closed(name):
                raise self.broken(f"job {job.job_id} starts on {name}, which AWS spoke of")

    def passed(self, seconds: float) -> None:
        nodes = self.world.slurm.nodes
        for name in self.witness.hinted:
            node = nodes.get(name)
            is_open = node and not node.is_drain and not self.witness.is_machine_dead(node)
            if is_open and self._must_be_closed(name):
                raise self.broken(f"{name} is still open, although AWS spoke of it")

    def _must_be_closed(self, name: str) -> bool:
        witness, chaos = self.witness, self.witness.chaos
        hinted_s = witness.hinted.get(name)
        if hinted_s is None or name in chaos.touched or not witness.is_head_well:
            return False
        if witness.now_s >= witness.lifts_s[name]:
            return False
        since_s = max(hinted_s, witness.registered.get(name, witness.now_s))
        # An order that the head has dropped before is waited for as long as it might come.
        before_s = hinted_s - self.world.cluster.timings.order_ttl_s
        is_calm = chaos.was_calm_since(before_s, *UNREACHABLE)
        return is_calm and witness.now_s - since_s > TIME_TO_DRAIN_S


class HeadGoesLast(Check):
    """The head stops only when no instance of the cluster is left."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.num_stops = 0

    def passed(self, seconds: float) -> None:
        if self.world.head.num_stops == self.num_stops:
            return
        self.num_stops = self.world.head.num_stops
        overrides = tuple(self.world.ledger.all_overrides.values())
        if self.world.calendar.wanted(self.witness.now_s, overrides).is_up:
            return  # whoever stopped it stood still while the stop ended; it starts again
        hidden = self.witness.chaos.left_out
        left = [one.instance_id for one in self.world.compute.live()]
        if seen := [name for name in left if name not in hidden]:
            raise self.broken(f"the head is stopped, {seen[0]} still runs")


def _running_on(nodes: dict[str, SimNode], names: tuple[str, ...]) -> Iterator[tuple[str, SimJob]]:
    for name in names:
        for job in nodes[name].jobs.values() if name in nodes else ():
            if job.state == "RUNNING":
                yield name, job
