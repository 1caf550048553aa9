"""slurmctld as the facts describe it: placeholders, passes, requeue delays, slow death notices."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tidegate.core.errors import SlurmUnavailable
from tidegate.core.fit import lacks, satisfies
from tidegate.core.pool import Cluster
from tidegate.core.slurm import Association, Job, Node, NodeState, Reading
from tidegate.ports import Clock
from tidegate.sim.faults import Faults, effect, no_faults
from tidegate.sim.slurm_parts import SimJob, SimNode, Submit, SubmitRefused

BACKFILL_INTERVAL_S = 30.0  # bf_interval's default
REQUEUE_DELAY_S = 120.0
COMPLETING_S = 2.0  # TERM, KillWait and epilog of a requeued job's old run
SLURMD_TIMEOUT_S = 120.0
NODES_DOWN = (
    "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
)
NOT_AVAILABLE = "ReqNodeNotAvail, May be reserved for other job"


@dataclass(slots=True)
class SimSlurm:
    """One slurmctld. Users call `submit`; machines `register` and `die`; time calls `step`."""

    cluster: Cluster
    clock: Clock
    faults: Faults = no_faults
    associations: tuple[Association, ...] = ()
    is_up: bool = True
    jobs: dict[str, SimJob] = field(default_factory=dict)
    nodes: dict[str, SimNode] = field(default_factory=dict)
    last_nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _number: int = 0
    _backfilled_at_s: float = 0.0

    # -- what users do ---------------------------------------------------------------------

    def submit(self, asked: Submit) -> str:
        """The job id, as `sbatch --parsable` prints it; SubmitRefused when impossible."""
        if not self._is_satisfiable(asked):
            raise SubmitRefused("Requested node configuration is not available")
        self._number += 1
        job_id = str(self._number)
        for task in range(max(asked.array, 1)):
            task_id = f"{job_id}_{task}" if asked.array else job_id
            self.jobs[task_id] = SimJob(
                asked, task_id, job_id if asked.array else "", eligible_at_s=self.clock.now_s()
            )
        self._main_pass()
        return job_id

    def cancel(self, job_id: str) -> None:
        for job in self.jobs.values():
            if job_id in (job.job_id, job.array_job_id) and job.state in ("PENDING", "RUNNING"):
                self._end(job, "CANCELLED")
        self._main_pass()

    # -- what machines do ------------------------------------------------------------------

    def register(self, node: SimNode) -> None:
        """Slurmd -Z. A known name keeps its record; registration starts no scheduling pass."""
        if self.is_up and node.name not in self.nodes:
            self.nodes[node.name] = replace(node, last_busy_at_s=self.clock.now_s())

    def die(self, name: str) -> None:
        """The machine vanished: the node looks alive until SlurmdTimeout."""
        node = self.nodes.get(name)
        if node is not None and node.died_at_s is None:
            node.died_at_s = self.clock.now_s()

    def step(self) -> None:
        """Let everything happen that is due by now."""
        if not self.is_up:
            return
        now_s = self.clock.now_s()
        ended = [job for job in self._running() if self._finishes(job, now_s)]
        for job in ended:
            self._end(job, "COMPLETED")
        for job in self.jobs.values():
            if job.state == "COMPLETING" and now_s >= job.ended_at_s + COMPLETING_S:
                self._end(job, "PENDING")
        for node in self.nodes.values():
            if node.died_at_s is not None and now_s - node.died_at_s > SLURMD_TIMEOUT_S:
                self._set_down(node)
        if ended:
            self._main_pass()
        if now_s - self._backfilled_at_s >= BACKFILL_INTERVAL_S:
            self._backfilled_at_s = now_s
            self._pass(blocks=False)

    # -- ports.Slurm -----------------------------------------------------------------------

    def read(self) -> Reading:
        self._must_be_up("read")
        shown = ("PENDING", "RUNNING", "COMPLETING")
        jobs = tuple(row for row in self._rows() if row.state in shown)
        nodes = tuple(self._node(node) for _, node in sorted(self.nodes.items()))
        return Reading("sim", jobs, nodes, self.associations)

    def drain(self, names: Sequence[str], reason: str) -> None:
        self._must_be_up("drain")
        for node in self._known(names):
            node.is_drain, node.reason = True, reason

    def undrain(self, names: Sequence[str]) -> None:
        self._must_be_up("undrain")
        for node in self._known(names):
            node.is_drain = False
        self._main_pass()

    def delete(self, names: Sequence[str]) -> dict[str, str]:
        self._must_be_up("delete")
        busy = {n.name: "Requested nodes are busy" for n in self._known(names) if self._on(n.name)}
        for name in names:
            if name not in busy:
                self.nodes.pop(name, None)
        return busy

    def requeue(self, job_ids: Sequence[str]) -> dict[str, str]:
        """A running job first ends; StartTime=now holds only once it is pending again."""
        self._must_be_up("requeue")
        refused: dict[str, str] = {}
        for job_id in job_ids:
            job = self.jobs.get(job_id)
            if job is not None and job.state == "PENDING":
                job.eligible_at_s, job.reason = self.clock.now_s(), "None"
            elif job is None or job.state != "RUNNING" or not job.submit.is_requeueable:
                refused[job_id] = "Requested operation is presently disabled"
            else:
                self._requeue(job, completes=True)
        self._main_pass()
        return refused

    def signal(self, job_ids: Sequence[str], signal: str) -> dict[str, str]:
        self._must_be_up("signal")
        refused: dict[str, str] = {}
        for job_id in job_ids:
            job = self.jobs.get(job_id)
            if job is None or job.state != "RUNNING":
                refused[job_id] = "Invalid job id specified"
                continue
            job.signals.append(signal)
            if "tidegate:ckpt" in job.submit.comment:
                job.saved_s = job.saved_s + self.clock.now_s() - job.started_at_s
        return refused

    def comment(self, job_id: str, text: str) -> None:
        self._must_be_up("comment")
        if job_id in self.jobs:
            self.jobs[job_id].admin_comment = text
        self._main_pass()

    def poke(self, names: Sequence[str]) -> None:
        self._must_be_up("poke")
        self._main_pass()

    # -- inside ----------------------------------------------------------------------------

    def _must_be_up(self, method: str) -> None:
        if not self.is_up:
            raise SlurmUnavailable("Unable to contact slurm controller (connect failure)")
        with effect(self.faults, method):
            pass

    def _partition(self, asked: Submit) -> str:
        default = next((p.name for p in self.cluster.partitions if p.is_default), "")
        return asked.partition or default or self.cluster.partitions[0].name

    def _is_satisfiable(self, asked: Submit) -> bool:
        """Some placeholder group of the partition holds the job and is as large as its -N."""
        partition = self.cluster.partition(self._partition(asked))
        for pool in self.cluster.pools:
            if partition is None or pool.name not in partition.pools:
                continue
            for instance_type, offering in pool.offerings():
                features = pool.features(instance_type.name, offering.market)
                if (
                    not lacks(asked.shape, instance_type)
                    and satisfies(asked.constraint, features)
                    and asked.nodes <= pool.max_job_nodes
                ):
                    return True
        return False

    def _running(self) -> list[SimJob]:
        return [job for job in self.jobs.values() if job.state == "RUNNING"]

    def _on(self, name: str) -> list[SimJob]:
        """The jobs that hold the node."""
        return [job for job in self.jobs.values() if name in job.node_names]

    def _known(self, names: Sequence[str]) -> list[SimNode]:
        return [self.nodes[name] for name in names if name in self.nodes]

    def _finishes(self, job: SimJob, now_s: float) -> bool:
        """A job whose node died makes no progress."""
        alive = all(n.died_at_s is None for n in self._known(job.node_names))
        return alive and job.ends_at_s <= now_s

    def _end(self, job: SimJob, state: str) -> None:
        now_s = self.clock.now_s()
        for node in self._known(job.node_names):
            node.last_busy_at_s = now_s
        job.state, job.ended_at_s, job.node_names = state, now_s, ()

    def _requeue(self, job: SimJob, *, completes: bool) -> None:
        """Back into the queue, for two minutes not eligible; an old run that lives ends first."""
        now_s = self.clock.now_s()
        job.requeues += 1
        job.reason, job.eligible_at_s = "BeginTime", now_s + REQUEUE_DELAY_S
        if completes:
            job.state, job.ended_at_s = "COMPLETING", now_s
        else:
            self._end(job, "PENDING")

    def _set_down(self, node: SimNode) -> None:
        node.is_down, node.reason = True, "Not responding"
        for job in self._on(node.name):
            if job.state == "COMPLETING" or job.submit.is_requeueable:
                self._requeue(job, completes=False)
            else:
                self._end(job, "NODE_FAIL")

    def _main_pass(self) -> None:
        """The main scheduler stops at the first job that cannot start."""
        self._pass(blocks=True)

    def _pass(self, *, blocks: bool) -> None:
        """One scheduling pass; backfill goes past a blocked job and may rob a gang."""
        if not self.is_up:
            return
        pending = [j for j in self.jobs.values() if j.state == "PENDING"]
        pending.sort(key=lambda j: -j.submit.priority)
        reason = NODES_DOWN
        for job in pending:
            if job.eligible_at_s > self.clock.now_s():
                continue
            if self._is_throttled(job):
                # With no node up Slurm has not looked at the cap yet.
                job.reason = "JobArrayTaskLimit" if self.nodes else NOT_AVAILABLE
                continue
            if self._try_start(job):
                continue
            job.reason, reason = reason, NOT_AVAILABLE
            if blocks:
                return

    def _is_throttled(self, job: SimJob) -> bool:
        throttle = job.submit.throttle
        running = sum(each.array_job_id == job.array_job_id for each in self._running())
        return bool(throttle) and running >= throttle

    def _try_start(self, job: SimJob) -> bool:
        fitting = [n for n in self.nodes.values() if self._has_room(n, job.submit)]
        fitting.sort(key=lambda node: node.weight)
        if len(fitting) < job.submit.nodes:
            return False
        job.state, job.reason, job.starts = "RUNNING", "None", job.starts + 1
        job.started_at_s = self.clock.now_s()
        job.node_names = tuple(node.name for node in fitting[: job.submit.nodes])
        self.last_nodes[job.job_id] = job.node_names
        return True

    def _has_room(self, node: SimNode, asked: Submit) -> bool:
        shape = asked.shape
        if node.is_drain or node.is_down or not satisfies(asked.constraint, node.features):
            return False
        if asked.node_name not in ("", node.name):
            return False
        partition = self.cluster.partition(self._partition(asked))
        if partition is None or not set(partition.pools) & set(node.features):
            return False
        if shape.gpus and shape.gpu_type not in ("", node.gpu_type):
            return False
        cpus, memory_mib, gpus = self._allocated(node)
        if shape.is_exclusive and cpus:
            return False
        return (
            shape.cpus <= node.cpus - cpus
            and shape.memory_mib <= node.memory_mib - memory_mib
            and shape.gpus <= node.gpus - gpus
        )

    def _allocated(self, node: SimNode) -> tuple[int, int, int]:
        shapes = [job.submit.shape for job in self._on(node.name)]
        if any(shape.is_exclusive for shape in shapes):
            return node.cpus, node.memory_mib, node.gpus
        return (
            sum(shape.cpus for shape in shapes),
            sum(shape.memory_mib for shape in shapes),
            sum(shape.gpus for shape in shapes),
        )

    def _node(self, node: SimNode) -> Node:
        cpus, memory_mib, gpus = self._allocated(node)
        base = "ALLOCATED" if cpus >= node.cpus else "MIXED" if self._on(node.name) else "IDLE"
        words = {"DOWN" if node.is_down else base, "DYNAMIC_NORM"}
        words |= {"DRAIN"} if node.is_drain else set()
        words |= (
            {"COMPLETING"} if any(j.state == "COMPLETING" for j in self._on(node.name)) else set()
        )
        return Node(
            name=node.name,
            state=NodeState(frozenset(words)),
            cpus=node.cpus,
            memory_mib=node.memory_mib,
            gpus=node.gpus,
            gpu_type=node.gpu_type,
            cpus_alloc=cpus,
            memory_alloc_mib=memory_mib,
            gpus_alloc=gpus,
            features=node.features,
            reason=node.reason,
            last_busy_at_s=node.last_busy_at_s,
        )

    def _rows(self) -> list[Job]:
        """The queue as squeue shows it: the pending tasks of an array are one row."""
        rows: dict[str, Job] = {}
        for job in self.jobs.values():
            row = self._row(job)
            if job.state == "PENDING" and job.array_job_id and not job.requeues:
                before = rows.get(job.array_job_id)
                count = (before.count if before else 0) + 1
                rows[job.array_job_id] = replace(row, job_id=job.array_job_id, count=count)
            else:
                rows[job.job_id] = row
        return [self._capped(row) for row in rows.values()]

    def _capped(self, row: Job) -> Job:
        """What the agent makes of an array's %limit."""
        first = self.jobs.get(f"{row.job_id}_0")
        throttle = first.submit.throttle if first else 0
        if not throttle or not row.is_pending:
            return row
        running = sum(job.array_job_id == row.job_id for job in self._running())
        return replace(row, count=max(0, min(row.count, throttle - running)))

    def _row(self, job: SimJob) -> Job:
        asked = job.submit
        return Job(
            job_id=job.job_id,
            state=job.state,
            partitions=(self._partition(asked),),
            nodes=asked.nodes,
            shape=asked.shape,
            user=asked.user,
            array_job_id=job.array_job_id,
            reason=job.reason,
            priority=asked.priority,
            constraint=asked.constraint,
            time_limit_s=asked.time_limit_s,
            comment=asked.comment,
            node_names=job.node_names,
            is_requeueable=asked.is_requeueable,
        )
