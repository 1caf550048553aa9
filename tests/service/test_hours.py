"""Keeping the hours: what is done with the head, whatever woke us, and wherever we die."""

from dataclasses import dataclass, field, replace

import pytest

from tests.make import NOW_S, cluster, instance, job, placement, record, snapshot
from tests.service.conftest import World
from tidegate.core.model.calendar import AlwaysUp, Wanted
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.errors import Throttled
from tidegate.core.model.ledger import Launch, LaunchRecord, Phase
from tidegate.core.planner import plan
from tidegate.ports import Calendar
from tidegate.service.hours import Did, Hours, Kept
from tidegate.service.requests import fleet_request
from tidegate.sim.faults import Faults, KillAt, Killed, no_faults
from tidegate.sim.head import SimHead


@dataclass
class Switch:
    """A calendar that a test sets."""

    is_up: bool

    def wanted(self, now_s: float, overrides: object = ()) -> Wanted:
        return Wanted(True, "up until 20:00") if self.is_up else Wanted(False, "stopped until 8:00")


@dataclass
class Night:
    """A cluster without nodes, its head and its hours."""

    calendar: Calendar
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        self.head = SimHead(self.world.clock)

    def keep(self) -> Kept:
        world = self.world
        hours = Hours(
            cluster=cluster(),
            calendar=self.calendar,
            head=self.head,
            compute=world.compute,
            ledger=world.ledger,
            bus=world.bus,
            clock=world.clock,
        )
        return hours.keep("it is time")

    def break_with(self, faults: Faults) -> None:
        self.world.break_with(faults)
        self.head.faults = faults

    def has_instance(self, state: InstanceState) -> None:
        one = replace(instance("i-1", state=state), launched_at_s=self.world.clock.now_s())
        self.world.compute.put(one)

    def put_head(self, state: InstanceState) -> None:
        """Bring the head there by the way that EC2 knows."""
        if state in (InstanceState.STOPPING, InstanceState.STOPPED, InstanceState.PENDING):
            self.head.stop()
        if state in (InstanceState.STOPPED, InstanceState.PENDING):
            self.world.clock.advance(self.head.stop_s)
        if state is InstanceState.PENDING:
            self.head.start()
        assert self.head.state() is state


def night(*, is_up: bool) -> Night:
    return Night(Switch(is_up))


@pytest.mark.parametrize(
    ("is_up", "state", "did", "said"),
    [
        (True, InstanceState.STOPPED, Did.STARTED, "up until 20:00: the head is started"),
        (True, InstanceState.STOPPING, Did.WAITS, "the head is still stopping"),
        (True, InstanceState.PENDING, Did.NOTHING, "the head is pending"),
        (True, InstanceState.RUNNING, Did.NOTHING, "the head is running"),
        (False, InstanceState.RUNNING, Did.STOPPED, "stopped until 8:00: the head is stopped"),
        (False, InstanceState.PENDING, Did.WAITS, "the head is still starting"),
        (False, InstanceState.STOPPING, Did.NOTHING, "the head is stopping"),
        (False, InstanceState.STOPPED, Did.NOTHING, "the head is stopped"),
    ],
)
def test_the_head_becomes_what_the_calendar_says(
    is_up: bool, state: InstanceState, did: Did, said: str
) -> None:
    of = night(is_up=is_up)
    of.put_head(state)
    before = (of.head.num_starts, of.head.num_stops)

    kept = of.keep()

    assert (kept.did, said in kept.sentence) == (did, True), kept.sentence
    changes = (of.head.num_starts - before[0], of.head.num_stops - before[1])
    assert changes == (int(did is Did.STARTED), int(did is Did.STOPPED))
    assert of.world.bus.take_looks() == ("it is time",)


def test_without_schedules_the_head_is_left_alone_and_a_look_is_asked_for() -> None:
    of = Night(AlwaysUp())
    of.put_head(InstanceState.STOPPED)

    kept = of.keep()

    assert kept.did is Did.NOTHING
    assert of.head.num_starts == 0
    assert of.world.bus.take_looks() == ("it is time",)


def test_a_cluster_without_a_head_is_said() -> None:
    of = night(is_up=True)
    of.head.exists = False

    assert of.keep() == Kept(Did.NOTHING, "the cluster is up until 20:00, and EC2 shows no head")


