"""What sick nodes cost a training, and what is done about them: `python -m bench.goodput`.

One job trains on all nodes of a pool but its spares, for months of virtual time, in the real
service, planner and agent. GPUs fail as often as is published, half of the failures on three hosts,
and what the kernel's log says of each is judged by the table of findings (`tidegate/data`). The
same hosts fail at the same times whatever is done about it: by Tidegate, by nobody until a person
looks in the morning, by whoever replaces what has logged an Xid, and as ParallelCluster does it.

`published_faults.py` has the rates. Guessed: a checkpoint each half hour, two minutes to load it, a
boot of five, and that ranks wait for a minute when a GPU has failed (`train.sbatch`).
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from bench.figures import Figure, table
from bench.published_faults import DAY_S, DAYS, HOSTS, NODES, SPARES, Fault, drawn, judged
from bench.small import A10G_BIG, cluster
from tidegate.core.interruption.heartbeat import Beat
from tidegate.core.model.ec2 import Instance, Market
from tidegate.core.model.job_files import ToldStep
from tidegate.core.model.plan import Watch
from tidegate.core.model.slurm import Job, SetBy, Shape
from tidegate.service.control import Looked
from tidegate.sim.slurm_parts import SimJob, Submit
from tidegate.sim.world import SimWorld

HOUR_S = 3600.0
BOOT_S, CHECKPOINT_S, LOAD_S, SILENT_S = 300.0, 1800.0, 120.0, 300.0
# The watch of a node reads its log as it comes (`health-watch.sh`).
READ_S = 2.0
# A step that has failed: the example's script waits for so long before its job ends.
WAITS_S = 60.0
# ParallelCluster's GPU check in the prolog is `dcgmi diag -r 2`: two minutes by NVIDIA's words.
DIAG_S = 120.0
MORNING_S = 9 * HOUR_S
# While nothing happens nothing depends on how often the head says so.
QUIET_S, CLOSE_S, AFTER_S = HOUR_S, 60.0, HOUR_S / 2

SHAPE = Shape(4, "a10g", 1, 1000, True)
LOST_MAX = 0.03
AT_MOST_S, FOUND_S = 60.0, 5.0
COUNTED_OFF = 0.02


@dataclass(slots=True)
class Told:
    """What came of it all. Times are from the fault on, for each that hit the training. `lost_s`:
    that runs which ended by a fault worked on what was done again, or stood still.
    """

    useful_s: float = 0.0
    gpu_found_s: list[float] = field(default_factory=list)
    again_s: list[float] = field(default_factory=list)
    ready_s: list[float] = field(default_factory=list)
    faults: int = 0
    missed: int = 0
    healthy_ended: int = 0
    lost_s: float = 0.0
    counted_s: float = 0.0  # of it, as events tell it
    goodput: float = 0.0


@dataclass(slots=True)
class Months:
    """A training and its nodes. `reacts`: what is done where a node's log has an Xid."""

    reacts: "Callable[[Months, str, Fault], None]"
    seed: int = 1
    faults: Sequence[Fault] = ()
    days: int = DAYS
    is_watched: bool = True
    diag_s: float = 0.0
    told: Told = field(default_factory=Told)
    world: SimWorld = field(init=False)
    began_s: float = field(init=False)
    hosts: dict[str, int] = field(default_factory=dict)
    joined_s: dict[str, float] = field(default_factory=dict)
    sick_s: dict[str, float] = field(default_factory=dict)  # and not found yet
    were_sick: set[str] = field(default_factory=set)
    job: SimJob = field(init=False)
    runs_since_s: float | None = None
    stalled_s: float | None = None
    hangs: bool = False
    kept_s: float = 0.0
    counted_restarts: int = 0
    open_fault: tuple[float, float] | None = None  # since when, and when it was found
    _chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        of = cluster(A10G_BIG, markets=(Market.ON_DEMAND,), spare_nodes=SPARES)
        of = replace(of, pools=(replace(of.pools[0], max_job_nodes=NODES),))
        self._chance = random.Random(self.seed)
        self.world = w = SimWorld(of, lambda _: BOOT_S, heartbeat_s=CLOSE_S)
        self.began_s = w.clock.now_s()
        w.compute.on_launch.append(self._launched)
        w.compute.on_end.append(self._ended)
        w.slurm.on_join.append(lambda node: self.joined_s.update({node.name: w.clock.now_s()}))
        w.slurm.table.on_start.append(self._starts)
        w.on_event.append(self._watch)
        w.beats = self._beats
        w.on_look = self._looked
        self.submit()

    # -- the training ------------------------------------------------------------------------

    def submit(self) -> None:
        comment = f"tidegate:heartbeat=/shared/beat@{SILENT_S:.0f}" if self.is_watched else ""
        asked = Submit("ada", SHAPE, 1e12, nodes=NODES, comment=comment)
        self.job = self.world.slurm.jobs[self.world.slurm.submit(asked)]

    def _beats(self, jobs: Sequence[Job]) -> dict[str, Beat]:
        at_s = self.world.clock.now_s() if self.stalled_s is None else self.stalled_s
        told = ToldStep(float(round(self.kept_s + self._done_s(at_s))))
        return {each.job_id: Beat(at_s, step=told) for each in jobs if each.is_running}

    def _done_s(self, until_s: float) -> float:
        """What the present run has done, of which a step takes a second."""
        since_s = until_s if self.runs_since_s is None else self.runs_since_s
        return max(until_s - since_s - self.diag_s - LOAD_S, 0.0)

    def _looked(self, looked: Looked) -> None:
        """The lost work that events tell of, each run's once."""
        for action in (each for done in looked.rounds for each in done.plan.actions):
            lost = action.stuck.lost if isinstance(action, Watch) else None
            if lost and lost.resumed_step is not None and lost.restarts > self.counted_restarts:
                self.counted_restarts = lost.restarts
                self.told.counted_s += lost.redone_s + lost.stood_s

    def _starts(self, job: SimJob) -> None:
        now_s = self.world.clock.now_s()
        self.runs_since_s, self.stalled_s = now_s, None
        if sick := [name for name in job.node_names if name in self.sick_s]:
            self.stalls(now_s)
            if self.diag_s:
                self.world.at(now_s + self.diag_s, partial(self.fails_diag, job, sick))
            return
        if self.open_fault is not None:
            since_s, found_s = self.open_fault
            self.open_fault = None
            ready_s = max(found_s, *(self.joined_s[name] for name in job.node_names))
            self.told.again_s.append(now_s - since_s)
            self.told.ready_s.append(now_s - ready_s)

    def fails_diag(self, job: SimJob, sick: Sequence[str]) -> None:
        """The check before the job's start: its nodes go, the job is requeued by Slurm."""
        for name in sick:
            self.found(name)
        if job.state == "RUNNING":
            self.world.slurm.table.requeue(job, completes=False)
        for name in sick:
            self.world.compute.end(name)
            self.world.tell_of_change(name)

    def stalls(self, at_s: float, *, waits_s: float | None = WAITS_S) -> None:
        """From now on the run makes no progress, and then its script ends. None: it hangs."""
        self.stalled_s = at_s if self.stalled_s is None else self.stalled_s
        starts, job = self.job.starts, self.job
        if waits_s is not None:
            self.world.at(at_s + waits_s, lambda: self._fails(job, starts))

    def _fails(self, job: SimJob, starts: int) -> None:
        if job.state != "RUNNING" or job.starts != starts:
            return
        if self.diag_s:  # its script requeues it
            self.world.slurm.table.requeue(job, completes=True)
        else:
            self.world.slurm.table.end(job, "FAILED")

    def _watch(self) -> None:
        if self.runs_since_s is None or self.job.state == "RUNNING":
            return
        if self.hangs and self.open_fault is not None:  # nobody knows of it before
            self.open_fault = (self.open_fault[0], self.world.clock.now_s())
        self.hangs = False
        self._close(is_over=False)

    def _close(self, *, is_over: bool) -> None:
        """Counts what the run has saved; at the end what it has done."""
        if self.runs_since_s is None:
            return
        now_s = self.world.clock.now_s()
        until_s = now_s if self.stalled_s is None else self.stalled_s
        done_s = self._done_s(until_s)
        saved_s = done_s if is_over else done_s // CHECKPOINT_S * CHECKPOINT_S
        self.told.useful_s += saved_s
        self.told.lost_s += 0.0 if is_over else done_s - saved_s + now_s - until_s
        self.kept_s += saved_s
        self.runs_since_s = None

    # -- the nodes ---------------------------------------------------------------------------

    def _launched(self, instance: Instance) -> None:
        taken = {host for name, host in self.hosts.items() if self.world.compute.is_live(name)}
        free = [host for host in range(HOSTS) if host not in taken]
        is_first = len(self.hosts) < NODES + SPARES  # the bad ones are among them
        self.hosts[instance.instance_id] = free[0] if is_first else self._chance.choice(free)

    def _ended(self, instance: Instance) -> None:
        name = instance.instance_id
        if name not in self.were_sick:
            self.told.healthy_ended += 1
        self.found(name)

    def found(self, name: str) -> None:
        since_s = self.sick_s.pop(name, None)
        if since_s is not None:
            now_s = self.world.clock.now_s()
            if self.open_fault is not None:
                self.open_fault = (self.open_fault[0], now_s)

    def happens(self, fault: Fault) -> None:
        w, live = self.world, self.world.compute.is_live
        at = [name for name, host in self.hosts.items() if host == fault.host and live(name)]
        name = at[0] if at else ""
        if name not in w.slurm.nodes or w.slurm.nodes[name].is_down or name in self.sick_s:
            return
        now_s = w.clock.now_s()
        if fault.kind == "noise":
            w.at(now_s + READ_S, lambda: self.reacts(self, name, fault))
            return
        self.told.faults += 1
        is_hit = name in self.job.node_names and self.job.state == "RUNNING"
        if is_hit:
            self.open_fault = self.open_fault or (now_s, now_s)
        if fault.kind != "hang":
            self.sick_s[name] = now_s
            self.were_sick.add(name)
        if is_hit and fault.kind in ("gpu", "hang"):
            self.hangs = fault.kind == "hang"
            self.stalls(now_s, waits_s=None if self.hangs else WAITS_S)
        elif is_hit:
            self.stalled_s = now_s
        self._befalls(name, fault)

    def _befalls(self, name: str, fault: Fault) -> None:
        w = self.world
        if fault.kind == "gpu":
            w.at(w.clock.now_s() + READ_S, lambda: self.reacts(self, name, fault))
        elif fault.kind == "instance":
            w.compute.end(name)
            w.tell_of_change(name)
        elif fault.kind == "slurmd":
            w.slurm.die(name)

    def person_looks(self) -> None:
        """In the morning: what is sick goes, what failed or hangs is started again."""
        for name in list(self.sick_s):
            self.world.compute.end(name)
            self.world.tell_of_change(name)
        if self.stalled_s is not None and self.job.state == "RUNNING":
            self.world.slurm.cancel(self.job.job_id)
        if self.job.state in ("FAILED", "CANCELLED"):
            self.submit()

    # -- time --------------------------------------------------------------------------------

    def close_look(self, *, is_close: bool) -> None:
        self.world.heartbeat_s = CLOSE_S if is_close else QUIET_S

    def run(self) -> Told:
        w = self.world
        happenings: list[tuple[float, Fault | None]] = [(f.at_s, f) for f in self.faults]
        if not self.is_watched:
            happenings += [(day * DAY_S + MORNING_S, None) for day in range(self.days)]
        happenings.sort(key=lambda each: each[0])
        w.step(2 * HOUR_S)
        end_s = self.days * DAY_S
        for at_s, fault in [*happenings, (end_s, None)]:
            quiet_s = self.began_s + at_s - w.clock.now_s()
            w.step(max(min(AFTER_S, quiet_s), 0.0))
            self.close_look(is_close=self.job.state in ("PENDING", "COMPLETING"))
            w.step(max(self.began_s + at_s - 2 * CLOSE_S - w.clock.now_s(), 0.0))
            self.close_look(is_close=True)
            w.step(max(self.began_s + at_s - w.clock.now_s(), 0.0))
            if fault is not None:
                self.happens(fault)
            elif at_s < end_s:
                self.person_looks()
        self._close(is_over=True)
        self.told.missed = len(self.sick_s)
        self.told.goodput = NODES * self.told.useful_s / self._paid_s()
        return self.told

    def _paid_s(self) -> float:
        ended, now_s = self.world.compute.ended_at_s, self.world.clock.now_s()
        all_ = self.world.compute.everything.values()
        return sum(ended.get(e.instance_id, now_s) - e.launched_at_s for e in all_)


