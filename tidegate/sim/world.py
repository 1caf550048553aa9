"""A whole cluster in one process and one thread: real control loop, agent and planner inside.

Time jumps from event to event: to the next thing that Slurm, the head, a queue, the agent's
heartbeat or a machine does by itself. What is due at one instant happens in a fixed order.
"""

import heapq
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tidegate.agent.loop import IDLE_HEARTBEAT_S, Agent
from tidegate.agent.orders import batches
from tidegate.core.interruption.heartbeat import Beat
from tidegate.core.model import ec2
from tidegate.core.model.calendar import AlwaysUp
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import LAUNCH_TAG, FleetRequest, Instance, InstanceState
from tidegate.core.model.errors import TidegateError
from tidegate.core.model.events import News, SpotInterruption, StateChange
from tidegate.core.model.gpu_use import GpuUse
from tidegate.core.model.orders import Order, OrderResult
from tidegate.core.model.slurm import Association, Job
from tidegate.core.offers.market import at_market
from tidegate.ports import Calendar, ReceivedOrder
from tidegate.service.control import Control, Looked
from tidegate.service.hours import Hours, Kept
from tidegate.sim.alarms import SimAlarms
from tidegate.sim.beats import told_beats
from tidegate.sim.booting import booted_node
from tidegate.sim.bus import SimBus
from tidegate.sim.clock import HeadClock, SimClock
from tidegate.sim.ec2 import SimCompute
from tidegate.sim.faults import Acting
from tidegate.sim.head import SimHead
from tidegate.sim.ledger import SimLedger
from tidegate.sim.placement import placement
from tidegate.sim.progress import told_progress
from tidegate.sim.slurm import SimSlurm
from tidegate.sim.slurm_parts import SimNode

HEAD_INSTANCE_ID = "i-00000000000000head"
MIN_PERIOD_S = 1.0  # between two looks of the agent at Slurm
POLL_S = 10.0  # an agent whose heartbeat is due looks again this often
REBOOT_S = 60.0  # until a node that is rebooted registers
RETRY_S = 5.0  # after orders could not be received


