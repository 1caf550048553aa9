"""What goes wrong with nodes that are stopped: EC2 and people act on them, and news come late."""

from dataclasses import replace

from tidegate.core.model.ec2 import NO_ROOM, Instance, InstanceState
from tidegate.core.model.events import HealthCategory, HealthNotice, StateChange
from tidegate.sim.chaos import Chaos
from tidegate.sim.draw import stream

LATE_MAX_S = 400.0
RELAPSES_S = 8.0  # EC2 took the start, and finds then that it cannot
TOUCHED_MAX_S = 900.0


class _Stops:
    def __init__(self, chaos: Chaos) -> None:
        self._chaos, self._world = chaos, chaos.world
        self._chance = stream(chaos.options.seed, "starts")

    def ended(self, instance: Instance) -> None:
        """EC2 tells of a stop by events, now or late; somebody may have plans with it."""
        now_s = self._world.clock.now_s()
        self._chaos.by_hand.discard(instance.instance_id)
        self._world.at(now_s, lambda: self._stopped(instance.instance_id, now_s))

    def _stopped(self, name: str, at_s: float) -> None:
        world, chance = self._world, self._chance
        node = world.ledger.all_nodes.get(name)
        is_ours = node is not None and node.stopped_at_s is not None  # not what AWS has retired
        if name not in world.compute.stopped or not is_ours or self._chaos.is_over:
            return
        late_s = chance.choice((0.0, 5.0, LATE_MAX_S)) * chance.random()
        world.at(
            at_s + late_s,
            lambda: world.announce(StateChange(name, InstanceState.STOPPED, at_s)),
        )
        luck, touched_s = chance.random(), at_s + chance.uniform(1.0, TOUCHED_MAX_S)
        if luck < 0.15:
            world.at(touched_s, lambda: self._end(name))
        elif luck < 0.3:
            world.at(touched_s, lambda: self._start(name))
        elif luck < 0.45:
            self._chaos.note("starts")
            word = HealthNotice((name,), HealthCategory.ISSUE, "AWS_EC2_TROUBLE", said_at_s=at_s)
            world.at(touched_s, lambda: world.announce(word))

    def _end(self, name: str) -> None:
        """A person ends it."""
        if name in self._world.compute.stopped and not self._chaos.is_over:
            self._chaos.note("starts")
            self._world.compute.forget(name)

    def _start(self, name: str) -> None:
        """A person starts it."""
        if name in self._world.compute.stopped and not self._chaos.is_over:
            self._chaos.note("starts")
            self._chaos.by_hand.add(name)
            compute = self._world.compute
            del compute.stopped[name]
            one = replace(
                compute.everything[name],
                state=InstanceState.RUNNING,
                launched_at_s=self._world.clock.now_s(),
            )
            compute.put(one)
            compute.billed[name] = one.launched_at_s
            for tell in compute.on_launch:
                tell(one)

    def launched(self, instance: Instance) -> None:
        """EC2 stops again now and then what it has started."""
        name, world = instance.instance_id, self._world
        node = world.ledger.all_nodes.get(name)
        is_started = node is not None and node.stopped_at_s is not None
        if is_started and not self._chaos.is_over and self._chance.random() < 0.15:
            self._chaos.note("starts")
            why = self._chance.choice((NO_ROOM, NO_ROOM, "Server.InternalError"))
            world.at(world.clock.now_s() + RELAPSES_S, lambda: world.compute.halt(name, why))


def spoil_stops(chaos: Chaos) -> None:
    """From now on, until faults are over."""
    stops, compute = _Stops(chaos), chaos.world.compute
    compute.stopping_s = stream(chaos.options.seed, "stopping").choice((0.0, 40.0, 200.0))
    compute.on_end.append(stops.ended)
    compute.on_launch.append(stops.launched)
