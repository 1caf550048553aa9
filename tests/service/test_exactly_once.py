"""The same demand never buys twice: killed anywhere, run twice at once, told twice."""

from dataclasses import replace

import pytest

from tests.make import NOW_S, job, placement, record, snapshot
from tests.service.conftest import World
from tidegate.core.model.cluster import Timings
from tidegate.core.model.ec2 import Market, Offering, Refusal, RefusalKind
from tidegate.core.model.errors import NotAuthorized
from tidegate.core.model.ledger import LaunchStatus, Phase
from tidegate.core.model.orders import Order, OrderKind, PendingOrder
from tidegate.core.model.plan import Plan, Resume, Send
from tidegate.core.model.resting import Resting, rested
from tidegate.core.model.slurm import Job
from tidegate.ports import Finished
from tidegate.service.apply import Applier
from tidegate.sim.faults import KillAt, Killed, no_faults

GANG = job(9, nodes=3, gpus=4, gpu_type="a10g")
SINGLES = [job(1), job(2, gpus=4)]


def unlike_gangs(number: int) -> list[Job]:
    """No two of them may share a launch."""
    gangs = range(number)
    return [job(n, nodes=2, gpus=4, gpu_type="a10g", memory_mib=1000 + n) for n in gangs]


def points_of_a_look() -> list[str]:
    """Every point at which a look that buys can be killed."""
    world = World()
    world.report([GANG, *SINGLES])
    witness = KillAt()
    world.break_with(witness)
    world.look()
    return witness.points


def test_a_look_that_buys_passes_the_points_that_matter() -> None:
    points = points_of_a_look()

    assert points.index("after commit") < points.index("before create_fleet")
    assert points.index("after create_fleet") < points.index("before finish_launches")


@pytest.mark.parametrize("step", range(len(points_of_a_look())))
def test_a_planner_killed_anywhere_buys_nothing_twice(step: int) -> None:
    world = World()
    world.compute.describe_lag_s = 30.0
    world.report([GANG, *SINGLES])
    world.break_with(KillAt(step))

    with pytest.raises(Killed):
        world.look()
    world.break_with(no_faults)
    for _ in range(5):
        world.clock.advance(20.0)
        world.report([GANG, *SINGLES])
        world.look()

    assert sorted(one.offering.instance_type for one in world.compute.live()) == [
        "g4dn.12xlarge",
        "g4dn.xlarge",
        "g5.12xlarge",
        "g5.12xlarge",
        "g5.12xlarge",
    ]
    assert {node.instance_id for node in world.ledger.view().nodes} == {
        one.instance_id for one in world.compute.live()
    }


@pytest.mark.parametrize("step", range(len(points_of_a_look())))
def test_two_planners_at_once_buy_once(step: int) -> None:
    """The second planner runs whole while the first stands at any point of its look."""
    world = World()
    world.report([GANG, *SINGLES])
    second = World.control(world)
    points: list[str] = []

    def overtake(point: str) -> None:
        points.append(point)
        if len(points) == step + 1:
            world.break_with(no_faults)
            second.look()

    world.break_with(overtake)
    world.look()

    assert len(world.compute.live()) == 5


def test_the_planner_that_lost_the_race_throws_its_plan_away(world: World) -> None:
    world.report([GANG])
    second = world.control()

    def overtake(point: str) -> None:
        if point == "before commit":
            world.break_with(no_faults)
            second.look()

    world.break_with(overtake)
    looked = world.look()

    assert looked.rounds[-1].outcome.is_stale
    assert len(world.compute.live()) == 3


def test_what_the_dead_planner_bought_is_found_by_its_tag_without_asking_again(
    world: World,
) -> None:
    def kill(point: str) -> None:
        if point == "after create_fleet":
            raise Killed(point)

    world.report([job(1)])
    world.break_with(kill)
    with pytest.raises(Killed):
        world.look()
    world.break_with(no_faults)
    world.clock.advance(50.0)

    world.look()

    assert len(world.compute.requests) == 1
    assert [node.phase for node in world.ledger.view().nodes] == [Phase.LAUNCHED]


def test_a_launch_that_another_planner_closed_meanwhile_is_asked_for_no_more(world: World) -> None:
    """The first one meant to finish it and stood still; nobody counts on its nodes any more."""

    def kill(point: str) -> None:
        if point == "before create_fleet":
            raise Killed(point)

    def close(point: str) -> None:
        if point == "after commit":
            (doubt,) = world.ledger.view().launches
            world.break_with(no_faults)
            world.ledger.finish_launches(Finished(doubt.launch.launch_id, LaunchStatus.FAILED))

    world.report([job(1)])
    world.break_with(kill)
    with pytest.raises(Killed):
        world.look()
    world.break_with(close)
    world.clock.advance(50.0)
    world.report([])

    looked = world.look()

    assert any(isinstance(each, Resume) for each in looked.rounds[0].plan.actions)
    assert world.compute.requests == []


def test_a_repeated_look_buys_nothing(world: World) -> None:
    world.report([GANG, *SINGLES])
    for _ in range(10):
        world.look()

    assert len(world.compute.live()) == 5


def test_a_refused_offering_is_remembered_and_the_next_one_taken(world: World) -> None:
    spot = Offering("g4dn.xlarge", "us-east-1a", Market.SPOT)
    world.compute.shortages[spot] = 0
    world.report([job(1)])

    looked = world.look()

    assert [one.offering.market for one in world.compute.live()] == [Market.ON_DEMAND]
    assert [refusal.offering for refusal in looked.rounds[0].outcome.refused] == [spot]
    assert [resting.offering for resting in world.ledger.view().resting] == [spot]


