"""Slurm's words: nodes, their state, jobs, and the limits that accounting knows."""

from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum
from typing import Self

from tidegate.core.model.devices import SHARD, Devices
from tidegate.core.model.ended import EndedJob
from tidegate.core.model.frozen import frozen
from tidegate.core.model.gpu_use import GpuUse
from tidegate.core.model.job_files import Hang, LostWork, Progress, ToldStep
from tidegate.core.model.site_check import CheckJob

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
        """A job runs, ends or is promised here; of one that is suspended `holders` alone tells."""
        return not BUSY_WORDS.isdisjoint(self.words)

    @property
    def is_down(self) -> bool:
        return not DOWN_WORDS.isdisjoint(self.words)

    @property
    def is_silent(self) -> bool:
        """Slurm has no answer from it; one that was just opened is so until Slurm has asked it."""
        return "NOT_RESPONDING" in self.words

    @property
    def is_rebooting(self) -> bool:
        """Slurm reboots it, and shows it DOWN; after ResumeTimeout it is DOWN without this word."""
        return "REBOOT_ISSUED" in self.words

    @property
    def awaits_reboot(self) -> bool:
        """Slurm reboots it as soon as nothing runs there."""
        return "REBOOT_REQUESTED" in self.words

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

    @property
    def told(self) -> str:
        """For people: without the word that each node of ours bears."""
        return "+".join(sorted(self.words - {"DYNAMIC_NORM"}))

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
    """A node as slurmctld sees it."""

    name: str  #: its name, the instance id
    state: NodeState  #: Slurm's state, like IDLE+DRAIN+DYNAMIC_NORM
    cpus: int  #: CPUs
    memory_mib: int  #: MiB of memory
    gpus: int  #: GPUs, or devices of another GRES
    gpu_type: str  #: GRES type
    cpus_alloc: int = 0  #: CPUs in use
    memory_alloc_mib: int = 0  #: MiB in use
    gpus_alloc: int = 0  #: GPUs in use
    features: tuple[str, ...] = ()  #: active features
    reason: str = ""  #: why it is drained or down
    last_busy_at_s: float = 0.0  #: when a job last ran on it, epoch seconds on the head's clock
    gres: str = "gpu"  #: GRES name: gpu or neuron
    weight: int = 1  #: Slurm fills nodes of the lowest first; slurmctld forgets it on a restart
    #: who gave the reason: us, slurm, root or user; empty: nobody knows
    set_by: SetBy = SetBy.UNKNOWN
    address: str = ""  #: where slurmctld reaches it; empty: not told
    devices: tuple[Devices, ...] = ()  #: its GPUs by type, where they are of several types
    shards: int = 0  #: shards of its GPUs
    shared_gres: str = SHARD  #: GRES of these shards: shard or mps
    gpus_shared: int = 0  #: GPUs of which shards are in use; no job gets them whole
    shards_used: tuple[int, ...] = ()  #: of each of these, where Slurm tells it


@frozen
class Shape:
    """What one node must give to a job."""

    gpus: int = 0  #: GPUs, or devices of another GRES
    gpu_type: str = ""  #: GRES type, like a10g; empty: any
    cpus: int = 1  #: CPUs
    memory_mib: int = 0  #: MiB of memory
    is_exclusive: bool = False  #: no other job on the node
    gres: str = "gpu"  #: GRES name: gpu, neuron, shard or mps

    def __str__(self) -> str:
        kind = self.gpu_type or ("GPU" if self.gres == "gpu" else self.gres)
        gpu = f"{self.gpus} {kind}" if self.gpus else "no GPU"
        alone = ", exclusive" if self.is_exclusive else ""
        cpus = f"{self.cpus} CPU{'s' * (self.cpus != 1)}"
        return f"{gpu}, {cpus}, {self.memory_mib} MiB per node{alone}"


@frozen
class Spread:
    """Another count of nodes that Slurm accepts for a job, and what each must then give."""

    nodes: int  #: how many nodes
    shape: Shape  #: what each must then give


@frozen
class Fault:
    """Why the last run of a job ended that Slurm has put back: nodes of its failed."""

    said: str  #: what Slurm says of the nodes
    names: tuple[str, ...]  #: the nodes
    restarts: int  #: how often the job was requeued by then
    is_gone: bool = False  #: Slurm has them no more; spot ones may have been taken
    ran_s: float | None = None  #: how long that run took; null: not known


