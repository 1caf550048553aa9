"""Invariants of jobs of several nodes that lose some."""

from tidegate.core.fleet.resume import hold_max_s, is_failed
from tidegate.core.model.drain_reason import DrainCode, DrainReason, read
from tidegate.core.model.job_files import LostWork
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Send, Watch
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.passes.faults import GOOD_RUN_S, RETRIES_MAX
from tidegate.sim.checks.plans import OfPlans
from tidegate.sim.checks.witness import Check, Witness
from tidegate.sim.slurm_parts import SimJob, SimNode

# What keeps a word from the head, an order from Slurm, or a planner from its end.
EXCUSES = (
    *("slurm", "head", "clock", "kill", "lost", "throttle", "orders", "looks", "twice", "lag"),
    "shortage",  # EC2's answers take long, and the look with them
)
# A look comes with every heartbeat, which worlds have every 280 s at the least.
FREED_WITHIN_S = 360.0
HELD_WITHIN_S = 60.0
# In these worlds the agent looks at the files with each heartbeat alone.
TOLD_LATE_S = 30.0
STEPS_OFF_S = 5.0
# The agent may not have seen what happened while it was started again.
FORGETS = ("slurm", "head", "clock", "kill")


class GoodNodesServe(Check):
    """Good nodes that are kept for a job serve it, or are everybody's again within bounds."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        self.kept_s: dict[tuple[str, str], float] = {}  # since when, by node and for whom
        self.idle_s: dict[tuple[str, str], float] = {}  # since when that one needs it no more

    def passed(self, seconds: float) -> None:
        now_s, found = self.witness.now_s, set[tuple[str, str]]()
        for name, node in self.world.slurm.nodes.items():
            kept = _kept(node)
            if kept is None or not self.witness.is_head_well:
                continue
            key = name, str(kept)
            found.add(key)
            since_s = self.kept_s.setdefault(key, now_s)
            if now_s - since_s > hold_max_s(self.world.cluster) + FREED_WITHIN_S and self._is_calm(
                FREED_WITHIN_S
            ):
                raise self.broken(f"{name} is kept for job {kept.subject} since {since_s:.0f}")
            if self._needs(kept.subject):
                self.idle_s.pop(key, None)
                continue
            idle_s = self.idle_s.setdefault(key, now_s)
            if now_s - idle_s > FREED_WITHIN_S and self._is_calm(now_s - idle_s):
                raise self.broken(f"{name} is kept for job {kept.subject}, which needs it no more")
        self.kept_s = {key: at_s for key, at_s in self.kept_s.items() if key in found}
        self.idle_s = {key: at_s for key, at_s in self.idle_s.items() if key in found}

    def _needs(self, gang: str) -> bool:
        """It waits, ends its run, or a node below it is lost."""
        jobs = self.world.slurm.table.active.values()
        mine = [job for job in jobs if gang in (job.job_id, job.het_job_id, job.array_job_id)]
        return any(
            (job.state == "PENDING" and not job.submit.is_held)
            or job.state == "COMPLETING"
            or any(self._is_lost(name) for name in job.node_names)
            for job in mine
        )

    def _is_lost(self, name: str) -> bool:
        node = self.world.slurm.nodes.get(name)
        chaos = self.witness.chaos
        is_going = name in chaos.announced or name in chaos.cordoned or name in chaos.sickened
        return is_going or node is None or self.witness.is_machine_dead(node)

    def _is_calm(self, ago_s: float) -> bool:
        return self.witness.chaos.was_calm_since(self.witness.now_s - ago_s, *EXCUSES)


def _kept(node: SimNode) -> DrainReason | None:
    found = read(node.reason) if node.is_drain and not node.is_down else None
    return found if found and found.code is DrainCode.KEPT else None


class LostNodesReplacedAtOnce(OfPlans):
    """A job of several nodes of which a GPU has failed is requeued by the very plan that sees it,
    and this says what becomes of its next run.
    """

    def planned(self, snapshot: Snapshot, made: Plan) -> None:
        assert snapshot.digest is not None
        ours = {each.instance_id for each in snapshot.instances if each.is_alive}
        ours &= {each.instance_id for each in snapshot.nodes}
        nodes = {n.name: n for n in snapshot.digest.reading.nodes if n.name in ours}
        failed = {n for n, node in nodes.items() if is_failed(node) and not node.state.is_down}
        sent = [each.order for each in made.actions if isinstance(each, Send)]
        kinds = (OrderKind.REQUEUE, OrderKind.HOLD)
        requeued = {name for o in sent if o.kind in kinds for name in o.names}
        told = {each.job_id for each in made.served} | {each.job_id for each in made.unmet}
        for job in snapshot.digest.reading.jobs:
            is_gang = len(job.node_names) > 1 and job.is_running and job.is_requeueable
            if not is_gang or failed.isdisjoint(job.node_names):
                continue
            if job.job_id not in requeued:
                raise self.broken(f"job {job.job_id} runs on, on {sorted(failed)}")
            if snapshot.wanted.is_up and job.job_id not in told:
                raise self.broken(f"nothing is said of the next run of job {job.job_id}")


class FaultsBounded(Check):
    """A job whose nodes fail again and again does not start for ever."""

    def started(self, job: SimJob) -> None:
        chaos, now_s = self.witness.chaos, self.witness.now_s
        runs = chaos.gpu_faults.get(job.job_id, {})
        at_s = [failed_s for failed_s in runs.values() if now_s - failed_s < GOOD_RUN_S]
        # The last run may begin on nodes that are idle before the order to hold it has come.
        if len(at_s) <= RETRIES_MAX + 1 or now_s - at_s[RETRIES_MAX] < HELD_WITHIN_S:
            return
        if chaos.was_calm_since(at_s[0] - HELD_WITHIN_S, *FORGETS):
            raise self.broken(f"job {job.job_id} starts after {len(at_s)} faults")


class LostWorkIsTrue(OfPlans):
    """What is told of a requeued job's lost work is what it did again, and no more than it ran."""

    def __init__(self, witness: Witness) -> None:
        super().__init__(witness)
        # By job: when each run began, and what it had done before.
        self.runs: dict[str, list[tuple[float, float]]] = {}
        self.rested: set[str] = set()

    def started(self, job: SimJob) -> None:
        self.runs.setdefault(job.job_id, []).append((self.witness.now_s, job.saved_s))

    def passed(self, seconds: float) -> None:
        jobs = self.world.slurm.table.active.values()
        self.rested |= {job.job_id for job in jobs if job.state == "SUSPENDED"}

    def planned(self, snapshot: Snapshot, made: Plan) -> None:
        noted = {each.job_id: each.lost for each in snapshot.stuck}
        for stuck in (action.stuck for action in made.actions if isinstance(action, Watch)):
            lost = stuck.lost
            # Something else may be noted of the job, with what was told before.
            is_new = lost is not None and lost != noted.get(stuck.job_id)
            if lost is not None and is_new and lost.resumed_step is not None:
                self._told(stuck.job_id, lost)

    def _told(self, job_id: str, lost: LostWork) -> None:
        runs, excuses = self.runs.get(job_id, []), ("slurm", "head", "clock", "kill", "lag")
        if len(runs) < 2 or job_id in self.rested:
            return
        (began_s, done_s), (_, kept_s) = runs[-2:]
        if not self.witness.chaos.was_calm_since(began_s - HELD_WITHIN_S, *excuses):
            return
        off_s = self.world.heartbeat_s + TOLD_LATE_S
        if lost.step is None:
            return  # it ended before anybody had looked
        if not kept_s - off_s <= (lost.resumed_step or 0.0) <= kept_s + off_s:
            raise self.broken(f"job {job_id} goes on after {kept_s:.0f} s, told was {lost}")
        if lost.stood_since_s - began_s <= off_s:
            return  # one step was seen: at what pace it went is not known
        # A step takes a second.
        again_s = max(lost.step - max(lost.resumed_step or 0.0, done_s), 0.0)
        if abs(lost.redone_s - again_s) > STEPS_OFF_S:
            raise self.broken(f"job {job_id} does {again_s:.0f} s again, told was {lost}")
