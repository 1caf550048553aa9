"""The invariants of jobs that are moved to spot while they run."""

from tidegate.agent.loop import HEARTBEAT_S
from tidegate.core.model.drain_reason import DrainCode, read
from tidegate.core.model.ec2 import Market
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Plan, Send
from tidegate.core.model.slurm import Job, Node, Reading
from tidegate.core.model.snapshot import Snapshot
from tidegate.sim.checks.deadlines import LOOKS_S
from tidegate.sim.checks.plans import OfPlans
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.due import due_by_s
from tidegate.sim.slurm_parts import SimJob
from tidegate.sim.slurm_table import Table
from tidegate.sim.world import SimWorld

WORDS = ("tidegate:move", "tidegate:ckpt=", "tidegate:progress=", "tidegate:deadline=")
# What may make any job late, moved or not.
TROUBLE = (
    *("boot", "death", "head", "slurm", "orders", "looks", "kill", "throttle", "lost", "twice"),
    *("clock", "shortage", "quota", "subnet", "sick", "places", "image", "hints", "lag", "gpu"),
)


def may_be_moved(job: SimJob) -> bool:
    """Its user has said so, in each word that it takes."""
    words = job.submit.comment.split()
    says = all(any(word.startswith(each) for word in words) for each in WORDS)
    return says and "tidegate:move" in words and job.submit.is_requeueable


def may_go(world: SimWorld, job_id: str) -> bool:
    """Whether nodes may be bought for a job beside those on which it runs."""
    job = world.slurm.jobs.get(job_id)
    return job is not None and job.is_running and may_be_moved(job)


def is_moving(job: SimJob, table: Table) -> bool:
    """Its nodes are closed since it goes to spot."""
    nodes = [table.nodes[name] for name in job.node_names if name in table.nodes]
    return bool(nodes) and all(_moved_off(each.reason) == job.job_id for each in nodes)


def _moved_off(reason: str) -> str:
    found = read(reason)
    return found.subject if found and found.code is DrainCode.CONSOLIDATABLE else ""


class MovesLeadToSpot(OfPlans):
    """A running job is told to leave its nodes for spot only as it says that it may be, with all
    nodes of its next run up and closed for it, and time to spare for an interruption there.
    """

    def planned(self, snapshot: Snapshot, made: Plan) -> None:
        assert snapshot.digest is not None
        reading = snapshot.digest.reading
        jobs = {job.job_id: job for job in reading.jobs}
        nodes = {node.name: node for node in reading.nodes}
        for each in made.actions:
            order = each.order if isinstance(each, Send) else None
            if order is None or order.kind is not OrderKind.REQUEUE or len(order.names) != 1:
                continue
            job = jobs.get(order.names[0])
            if job is not None and _is_move(order, job, nodes):
                self._judge(job, reading, snapshot.now_s)

    def _judge(self, job: Job, reading: Reading, now_s: float) -> None:
        sim, due_s = self.world.slurm.jobs[job.job_id], due_by_s(job.comment)
        if not may_be_moved(sim) or due_s is None or job.progress is None:
            raise self.broken(f"job {job.job_id} is moved, it says {job.comment!r}")
        ready = [node for node in reading.nodes if _is_ready(node, job)]
        if len(ready) < job.nodes:
            raise self.broken(f"job {job.job_id} is moved, {len(ready)} spot nodes wait for it")
        spare_s = due_s - now_s - (job.time_limit_s or 0.0) * (1.0 - job.progress.part)
        least_s = 2 * min(pool.boot_s for pool in self.world.cluster.pools) + LOOKS_S
        if spare_s < least_s:
            raise self.broken(f"job {job.job_id} is moved with {spare_s:.0f} s to spare")


def _is_move(order: Order, job: Job, nodes: dict[str, Node]) -> bool:
    reasons = [nodes[name].reason for name in order.on_nodes if name in nodes]
    return any(_moved_off(reason) == job.job_id for reason in reasons)


def _is_ready(node: Node, job: Job) -> bool:
    found = read(node.reason)
    is_its = not node.reason or (
        found is not None and found.code is DrainCode.KEPT and found.subject == job.job_id
    )
    is_shut = node.state.is_drain and not node.state.is_busy and not node.state.is_down
    return is_its and is_shut and Market.SPOT.feature in node.features


class NotBackAndForth(Check):
    """No job is moved twice within two boots, and none that was moved ends after its deadline where
    nothing else has gone wrong since, nor the cluster was stopped. A head that reports more seldom
    than the agent by itself says late that a limit has room again: there a job may wait too long.
    """

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.moved_s: dict[str, float] = {}
        self.runs: dict[str, int] = {}  # which run of the job that ended

    def commanded(self, verb: str, names: tuple[str, ...]) -> None:
        slurm, now_s = self.world.slurm, self.witness.now_s
        for job_id in names if verb == "requeue" else ():
            job = slurm.jobs.get(job_id)
            if job is None or job.state != "RUNNING" or not is_moving(job, slurm.table):
                continue
            if self.runs.get(job_id) == job.starts:
                continue  # Slurm did not hear it before
            before_s = self.moved_s.get(job_id)
            least_s = 2 * min(pool.boot_s for pool in self.world.cluster.pools)
            if before_s is not None and now_s - before_s < least_s:
                raise self.broken(f"job {job_id} is moved again after {now_s - before_s:.0f} s")
            self.moved_s[job_id], self.runs[job_id] = now_s, job.starts

    def passed(self, seconds: float) -> None:
        overrides = tuple(self.world.ledger.all_overrides.values())
        if not self.world.calendar.wanted(self.witness.now_s, overrides).is_up:
            self.moved_s.clear()
        for job_id, moved_s in list(self.moved_s.items()):
            job = self.world.slurm.table.active.get(job_id)
            due_s = due_by_s(job.submit.comment) if job else None
            if job is None or due_s is None:
                self.moved_s.pop(job_id) if job is None else None
            elif self.witness.now_s > due_s and self._was_well(job, moved_s):
                raise self.broken(f"job {job_id} was moved, and is {job.state} after its deadline")

    def _was_well(self, job: SimJob, since_s: float) -> bool:
        is_slow = job.state == "PENDING" and self.world.heartbeat_s > HEARTBEAT_S
        return not is_slow and self.witness.chaos.was_calm_since(since_s, *TROUBLE)
