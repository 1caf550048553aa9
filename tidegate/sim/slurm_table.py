"""slurmctld's tables of jobs and nodes, and its scheduling passes over them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tidegate.core.demand.fit import satisfies
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.slurm import Association, NodeReservation, SetBy
from tidegate.ports import Clock
from tidegate.sim.slurm_parts import SimJob, SimNode, Submit, over_cap

BACKFILL_INTERVAL_S = 30.0  # bf_interval's default
REQUEUE_DELAY_S = 120.0
SLURMD_TIMEOUT_S = 120.0
SILENT_S = 45.0  # slurmctld asks its nodes every third of SlurmdTimeout, and waits for an answer
NODES_DOWN = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)
NOT_AVAILABLE = "ReqNodeNotAvail, May be reserved for other job"
NEVER_S = float("inf")


@dataclass(slots=True)
class Table:
    """Jobs and nodes. `changes` counts what slurmctld would log; `active`: jobs not yet ended.

    `head_clock` stamps what Slurm shows; durations pass on `clock`. `ping_s`: how long a node that
    is opened shows NOT_RESPONDING and takes no job. `tells_shards`: of each GPU, as from 23.11 on.
    """

    cluster: Cluster
    clock: Clock
    head_clock: Clock
    associations: tuple[Association, ...] = ()
    licences: int = 0
    ping_s: float = 0.0
    tells_shards: bool = False
    jobs: dict[str, SimJob] = field(default_factory=dict)
    active: dict[str, SimJob] = field(default_factory=dict)
    nodes: dict[str, SimNode] = field(default_factory=dict)
    last_nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    on_start: list[Callable[[SimJob], None]] = field(default_factory=list)
    on_job_end: list[Callable[[SimJob], None]] = field(default_factory=list)
    changes: int = 0
    reservations: list[NodeReservation] = field(default_factory=list)
    _changed_at_s: float = 0.0
    _backfilled_at_s: float = 0.0
    _is_stale: bool = False
    _due: tuple[int, float] = (-1, NEVER_S)

    def changed(self) -> None:
        """Something happened that a pass has not looked at."""
        self.changes += 1
        if not self._is_stale:
            self._is_stale, self._changed_at_s = True, self.clock.now_s()

    def ask(self, node: SimNode) -> None:
        """It was opened: until it answers it takes no job. Source: measured on 22.05 and 24.11."""
        if self.ping_s:
            node.is_silent, node.answers_at_s = True, self.clock.now_s() + self.ping_s

    def partition(self, asked: Submit) -> str:
        default = next((p.name for p in self.cluster.partitions if p.is_default), "")
        return asked.partition or default or self.cluster.partitions[0].name

    # -- time ------------------------------------------------------------------------------

    def next_due_s(self) -> float:
        """When something happens by itself, the next backfill pass included."""
        if self._due[0] != self.changes:
            self._due = (self.changes, min(self._dues(), default=NEVER_S))
        backfill_s = self._backfill_at_s() if self._is_stale else NEVER_S
        return min(self._due[1], backfill_s)

    def _dues(self) -> Iterator[float]:
        now_s = self.clock.now_s()
        for job in self.active.values():
            if job.state == "RUNNING":
                if self._is_alive(job):
                    yield job.ends_at_s
            elif job.state == "COMPLETING":
                yield job.ended_at_s + job.submit.ends_in_s
            elif job.eligible_at_s > now_s:
                yield job.eligible_at_s
        for node in self.nodes.values():
            if node.died_at_s is not None and not node.is_down:
                yield node.died_at_s + (SLURMD_TIMEOUT_S if node.is_silent else SILENT_S)
            elif node.is_silent and node.died_at_s is None:
                yield node.answers_at_s
        ahead_s = self.head_clock.now_s() - now_s if self.reservations else 0.0
        for each in self.reservations:
            times = (each.starts_at_s - ahead_s, each.ends_at_s - ahead_s)
            yield from (at_s for at_s in times if at_s > now_s)

    def _backfill_at_s(self) -> float:
        """Passes keep their own beat; one without anything new would change nothing."""
        beat = max(self._changed_at_s, self._backfilled_at_s) // BACKFILL_INTERVAL_S + 1
        return beat * BACKFILL_INTERVAL_S

    def step(self) -> None:
        """Let everything happen that is due by now."""
        now_s = self.clock.now_s()
        if now_s < self.next_due_s():
            return
        has_ended = False
        for job in list(self.active.values()):
            if job.state == "RUNNING" and job.ends_at_s <= now_s and self._is_alive(job):
                self.end(job, "COMPLETED")
                has_ended = True
            elif job.state == "COMPLETING" and now_s >= job.ended_at_s + job.submit.ends_in_s:
                self.end(job, "PENDING")
                has_ended = True
            elif (
                job.state == "PENDING" and job.reason == "BeginTime" and job.eligible_at_s <= now_s
            ):
                job.reason = "None"
                self.changed()
        for node in list(self.nodes.values()):
            dead_s = 0.0 if node.died_at_s is None else now_s - node.died_at_s
            if dead_s >= SILENT_S and not node.is_silent:
                node.is_silent = True
                self.changed()
            elif node.is_silent and node.died_at_s is None and node.answers_at_s <= now_s:
                node.is_silent, has_ended = False, True
                self.changed()
            if dead_s >= SLURMD_TIMEOUT_S and not node.is_down:
                self.set_down(node, "Not responding")
        self.mark_reserved()
        if has_ended:
            self.main_pass()
        if self._is_stale and now_s >= self._backfill_at_s():
            self._backfilled_at_s, self._is_stale = now_s, False
            self.backfill_pass()
        self._due = (-1, NEVER_S)

    def _is_alive(self, job: SimJob) -> bool:
        """A job whose node died makes no progress."""
        nodes = self.nodes
        return all(nodes[n].died_at_s is None for n in job.node_names if n in nodes)

    # -- the lives of jobs -----------------------------------------------------------------

    def end(self, job: SimJob, state: str) -> None:
        """The job leaves its nodes; PENDING: it goes back into the queue."""
        now_s = self.clock.now_s()
        for name in job.node_names:
            if node := self.nodes.get(name):
                node.give_back(job)
                node.last_busy_at_s = self.head_clock.now_s()
        job.state, job.ended_at_s, job.node_names = state, now_s, ()
        if state != "PENDING":
            self.active.pop(job.job_id, None)
            for tell in self.on_job_end:
                tell(job)
        self.changed()

    def requeue(self, job: SimJob, *, completes: bool) -> None:
        """Back into the queue, for two minutes not eligible; an old run that lives ends first."""
        now_s = self.clock.now_s()
        job.requeues += 1
        job.killed_at_s = self.head_clock.now_s()
        job.reason, job.eligible_at_s = "BeginTime", now_s + REQUEUE_DELAY_S
        if completes:
            job.state, job.ended_at_s = "COMPLETING", now_s
            self.changed()
        else:
            self.end(job, "PENDING")

    def requeue_beside(self, job: SimJob) -> None:
        """What is done to one component of a heterogeneous job is done to all."""
        for other in self.beside(job):
            if other.is_running:
                self.requeue(other, completes=True)

    def beside(self, job: SimJob) -> list[SimJob]:
        """The other components of a heterogeneous job."""
        every = self.active.values() if job.het_job_id else ()
        return [each for each in every if each.het_job_id == job.het_job_id and each is not job]

    def reached_by(self, job: SimJob, signal: str) -> list[SimJob]:
        """The first component of a heterogeneous job passes signals on; others have no script."""
        if job.het_job_id in ("", job.job_id):
            return [job, *(each for each in self.beside(job) if each.state == "RUNNING")]
        return [job] if signal.startswith("S:") else []

    def set_down(self, node: SimNode, reason: str) -> None:
        """As `set_node_reason` of 23.11 to 26.05, which adds words to those that stand there."""
        node.is_down, node.reason = True, f"{node.reason} : {reason}" if node.reason else reason
        # The agent's words are known by the node's comment also where more stands behind them.
        node.set_by = SetBy.US if node.set_by is SetBy.US else SetBy.SLURM
        for job in list(node.jobs.values()):
            if job.state == "COMPLETING":  # it was requeued, and counted, before
                self.end(job, "PENDING")
            elif job.submit.is_requeueable:
                self.requeue(job, completes=False)
                if job.job_id != job.het_job_id:  # of the first one Slurm requeues it alone
                    self.requeue_beside(job)
            else:
                self.end(job, "NODE_FAIL")
        self.changed()
        self.main_pass()

    # -- passes ----------------------------------------------------------------------------

    def main_pass(self) -> None:
        """The main scheduler stops at the first job that no nodes are free for."""
        self._pass(blocks=True)

    def backfill_pass(self) -> None:
        """Backfill goes past a blocked job and may rob a gang; it plans where it can."""
        before = [name for name, node in self.nodes.items() if node.is_planned]
        for node in self.nodes.values():
            node.is_planned = False
        self._pass(blocks=False)
        self._plan()
        if before != [name for name, node in self.nodes.items() if node.is_planned]:
            self.changes += 1

    def pending(self) -> list[SimJob]:
        found = (job for job in self.active.values() if job.state == "PENDING")
        return sorted(found, key=lambda job: -job.submit.priority)

    def _pass(self, *, blocks: bool) -> None:
        reason, pending = NODES_DOWN, self.pending()
        for job in pending:  # dependencies of all are looked at before any is served
            if job.reason == "Dependency" and not job.comes_after(self.active.values()):
                self._say(job, "None")
        for job in pending:
            if job.submit.is_held:
                self._say(job, "JobHeldAdmin" if job.reason == "JobHeldAdmin" else "JobHeldUser")
                continue
            if early := self._early(job):
                if not blocks:  # not before that, whatever is known as it is submitted
                    self._say(job, early)
                continue
            if self.is_throttled(job):
                # With no node up Slurm has not looked at the cap yet.
                self._say(job, "JobArrayTaskLimit" if self.nodes else NOT_AVAILABLE)
                continue
            if job.het_job_id:  # the main scheduler leaves them to backfill
                if not blocks:
                    self._start_together(job)
                continue
            fitting = self._fitting(job.submit)
            if len(fitting) < job.submit.nodes:
                self._say(job, self._own_reason(job) or reason)
                reason = NOT_AVAILABLE
                if blocks:
                    return
            elif over := self.over_cap(job):
                # Associations and licences are tested only after nodes were selected.
                self._say(job, over)
            else:
                self._start(job, fitting[: job.submit.nodes])

    def _early(self, job: SimJob) -> str:
        """What Slurm says of a job that may not begin yet, "" of one that may."""
        if job.comes_after(self.active.values()):
            return "Dependency"
        return "BeginTime" if job.eligible_at_s > self.clock.now_s() else ""

    def _own_reason(self, job: SimJob) -> str:
        """What Slurm says of a job that certain nodes or reservations keep waiting."""
        asked = job.submit
        if asked.node_name and not self.nodes.keys() >= set(asked.node_name.split(",")):
            return "BadConstraints"
        later = self._fitting(asked, is_later=True) if self.reservations else []
        return "Reservation" if len(later) >= asked.nodes or asked.reservation else ""

    def _start_together(self, leader: SimJob) -> None:
        """All components of a heterogeneous job at once, on nodes of their own, or none."""
        parts = [job for job in self.active.values() if job.het_job_id == leader.het_job_id]
        is_ready = all(
            p.state == "PENDING" and p.eligible_at_s <= self.clock.now_s() for p in parts
        )
        taken: dict[str, list[SimNode]] = {}
        used: set[str] = set()
        for part in parts if is_ready else ():
            free = [node for node in self._fitting(part.submit) if node.name not in used]
            taken[part.job_id] = free[: part.submit.nodes]
            used.update(node.name for node in taken[part.job_id])
        if is_ready and all(len(taken[part.job_id]) == part.submit.nodes for part in parts):
            for part in parts:
                self._start(part, taken[part.job_id])
        elif leader.state == "PENDING":
            self._say(leader, NODES_DOWN)

    def _say(self, job: SimJob, reason: str) -> None:
        if job.reason != reason:
            job.reason = reason
            self.changes += 1

    def _start(self, job: SimJob, nodes: Sequence[SimNode]) -> None:
        is_revoked = self._is_revoked(job, nodes[0])
        job.state, job.reason, job.starts = "RUNNING", "None", job.starts + 1
        job.started_at_s = self.clock.now_s()
        job.node_names = tuple(node.name for node in nodes)
        for node in nodes:
            node.take(job)
        self.last_nodes[job.job_id] = job.node_names
        self.changed()
        for tell in self.on_start:
            tell(job)
        if is_revoked:
            self.end(job, "FAILED")

    def _is_revoked(self, job: SimJob, batch_host: SimNode) -> bool:
        """A node takes no start in the second in which it was told to end the job's old run."""
        was_here = batch_host.name in self.last_nodes.get(job.job_id, ())
        return was_here and int(self.head_clock.now_s()) == int(job.killed_at_s)

    def _fitting(
        self, asked: Submit, *, when_empty: bool = False, is_later: bool = False
    ) -> list[SimNode]:
        """The nodes that take the job's share now, or would without what runs on them, or when
        reservations are over.
        """
        partition = self.cluster.partition(self.partition(asked))
        pools = set(partition.pools) if partition else set()
        found = [
            node
            for node in self.nodes.values()
            if not node.is_drain
            and not node.is_down
            and not node.is_silent
            and not pools.isdisjoint(node.features)
            and (not asked.node_name or node.name in asked.node_name.split(","))
            and node.name not in asked.excluded
            and (not self.reservations or is_later or self._is_open(node.name, asked))
            and satisfies(asked.constraint, node.features)
            and (when_empty or node.has_room(asked))
            and (not when_empty or node.emptied().has_room(asked))
        ]
        found.sort(key=lambda node: node.weight)
        return found

    def _plan(self) -> None:
        """Blocked jobs for which enough nodes exist get a start in the future."""
        for job in self.pending():
            if job.submit.is_held or self._early(job):
                continue
            usable = self._fitting(job.submit, when_empty=True, is_later=True)
            is_taken = any(node.jobs or node.reserved for node in usable)
            if len(usable) >= job.submit.nodes and is_taken:
                for node in usable[: job.submit.nodes]:
                    node.is_planned = not node.is_busy

    def mark_reserved(self) -> None:
        """Nodes show the words of reservations that have begun; what is over is gone."""
        if not self.reservations and not any(node.reserved for node in self.nodes.values()):
            return
        now_s = self.head_clock.now_s()
        lasting = [each for each in self.reservations if each.ends_at_s > now_s]
        if lasting != self.reservations:
            self.reservations = lasting
            self.changed()  # also where it had no node
        for node in self.nodes.values():
            mine = [r for r in self.reservations if node.name in r.nodes]
            begun = [r for r in mine if r.starts_at_s <= now_s]
            words = frozenset({"RESERVED"} if begun else ())
            words |= {"MAINTENANCE"} if any("MAINT" in r.flags for r in begun) else set()
            if words != node.reserved:
                node.reserved = words
                self.changed()

    def _is_open(self, name: str, asked: Submit) -> bool:
        """Whether reservations let such a job start on the node now."""
        now_s = self.head_clock.now_s()
        if own := next((r for r in self.reservations if r.name == asked.reservation), None):
            return own.starts_at_s <= now_s < own.ends_at_s and name in own.nodes
        ends_s = now_s + (asked.time_limit_s or NEVER_S)
        return not asked.reservation and not any(
            (name in each.nodes or "ALL_NODES" in each.flags) and each.starts_at_s < ends_s
            for each in self.reservations
        )

    def is_throttled(self, job: SimJob) -> bool:
        throttle = job.submit.throttle
        if not throttle:
            return False
        running = sum(
            each.array_job_id == job.array_job_id and each.state == "RUNNING"
            for each in self.active.values()
        )
        return running >= throttle

    def over_cap(self, job: SimJob) -> str:
        """Slurm's reason when accounting or a licence stops a job that has nodes."""
        asked = job.submit
        running = [each.submit for each in self.active.values() if each.node_names]
        if asked.licences > self.licences - sum(each.licences for each in running):
            return "Licenses"
        return over_cap(self.associations, asked, running)
