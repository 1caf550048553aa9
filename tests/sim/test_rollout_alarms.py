"""A deployment under alarms, in the whole world: events, looks, and planners that are killed."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.sim.test_rolls import A, B, deploy, of_three, templates
from tidegate.core.model.alarms import AlarmState, RolloutAlarms, SeenAlarm
from tidegate.core.model.errors import NotAuthorized, Throttled, TidegateError
from tidegate.core.model.rollout import Rollout
from tidegate.core.model.slurm import Shape
from tidegate.service.control import Looked
from tidegate.sim.alarms import SimAlarms
from tidegate.sim.faults import Killed
from tidegate.sim.slurm_parts import SimNode, Submit
from tidegate.sim.world import SimWorld

HOUR_S = 3600.0


class Dying(SimAlarms):
    """The next planners are killed as soon as they have read an alarm."""

    deaths: int = 0

    def states(self, names: Sequence[str]) -> tuple[SeenAlarm, ...]:
        found = SimAlarms.states(self, names)
        if self.deaths and any(each.state is AlarmState.ALARM for each in found):
            self.deaths -= 1
            raise Killed("a planner has read an alarm")
        return found


QUIET = {"errors": AlarmState.OK, "loss": AlarmState.NO_DATA}


def of(alarms: SimAlarms | None = None) -> SimWorld:
    """Three nodes that are made from A; each that joins gets a job of a minute."""
    watched = RolloutAlarms(("errors", "loss"))
    world = SimWorld(
        replace(of_three(), alarms=watched),
        lambda instance: 60.0,
        alarms=alarms or SimAlarms(),
        redelivery_s=60.0,
    )
    world.alarms.states_by_name.update(QUIET)
    minute = Submit("ada", Shape(1, "t4", 1, 1000), 60.0)

    def joined(node: SimNode) -> None:
        world.slurm.submit(replace(minute, node_name=node.name))

    world.slurm.on_join.append(joined)
    deploy(world, A)
    world.step(600.0)
    return world


def rollout(world: SimWorld) -> Rollout | None:
    return world.ledger.all_pool_history["t4"].rollout


def test_nobody_is_asked_while_nothing_is_rolled_out() -> None:
    world = of()
    assert world.alarms.num_calls == 0

    deploy(world, B)
    world.step(3 * HOUR_S)

    assert templates(world) == ["bb-2"] * 3
    asked = world.alarms.num_calls
    assert asked > 0
    world.step(HOUR_S)
    assert world.alarms.num_calls == asked


def test_a_look_that_plans_again_since_ec2_refused_asks_once() -> None:
    world = of()
    asked: list[tuple[int, int]] = []

    def looked(look: Looked) -> None:
        before = sum(calls for _, calls in asked)
        asked.append((len(look.rounds), world.alarms.num_calls - before))

    world.on_look = looked
    world.compute.shortages = {offering: 0 for _, offering in world.cluster.pools[0].offerings()}
    deploy(world, B)
    world.step(HOUR_S)

    assert max(rounds for rounds, _ in asked) > 1
    assert max(calls for _, calls in asked) == 1


@pytest.mark.parametrize("minutes", [1, 5, 12, 20])
def test_an_alarm_brings_the_pool_back_in_each_step(minutes: int) -> None:
    world = of()
    deploy(world, B)
    world.step(60.0 * minutes)
    assert rollout(world) is not None

    world.alarms.set("errors", AlarmState.ALARM)
    world.bus.look("alarm errors is ALARM")
    world.step(HOUR_S)

    assert templates(world) == ["aa-1"] * 3
    given_up = rollout(world)
    assert given_up is not None
    assert given_up.given_up == "rollout-bad-alarm"


def test_one_that_was_in_alarm_before_is_waited_for() -> None:
    world = of()
    world.alarms.set("errors", AlarmState.ALARM)
    deploy(world, B)
    world.step(HOUR_S)

    assert templates(world) == ["aa-1"] * 3
    waits = rollout(world)
    assert waits is not None
    assert waits.given_up is None

    world.alarms.set("errors", AlarmState.OK)
    world.step(3 * HOUR_S)
    assert templates(world) == ["bb-2"] * 3


@pytest.mark.parametrize("trouble", [Throttled("slow down"), NotAuthorized("no")])
def test_jobs_get_nodes_while_no_alarm_can_be_read(trouble: TidegateError) -> None:
    world = of()
    world.alarms.trouble = trouble
    deploy(world, B)
    world.compute.end(next(iter(world.compute.live())).instance_id)
    world.step(HOUR_S)

    assert templates(world) == ["aa-1"] * 3

    world.alarms.trouble = None
    world.step(3 * HOUR_S)
    assert templates(world) == ["bb-2"] * 3


def test_planners_that_are_killed_between_what_they_read_and_note_lose_no_alarm() -> None:
    dying = Dying()
    world = of(dying)
    deploy(world, B)
    world.step(300.0)
    dying.deaths = 3
    world.alarms.set("errors", AlarmState.ALARM)

    world.step(HOUR_S)

    assert dying.deaths == 0
    assert templates(world) == ["aa-1"] * 3
    given_up = rollout(world)
    assert given_up is not None
    assert given_up.given_up == "rollout-bad-alarm"
