"""EC2 does not let the planner start its stopped nodes: they stay, and others are bought."""

from dataclasses import replace

from tests.core.test_stopped_nodes import ON_DEMAND, keeping, shown, stopped
from tests.make import job
from tests.service.conftest import World
from tidegate.core.explain.overview import overview
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.errors import NotAuthorized
from tidegate.core.model.resting import STARTS
from tidegate.core.model.snapshot import Snapshot

SAID = "UnauthorizedOperation: You are not authorized to perform: ec2:StartInstances"


def denied() -> World:
    """One node stands stopped, a job waits, and EC2 denies the first thing that it is asked."""
    world, left = World(keeping(1)), [True]
    world.compute.put(shown(state=InstanceState.RUNNING))
    world.compute.halt("i-1")
    since_s = world.clock.now_s() - 600
    world.ledger.all_nodes["i-1"] = replace(stopped(), stopped_at_s=since_s, order=None)

    def refuses(point: str) -> None:
        if point == "before create_fleet" and left:
            left.clear()
            raise NotAuthorized(SAID)

    world.break_with(refuses)
    world.report([job(7)])
    return world


def seen(world: World) -> Snapshot:
    return world.look().rounds[-1].snapshot


def test_the_node_is_kept_and_another_bought_in_the_same_look() -> None:
    world = denied()

    looked = world.look()

    assert list(world.compute.stopped) == ["i-1"]
    assert world.compute.terminated == []
    assert [each.starts for each in world.compute.requests] == [""]
    (bought,) = world.compute.live()
    assert bought.offering == ON_DEMAND
    assert any(SAID in each for done in looked.rounds for each in done.outcome.trouble)


def test_nothing_of_its_pool_is_started_before_the_rest_is_over() -> None:
    world = denied()
    world.look()
    (rest,) = world.ledger.view().resting
    assert (rest.pool, rest.template) == ("t4", STARTS)

    world.report([job(7), job(8)])
    world.look()
    assert [each.starts for each in world.compute.requests] == ["", ""]

    world.clock.advance(rest.until_s - world.clock.now_s() + 1)
    world.report([job(7), job(8), job(9)])
    world.look()
    assert [each.starts for each in world.compute.requests] == ["", "", "i-1"]


def test_what_is_bought_says_why_nothing_is_started() -> None:
    world = denied()
    world.look()

    (launch,) = [r.launch for r in world.ledger.all_launches.values() if not r.launch.starts]
    assert "are not started: EC2 denies it" in launch.reason


def test_status_names_the_denial_and_the_remedy() -> None:
    world = denied()
    world.look()
    world.report([])

    told = overview(seen(world), None).needs_a_look

    (said,) = [each for each in told if "StartInstances" in each]
    assert said.startswith("stopped nodes of pool t4 are kept and not started, EC2 refuses it: ")
    assert SAID in said
    assert "ec2:StartInstances and ec2:CreateTags" in said
    assert "tidegate retry t4" in said


def test_a_start_that_is_denied_again_rests_twice_as_long() -> None:
    world = denied()
    world.look()
    (first,) = world.ledger.view().resting
    world.clock.advance(first.until_s - world.clock.now_s() + 1)

    again = [True]

    def refuses(point: str) -> None:
        if point == "before create_fleet" and again:
            again.clear()
            raise NotAuthorized(SAID)

    world.break_with(refuses)
    world.report([job(7), job(8)])
    world.look()

    (second,) = world.ledger.view().resting
    assert second.failures == 2
    assert second.until_s - world.clock.now_s() == 2 * world.of.timings.rest_min_s