# -- what is done about an Xid -----------------------------------------------------------------


def ladder(of: Months, name: str, fault: Fault) -> None:
    """As `health-watch.sh` does it: the table judges, and the node is drained or goes on."""
    verdict, finding = judged(fault.line)
    if verdict == "drain" and name in of.world.slurm.nodes:
        of.world.slurm.is_drained_by(SetBy.ROOT, name, f"tidegate-health: xid: {finding}")
        if name in of.sick_s:
            of.told.gpu_found_s.append(of.world.clock.now_s() - of.sick_s[name])
        of.found(name)


def nothing(of: Months, name: str, fault: Fault) -> None:
    """A person looks in the morning."""


def replace_always(of: Months, name: str, fault: Fault) -> None:
    """Whatever has logged an Xid is ended at once."""
    of.world.compute.end(name)
    of.world.tell_of_change(name)


def pcluster() -> Months:
    """Its GPU check, which is off unless the file asks for it, tests nodes in the prolog, where a
    job starts; a script that requeues itself; nothing looks while a job runs. That it drains, ends
    and buys nodes as Tidegate does, and holds them for the job, is kinder than it is.
    """
    return Months(nothing, faults=drawn(1), is_watched=False, diag_s=DIAG_S)


CASES: dict[str, Callable[[], Months]] = {
    "fault-free": lambda: Months(ladder),
    "Tidegate": lambda: Months(ladder, faults=drawn(1)),
    "no ladder": lambda: Months(nothing, faults=drawn(1), is_watched=False),
    "replace always": lambda: Months(replace_always, faults=drawn(1)),
    "ParallelCluster": pcluster,
}


