"""Slurm's words: nodes, their state, jobs, and the limits that accounting knows."""

from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum
from typing import Self

from tidegate.core.model.ended import EndedJob
from tidegate.core.model.frozen import frozen

# Base states that mean work is on the node. PLANNED is a promise of the backfill scheduler;
# deleting such a node crashes slurmctld 22.05.
BUSY_WORDS = frozenset({"ALLOCATED", "MIXED", "COMPLETING", "PLANNED"})
DOWN_WORDS = frozenset({"DOWN", "FAIL", "INVAL", "INVALID_REG"})

# Slurm starts nothing on a node of these words, and no time mends it: a base state that is neither
# up nor DOWN, and power states, which are for nodes that Slurm itself switches on and off.
# Others (UNKNOWN, NOT_RESPONDING, REBOOT_ISSUED, POWERING_UP, BLOCKED) pass by themselves within
# minutes, or Slurm sets the node DOWN: such a node counts as one that comes up soon.
# Source: `avail_node_bitmap` in slurmctld's read_config.c, node_mgr.c and power_save.c.
NEVER_WORDS = frozenset(
    {"FUTURE", "ERROR", "EXTERNAL", "POWER_DOWN", "POWERING_DOWN", "POWERED_DOWN", "POWER_DRAIN"}
)
# In a reservation that has begun: who may start a job here is told by `core.demand.where`.
RESERVED_WORDS = frozenset({"RESERVED", "MAINT", "MAINTENANCE"})

# squeue shows the flags of a job that has nodes before its base state.
RUNNING_STATES = frozenset(
    {"RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING", "SIGNALING", "RESIZING"}
)

# A job that waits; from 25.11 on one with `--requeue=expedite` that was requeued has a word of its
# own: Slurm keeps the nodes of its last run from all others, and lets it begin at once.
EXPEDITING = "EXPEDITING"
WAITING_STATES = frozenset({"PENDING", EXPEDITING})

# Every word of `scontrol show node` in 22.05 and 24.11.
KNOWN_WORDS = BUSY_WORDS | {
    *("IDLE", "DOWN", "UNKNOWN", "FUTURE", "ERROR", "INVAL", "INVALID", "INVALID_REG", "FAIL"),
    *("DRAIN", "UNDRAIN", "DYNAMIC_NORM", "DYNAMIC_FUTURE", "CLOUD", "NOT_RESPONDING"),
    *("MAINT", "MAINTENANCE", "RESERVED", "RESUME", "PERFCTRS", "NET", "BLOCKED", "EXTERNAL"),
    *("POWER_DOWN", "POWER_UP", "POWER_DRAIN", "POWERED_DOWN", "POWERING_DOWN", "POWERING_UP"),
    *("REBOOT", "REBOOT_REQUESTED", "REBOOT_ISSUED", "REBOOT_CANCEL", "CANCEL_REBOOT"),
}


@frozen
class NodeState:
    """A node's state as Slurm prints it: one base word and a set of flags.

    Source: `scontrol show node`, for example `IDLE+DRAIN+DYNAMIC_NORM`.
    """

    words: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `IDLE+DRAIN`; a trailing `*` is Slurm's mark for a node that does not respond."""
        words = {word.strip().upper() for word in text.split("+") if word.strip()}
        starred = {word for word in words if word.endswith("*")}
        words = (words - starred) | {word.rstrip("*") for word in starred}
        return cls(frozenset(words | ({"NOT_RESPONDING"} if starred else set())))

    @property
    def strange(self) -> frozenset[str]:
        """Words that no Slurm we know prints: such a node gets no job and is left alone."""
        return self.words - KNOWN_WORDS

    @property
    def is_drain(self) -> bool:
        """No new job will start here."""
        return "DRAIN" in self.words

    @property
    def is_busy(self) -> bool:
        """A job runs, ends or is promised here. Slurm shows no word for one that is suspended:
        who has nodes is told by `holders`.
        """
        return not BUSY_WORDS.isdisjoint(self.words)

    @property
    def is_down(self) -> bool:
        return not DOWN_WORDS.isdisjoint(self.words)

    @property
    def is_unusable(self) -> bool:
        """No job will ever start here, whatever is waited for."""
        return not NEVER_WORDS.isdisjoint(self.words)

    @property
    def is_reserved(self) -> bool:
        return not RESERVED_WORDS.isdisjoint(self.words)

    @property
    def is_empty(self) -> bool:
        """Nothing runs or ends here; a job may be PLANNED, which Slurm tells apart from idle."""
        return "IDLE" in self.words and self.words.isdisjoint(BUSY_WORDS - {"PLANNED"})

    @property
    def is_idle(self) -> bool:
        return "IDLE" in self.words and not (self.is_busy or self.is_down or self.strange)

    @property
    def takes_jobs(self) -> bool:
        """Slurm may start a job here, now or soon."""
        return not (self.is_drain or self.is_down or self.strange or self.is_unusable)

    @property
    def is_deletable(self) -> bool:
        """`scontrol delete` is safe: nothing runs, ends or is planned, and nothing new will."""
        return not (self.is_busy or self.strange) and (self.is_drain or self.is_down)

    def __str__(self) -> str:
        return "+".join(sorted(self.words))


