"""What goes wrong in a drawn world call by call and message by message, and when it stops.

Each kind of fault has its own stream of chance: a world without one of them keeps the others
as they were, as far as the story stays the same.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from tidegate.core.model.ec2 import RECLAIMED, SHUT_DOWN, FleetRequest, Instance, Market, Override
from tidegate.core.model.errors import SlurmUnavailable, Throttled
from tidegate.core.model.events import SpotInterruption
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.slurm import SetBy
from tidegate.sim.draw import stream
from tidegate.sim.faults import Faults, Killed, no_faults
from tidegate.sim.options import WorldOptions
from tidegate.sim.placement import by_priority
from tidegate.sim.slurm_parts import SimNode
from tidegate.sim.world import SimWorld

NEVER_S = float("inf")
DEAD_MAN_S = 20.0  # from the launch until user data starts its dead man's switch
HEALTH_GATE_S = 50.0
ONE_IN_STANDS_STILL = 0.4
PAUSE_MAX_S = 30.0
FLEET_S = 3.0  # CreateFleet, where it is slow
SLOW_WORLDS = 0.3
# Worlds in which what is opened takes no job for a moment; it did so for 2 to 4 s (22.05, 24.11).
ASKING_WORLDS, PING_S = 0.5, 3.0
TELL_SHARDS = 0.5  # worlds in which Slurm tells of each GPU how many are in use
FORGETS_ANSWERS = 0.5  # worlds in which EC2 does not say again what a token brought
AGENT_IS_HARDIER = 8.0  # a process on the head dies more seldom than a function


@dataclass(slots=True)
class Chaos:
    """The faults of one world. `injected` counts them; `last_s`: when each kind came last.

    `announced`: instance -> when EC2 takes it back, for those that got their notice;
    `doomed`: those that it means to take back, or took without a word;
    `left_out`: those that Describe has hidden; `touched`: nodes that a person has drained;
    `cordoned`: those that AWS has hinted at; `by_hand`: those that a person has started;
    `sickened`: those that software has drained; `unwell`: of them those of which a GPU has failed,
    until it is mended; `held`: until when a person holds a node to look
    into it; `words`: when a person believed the checks of a pool again. `gpu_faults`: by job, when
    a GPU failed in a run.
    `on_reclaim` is called right before EC2 takes an instance back.
    """

    options: WorldOptions
    world: SimWorld
    injected: Counter[str] = field(default_factory=Counter)
    last_s: dict[str, float] = field(default_factory=dict)
    announced: dict[str, float] = field(default_factory=dict)
    doomed: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    touched: set[str] = field(default_factory=set)
    held: dict[str, float] = field(default_factory=dict)
    sickened: set[str] = field(default_factory=set)
    unwell: set[str] = field(default_factory=set)
    gpu_faults: dict[str, dict[int, float]] = field(default_factory=dict)
    words: list[tuple[float, str]] = field(default_factory=list)
    cordoned: set[str] = field(default_factory=set)
    by_hand: set[str] = field(default_factory=set)
    _may_pause: bool = False
    is_over: bool = False
    on_reclaim: list[Callable[[str], None]] = field(default_factory=list)

    def install(self) -> None:
        """Put the hooks in place."""
        world, faults = self.world, self.options.faults
        if faults & {"throttle", "lost", "kill", "twice"}:
            of_aws = self._hook(Throttled)
            for port in (world.compute, world.ledger, world.bus, world.head):
                port.faults = of_aws
            world.slurm.faults = self._hook(SlurmUnavailable)
        world.on_begin.append(self._begins)
        world.compute.luck = stream(self.options.seed, "side by side").random
        if faults and stream(self.options.seed, "slow").random() < SLOW_WORLDS:
            world.compute.in_flight = self._answers_late
        if "looks" in faults:
            world.bus.look_route = self._look_route()
        if "orders" in faults:
            world.bus.order_route = self._order_route()
        if "order" in faults:
            world.compute.ranked = self._ranked()
        if "spot" in faults:
            world.compute.on_launch.append(self._reclaims())
        if faults and stream(self.options.seed, "repeats").random() < FORGETS_ANSWERS:
            world.compute.repeats_answers = False
        if stream(self.options.seed, "ping").random() < ASKING_WORLDS:
            world.slurm.table.ping_s = PING_S
        world.slurm.table.tells_shards = stream(self.options.seed, "tells").random() < TELL_SHARDS
        world.boot_s = self._boots()
        if self.options.rates.bad_boot:
            world.booted = self._booted()
        world.redelivery_s, world.is_fifo = 60.0, "twice" not in faults
        world.compute.describe_lag_s = world.compute.ending_s = self.options.rates.lag_s

    def stop(self) -> None:
        """From now on nothing fails."""
        world, self.is_over = self.world, True
        for port in (world.compute, world.ledger, world.bus, world.head, world.slurm):
            port.faults = no_faults

    def falls_ill(self, name: str) -> None:
        """A GPU of this node has failed, and software is about to drain it."""
        self.sickened.add(name)
        self.unwell.add(name)

    def note(self, kind: str, until_s: float = 0.0) -> None:
        """One fault of this kind came; `until_s`: until when it lasts."""
        self.injected[kind] += 1
        self.last_s[kind] = max(self.last_s.get(kind, 0.0), self.world.clock.now_s(), until_s)

    def was_calm_since(self, at_s: float, *kinds: str) -> bool:
        """None of these kinds of fault has come or lasted since then."""
        return all(self.last_s.get(kind, 0.0) < at_s for kind in kinds)

    # -- calls -----------------------------------------------------------------------------

    def _hook(self, refusal: type[Throttled] | type[SlurmUnavailable]) -> Faults:
        rates, seed = self.options.rates, self.options.seed
        refuse, lose, die, double = (
            stream(seed, name).random if getattr(rates, name) else _never
            for name in ("throttle", "lost", "kill", "twice")
        )
        kill, twice, throttle, lost = rates.kill, rates.twice, rates.throttle, rates.lost
        actors, kill_agent = self.world.actors, kill / AGENT_IS_HARDIER

        def passes(point: str) -> None:
            if not actors:
                return
            is_agent = actors[-1] == "agent"
            if kill and die() < (kill_agent if is_agent else kill):
                self.note("kill")
                raise Killed(f"killed {point}")
            if twice and len(actors) == 1 and not is_agent and double() < twice:
                self.note("twice")
                self._overtake(double())
            if point.startswith("before"):
                if throttle and refuse() < throttle:
                    self.note("throttle")
                    raise refusal(f"slow down, {point}")
            elif lost and lose() < lost:
                self.note("lost")
                raise refusal(f"no answer {point}")

        return passes

    def _answers_late(self, number: int) -> None:
        """What is asked side by side takes as long as one request."""
        if self.world.actors == ["planner"] and not self.is_over:
            self.world.stand_still(FLEET_S)

    def _begins(self) -> None:
        self._may_pause = self._may_pause or len(self.world.actors) == 1

    def _overtake(self, luck: float) -> None:
        """A planner runs now, whichever function this one is; or this one stands still and the
        world goes on, once for each look.
        """
        world = self.world
        if luck < ONE_IN_STANDS_STILL and self._may_pause:
            self._may_pause = False
            world.step(luck / ONE_IN_STANDS_STILL * PAUSE_MAX_S)
        else:
            world.look()

    # -- messages --------------------------------------------------------------------------

    def _look_route(self) -> Callable[[str], tuple[float, ...]]:
        chance, rates = stream(self.options.seed, "looks"), self.options.rates

        def route(why: str) -> tuple[float, ...]:
            if self.is_over:
                return (0.0,)
            luck = chance.random()
            if luck < rates.look_lost:
                self.note("looks")
                return ()
            if luck < rates.look_lost + rates.look_late:
                self.note("looks")
                return tuple(chance.uniform(0.0, 90.0) for _ in range(chance.choice((1, 2))))
            return (0.0,)

        return route

    def _order_route(self) -> Callable[[Order], tuple[float, ...]]:
        chance, rates = stream(self.options.seed, "orders"), self.options.rates
        of_requeues = stream(self.options.seed, "late requeues")

        def route(order: Order) -> tuple[float, ...]:
            arrivals = [0.0]
            is_requeue = order.kind is OrderKind.REQUEUE
            if not self.is_over and chance.random() < rates.order_late:
                arrivals = [chance.choice((5.0, 40.0, 150.0)) * chance.random()]
            elif not self.is_over and is_requeue and of_requeues.random() < 0.5:
                # By then another has come, and the job may run elsewhere.
                arrivals = [of_requeues.uniform(0.0, 60.0)]
            if not self.is_over and chance.random() < rates.order_twice:
                arrivals.append(chance.uniform(0.0, 300.0))
            if arrivals != [0.0]:
                self.note("orders", self.world.clock.now_s() + order.delay_s + max(arrivals))
            return tuple(arrivals)

        return route

    # -- EC2 -------------------------------------------------------------------------------

    def _ranked(self) -> Callable[[FleetRequest], Sequence[Override]]:
        chance = stream(self.options.seed, "order")

        def ranked(request: FleetRequest) -> Sequence[Override]:
            asked = list(by_priority(request))
            if request.market is Market.SPOT and not self.is_over and chance.random() < 0.7:
                self.note("order")
                chance.shuffle(asked)
            return asked

        return ranked

    def _reclaims(self) -> Callable[[Instance], None]:
        """Each spot instance may have its last hour drawn when it starts."""
        chance, rate = stream(self.options.seed, "reclaim"), self.options.rates.reclaim

        def started(instance: Instance) -> None:
            if instance.offering.market is not Market.SPOT or chance.random() >= rate:
                return
            lead_s = chance.choice((120.0, 120.0, 120.0, chance.uniform(5.0, 100.0), 0.0))
            at_s = self.world.clock.now_s() + max(lead_s, chance.uniform(5.0, 350.0))
            self.reclaim(instance.instance_id, at_s, lead_s, is_twice=chance.random() < 0.3)

        return started

    def reclaim(
        self, instance_id: str, at_s: float, lead_s: float, *, is_twice: bool = False
    ) -> None:
        """EC2 takes the instance back then; its notice comes so long before, 0: never."""
        world = self.world
        if instance_id in self.doomed:
            return
        self.doomed.add(instance_id)
        notices = [] if lead_s == 0 else [lead_s, lead_s * 0.6] if is_twice else [lead_s]

        def take() -> None:
            if not world.compute.is_live(instance_id) or (self.is_over and not given):
                return
            self.note("spot")
            for tell in self.on_reclaim:
                tell(instance_id)
            world.compute.end(instance_id, RECLAIMED)

        def give() -> None:
            if world.compute.is_live(instance_id) and (given or not self.is_over):
                given.append(True)
                self.announced[instance_id] = at_s
                event_s = at_s - world.cluster.timings.spot_notice_s
                world.announce(SpotInterruption(instance_id, event_s))

        given: list[bool] = []
        for before_s in notices:
            world.at(at_s - before_s, give)
        world.at(at_s, take)

    def flicker(self, for_s: float) -> None:
        """Describe leaves out half of what lives."""
        self.note("lag")
        for one in self.world.compute.live()[::2]:
            self.left_out.add(one.instance_id)
            self.world.compute.hide(one.instance_id, for_s)

    # -- machines --------------------------------------------------------------------------

    def _boots(self) -> Callable[[Instance], float]:
        """Seconds from launch to registration: a heavy tail, and boots that never end."""
        chance, rates = stream(self.options.seed, "boots"), self.options.rates
        bound_s, world = self.world.cluster.timings.boot_bound_s, self.world

        def boot_s(instance: Instance) -> float:
            usual_s = min(chance.lognormvariate(3.9, 0.4), bound_s / 2)
            luck, slow_s = chance.random(), chance.uniform(0.4, 1.3) * bound_s
            fate = chance.choice(("hangs", "hangs", "stuck", "unhealthy"))
            if self.is_over:
                return usual_s
            name, now_s = instance.instance_id, world.clock.now_s()
            if luck < rates.bad_boot:
                self.note("boot")
                if fate != "stuck":
                    off_s = HEALTH_GATE_S if fate == "unhealthy" else bound_s + DEAD_MAN_S
                    world.at(now_s + off_s, lambda: world.compute.end(name, SHUT_DOWN))
                return NEVER_S
            if luck < rates.bad_boot + rates.slow_boot:
                self.note("boot")
                if slow_s < bound_s + DEAD_MAN_S:
                    return slow_s
                world.at(now_s + bound_s + DEAD_MAN_S, lambda: world.compute.end(name, SHUT_DOWN))
                return NEVER_S
            return usual_s

        return boot_s

    def _booted(self) -> Callable[[SimNode], SimNode]:
        chance, rate = stream(self.options.seed, "booted"), self.options.rates.bad_boot

        def booted(node: SimNode) -> SimNode:
            luck = chance.random()
            if self.is_over or luck >= rate / 2:
                return node
            self.note("boot")
            if luck < rate / 4:
                return replace(
                    node, is_down=True, reason="gres/gpu count too low", set_by=SetBy.SLURM
                )
            return replace(node, memory_mib=node.memory_mib // 2)

        return booted


def _never() -> float:
    """A draw that no rate reaches, where none is asked for."""
    return 1.0
