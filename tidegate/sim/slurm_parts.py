"""What the simulated slurmctld keeps: what users asked, jobs and nodes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tidegate.core.model.devices import SHARED_GRES
from tidegate.core.model.ec2 import InstanceType
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Association, Job, Node, NodeReservation, SetBy, Shape
from tidegate.sim.slurm_shares import SharedGpus

LAST = "last"


class SubmitRefused(Exception):
    """sbatch's own words for a job that no placeholder could ever hold."""


@frozen
class Submit:
    """What a user asks with sbatch.

    `array`: number of tasks; `throttle`: its %limit; `node_name`: -w; `is_held`: -H;
    `licences`: how many of the cluster's licences it holds while it runs (-L).
    `signal`: its script's `--signal`; `begin_after_s`: --begin=now+SECONDS; `beside`: the other
    components of a heterogeneous job (`:`). `ends_in_s`: how long a run that is requeued takes to
    end: TERM, KillWait and the epilog. `excluded`: -x; `reservation`: --reservation; `name`: -J.
    `deadline_in_s`: it has to begin by then, else it goes. `after`: the job that has to have ended
    before (--dependency=afterany), `LAST`: the one that was submitted before it.
    """

    user: str
    shape: Shape
    duration_s: float
    nodes: int = 1
    partition: str = ""
    constraint: str = ""
    array: int = 0
    throttle: int = 0
    priority: int = 1
    comment: str = ""
    is_requeueable: bool = True
    time_limit_s: float | None = None
    node_name: str = ""
    account: str = ""
    qos: str = ""
    is_held: bool = False
    licences: int = 0
    signal: str = ""
    begin_after_s: float = 0.0
    beside: tuple["Submit", ...] = ()
    ends_in_s: float = 2.0
    excluded: tuple[str, ...] = ()
    reservation: str = ""
    name: str = ""
    deadline_in_s: float = float("inf")
    after: str = ""


@dataclass(slots=True)
class SimJob:
    """One job or array task. `began_at_s`: its start on the head's clock; `saved_s`: progress kept
    by its checkpoint of `unsaved_since_s`; `killed_at_s`: when its last run was told to end; `row`:
    what squeue showed of it, and of which state that was.
    """

    submit: Submit
    job_id: str
    array_job_id: str
    state: str = "PENDING"
    reason: str = "None"
    eligible_at_s: float = 0.0
    started_at_s: float = 0.0
    ended_at_s: float = 0.0
    node_names: tuple[str, ...] = ()
    began_at_s: float = 0.0
    unsaved_since_s: float = 0.0
    saved_s: float = 0.0
    killed_at_s: float = 0.0
    requeues: int = 0
    starts: int = 0
    signals: list[str] = field(default_factory=list)
    admin_comment: str = ""
    output: list[str] = field(default_factory=list)
    het_job_id: str = ""
    row: tuple[object, Job] | None = None
    suspended_at_s: float = 0.0

    def comes_after(self, others: Iterable["SimJob"]) -> bool:
        """Whether the job that it may start after is among them."""
        after = self.submit.after
        return bool(after) and any(after in (j.job_id, j.array_job_id) for j in others)

    def begin(self, head_now_s: float) -> None:
        """As squeue shows it, to the second."""
        self.began_at_s, self.unsaved_since_s = float(int(head_now_s)), self.started_at_s

    def save(self, now_s: float) -> None:
        """What it has done so far need not be done again. While it is suspended it does nothing."""
        until_s = self.suspended_at_s if self.state == "SUSPENDED" else now_s
        self.saved_s += until_s - self.unsaved_since_s
        self.unsaved_since_s = until_s

    @property
    def is_running(self) -> bool:
        return self.state in ("RUNNING", "SUSPENDED")

    def take(self, signal: str, now_s: float) -> bool:
        """A signal reaches it; True: it saves what it has done."""
        self.signals.append(signal)
        if "tidegate:ckpt" not in self.submit.comment and not self.submit.signal:
            return False
        self.save(now_s)
        return True

    @property
    def ends_at_s(self) -> float:
        return self.unsaved_since_s + self.submit.duration_s - self.saved_s


