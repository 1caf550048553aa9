"""The world of a replay: EC2 that sells, Slurm that places, and the clock that drives both."""

import heapq
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import field, replace
from typing import Protocol

from tidegate.core.demand.constraint import with_feature
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.ec2 import Offering
from tidegate.core.model.frozen import frozen
from tidegate.core.offers.reservations import BLOCK_NOTICE_S, block_drains_at_s
from tidegate.sim.replay.fleets import FLEET_S, STARTS_AT_ONCE, Fleets
from tidegate.sim.replay.interruptions import begin_interruptions
from tidegate.sim.replay.jobs import asked, run_of
from tidegate.sim.replay.possible import never_runs
from tidegate.sim.replay.slurm import Queue
from tidegate.sim.replay.state import EPOCH_S, Machine, Run
from tidegate.sim.replay.steps import Steps
from tidegate.sim.replay.trace import TraceJob

# From an event on the head to the planner's answer: digest, queue, function.
LOOK_S = 2.0
# While jobs wait, the head's agent reports at least so often.
HEARTBEAT_S = 60.0
# From the order to release an idle node to its termination: drain, look, delete, terminate.
RELEASE_S = 5.0
# EC2 bills by the second, of each launch and start a minute at least (EC2 API, StartInstances).
BILLED_LEAST_S = 60.0
# How long after the last job has ended nodes may take to go.
TAIL_S = 7200.0
# When nothing has run, ended or come for so long, what waits never starts: nodes that are bought
# and let go again bring it no nearer.
STALLED_S = 7 * 86400.0
# A job that was requeued so often never ends where it runs.
STARTS_MAX = 100


class Policy(Protocol):
    """Who decides what is bought and what goes."""

    def decide(self, world: "World") -> float | None:
        """Act on the world now; when to be asked again at the latest, None: on the next event."""


@frozen
class Setting:
    """What a replay is played with. `boot_s` None: as each pool says. `hazards`: interruptions per
    node-hour of spot offerings where they are not as the cluster has them.

    `error_sigma`: of time limits that the history lacks, the standard deviation of their
    logarithm around the real duration. `prices`: what EC2 bills where that changes. `capacity`:
    the most nodes of an offering that EC2 has. `patience_s`: for how long from its start on
    nothing that waits is given up. `heartbeat_s`: between looks while jobs wait. `fleet_s`: until
    EC2 answers a request for nodes; `starts_at_once`: how many it starts for the account at once.
    """

    boot_s: float | None = None
    error_sigma: float = 1.0
    seed: int = 0
    prices: Mapping[Offering, Steps] = field(default_factory=dict)
    capacity: Mapping[Offering, Steps] = field(default_factory=dict)
    hazards: Mapping[Offering, float] = field(default_factory=dict)
    patience_s: float = 0.0
    heartbeat_s: float = HEARTBEAT_S
    fleet_s: float = FLEET_S
    starts_at_once: float = STARTS_AT_ONCE


@frozen
class Segment:
    """A job on its nodes from start to end, for what is drawn later."""

    from_s: float
    to_s: float
    gpus: float
    is_lost: bool = False


