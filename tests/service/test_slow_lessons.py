"""A planner that stood still after its commit: what others have learnt meanwhile stands."""

from dataclasses import replace

import pytest

from tests.make import job, node
from tests.service.conftest import World
from tidegate.core.model.ec2 import Template
from tidegate.core.model.finding import StoppedCheck
from tidegate.core.model.plan import Learn
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.waiting import Waiting
from tidegate.sim.faults import no_faults

MADE_FROM = Template("lt-t4", "1", "one-1")


@pytest.mark.parametrize("is_beaten", [False, True])
def test_a_slow_planner_takes_back_nothing_that_others_have_learnt(
    world: World, is_beaten: bool
) -> None:
    """It does no more then: the next look learns what it had learnt."""
    world.report([job(7)])
    world.look(t4=MADE_FROM)
    (one,) = world.compute.live()
    world.report([job(7)], [node(one.instance_id)])
    stop = StoppedCheck("NHC: check_fs_used", world.clock.now_s(), 2, 10)

    def others_learn(point: str) -> None:
        if point == "before learn" and is_beaten:
            world.break_with(no_faults)
            assert world.ledger.learn(PoolHistory("t4", stopped_checks=(stop,)))

    world.break_with(others_learn)
    looked = world.look(t4=MADE_FROM)
    history = world.ledger.all_pool_history["t4"]

    assert looked.rounds[-1].outcome.is_stale is is_beaten
    assert (history.stopped_checks, bool(history.good)) == (
        (stop,) if is_beaten else (),
        not is_beaten,
    )
    world.look(t4=MADE_FROM)
    history = world.ledger.all_pool_history["t4"]
    assert (history.stopped_checks, bool(history.good)) == ((stop,) if is_beaten else (), True)


def test_two_lessons_of_one_pool_in_one_plan_are_noted_as_one(world: World) -> None:
    """The second holds the first; noted apart, it would never be the next after what was read."""
    world.of = replace(world.of, waiting=Waiting(usd_per_job_hour=50.0))
    world.report([job(7)])
    world.look(t4=MADE_FROM)
    (one,) = world.compute.live()
    world.report([job(8)], [node(one.instance_id)])

    looked = world.look(t4=MADE_FROM)

    (done,) = looked.rounds[-1:]
    assert sum(isinstance(each, Learn) for each in done.plan.actions) == 2
    assert not done.outcome.is_stale
    known = world.ledger.all_pool_history["t4"]
    assert (known.good, known.newest_job) == (MADE_FROM, 8)