def test_what_ec2_was_too_busy_to_judge_rests_nothing_and_is_left_for_the_next_look(
    world: World,
) -> None:
    world.compute.throttled = set(world.of.prices)
    world.report([job(1)])

    looked = world.look()
    world.compute.throttled.clear()
    asked = len(world.compute.requests)
    world.look()

    assert looked.rounds[0].outcome.refused
    assert (len(looked.rounds), asked, world.bus.take_looks()) == (1, 1, ("digest",))
    assert world.ledger.view().resting == ()
    assert [one.offering.market for one in world.compute.live()] == [Market.SPOT]


def test_a_resting_offering_is_not_asked_again_before_its_time(world: World) -> None:
    spot = Offering("g4dn.xlarge", "us-east-1a", Market.SPOT)
    world.compute.shortages[spot] = 0
    world.report([job(1)])
    world.look()
    world.report([job(1), job(2)])

    world.look()

    asked = [override for request in world.compute.requests for override in request.overrides]
    spots = [r for r in world.compute.requests if r.market is Market.SPOT]
    assert len(spots) == 1
    assert len(asked) == len(world.compute.requests)


def test_a_gang_that_ec2_cannot_give_whole_leaves_nothing_behind(world: World) -> None:
    for market in Market:
        world.compute.shortages[Offering("g5.12xlarge", "us-east-1a", market)] = 2
    world.report([GANG])

    looked = world.look()

    assert world.compute.live() == ()
    assert "InsufficientInstanceCapacity" in looked.rounds[-1].plan.unmet[0].reason


def test_more_launches_than_a_plan_holds_are_bought_by_further_plans(world: World) -> None:
    world.report(unlike_gangs(50))

    looked = world.look()

    assert [len(each.outcome.launched) for each in looked.rounds] == [40, 40, 20]
    assert len(world.compute.live()) == 100


def test_a_look_that_runs_out_of_rounds_asks_for_another(world: World) -> None:
    world.report(unlike_gangs(100))
    world.bus.take_looks()

    world.look()

    assert world.bus.take_looks() == ("more to launch than one look can",)
    world.look()
    assert len(world.compute.live()) == 200


def test_a_fleet_that_shows_only_in_part_is_not_taken_for_whole(world: World) -> None:
    def kill(point: str) -> None:
        if point == "after create_fleet":
            raise Killed(point)

    world.report([GANG])
    world.break_with(kill)
    with pytest.raises(Killed):
        world.look()
    world.break_with(no_faults)
    late = next(iter(world.compute.everything))
    shown = world.compute.everything[late]
    world.compute.put(replace(shown, launched_at_s=world.clock.now_s() + 60))
    world.clock.advance(50.0)
    world.report([GANG])

    world.look()

    assert len(world.compute.everything) == 3
    assert len(world.ledger.view().nodes) == 3


def test_a_broken_template_of_one_pool_does_not_stop_the_others(world: World) -> None:
    calls: list[str] = []

    def refuse(point: str) -> None:
        calls.append(point)
        if calls.count("before create_fleet") == 1 and point == "before create_fleet":
            raise NotAuthorized("the template's key is gone")

    world.report([job(1, gpus=4, gpu_type="a10g", priority=9), job(2)])
    world.break_with(refuse)

    looked = world.look()

    assert "template's key is gone" in looked.rounds[0].outcome.trouble[0]
    bought = sorted(str(one.offering) for one in world.compute.live())
    assert bought == ["g4dn.xlarge/us-east-1a/spot", "g5.12xlarge/us-east-1a/on-demand"]


def test_a_thousand_refusals_do_not_overflow(world: World) -> None:
    before = Resting(Offering("g4dn.xlarge", "us-east-1a", Market.SPOT), 0.0, 1100, "x", "y")
    refusal = Refusal(before.offering, RefusalKind.CAPACITY, "x", "y")

    made = rested(refusal, before, NOW_S, Timings())

    assert made.until_s == NOW_S + 1800


def test_it_is_remembered_for_which_gang_a_node_was_opened() -> None:
    world = World()
    world.ledger.finish_launches(Finished("l-0", LaunchStatus.DONE, (record("i-1"),)))
    undrain = Order("o-1", OrderKind.UNDRAIN, ("i-1",), NOW_S + 60, only_if=("DRAIN",))
    applier = Applier(world.compute, world.ledger, world.bus, placement(world.of), world.clock)
    seen = replace(snapshot(), epoch=world.ledger.view().epoch)

    applier.apply(Plan((Send(undrain, "", opens_for="9"),), (), ()), seen)

    (known,) = world.ledger.view().nodes
    assert known.order == PendingOrder("o-1", OrderKind.UNDRAIN, NOW_S + 60, opens_for="9")


def test_a_release_on_its_way_is_remembered_beside_a_hint_for_the_same_node() -> None:
    world = World()
    world.ledger.finish_launches(Finished("l-0", LaunchStatus.DONE, (record("i-1"),)))
    orders = [
        Order("o-1", OrderKind.RELEASE, ("i-1",), NOW_S + 60, only_if=("IDLE",)),
        Order("o-2", OrderKind.WEIGHT, ("i-1",), NOW_S + 60, text="5"),
    ]
    sends = tuple(Send(order, "", order.kind is OrderKind.RELEASE) for order in orders)
    applier = Applier(world.compute, world.ledger, world.bus, placement(world.of), world.clock)
    seen = replace(snapshot(), epoch=world.ledger.view().epoch)

    applier.apply(Plan(sends, (), ()), seen)

    (known,) = world.ledger.view().nodes
    assert known.order == PendingOrder("o-1", OrderKind.RELEASE, NOW_S + 60)