class SetBy(StrEnum):
    """Who gave a node its reason; what that means is said in `core.fleet.drains`."""

    UNKNOWN = ""  # there is no reason, or an agent read it that does not tell
    US = "us"  # the head's agent
    SLURM = "slurm"  # slurmctld, as SlurmUser; where that is root nobody can tell them apart
    ROOT = "root"  # slurmd, what runs for it, or a person
    USER = "user"  # anybody else


@frozen
class Node:
    """A node as slurmctld sees it. `last_busy_at_s` is on the head's clock.

    `weight`: Slurm fills nodes of the lowest first. A restart of slurmctld loses a change of it.
    `address`: where slurmctld reaches it; "": not told.
    """

    name: str
    state: NodeState
    cpus: int
    memory_mib: int
    gpus: int
    gpu_type: str
    cpus_alloc: int = 0
    memory_alloc_mib: int = 0
    gpus_alloc: int = 0
    features: tuple[str, ...] = ()
    reason: str = ""
    last_busy_at_s: float = 0.0
    gres: str = "gpu"
    weight: int = 1
    set_by: SetBy = SetBy.UNKNOWN
    address: str = ""


@frozen
class Shape:
    """What one node must give to a job. `gpu_type` "": any.

    `gpus` counts devices of the GRES `gres`: "gpu", or "neuron" for Trainium and Inferentia.
    """

    gpus: int = 0
    gpu_type: str = ""
    cpus: int = 1
    memory_mib: int = 0
    is_exclusive: bool = False
    gres: str = "gpu"

    def __str__(self) -> str:
        kind = self.gpu_type or ("GPU" if self.gres == "gpu" else self.gres)
        gpu = f"{self.gpus} {kind}" if self.gpus else "no GPU"
        alone = ", exclusive" if self.is_exclusive else ""
        return f"{gpu}, {self.cpus} CPUs, {self.memory_mib} MiB per node{alone}"


@frozen
class Spread:
    """Another count of nodes that Slurm accepts for a job, and what each must then give."""

    nodes: int
    shape: Shape


@frozen
class Fault:
    """Why the last run of a job ended that Slurm has put back: nodes of its failed.

    `restarts`: the job's since then. `is_gone`: Slurm has these nodes no more; spot ones may have
    been taken. `ran_s`: how long that run took, None: not known.
    """

    said: str
    names: tuple[str, ...]
    restarts: int
    is_gone: bool = False
    ran_s: float | None = None


@frozen
class Hang:
    """The heartbeat of a running job, where it was last touched at `since_s`, too long ago, or
    `problem` says why nobody can tell.
    """

    path: str
    since_s: float | None = None
    problem: str = ""


@frozen
class Job:
    """One row of the queue: a job, or the tasks of an array that have not started.

    `count`: how many equal jobs the row stands for (an array's startable tasks).
    `job_id` is what scontrol takes: "7", "7_3", or "7" for the rest of an array.
    `node_names` are the nodes it has, `required_nodes` those its user insists on (`-w`),
    `excluded_nodes` those that its user does not want (`-x`).
    `restarts`: how often it was requeued, after an interruption or by a person.
    `nodes` is the planned count, the fewest that Slurm accepts; `spreads` are larger ones on
    which each node gives less (`--gpus=8` without -N), in rising order. `het_job_id`: the
    leader of its heterogeneous job, whose components start together. `licences`: name and
    number; of `licence_choices` one will do (`a|b`). Instants are on the head's clock;
    `deadline_s` is the instant by which it must have ended, `begins_at_s` that before which it
    may not start. `signal`: what its script asks with `#SBATCH --signal`, like "B:USR1@90",
    known when it runs. `fault`: known to the agent that saw it. `hang`: its heartbeat
    is silent or cannot be seen.
    """

    job_id: str
    state: str
    partitions: tuple[str, ...]
    nodes: int
    shape: Shape
    user: str
    count: int = 1
    array_job_id: str = ""
    reason: str = ""
    priority: int = 0
    constraint: str = ""
    account: str = ""
    qos: str = ""
    time_limit_s: float | None = None
    comment: str = ""
    node_names: tuple[str, ...] = ()
    is_requeueable: bool = True
    restarts: int = 0
    unreadable: str = ""
    required_nodes: tuple[str, ...] = ()
    spreads: tuple[Spread, ...] = ()
    deadline_s: float | None = None
    time_min_s: float | None = None
    licences: tuple[tuple[str, int], ...] = ()
    licence_choices: tuple[tuple[str, int], ...] = ()
    het_job_id: str = ""
    reservation: str = ""
    begins_at_s: float | None = None
    started_at_s: float | None = None
    signal: str = ""
    excluded_nodes: tuple[str, ...] = ()
    fault: Fault | None = None
    hang: Hang | None = None

    @property
    def is_checkpointed(self) -> bool:
        """It writes a checkpoint when it gets a signal (`--comment=tidegate:ckpt=USR1@90`)."""
        return "tidegate:ckpt=" in self.comment or bool(self.signal)

    @property
    def is_pending(self) -> bool:
        return self.state in WAITING_STATES

    @property
    def is_expediting(self) -> bool:
        """Slurm itself keeps the good nodes of its last run for it."""
        return self.state == EXPEDITING

    @property
    def is_running(self) -> bool:
        """It has its nodes, also while it is suspended or its nodes are made ready."""
        return self.state in RUNNING_STATES