@frozen(quick=True)
class Job:
    """One row of the queue: a job, or the tasks of an array that have not started.

    Instants are on the head's clock.
    """

    job_id: str  #: as scontrol takes it: 7, 7_3, or 7 for the rest of an array
    state: str  #: Slurm's word: PENDING, RUNNING, ...
    partitions: tuple[str, ...]  #: partitions it may run in
    nodes: int  #: the fewest nodes that Slurm accepts
    shape: Shape  #: what each node must give
    user: str  #: its user
    count: int = 1  #: how many equal jobs the row stands for: an array's startable tasks
    array_job_id: str = ""  #: the array it belongs to
    reason: str = ""  #: why it is pending, in Slurm's words
    priority: int = 0  #: Slurm's priority; higher is served first
    constraint: str = ""  #: features that its nodes must have (--constraint)
    account: str = ""  #: its account
    qos: str = ""  #: its QOS
    time_limit_s: float | None = None  #: its time limit; null: none
    comment: str = ""  #: its comment (--comment)
    node_names: tuple[str, ...] = ()  #: the nodes it has
    is_requeueable: bool = True  #: it may be requeued: a batch job, and none with --no-requeue
    restarts: int = 0  #: how often it was requeued, after an interruption or by a person
    unreadable: str = ""  #: why Tidegate cannot plan for it
    required_nodes: tuple[str, ...] = ()  #: nodes it insists on (-w)
    #: larger counts of nodes on which each gives less (--gpus=8 without -N), in rising order
    spreads: tuple[Spread, ...] = ()
    deadline_s: float | None = None  #: when it must have ended (--deadline), epoch seconds
    time_min_s: float | None = None  #: the shortest time that will do (--time-min)
    licences: tuple[tuple[str, int], ...] = ()  #: licences by name and number
    licence_choices: tuple[tuple[str, int], ...] = ()  #: licences of which one will do (a|b)
    het_job_id: str = ""  #: leader of its heterogeneous job, whose components start together
    reservation: str = ""  #: Slurm reservation it runs in (--reservation)
    begins_at_s: float | None = None  #: before this it may not start (--begin), epoch seconds
    started_at_s: float | None = None  #: when it started, epoch seconds
    signal: str = ""  #: what `#SBATCH --signal` asks, like B:USR1@90, known when it runs
    excluded_nodes: tuple[str, ...] = ()  #: nodes it does not want (-x)
    fault: Fault | None = None  #: why its last run ended, where the agent saw nodes of its fail
    hang: Hang | None = None  #: its heartbeat, where that is silent or cannot be seen
    raw_id: str = ""  #: of a task of an array: its SLURM_JOB_ID
    gpu_use: GpuUse | None = None  #: how little its GPUs are used; null: not little, or unknown
    progress: Progress | None = None  #: what it has saved; null: it does not say
    step: ToldStep | None = None  #: how far its heartbeat file says it is; null: it does not
    lost: LostWork | None = None  #: what it lost with its last run; null: nothing is known

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


def asked_by_name(jobs: Iterable[Job]) -> dict[str, Job]:
    """The first pending job that asks for each node (-w), which Slurm would end with that node:
    at its next restart at the latest.
    """
    found: dict[str, Job] = {}
    for job in jobs:
        for name in job.required_nodes if job.is_pending else ():
            found.setdefault(name, job)
    return found


@frozen
class Association:
    """A cap on one TRES that accounting will apply once nodes are up.

    Source: `scontrol show assoc_mgr`. Slurm tests these caps only after it has selected
    nodes, so with no node up the pending reason hides them.
    """

    scope: str  #: what users call it: `qos NAME`, `account NAME`, `user NAME of account NAME`
    account: str = ""  #: account whose jobs count; empty: any
    user: str = ""  #: user whose jobs count; empty: any
    qos: str = ""  #: QOS whose jobs count; empty: any
    #: what is counted, by Slurm's name: gres/gpu, gres/gpu:a10g (of this type alone), cpu, mem
    #: (MiB), node, license/NAME; by ours: job, wall (minutes of a job), minutes/TRES (those that a
    #: job may take with its TRES; in_all is what is left of GrpTRESRunMins beside the jobs that
    #: run), left/TRES and left/wall (a group has none left, in_all 0)
    tres: str = "gres/gpu"
    in_all: int | None = None  #: at most so many at the same time
    per_user: int | None = None  #: at most so many per user
    per_account: int | None = None  #: at most so many per account
    per_job: int | None = None  #: at most so many per job
    accounts_below: tuple[str, ...] = ()  #: accounts below it, whose jobs count as well
    per_node: int | None = None  #: at most so many per node
    #: of a user: for these alone; of a QOS: those that have it as their own
    partitions: tuple[str, ...] = ()
    but_partitions: tuple[str, ...] = ()  #: of a user: partitions for which another one counts


@frozen
class Licence:
    """How many of a licence are free now. Source: `scontrol show licenses`."""

    name: str  #: its name
    free: int  #: how many are free


@frozen
class NodeReservation:
    """Nodes that Slurm keeps for some users during a time. Source: `scontrol show reservation`.

    Instants are on the head's clock.
    """

    name: str  #: its name
    nodes: tuple[str, ...] = ()  #: Tidegate's nodes of it
    starts_at_s: float = 0.0  #: when it begins, epoch seconds
    ends_at_s: float = 0.0  #: when it ends, epoch seconds
    flags: tuple[str, ...] = ()  #: Slurm's flags, like MAINT, without values
    users: tuple[str, ...] = ()  #: who may use it; with - before it: who may not
    accounts: tuple[str, ...] = ()  #: accounts that may use it; with - before it: that may not
    partition: str = ""  #: the partition it is made for
    cpus: int | None = None  #: how many CPUs it has; null: not told

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
    """All that one look at Slurm returns."""

    version: str  #: Slurm's version
    jobs: tuple[Job, ...]  #: the queue: squeue's rows
    nodes: tuple[Node, ...]  #: the dynamic nodes
    associations: tuple[Association, ...] = field(default=())  #: caps of associations and QOS
    licences: tuple[Licence, ...] = ()  #: licences and how many are free
    reservations: tuple[NodeReservation, ...] = ()  #: Slurm's reservations of nodes
    #: nodes that pending jobs ask for by name (-w) and that are not Tidegate's
    static_nodes: tuple[str, ...] = ()
    #: jobs of the last minutes, for as long as Slurm remembers them
    ended: tuple[EndedJob, ...] = ()
    checks: tuple[CheckJob, ...] = ()  #: jobs of a site's checks that wait, run or have ended
