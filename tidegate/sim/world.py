"""A whole cluster in one process and one thread: real control loop, agent and planner inside."""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.agent.loop import Agent
from tidegate.core.ec2 import Instance, Market
from tidegate.core.interruption import Notice
from tidegate.core.pool import Cluster
from tidegate.ports import Calendar
from tidegate.service.control import Control, Looked
from tidegate.service.hours import Hours
from tidegate.service.requests import Placement, Template
from tidegate.sim.bus import SimBus
from tidegate.sim.clock import SimClock
from tidegate.sim.ec2 import SimCompute
from tidegate.sim.head import SimHead
from tidegate.sim.ledger import SimLedger
from tidegate.sim.slurm import SimSlurm
from tidegate.sim.slurm_parts import SimNode

HEAD_INSTANCE_ID = "i-00000000000000head"
SLURMD_RETRY_S = 1.0  # between two attempts to register while slurmctld is silent


@dataclass(slots=True)
class SimWorld:
    """One cluster under virtual time. `boot_s` says how long an instance takes to register.

    `booted`: what becomes of a node before it registers; a test may spoil it.
    `calendar` None: no schedules. While the head is stopped neither slurmctld nor agent run.
    """

    cluster: Cluster
    boot_s: Callable[[Instance], float]
    on_look: Callable[[Looked], None] = lambda looked: None
    heartbeat_s: float = 60.0
    booted: Callable[[SimNode], SimNode] = lambda node: node
    calendar: Calendar | None = None
    clock: SimClock = field(default_factory=SimClock)
    head: SimHead = field(init=False)
    compute: SimCompute = field(init=False)
    ledger: SimLedger = field(init=False)
    bus: SimBus = field(init=False)
    slurm: SimSlurm = field(init=False)
    agent: Agent = field(init=False)
    control: Control = field(init=False)
    hours: Hours = field(init=False)
    _due: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _notices: list[Notice] = field(default_factory=list)
    _was_head_up: bool = True

    def __post_init__(self) -> None:
        self.compute = SimCompute(self.clock)
        self.compute.on_launch.append(self._boot)
        self.compute.on_end.append(lambda instance: self.slurm.die(instance.instance_id))
        self.ledger = SimLedger(self.clock)
        self.bus = SimBus(self.clock)
        self.slurm = SimSlurm(self.cluster, self.clock)
        self.head = SimHead(self.clock)
        self.agent = self._started_agent()
        self.control = Control(
            self.cluster,
            self.compute,
            self.ledger,
            self.bus,
            self.clock,
            _placement(self.cluster),
            self.calendar,
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

    def step(self, seconds: float) -> None:
        """Let `seconds` pass, then everything that is due happen, in a fixed order."""
        until_s = self.clock.now_s() + seconds
        while self._due and self._due[0][0] <= until_s:
            at_s, _, happen = heapq.heappop(self._due)
            self.clock.set(max(at_s, self.clock.now_s()))
            happen()
        self.clock.set(until_s)
        self._head()
        if self.head.is_up:
            self.slurm.step()
            self._agent()
        if self._notices:
            notices, self._notices = tuple(self._notices), []
            self.control.interrupt(notices)
        if self.bus.take_looks():
            self.on_look(self.control.look())

    def notice(self, instance_id: str) -> None:
        """EC2 announces a reclaim, and reclaims when the notice is over."""
        reclaim_at_s = self.clock.now_s() + self.cluster.timings.spot_notice_s
        self._notices.append(Notice(instance_id, reclaim_at_s))
        self._at(reclaim_at_s, lambda: self.compute.end(instance_id))

    def _pass_time(self, seconds: float) -> None:
        """The agent waits within an order: Slurm goes on meanwhile."""
        self.clock.advance(seconds)
        self.slurm.step()

    def _head(self) -> None:
        """Slurmctld keeps its state on the head's volume; the agent begins anew."""
        if self.head.is_up is not self._was_head_up:
            self._was_head_up = self.slurm.is_up = self.head.is_up
            self.agent = self._started_agent()

    def _started_agent(self) -> Agent:
        return Agent(
            slurm=self.slurm,
            bus=self.bus,
            clock=self.clock,
            cluster=self.cluster.name,
            head_instance_id=HEAD_INSTANCE_ID,
            agent_started_at_s=self.clock.now_s(),
            sleep=self._pass_time,
            heartbeat_s=self.heartbeat_s,
        )

    def _agent(self) -> None:
        for urgent in (True, False):
            for received in self.bus.receive_orders(urgent=urgent, wait_s=0):
                self.agent.on_order(received.order)
                self.bus.acknowledge(received)
        self.agent.tick()

    def _boot(self, instance: Instance) -> None:
        registers_at_s = self.clock.now_s() + self.boot_s(instance)
        self._at(registers_at_s, lambda: self._register(instance))

    def _register(self, instance: Instance) -> None:
        """What user data does at its end, unless the instance has gone; slurmd waits for a head."""
        if not self.head.is_up:
            self._at(self.clock.now_s() + SLURMD_RETRY_S, lambda: self._register(instance))
            return
        is_alive = any(one.instance_id == instance.instance_id for one in self.compute.live())
        pool = self.cluster.pool(instance.pool)
        shape = self.cluster.instance_type(instance.offering.instance_type)
        if not is_alive or pool is None or shape is None:
            return
        node = SimNode(
            name=instance.instance_id,
            cpus=shape.vcpus,
            memory_mib=shape.slurm_memory_mib,
            gpus=shape.gpus,
            gpu_type=shape.gpu_type,
            features=pool.features(shape.name, Market(instance.offering.market)),
            weight=1 + shape.gpus,
            is_drain=self._is_gated(instance),
        )
        self.slurm.register(self.booted(node))

    def _is_gated(self, instance: Instance) -> bool:
        """The gate travels as a tag of the fleet request, as on EC2."""
        return any(
            dict(request.tags).get("tidegate:gate") == "drain"
            for request in self.compute.requests
            if dict(request.tags).get("tidegate:launch") == instance.launch_id
        )

    def _at(self, at_s: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._due, (at_s, next(self._numbers), happen))


def _placement(cluster: Cluster) -> Placement:
    zones = {zone for pool in cluster.pools for zone in pool.zones}
    return Placement(
        {pool.name: Template(f"lt-{pool.name}", "1") for pool in cluster.pools},
        {zone: f"subnet-{zone}" for zone in zones},
    )