def holders(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    """The jobs that have each node, ending ones too, whatever the node's own state says.

    22.05 shows the node of a suspended job as IDLE, and its slurmctld ends when that is deleted.
    """
    found: dict[str, list[Job]] = {}
    for job in jobs:
        for name in job.node_names if not job.is_pending else ():
            found.setdefault(name, []).append(job)
    return found


@frozen
class Association:
    """A cap on one TRES that accounting will apply once nodes are up.

    Source: `scontrol show assoc_mgr`. Slurm tests these caps only after it has selected
    nodes, so with no node up the pending reason hides them.
    `scope`: "qos NAME" or "account NAME" or "user NAME of account NAME".
    `accounts_below`: the cap of an account counts the jobs of these accounts as well.
    `partitions`: of a user, those that alone it is for, and `but_partitions` those for which
    he has another; of a QOS, those that have it as their own. `tres`: Slurm's name of what is
    counted: "gres/gpu", "gres/gpu:a10g" (only GPUs of this type), "cpu", "mem" (MiB), "node",
    "license/NAME"; ours for jobs: "job", for the minutes of a job: "wall". "minutes/TRES" are
    those that a job may take with its TRES; `in_all` is what is left beside the jobs that run
    (GrpTRESRunMins). "left/TRES", "left/wall" are there when a group has none left, in_all 0.
    """

    scope: str
    account: str = ""
    user: str = ""
    qos: str = ""
    tres: str = "gres/gpu"
    in_all: int | None = None
    per_user: int | None = None
    per_account: int | None = None
    per_job: int | None = None
    accounts_below: tuple[str, ...] = ()
    per_node: int | None = None
    partitions: tuple[str, ...] = ()
    but_partitions: tuple[str, ...] = ()


@frozen
class Licence:
    """How many of a licence are free now. Source: `scontrol show licenses`."""

    name: str
    free: int


@frozen
class NodeReservation:
    """Nodes that Slurm keeps for some users during a time. Source: `scontrol show reservation`.

    `nodes`: Tidegate's nodes of it. `flags`: Slurm's words, without values. `users`: one with a
    "-" before it may not use it. `cpus`: how many it has, None: not told. Instants are on the
    head's clock.
    """

    name: str
    nodes: tuple[str, ...] = ()
    starts_at_s: float = 0.0
    ends_at_s: float = 0.0
    flags: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    partition: str = ""
    cpus: int | None = None

    @property
    def is_flexible(self) -> bool:
        """Its jobs may run on other nodes too, and before it begins."""
        return "FLEX" in self.flags

    @property
    def is_magnetic(self) -> bool:
        """Whoever may use it does so without asking for it."""
        return "MAGNETIC" in self.flags

    @property
    def is_of_all(self) -> bool:
        """Of all nodes there are, or all of its partition, also those that come."""
        return "ALL_NODES" in self.flags or "PART_NODES" in self.flags

    def takes_all_of(self, partitions: tuple[str, ...]) -> bool:
        """Whether a job of these partitions finds no node outside it, whatever is bought."""
        is_theirs = "PART_NODES" in self.flags and {self.partition} == set(partitions)
        return "ALL_NODES" in self.flags or is_theirs

    def is_for(self, user: str, account: str) -> bool:
        if f"-{user}" in self.users or f"-{account}" in self.accounts:
            return False
        is_by_exclusion = any(each.startswith("-") for each in (*self.users, *self.accounts))
        return is_by_exclusion or user in self.users or account in self.accounts


@frozen
class Reading:
    """All that one look at Slurm returns.

    `static_nodes`: those that pending jobs ask for by name (`-w`) and that are not Tidegate's.
    `ended`: jobs of the last minutes, for as long as Slurm remembers them.
    """

    version: str
    jobs: tuple[Job, ...]
    nodes: tuple[Node, ...]
    associations: tuple[Association, ...] = field(default=())
    licences: tuple[Licence, ...] = ()
    reservations: tuple[NodeReservation, ...] = ()
    static_nodes: tuple[str, ...] = ()
    ended: tuple[EndedJob, ...] = ()