@dataclass(slots=True)
class SimWorld:
    """One cluster under virtual time, in seconds until an instance registers, or does so again.

    `booted`: what becomes of a node before it registers; a test may spoil it. `beats`: what the
    head sees of jobs' heartbeats; None: as they work. `gpu_uses`: of the use of their GPUs.
    While the head is stopped neither slurmctld nor agent run.
    `redelivery_s`: after this time the queue delivers again what a killed function had in
    hand; None: `Killed` comes out of `step`. `is_fifo`: meanwhile it keeps other looks back.
    `actors`: who runs now, the innermost last; `in_hand`: the orders that the agent carries
    out now and since when on its clock. `on_begin` hears of each look, `on_news` of news
    that reach the interruption function, `on_interrupted` of those that were acted on,
    `on_event` of every event that is over.
    """

    cluster: Cluster
    boot_s: Callable[[Instance], float]
    on_look: Callable[[Looked], None] = lambda looked: None
    heartbeat_s: float = 60.0
    reboot_s: Callable[[str], float] = lambda name: REBOOT_S
    booted: Callable[[SimNode], SimNode] = lambda node: node
    beats: Callable[[Sequence[Job]], Mapping[str, Beat]] | None = None
    gpu_uses: Callable[[Sequence[Job]], Mapping[str, GpuUse]] = lambda jobs: {}
    calendar: Calendar = field(default_factory=AlwaysUp)
    associations: tuple[Association, ...] = ()
    licences: int = 0
    redelivery_s: float | None = None
    is_fifo: bool = True
    clock: SimClock = field(default_factory=SimClock)
    alarms: SimAlarms = field(default_factory=SimAlarms)
    on_event: list[Callable[[], None]] = field(default_factory=list)
    on_begin: list[Callable[[], None]] = field(default_factory=list)
    on_orders: list[Callable[[Sequence[Order]], None]] = field(default_factory=list)
    on_results: list[Callable[[tuple[OrderResult, ...]], None]] = field(default_factory=list)
    on_news: list[Callable[[Sequence[News]], None]] = field(default_factory=list)
    on_interrupted: list[Callable[[Sequence[News]], None]] = field(default_factory=list)
    actors: list[str] = field(default_factory=list)
    in_hand: list[tuple[Sequence[Order], float]] = field(default_factory=list)
    head_instance_id: str = HEAD_INSTANCE_ID
    head_clock: HeadClock = field(init=False)
    head: SimHead = field(init=False)
    compute: SimCompute = field(init=False)
    ledger: SimLedger = field(init=False)
    bus: SimBus = field(init=False)
    slurm: SimSlurm = field(init=False)
    agent: Agent = field(init=False)
    control: Control = field(init=False)
    hours: Hours = field(init=False)
    num_events: int = 0
    _due: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _news: list[News] = field(default_factory=list)
    _waiting: list[Instance] = field(default_factory=list)
    _tags: dict[str, dict[str, str]] = field(default_factory=dict)
    _locked_until_s: float = 0.0
    _orders_from_s: float = 0.0
    _ticked: tuple[float, int] = (0.0, -1)
    _published_at_s: float = 0.0
    _has_news: bool = False
    _was_head_up: bool = True

    def __post_init__(self) -> None:
        self.head_clock = HeadClock(self.clock)
        self.compute = SimCompute(self.clock)
        self.compute.prepaid.reservations = self.cluster.reservations
        self.compute.on_request.append(self._note_tags)
        self.compute.on_launch.append(self._boot)
        self.compute.on_end.append(lambda instance: self.slurm.die(instance.instance_id))
        self.ledger = SimLedger(self.clock)
        self.bus = SimBus(self.clock)
        self.slurm = SimSlurm(
            self.cluster,
            self.clock,
            associations=self.associations,
            licences=self.licences,
            head_clock=self.head_clock,
        )
        self.slurm.reboots.on_reboot.append(self._reboot)
        self.head = SimHead(self.clock)
        self.agent = self._started_agent()
        self.control = Control(
            self.cluster,
            self.compute,
            self.ledger,
            self.bus,
            self.clock,
            placement(self.cluster),
            self.calendar,
            self.alarms,
        )
        self.hours = Hours(
            cluster=self.cluster,
            calendar=self.calendar,
            head=self.head,
            compute=self.compute,
            ledger=self.ledger,
            bus=self.bus,
            clock=self.clock,
        )

    @property
    def priced(self) -> Cluster:
        """The cluster at the prices that were read last."""
        return at_market(self.cluster, self.ledger.seen_market, self.clock.now_s())

    # -- time ------------------------------------------------------------------------------

    def step(self, seconds: float) -> None:
        """Let `seconds` pass, and everything happen that is due by then."""
        until_s = self.clock.now_s() + seconds
        while (at_s := self.next_event_s()) <= until_s:
            self.next_event(at_s)
        self.clock.set(max(until_s, self.clock.now_s()))

    def stand_still(self, seconds: float) -> None:
        """A planner waits for an answer while the world goes on; FIFO keeps other looks back."""
        if self.is_fifo:
            over_s = self.clock.now_s() + seconds + 0.001  # and at the end it acts on
            self._locked_until_s = max(self._locked_until_s, over_s)
        self.step(seconds)

    def next_event_s(self) -> float:
        looks_s = max(self.bus.next_look_s(), self._locked_until_s)
        by_itself_s = self._due[0][0] if self._due else float("inf")
        return min(by_itself_s, self.head.next_change_s(), self._head_due_s(), looks_s)

    def next_event(self, at_s: float | None = None) -> None:
        """Jump to the next event, which is at `at_s` (None: find out), and let it happen."""
        at_s = self.next_event_s() if at_s is None else at_s
        if at_s > self.clock.now:
            self.clock.now = at_s
        self.num_events += 1
        self._machines()
        self._follow_head()
        if self.head.is_up:
            self.slurm.step()
            self._register_waiting()
            self._take_orders((True, False))
            if self._tick_due_s() <= self.clock.now:
                self._tick()
        if self._news:
            self._interrupt()
        if self.bus.looks and self.clock.now >= self._locked_until_s and self.bus.take_looks():
            self.look()
        for tell in self.on_event:
            tell()

    def at(self, at_s: float, happen: Callable[[], None]) -> None:
        """Let something happen then."""
        heapq.heappush(self._due, (at_s, next(self._numbers), happen))

    def _machines(self) -> None:
        while self._due and self._due[0][0] <= self.clock.now:
            heapq.heappop(self._due)[2]()

    # -- the functions ---------------------------------------------------------------------

    def look(self) -> None:
        """Run one planner; whoever is killed leaves its message to the queue."""
        with self.acting("planner") as acting:
            for tell in self.on_begin:
                tell()
            self.on_look(self.control.look())
        if acting.was_killed:
            again_s = self.clock.now_s() + (self.redelivery_s or 0.0)
            self.bus.looks.append((again_s, "delivered again"))
            self._locked_until_s = again_s if self.is_fifo else self._locked_until_s

    def keep_hours(self, why: str) -> Kept | None:
        """Run the reconcile or the schedule function; None when it failed."""
        kept: Kept | None = None
        # What fails is tried again with the next event, at most five minutes later.
        with self.acting("hours"), suppress(TidegateError):
            kept = self.hours.keep(why)
        return kept

    def notice(self, instance_id: str) -> None:
        """EC2 announces a reclaim, and reclaims when the notice is over."""
        now_s = self.clock.now_s()
        self.announce(SpotInterruption(instance_id, now_s))
        reclaim_at_s = now_s + self.cluster.timings.spot_notice_s
        self.at(reclaim_at_s, lambda: self.compute.end(instance_id, ec2.RECLAIMED))

    def announce(self, news: News) -> None:
        """The news alone reach the interruption function now."""
        self.at(self.clock.now_s(), lambda: self._news.append(news))

    def tell_of_change(self, instance_id: str) -> None:
        """EC2's event that an instance ends reaches the interruption function."""
        self.announce(StateChange(instance_id, InstanceState.SHUTTING_DOWN))

    def _interrupt(self) -> None:
        news, self._news = tuple(self._news), []
        with self.acting("interruption") as acting:
            try:
                for tell in self.on_news:
                    tell(news)
                self.control.interrupt(news)
                for tell in self.on_interrupted:
                    tell(news)
            except TidegateError:
                if self.redelivery_s is None:
                    raise
                self._announce_again(news)
        if acting.was_killed:
            self._announce_again(news)

    def _announce_again(self, news: tuple[News, ...]) -> None:
        again_s = self.clock.now_s() + (self.redelivery_s or 0.0)
        self.at(again_s, lambda: self._news.extend(news))

    def acting(self, actor: str) -> Acting:
        """Somebody runs; where messages come again a death is no failure of the story."""
        return Acting(self.actors, actor, outlives=self.redelivery_s is not None)

    # -- the head --------------------------------------------------------------------------

    def deploy(self, digest: str) -> None:
        """New nodes come from another template."""
        deployed = placement(self.cluster, digest)
        self.control = replace(self.control, placement=deployed)

    def restart_agent(self) -> None:
        """A new start of the agent; it remembers nothing."""
        self.agent = self._started_agent()
        self._ticked, self._published_at_s = (0.0, -1), 0.0

    def _head_due_s(self) -> float:
        if not self.head.is_up:
            return float("inf")
        orders_s = max(self.bus.next_order_s(), self._orders_from_s)
        return min(self.slurm.next_due_s(), self._tick_due_s(), orders_s)

    def _tick_due_s(self) -> float:
        ticked_at_s, changes = self._ticked
        is_new = changes != self.slurm.table.changes or self._has_news
        if is_new or self.agent.is_settling:
            return ticked_at_s + MIN_PERIOD_S
        is_empty = not self.slurm.table.active and not self.slurm.nodes
        heartbeat_s = max(self.heartbeat_s, IDLE_HEARTBEAT_S) if is_empty else self.heartbeat_s
        return max(ticked_at_s + POLL_S, self._published_at_s + heartbeat_s)

    def _tick(self) -> None:
        self._ticked = (self.clock.now_s(), self.slurm.table.changes)
        self._has_news = False
        with self.acting("agent") as acting:
            if self.agent.tick():
                self._published_at_s = self.clock.now_s()
        if acting.was_killed:
            self.restart_agent()

    def _take_orders(self, urgencies: tuple[bool, ...]) -> None:
        """What the agent's two threads do; an order that fails stays in its queue."""
        now_s = self.clock.now_s()
        if now_s < self._orders_from_s or self.bus.next_order_s() > now_s:
            return
        with self.acting("agent") as acting:
            try:
                for urgent in urgencies:
                    received = self.bus.receive_orders(urgent=urgent, wait_s=0)
                    for batch in batches(received, lambda one: one.order) if received else ():
                        self._carry_out(batch)
                        self._has_news = True
            except TidegateError:
                self._orders_from_s = self.clock.now_s() + RETRY_S
        if acting.was_killed:
            self.restart_agent()

    def _carry_out(self, batch: Sequence[ReceivedOrder]) -> None:
        orders = [received.order for received in batch]
        for hear in self.on_orders:
            hear(orders)
        self.in_hand.append((orders, self.head_clock.now_s()))
        try:
            results = self.agent.on_orders(orders)
        finally:
            self.in_hand.pop()
        for tell in self.on_results:
            tell(results)
        for received in batch:
            self.bus.acknowledge(received)

    def _pass_time(self, seconds: float) -> None:
        """The agent waits within an order: the world goes on, and urgent orders are taken."""
        self.clock.advance(seconds)
        self._machines()
        self.slurm.step()
        if self.actors.count("agent") == 1:
            self._take_orders((True,))

    def _follow_head(self) -> None:
        """Slurmctld keeps its state on the head's volume; the agent begins anew."""
        is_up = self.head.is_up
        if is_up is not self._was_head_up:
            self._was_head_up = self.slurm.is_up = is_up
            if self.head.is_up:
                self.slurm.restart()
            self.restart_agent()

    def _started_agent(self) -> Agent:
        return Agent(
            slurm=self.slurm,
            bus=self.bus,
            clock=self.head_clock,
            cluster=self.cluster.name,
            head_instance_id=self.head_instance_id,
            agent_started_at_s=self.head_clock.now_s(),
            sleep=self._pass_time,
            heartbeat_s=self.heartbeat_s,
            beats=lambda jobs: self.beats(jobs) if self.beats else told_beats(jobs, self.slurm),
            stopwatch=self.clock.now_s,
            gpu_uses=lambda jobs: self.gpu_uses(jobs),
            progress=lambda jobs: told_progress(jobs, self.slurm),
        )

    # -- the machines ----------------------------------------------------------------------

    def _note_tags(self, request: FleetRequest) -> None:
        """What a boot reads of its launch are tags of the fleet request."""
        tags = dict(request.tags)
        self._tags[tags.get(LAUNCH_TAG, "")] = tags

    def _boot(self, instance: Instance) -> None:
        boot_s = self.boot_s(instance)
        if boot_s < float("inf"):
            self.at(self.clock.now_s() + boot_s, lambda: self._waiting.append(instance))

    def _reboot(self, name: str) -> None:
        """The machine boots whole again, and registers in the end if it comes up."""
        instance, boot_s = self.compute.everything[name], self.reboot_s(name)
        if boot_s < float("inf"):
            self.at(self.clock.now_s() + boot_s, lambda: self._waiting.append(instance))

    def _register_waiting(self) -> None:
        """What user data does at its end; slurmd tries until slurmctld answers."""
        if self._waiting and self.slurm.is_up:
            waiting, self._waiting = self._waiting, []
            for instance in waiting:
                self._register(instance)

    def _register(self, instance: Instance) -> None:
        pool = self.cluster.pool(instance.pool)
        shape = self.cluster.instance_type(instance.offering.instance_type)
        if not self.compute.is_live(instance.instance_id) or pool is None or shape is None:
            return
        features = pool.features(shape.name, instance.offering.market)
        tags = self._tags.get(instance.launch_id, {})
        if node := booted_node(instance, shape, features, tags):
            self.slurm.register(self.booted(node))
        else:
            self.compute.end(instance.instance_id, ec2.SHUT_DOWN)
