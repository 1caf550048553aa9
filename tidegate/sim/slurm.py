"""slurmctld as the facts describe it: placeholders, passes, requeue delays, slow death notices."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.drain_reason import OPEN
from tidegate.core.model.ended import EndedJob
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.slurm import Association, NodeReservation, Reading, SetBy
from tidegate.ports import Clock
from tidegate.sim.faults import Faults, effect, no_faults
from tidegate.sim.slurm_checks import SimChecks, submit_of
from tidegate.sim.slurm_parts import LAST, SimJob, SimNode, Submit, SubmitRefused, without_node
from tidegate.sim.slurm_reboots import SimReboots
from tidegate.sim.slurm_rows import is_satisfiable, reading, refused_constraints
from tidegate.sim.slurm_table import NEVER_S, Table

# Source: slurm.conf(5), MinJobAge.
MIN_JOB_AGE_S = 300.0

type Command = Callable[[str, tuple[str, ...]], None]


@dataclass(slots=True)
class SimSlurm:
    """One slurmctld. Users call `submit`; machines `register` and `die`; time calls `step`.

    `on_command` hears each command of the agent that changes something, before it does; `on_join`
    each node right after it has joined.
    """

    cluster: Cluster
    clock: Clock
    faults: Faults = no_faults
    associations: tuple[Association, ...] = ()
    licences: int = 0
    head_clock: Clock | None = None
    is_up: bool = True
    on_command: list[Command] = field(default_factory=list)
    on_join: list[Callable[[SimNode], None]] = field(default_factory=list)
    table: Table = field(init=False)
    _number: int = 0
    _read: tuple[int, Reading] | None = None
    _ended: list[EndedJob] = field(default_factory=list)
    _checks: SimChecks = field(default_factory=SimChecks)
    reboots: SimReboots = field(init=False)

    def __post_init__(self) -> None:
        self.table = Table(
            self.cluster,
            self.clock,
            self.head_clock or self.clock,
            self.associations,
            self.licences,
        )
        self.table.on_start.append(lambda job: job.begin(self.table.head_clock.now_s()))
        self.table.on_job_end.append(self._note_end)
        self.reboots = SimReboots(self.table)

    @property
    def jobs(self) -> dict[str, SimJob]:
        return self.table.jobs

    @property
    def nodes(self) -> dict[str, SimNode]:
        return self.table.nodes

    # -- what users do ---------------------------------------------------------------------

    def submit(self, asked: Submit) -> str:
        """The job id, as `sbatch --parsable` prints it; SubmitRefused when impossible."""
        if asked.node_name and not self.nodes.keys() >= set(asked.node_name.split(",")):
            raise SubmitRefused("Invalid node name specified")
        if not all(is_satisfiable(each, self.table) for each in (asked, *asked.beside)):
            raise SubmitRefused("Requested node configuration is not available")
        if asked.beside:
            return self._submit_het((asked, *asked.beside))
        asked = replace(asked, after=str(self._number)) if asked.after == LAST else asked
        self._number += 1
        job_id = str(self._number)
        for task in range(max(asked.array, 1)):
            task_id = f"{job_id}_{task}" if asked.array else job_id
            job = SimJob(asked, task_id, job_id if asked.array else "")
            job.eligible_at_s = self.clock.now_s() + asked.begin_after_s
            self.jobs[task_id] = self.table.active[task_id] = job
        self.table.changed()
        self.table.main_pass()
        return job_id

    def _submit_het(self, components: Sequence[Submit]) -> str:
        """Each component is a job with an id of its own; the first one's names them all."""
        leader = str(self._number + 1)
        for each in components:
            self._number += 1
            job_id = str(self._number)
            job = SimJob(each, job_id, "", het_job_id=leader)
            job.eligible_at_s = self.clock.now_s()
            self.jobs[job_id] = self.table.active[job_id] = job
        self.table.changed()
        return leader

    def cancel(self, job_id: str) -> None:
        for job in list(self.table.active.values()):
            if job_id in (job.job_id, job.array_job_id, job.het_job_id) and job.state in (
                "PENDING",
                "RUNNING",
                "SUSPENDED",
            ):
                self.table.end(job, "CANCELLED")
        self.table.main_pass()

    def let_go(self, job_id: str) -> None:
        """`scontrol release` of a held job."""
        for job in self.table.active.values():
            if job_id in (job.job_id, job.array_job_id):
                job.submit = replace(job.submit, is_held=False)
                job.reason = "None"
        self.table.changed()
        self.table.main_pass()

    def reserve(self, reservation: NodeReservation) -> None:
        """`scontrol create reservation`."""
        self.table.reservations.append(reservation)
        self.table.mark_reserved()
        self.table.changed()

    def unreserve(self, name: str) -> None:
        """`scontrol delete reservation`."""
        self.table.reservations = [r for r in self.table.reservations if r.name != name]
        self.table.mark_reserved()
        self.table.changed()

    def suspend(self, job_id: str) -> None:
        """`scontrol suspend`: the job keeps its nodes, memory and GPUs, and gives its CPUs away."""
        job = self.table.active.get(job_id)
        if job is not None and job.state == "RUNNING":
            job.state, job.suspended_at_s = "SUSPENDED", self.clock.now_s()
            self.table.changed()

    def resume(self, job_id: str) -> None:
        """`scontrol resume`; a job that waits or has ended meanwhile is left alone."""
        job = self.table.active.get(job_id)
        if job is not None and job.state == "SUSPENDED":
            job.state = "RUNNING"
            job.unsaved_since_s += self.clock.now_s() - job.suspended_at_s
            self.table.changed()

    # -- what machines do ------------------------------------------------------------------

    def register(self, node: SimNode) -> None:
        """Slurmd -Z. A known name keeps its record; registration starts no scheduling pass."""
        if self.is_up and node.name in self.nodes:
            self.reboots.is_back(self.nodes[node.name])
        elif self.is_up:
            now_s = self.table.head_clock.now_s()
            joined = self.nodes[node.name] = replace(node, last_busy_at_s=now_s, jobs={})
            if node.shares is not None:
                joined.shares = replace(node.shares, tells_each=self.table.tells_shards)
            self.table.changed()
            for tell in self.on_join:
                tell(joined)

    def drains_itself(self, name: str, reason: str) -> None:
        """Slurmctld, an epilog that failed for example: an older reason stays."""
        node = self.nodes.get(name)
        if self.is_up and node is not None and not node.is_drain:
            node.is_drain, node.set_by = True, SetBy.SLURM
            node.reason = node.reason or reason
            self.table.changed()

    def is_drained_by(self, set_by: SetBy, name: str, reason: str) -> None:
        """`scontrol update` by somebody else than the agent."""
        node = self.nodes.get(name)
        if self.is_up and node is not None:
            node.is_drain, node.reason, node.set_by = True, reason, set_by
            self.table.changed()

    def die(self, name: str) -> None:
        """The machine vanished: the node looks alive until SlurmdTimeout."""
        node = self.nodes.get(name)
        if node is not None and node.died_at_s is None:
            node.died_at_s = self.clock.now_s()
            self.table.changed()

    def restart(self) -> None:
        """Slurmctld starts anew: it cancels pending jobs that name a node which is gone."""
        for job in list(self.table.active.values()):
            names = job.submit.node_name
            is_gone = bool(names) and not self.nodes.keys() >= set(names.split(","))
            if job.state == "PENDING" and is_gone:
                self.table.end(job, "CANCELLED")
        for node in self.nodes.values():
            node.weight = node.joined_weight
        self.table.changed()

    def next_due_s(self) -> float:
        due = self.table.next_due_s(), self._checks.next_due_s(), self.reboots.next_due_s()
        return min(due) if self.is_up else NEVER_S

    def step(self) -> None:
        """Let everything happen that is due by now."""
        if self.is_up:
            self._checks.step(self.clock.now_s(), self.table.end)
            self.table.step()
            self.reboots.step()

    # -- ports.Slurm -----------------------------------------------------------------------

    def read(self) -> Reading:
        self._must_be_up("read")
        if self._read is None or self._read[0] != self.table.changes:
            kept_s = self.table.head_clock.now_s() - MIN_JOB_AGE_S
            self._ended = [each for each in self._ended if each.ended_at_s > kept_s]
            ended, checks = tuple(self._ended), tuple(self._checks.told())
            found = replace(reading(self.table), ended=ended, checks=checks)
            self._read = (self.table.changes, found)
        return self._read[1]

    def _note_end(self, job: SimJob) -> None:
        """What squeue shows of it for a while, with the nodes that it had; to the second."""
        names = self.table.last_nodes.get(job.job_id)
        if names and job.state in ("COMPLETED", "FAILED"):
            at_s = float(int(self.table.head_clock.now_s()))
            self._ended.append(EndedJob(job.job_id, names, at_s, job.state == "FAILED"))

    def drain(self, names: Sequence[str], reason: str) -> None:
        with self._command("drain", names):
            for node in self._known(names):
                node.is_drain, node.reason, node.set_by = True, reason, SetBy.US
            self.table.changed()

    def weigh(self, names: Sequence[str], weight: int) -> None:
        with self._command("weigh", names):
            for node in self._known(names):
                node.weight = weight
            self.table.changed()

    def reboot(self, names: Sequence[str]) -> None:
        with self._command("reboot", names):
            self.reboots.ask(self._known(names))

    def down(self, names: Sequence[str], reason: str) -> None:
        with self._command("down", names):
            for node in self._known(names):
                self.table.set_down(node, reason)
                node.reason, node.set_by = reason, SetBy.US

    def undrain(self, names: Sequence[str]) -> None:
        with self._command("undrain", names):
            for node in self._known(names):
                # As 24.11, which keeps the reason that comes with an undrain.
                node.is_drain, node.reason, node.set_by = False, OPEN, SetBy.SLURM
                self.table.ask(node)
            self.table.changed()
            self.table.main_pass()

    def delete(self, names: Sequence[str]) -> dict[str, str]:
        """22.05 looks at the node's state alone, and ends at one that has a suspended job."""
        with self._command("delete", names):
            known = self._known(names)
            busy = {n.name: "Requested nodes are busy" for n in known if n.is_busy or n.reserved}
            if any(node.jobs and node.name not in busy for node in known):
                self.is_up = False
                raise SlurmUnavailable("Zero Bytes were transmitted or received")
            for name in names:
                if name not in busy:
                    self.nodes.pop(name, None)
                    self.table.reservations = without_node(self.table.reservations, name)
            self.table.changed()
        return busy

    def requeue(self, job_ids: Sequence[str]) -> dict[str, str]:
        """A running job first ends; one that is pending already is no refusal. Through its first
        component, running or not, a heterogeneous job is requeued whole.
        """
        refused: dict[str, str] = {}
        with self._command("requeue", job_ids):
            for job_id in job_ids:
                job = self.jobs.get(job_id)
                if job is not None and job.state == "PENDING":
                    if job.het_job_id == job_id:
                        self.table.requeue_beside(job)
                    continue
                if job is None or not job.is_running or not job.submit.is_requeueable:
                    refused[job_id] = "Requested operation is presently disabled"
                elif job.het_job_id not in ("", job_id):
                    refused[job_id] = "Job not heterogeneous job leader"
                else:
                    self.table.requeue(job, completes=True)
                    self.table.requeue_beside(job)
        return refused

    def hold(self, job_ids: Sequence[str]) -> dict[str, str]:
        """Whoever held it says: "JobHeldAdmin"."""
        refused: dict[str, str] = {}
        with self._command("hold", job_ids):
            for job_id in job_ids:
                job = self.jobs.get(job_id)
                if job is None or job.job_id not in self.table.active:
                    refused[job_id] = "Invalid job id specified"
                    continue
                for each in (job, *self.table.beside(job)):
                    each.submit = replace(each.submit, is_held=True)
                    if each.is_running:
                        self.table.requeue(each, completes=True)
                    each.reason = "JobHeldAdmin"
                self.table.changed()
        return refused

    def start(self, job_ids: Sequence[str]) -> None:
        """Of a job that is COMPLETING Slurm sets the delay again when that is over."""
        with self._command("start", job_ids):
            for job in list(self.table.active.values()):
                if job.state == "PENDING" and not {job.job_id, job.het_job_id}.isdisjoint(job_ids):
                    job.eligible_at_s, job.reason = self.clock.now_s(), "None"
                    self.table.changed()
            self.table.main_pass()

    def signal(self, job_ids: Sequence[str], signal: str) -> dict[str, str]:
        refused: dict[str, str] = {}
        with self._command("signal", job_ids):
            for job_id in job_ids:
                job = self.jobs.get(job_id)
                if job is None or job.state != "RUNNING":
                    refused[job_id] = "Invalid job id specified"
                    continue
                for each in self.table.reached_by(job, signal):
                    if each.take(signal, self.clock.now_s()):
                        self.table.changed()
        return refused

    def scancel(self, job_ids: Sequence[str]) -> dict[str, str]:
        with self._command("scancel", job_ids):
            for job_id in job_ids:
                job = self.table.active.get(job_id)
                for each in (job, *self.table.beside(job)) if job else ():
                    self.table.end(each, "CANCELLED")
        return {}

    def tell(self, job_id: str, text: str) -> str:
        with self._command("tell", (job_id,)):
            job = self.jobs.get(job_id)
            if job is None or not job.is_running:
                return "Invalid job id specified"
            job.output.append(text)
        return ""

    def comment(self, job_id: str, text: str) -> None:
        with self._command("comment", (job_id,)):
            if job_id in self.jobs:
                self.jobs[job_id].admin_comment = text
            self.table.main_pass()

    def constrain(self, job_ids: Sequence[str], constraint: str) -> dict[str, str]:
        with self._command("constrain", job_ids):
            return refused_constraints(job_ids, constraint, self.table)

    def check(self, name: str, nodes: Sequence[str]) -> str:
        asked = submit_of(self.cluster, name, tuple(nodes))
        with self._command("check", nodes):
            self.table.changed()
            return self._checks.submit(asked, self.submit, self.jobs)

    def poke(self, names: Sequence[str]) -> None:
        self._must_be_up("poke")
        self.table.main_pass()

    # -- inside ----------------------------------------------------------------------------

    def _must_be_up(self, method: str) -> None:
        if not self.is_up:
            raise SlurmUnavailable("Unable to contact slurm controller (connect failure)")
        with effect(self.faults, method):
            pass

    @contextmanager
    def _command(self, method: str, names: Sequence[str]) -> Iterator[None]:
        if not self.is_up:
            raise SlurmUnavailable("Unable to contact slurm controller (connect failure)")
        for tell in self.on_command:
            tell(method, tuple(names))
        with effect(self.faults, method):
            yield

    def _known(self, names: Sequence[str]) -> list[SimNode]:
        return [self.nodes[name] for name in names if name in self.nodes]
