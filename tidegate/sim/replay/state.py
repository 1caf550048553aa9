"""Nodes and jobs of a replay: what EC2 bills and what Slurm knows, in one place."""

from dataclasses import dataclass, field

from tidegate.core.demand.fit import lacks
from tidegate.core.model.ec2 import InstanceType, Offering
from tidegate.core.model.slurm import Job, Shape
from tidegate.sim.replay.parts import Cut, Shared, parts_of, whole_gpus
from tidegate.sim.replay.steps import Steps
from tidegate.sim.replay.trace import NEURON, TraceJob

# A Monday. The history's second 0.
EPOCH_S = 1_699_833_600.0


@dataclass(slots=True, eq=False)
class Run:
    """A job of the history in this replay.

    `limit_s`: what Slurm and the planner take for its time limit. `left_s`: the work that is
    still to be done; `ready_s`: since when it waits; `place`: its place in the queue; `kind`: a
    number that jobs of equal needs share; `starts`: counts its starts, so that an end that was
    due for an earlier one is known; `first_on`: what it started on first. `gpus`: whole ones that
    all it asks for comes to.
    """

    job: TraceJob
    limit_s: float
    place: int
    pending: Job
    kind: int
    left_s: float
    ready_s: float
    gpus: float = 0.0
    started_s: float = -1.0
    first_started_s: float = -1.0
    ended_s: float = -1.0
    starts: int = 0
    machines: tuple["Machine", ...] = ()
    running: Job | None = None
    reason: str = ""
    first_on: Offering | None = None

    @property
    def is_running(self) -> bool:
        return bool(self.machines)

    @property
    def wait_s(self) -> float:
        """From its submission to its first start."""
        return self.first_started_s - self.ready_s


@dataclass(eq=False)
class Machine:
    """A node from its purchase to its end.

    `usd_per_hour`: what the planner takes for its price; `price`: what EC2 bills, in USD per
    hour, where that changes. `account`, `user`: of the job it was bought for, where the
    policy says. `layout`: into which MIG instances its GPUs are cut. `parts`: of GPUs that are
    not given away whole, in the place of `gpus_free`.
    """

    name: str
    pool: str
    offering: Offering
    instance_type: InstanceType
    usd_per_hour: float
    launched_s: float
    joins_s: float
    features: tuple[str, ...]
    price: Steps | None = None
    account: str = ""
    user: str = ""
    layout: str = ""
    is_up: bool = False
    is_drain: bool = False
    drain_reason: str = ""
    gated_for: str = ""
    closes: tuple[str, float] = "", 0.0
    ended_s: float | None = None
    reclaim_s: float | None = None
    idle_since_s: float = 0.0
    weight: int = 1
    gpus_free: int = 0
    cpus_free: int = 0
    memory_free_mib: int = 0
    num_exclusive: int = 0
    runs: dict[int, Run] = field(default_factory=dict)
    busy_s: float = 0.0
    gpu_busy_s: float = 0.0
    changes: int = 0
    # By kind of job: for which `changes` it holds, when such a job would fit, and what is left.
    frees: dict[int, tuple[int, float, int | Cut | Shared]] = field(default_factory=dict)
    parts: Cut | Shared | None = field(init=False)
    _ends: tuple[int, tuple[tuple[float, Shape, str], ...]] = (-1, ())

    def __post_init__(self) -> None:
        self.weight = 1 + self.instance_type.gpus
        self.gpus_free = self.instance_type.gpus
        self.cpus_free = self.instance_type.cpus
        self.memory_free_mib = self.instance_type.slurm_memory_mib
        self.parts = parts_of(self.instance_type, self.layout)

    @property
    def rank(self) -> tuple[int, str]:
        """Slurm fills the lowest weight first, and of equal ones the first that joined."""
        return self.weight, self.name

    def cost_usd(self, from_s: float, to_s: float) -> float:
        """What EC2 bills for the seconds from one moment to another."""
        if self.price is None:
            return self.usd_per_hour * (to_s - from_s) / 3600.0
        return self.price.sum(from_s - EPOCH_S, to_s - EPOCH_S) / 3600.0

    @property
    def is_empty(self) -> bool:
        return not self.runs

    @property
    def takes_jobs(self) -> bool:
        return self.is_up and not self.is_drain and self.ended_s is None

    def room(self, shape: Shape) -> bool:
        """Whether one node's share of a job fits now."""
        if self.num_exclusive or (shape.is_exclusive and self.runs):
            return False
        return (
            self._has_gpus(shape)
            and self.cpus_free >= shape.cpus
            and self.memory_free_mib >= shape.memory_mib
        )

    def _has_gpus(self, shape: Shape) -> bool:
        if self.parts is None or not shape.gpus:
            return self.gpus_free >= shape.gpus
        return self.parts.has_room(shape)

    def could(self, shape: Shape) -> bool:
        """Whether it fits on an empty node of this type, cut as this one is."""
        of = self.instance_type
        if self.parts is not None and shape.gpus and not self.parts.emptied().has_room(shape):
            return False
        if self.parts is not None or shape.gres != of.gres:
            return not lacks(shape, of)
        return (
            of.gpus >= shape.gpus
            and of.cpus >= shape.cpus
            and of.slurm_memory_mib >= shape.memory_mib
            and (not shape.gpus or (shape.gres == NEURON) == (of.gres == NEURON))
            and (not shape.gpu_type or not shape.gpus or shape.gpu_type == of.gpu_type)
        )

    def ends(self) -> tuple[tuple[float, Shape, str], ...]:
        """When its jobs end by their time limits, the first to end first, what each has, its id."""
        if self._ends[0] != self.changes:
            runs = self.runs.values()
            ends = sorted((r.started_s + r.limit_s, r.place, r.pending) for r in runs)
            self._ends = self.changes, tuple((s, job.shape, job.job_id) for s, _, job in ends)
        return self._ends[1]

    def put(self, run: Run) -> None:
        shape = run.pending.shape
        self.runs[run.place] = run
        if self.parts is not None:
            self.parts.give(run.pending.job_id, shape)
        self.gpus_free -= shape.gpus
        self.cpus_free -= shape.cpus
        self.memory_free_mib -= shape.memory_mib
        self.num_exclusive += shape.is_exclusive
        self.changes += 1

    def take(self, run: Run, now_s: float) -> None:
        """Its job has ended or was requeued."""
        shape = run.pending.shape
        del self.runs[run.place]
        if self.parts is not None:
            self.parts.take_back(run.pending.job_id)
        self.gpus_free += shape.gpus
        self.cpus_free += shape.cpus
        self.memory_free_mib += shape.memory_mib
        self.num_exclusive -= shape.is_exclusive
        self.changes += 1
        self.gpu_busy_s += whole_gpus(shape, self.instance_type) * (now_s - run.started_s)
        if not self.runs:
            self.idle_since_s = now_s