def test_a_head_that_ec2_has_no_room_for_is_tried_again() -> None:
    of = night(is_up=True)
    of.put_head(InstanceState.STOPPED)
    of.head.shortage = "We currently do not have sufficient m7i.large capacity."

    kept = of.keep()
    of.head.shortage = ""

    assert kept.did is Did.WAITS
    assert "sufficient m7i.large capacity" in kept.sentence
    assert of.keep().did is Did.STARTED


def test_the_head_waits_for_an_instance_that_the_ledger_does_not_know() -> None:
    of = night(is_up=False)
    of.has_instance(InstanceState.RUNNING)

    assert of.keep() == Kept(
        Did.WAITS, "the cluster is stopped until 8:00: the head waits for its nodes: node i-1"
    )


@pytest.mark.parametrize("phase", [Phase.LAUNCHED, Phase.JOINED, Phase.INTERRUPTED])
def test_the_head_waits_for_a_node_that_slurm_has_not_let_go(phase: Phase) -> None:
    of = night(is_up=False)
    of.world.ledger.all_nodes["i-1"] = record("i-1", phase=phase)

    assert of.keep().did is Did.WAITS
    of.world.ledger.all_nodes["i-1"] = record("i-1", phase=Phase.RELEASED)
    assert of.keep().did is Did.STOPPED


def test_an_instance_that_someone_stopped_keeps_no_head_awake() -> None:
    of = night(is_up=False)
    of.has_instance(InstanceState.STOPPED)

    assert of.keep().did is Did.STOPPED


def launch_record() -> LaunchRecord:
    bought = snapshot([job(1)])
    launch = next(each for each in plan(bought).actions if isinstance(each, Launch))
    return LaunchRecord(launch, NOW_S, fleet_request(launch, "test", placement(bought.cluster)))


def test_the_head_waits_for_a_launch_in_doubt() -> None:
    of = night(is_up=False)
    open_launch = launch_record()
    of.world.ledger.all_launches[open_launch.launch.launch_id] = open_launch

    kept = of.keep()

    assert kept.did is Did.WAITS
    assert f"launch {open_launch.launch.launch_id}" in kept.sentence


def test_a_planner_at_work_loses_its_epoch_to_the_stop_and_buys_nothing() -> None:
    of = night(is_up=False)
    before = of.world.ledger.view()

    kept = of.keep()

    assert kept.did is Did.STOPPED
    assert not of.world.ledger.commit(before.epoch, (launch_record(),))


def test_the_head_waits_when_a_planner_was_faster() -> None:
    of = night(is_up=False)
    ledger = of.world.ledger

    def rival(point: str) -> None:
        if point == "before instances":
            ledger.epoch_number += 1

    of.break_with(rival)

    assert of.keep().did is Did.WAITS
    assert of.head.num_stops == 0


def test_trouble_of_the_outside_is_raised_after_the_look_was_asked_for() -> None:
    of = night(is_up=False)

    def throttle(point: str) -> None:
        if point == "before state":
            raise Throttled("slow down")

    of.break_with(throttle)

    with pytest.raises(Throttled):
        of.keep()
    assert of.world.bus.take_looks() == ("it is time",)


def points(*, is_up: bool) -> list[str]:
    of = night(is_up=is_up)
    of.put_head(InstanceState.STOPPED if is_up else InstanceState.RUNNING)
    witness = KillAt()
    of.break_with(witness)
    of.keep()
    return witness.points


@pytest.mark.parametrize(
    ("is_up", "step"),
    [(is_up, step) for is_up in (True, False) for step in range(len(points(is_up=is_up)))],
)
def test_killed_anywhere_the_next_event_brings_the_head_there_once(is_up: bool, step: int) -> None:
    of = night(is_up=is_up)
    of.put_head(InstanceState.STOPPED if is_up else InstanceState.RUNNING)
    of.head.num_stops = 0
    of.break_with(KillAt(step))

    with pytest.raises(Killed):
        of.keep()
    of.break_with(no_faults)
    for _ in range(3):
        of.keep()
        of.world.clock.advance(300.0)

    assert of.head.state() is (InstanceState.RUNNING if is_up else InstanceState.STOPPED)
    assert of.head.num_starts + of.head.num_stops == 1