class World:
    """One replay. Times are seconds since the history's start, plus `EPOCH_S`."""

    def __init__(
        self, jobs: Iterable[TraceJob], cluster: Cluster, setting: Setting, policy: Policy
    ) -> None:
        self.cluster = cluster
        if setting.boot_s is not None:
            pools = tuple(replace(pool, boot_s=setting.boot_s) for pool in cluster.pools)
            self.cluster = replace(cluster, pools=pools)
        self.setting, self.policy = setting, policy
        self._kinds: dict[Hashable, int] = {}
        error, seed = setting.error_sigma, setting.seed
        self.runs = [
            run_of(job, n, self.cluster, self._kinds, error_sigma=error, seed=seed)
            for n, job in enumerate(jobs)
        ]
        whys = {run.kind: run.pending for run in reversed(self.runs)}
        never = {kind: never_runs(job, self.cluster) for kind, job in whys.items()}
        for run in self.runs:
            run.reason = never[run.kind]
        # What is played; the others are left out, whatever the policy is.
        self.due = [run for run in self.runs if not run.reason]
        self._by_id = {run.pending.job_id: run for run in self.runs}
        self.queue = Queue(self.cluster)
        self.fleets = Fleets(setting.capacity, setting.starts_at_once)
        self.machines: dict[str, Machine] = {}
        self.gone: list[Machine] = []
        self.running: dict[int, Run] = {}
        self.segments: list[Segment] = []
        self.now_s = EPOCH_S
        self.num_launches = self.num_interruptions = self.num_looks = 0
        self.lost_s = 0.0
        self.on_progress: Callable[[int, int], None] = lambda done, of: None
        self._num_over = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._look_s = float("inf")
        self._is_changed = False
        # A job waits that no look has seen, or one that the last look could not serve.
        self.has_news = False

    # -- the clock -----------------------------------------------------------------------

    def at(self, at_s: float, happens: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (at_s, self._sequence, happens))

    def play(self) -> None:
        """Until every job has ended or can never start."""
        for run in self.due:
            self.at(run.ready_s, lambda run=run: self._submit(run))  # type: ignore[misc]
        begin_interruptions(self)
        self._plan_reservations()
        self.look(EPOCH_S)
        while not self.is_over or self.machines:
            next_s = min(self._events[0][0] if self._events else float("inf"), self._look_s)
            if next_s == float("inf") or self._is_hopeless(next_s):
                break
            if self.is_over and next_s > self._last_change_s + TAIL_S:
                break
            self.now_s = next_s
            while self._events and self._events[0][0] <= next_s:
                heapq.heappop(self._events)[2]()
            if self._is_changed:
                self._schedule()
            if self._look_s <= next_s:
                self._ask()
                self.on_progress(self._num_over, len(self.due))
        for machine in list(self.machines.values()):
            self.end(machine, self.now_s)

    @property
    def is_over(self) -> bool:
        """Every job has ended, or was given up."""
        return self._num_over == len(self.due)

    def _is_hopeless(self, next_s: float) -> bool:
        """Nothing runs, nothing more comes, and nobody bought for a day, or all was in vain."""
        if self.running or not self.queue.waiting or self._num_submitted < len(self.due):
            return False
        if next_s <= EPOCH_S + self.setting.patience_s:
            return False
        if next_s - max(self._last_ran_s, self.due[-1].ready_s) > STALLED_S:
            return True
        return not any(not m.is_up for m in self.machines.values()) and (
            next_s - max(self._last_change_s, self.due[-1].ready_s) > 86400
        )

    _num_submitted = 0
    _last_change_s = _last_ran_s = EPOCH_S

    def look(self, at_s: float) -> None:
        """The policy is asked then at the latest."""
        self._look_s = min(self._look_s, at_s)

    def _ask(self) -> None:
        self._look_s, self.has_news = float("inf"), False
        self.num_looks += 1
        next_s = self.policy.decide(self)
        if self._is_changed:
            self._schedule()
        if next_s is not None:
            self.look(max(next_s, self.now_s + 1.0))
        if self.queue.waiting:
            self.look(self.now_s + self.setting.heartbeat_s)

    def _schedule(self) -> None:
        self._is_changed = False
        for run, machines in self.queue.schedule(self.machines, self.now_s):
            self._start(run, machines)
        if self.has_news and self.queue.waiting:
            self.look(self.now_s + LOOK_S)

    # -- jobs ----------------------------------------------------------------------------

    def _submit(self, run: Run) -> None:
        self.queue.waiting[run.place] = run
        self._num_submitted += 1
        self._is_changed = self.has_news = True

    def _start(self, run: Run, machines: tuple[Machine, ...]) -> None:
        run.started_s, run.machines, run.starts = self.now_s, machines, run.starts + 1
        if run.first_started_s < 0:
            run.first_started_s, run.first_on = self.now_s, machines[0].offering
        run.running = replace(
            run.pending,
            state="RUNNING",
            node_names=tuple(each.name for each in machines),
            started_at_s=self.now_s,
        )
        for each in machines:
            each.put(run)
        self.running[run.place] = run
        self._last_change_s = self._last_ran_s = self.now_s
        if self.cluster.waiting.most_usd:
            self.look(self.now_s + LOOK_S)  # a spare node is taken
        start = run.starts
        self.at(self.now_s + run.left_s, lambda: self._finish(run, start))

    def _finish(self, run: Run, start: int) -> None:
        if run.is_running and run.starts == start:
            run.left_s, run.ended_s = 0.0, self.now_s
            self._num_over += 1
            self._last_change_s = self._last_ran_s = self.now_s
            self._leave(run, is_lost=False)

    def _leave(self, run: Run, *, is_lost: bool) -> None:
        self.segments.append(Segment(run.started_s, self.now_s, run.gpus, is_lost))
        for each in run.machines:
            each.take(run, self.now_s)
            if each.is_empty:
                self.look(self.now_s + LOOK_S)
                self._watch_idle(each)
        run.machines, run.running = (), None
        del self.running[run.place]
        self._is_changed = True

    def requeue(self, run: Run, checkpoint_s: float | None) -> None:
        """It waits again, with the work since its last checkpoint lost."""
        done_s = self.now_s - run.started_s
        kept_s = 0.0 if checkpoint_s is None else done_s // max(checkpoint_s, 1.0) * checkpoint_s
        self.lost_s += (done_s - kept_s) * run.gpus
        run.left_s -= kept_s
        self._leave(run, is_lost=True)
        run.pending = replace(run.pending, restarts=run.starts)
        self._last_ran_s = self.now_s
        if run.starts >= STARTS_MAX:
            run.reason = f"interrupted {STARTS_MAX} times before its end: set checkpoint_s"
            self._num_over += 1
            return
        self.queue.waiting[run.place] = run
        self.has_news = True

    def constrain(self, job_id: str, feature: str) -> bool:
        """A waiting job asks for one feature more; whether it did not before."""
        run = self._by_id.get(job_id)
        if run is None or run.place not in self.queue.waiting:
            return False
        text = with_feature(run.pending.constraint, feature)
        if text is None or text == run.pending.constraint:
            return False
        run.pending = replace(run.pending, constraint=text)
        run.kind = self._kinds.setdefault(asked(run.pending), len(self._kinds))
        return True

    # -- nodes ---------------------------------------------------------------------------

    def buy(
        self,
        pool: Pool,
        offering: Offering,
        count: int,
        gated_for: str = "",
        account: str = "",
        user: str = "",
        layout: str = "",
    ) -> list[Machine]:
        """Up to `count` nodes; fewer when EC2 has no more of the offering, or starts no more."""
        count = self.fleets.given(offering, count, self.machines.values(), self.now_s)
        instance_type = next(t for t in pool.instance_types if t.name == offering.instance_type)
        launched_s = self.now_s + self.setting.fleet_s
        bought: list[Machine] = []
        for _ in range(count):
            self._sequence += 1
            machine = Machine(
                name=f"i-{self._sequence:012x}",
                pool=pool.name,
                offering=offering,
                instance_type=instance_type,
                usd_per_hour=self.cluster.prices[offering],
                price=self.setting.prices.get(offering),
                account=account,
                user=user,
                layout=layout,
                launched_s=launched_s,
                joins_s=launched_s + pool.boot_s,
                features=pool.features(offering.instance_type, offering.market),
                gated_for=gated_for,
            )
            self.machines[machine.name] = machine
            self.at(machine.joins_s, lambda machine=machine: self._join(machine))  # type: ignore[misc]
            self._plan_end(machine)
            bought.append(machine)
        self.num_launches += len(bought)
        if bought:
            self._last_change_s = self.now_s
        return bought

    def _join(self, machine: Machine) -> None:
        if machine.ended_s is None:
            machine.is_up, machine.is_drain = True, bool(machine.gated_for)
            if self.now_s <= machine.closes[1]:
                machine.is_drain, machine.drain_reason = True, machine.closes[0]
            machine.idle_since_s = self.now_s
            machine.changes += 1
            self._is_changed = True
            if machine.gated_for:
                self.look(self.now_s + LOOK_S)
            self._watch_idle(machine)

    def _watch_idle(self, machine: Machine) -> None:
        """Ask the policy when the node has idled for its pool's time without a break."""
        pool = self.cluster.pool(machine.pool)
        since_s, idle_s = self.now_s, max(pool.idle_s if pool else 0.0, LOOK_S)

        def is_due() -> None:
            is_idle = machine.is_empty and machine.idle_since_s == since_s
            if is_idle and machine.ended_s is None:
                self.look(self.now_s)

        self.at(since_s + idle_s, is_due)

    def set_drain(self, machine: Machine, is_drain: bool, reason: str = "") -> None:
        machine.is_drain, machine.drain_reason = is_drain, reason
        machine.changes += 1
        self._is_changed = True

    def weigh(self, machine: Machine, weight: int) -> None:
        machine.weight = weight
        machine.changes += 1

    def release(self, machine: Machine) -> bool:
        """Let an idle node go; False: a job is on it."""
        if machine.is_empty and machine.is_up:
            self.end(machine, self.now_s + RELEASE_S)
        return machine.is_empty

    def end(self, machine: Machine, at_s: float) -> None:
        """Its bill ends; what runs there waits again."""
        pool = self.cluster.pool(machine.pool)
        for run in list(machine.runs.values()):
            self.requeue(run, pool.checkpoint_s if pool else None)
        machine.ended_s = max(at_s, machine.launched_s)
        del self.machines[machine.name]
        self.gone.append(machine)
        self._is_changed = True

    # -- interruptions -------------------------------------------------------------------

    def _plan_reservations(self) -> None:
        """What has begun is used at once."""
        for each in self.cluster.reservations:
            if each.starts_at_s > EPOCH_S:
                self.at(each.starts_at_s, lambda at_s=each.starts_at_s: self.look(at_s + LOOK_S))  # type: ignore[misc]

    def _plan_end(self, machine: Machine) -> None:
        """EC2 takes back the nodes of a capacity block before its end."""
        drains_at_s = block_drains_at_s(self.cluster, machine.offering, self.now_s)
        if drains_at_s is not None:
            self.at(drains_at_s + BLOCK_NOTICE_S, lambda: self.reclaim(machine))

    def reclaim(self, machine: Machine) -> None:
        if machine.ended_s is None:
            self.end(machine, self.now_s)
            self.look(self.now_s + LOOK_S)