def figures() -> Iterator[Figure]:
    best = 0.0
    for what, made in CASES.items():
        told = made().run()
        best = best or told.goodput
        yield Figure(f"{what}: GPU goodput", round(told.goodput, 4), "")
        if not told.faults:
            continue
        is_ours = what == "Tidegate"
        lost = round(1 - told.goodput / best, 5)
        yield Figure(f"{what}: lost of fault-free", lost, "", LOST_MAX if is_ours else None)
        yield Figure(f"{what}: faults", told.faults, "")
        yield Figure(f"{what}: fault to running again, mean", _mean(told.again_s), "s")
        # Of the others the planner ends what idles while nobody looks.
        if is_ours or what == "replace always":
            bound = 0 if is_ours else None
            yield Figure(f"{what}: healthy nodes ended", told.healthy_ended, "", bound)
        if is_ours:
            drained_s = max(told.gpu_found_s)
            yield Figure(f"{what}: a GPU's fault to drained, most", drained_s, "s", FOUND_S)
            yield Figure(f"{what}: GPU-hours lost with runs", _gpu_hours(told.lost_s), "")
            missed = round(abs(1 - told.counted_s / told.lost_s), 4)
            yield Figure(f"{what}: of them told otherwise", missed, "", COUNTED_OFF)
            yield Figure(f"{what}: faults not found", told.missed, "", 0)
            late_s = round(max(told.ready_s), 1)
            yield Figure(f"{what}: nodes there to running, most", late_s, "s", AT_MOST_S)


def _gpu_hours(seconds: float) -> float:
    return round(seconds * NODES * SHAPE.gpus / HOUR_S, 1)


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 1) if values else 0.0


if __name__ == "__main__":
    print(table(list(figures())))