@dataclass(slots=True)
class SimNode:
    """A registered dynamic node; Slurm fills the lowest `weight` first, after a restart again
    that with which it joined.

    `died_at_s`: its slurmd is gone, slurmctld does not know yet. `is_silent`: it has asked the
    node and got no answer; for a moment, until `answers_at_s`, where it was just opened.
    `is_planned`: backfill means it for a job that still waits for others. `reboot`: Slurm's word,
    if it is to be rebooted or is being. `reserved`: the words of its reservation. `jobs`: those
    that hold it. `row`: what sinfo showed of it, and of which state that was. `instances`: MIG
    instances by type, of a node whose GPUs are cut. `shares`: of one whose GPUs are shared.
    """

    name: str
    cpus: int
    memory_mib: int
    gpus: int
    gpu_type: str
    features: tuple[str, ...]
    weight: int = 1
    is_drain: bool = False
    is_down: bool = False
    reason: str = ""
    set_by: SetBy = SetBy.UNKNOWN
    last_busy_at_s: float = 0.0
    died_at_s: float | None = None
    is_silent: bool = False
    answers_at_s: float = 0.0
    is_planned: bool = False
    reboot: str = ""
    reserved: frozenset[str] = frozenset()
    jobs: dict[str, SimJob] = field(default_factory=dict)
    row: tuple[object, Node] | None = None
    instances: tuple[tuple[str, int], ...] = ()
    shares: SharedGpus | None = None
    joined_weight: int = field(init=False)

    def __post_init__(self) -> None:
        self.joined_weight = self.weight

    @property
    def is_busy(self) -> bool:
        """Whether Slurm's own state shows it: 22.05 shows the node of a suspended job as idle."""
        return any(job.state != "SUSPENDED" for job in self.jobs.values())

    def take(self, job: SimJob) -> None:
        """It holds the node, or its part of it, from now on."""
        self.jobs[job.job_id] = job
        if self.shares is not None:
            self.shares.give(job.job_id, job.submit.shape)

    def give_back(self, job: SimJob) -> None:
        self.jobs.pop(job.job_id, None)
        if self.shares is not None:
            self.shares.take_back(job.job_id)

    def allocated(self) -> tuple[int, int, int]:
        """CPUs, memory and GPUs that its jobs hold; a suspended one has given its CPUs away."""
        cpus = memory_mib = gpus = 0
        shares = self.shares
        for job in self.jobs.values():
            shape = job.submit.shape
            is_suspended = job.state == "SUSPENDED"
            if shape.is_exclusive and not is_suspended:
                return self.cpus, self.memory_mib, self.gpus if shares is None else shares.whole
            cpus += 0 if is_suspended else shape.cpus
            memory_mib += shape.memory_mib
            gpus += shape.gpus
        return cpus, memory_mib, gpus if shares is None else shares.whole

    def emptied(self) -> "SimNode":
        of = self.gpus, self.gpu_type, self.features
        node = SimNode(self.name, self.cpus, self.memory_mib, *of, instances=self.instances)
        node.shares = self.shares and replace(self.shares)
        return node

    def free_instances(self) -> dict[str, int]:
        """MIG instances that no job holds; who names no type has the first that were free."""
        left = dict(self.instances)
        for job in self.jobs.values():
            shape = job.submit.shape
            wanted = sum(left.values()) if shape.is_exclusive else shape.gpus
            for gpu_type, free in left.items():
                if shape.is_exclusive or shape.gpu_type in ("", gpu_type):
                    left[gpu_type] = free - min(free, wanted)
                    wanted -= min(free, wanted)
        return left

    def has_room(self, asked: Submit) -> bool:
        """Whether one node's share of the job fits beside what runs here."""
        shape = asked.shape
        if self.instances and shape.gpus and shape.gpu_type:
            if shape.gpus > self.free_instances().get(shape.gpu_type, 0):
                return False
        elif shape.gpus and shape.gpu_type not in ("", self.gpu_type):
            return False
        cpus, memory_mib, gpus = self.allocated()
        if shape.is_exclusive and self.jobs:
            return False
        if shape.cpus > self.cpus - cpus or shape.memory_mib > self.memory_mib - memory_mib:
            return False
        if self.shares is not None and shape.gpus:
            return self.shares.has_room(shape)
        return shape.gpus <= self.gpus - gpus and not (shape.gpus and shape.gres in SHARED_GRES)


def node_of(
    name: str,
    shape: InstanceType,
    features: tuple[str, ...],
    *,
    is_gated: bool,
    instances: tuple[tuple[str, int], ...] = (),
) -> SimNode:
    """What slurmd -Z registers on an instance of this type; behind a gate it joins drained."""
    return SimNode(
        name=name,
        cpus=shape.cpus,
        memory_mib=shape.slurm_memory_mib,
        gpus=sum(count for _, count in instances) or shape.gpus,
        gpu_type=instances[0][0] if instances else shape.gpu_type,
        instances=instances,
        shares=_shares(shape),
        features=features,
        weight=1 + shape.gpus,
        is_drain=is_gated,
    )


def _shares(of: InstanceType) -> SharedGpus | None:
    return SharedGpus(of.shared_gres, of.shards_per_gpu, of.gpus) if of.shards_per_gpu else None


def caps_over(caps: Sequence[Association], asked: Submit) -> list[Association]:
    """What accounting holds against a job: GrpTRES of its QOS stands in for its account's."""
    counting = [cap for cap in caps if counts(cap, asked)]
    of_qos = {cap.tres for cap in counting if cap.qos and cap.in_all is not None}
    return [cap for cap in counting if cap.qos or cap.in_all is None or cap.tres not in of_qos]


def counts(cap: Association, asked: Submit) -> bool:
    """Slurm's own rule, written down once more: the planner's reading of it may be wrong."""
    in_account = not cap.account or asked.account in (cap.account, *cap.accounts_below)
    gres = f"gres/{asked.shape.gres}"
    is_kind = cap.tres in (gres, f"{gres}:{asked.shape.gpu_type}")
    return in_account and is_kind and cap.user in ("", asked.user) and cap.qos in ("", asked.qos)


def gpus_of(submits: Sequence[Submit]) -> int:
    return sum(each.nodes * each.shape.gpus for each in submits)


def over_cap(caps: Sequence[Association], asked: Submit, running: Sequence[Submit]) -> str:
    """Slurm's reason when accounting stops a job beside those that run."""
    gpus = gpus_of([asked])
    for cap in caps_over(caps, asked) if gpus else ():
        kind = "QOS" if cap.qos else "Assoc"
        used = [s for s in running if counts(cap, s)]
        if cap.per_job is not None and gpus > cap.per_job:
            return f"{kind}MaxGRESPerJob"
        if cap.in_all is not None and gpus + gpus_of(used) > cap.in_all:
            return f"{kind}GrpGRES"
        mine = [each for each in used if each.user == asked.user]
        if cap.per_user is not None and gpus + gpus_of(mine) > cap.per_user:
            return f"{kind}MaxGRESPerUser"
    return ""


def without_node(reservations: Sequence[NodeReservation], name: str) -> list[NodeReservation]:
    """A reservation that has not begun loses the node, and ends with its last one."""
    kept = [replace(r, nodes=tuple(n for n in r.nodes if n != name)) for r in reservations]
    return [each for each in kept if each.nodes or each.is_of_all]
