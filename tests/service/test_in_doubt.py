"""A launch whose planner died before it could note what EC2 gave: the looks after it find out."""

from dataclasses import replace

import pytest

from tests.make import A10G, T4, cluster, instance, job, node, pool, record
from tests.service.conftest import World
from tidegate.core.model.cluster import CLUSTER_SCOPE, Cluster, Limits
from tidegate.core.model.ec2 import RECLAIMED, SHUT_DOWN, Offering
from tidegate.core.model.errors import Throttled
from tidegate.core.model.ledger import Phase
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import TAKEN_BACK, Resting
from tidegate.core.offers.spend import day_of
from tidegate.sim.faults import Killed, no_faults

ONLY_T4 = cluster(pool(types=(T4,)), pool("a10g", (A10G,)))
FULL = replace(ONLY_T4, limits=Limits(nodes=0))  # nothing may be bought, so nothing is asked again
LEASE_S = 60.0


def in_doubt(world: World, jobs: int = 1, dies: str = "after create_fleet") -> list[str]:
    """A planner died there. The instances that came."""

    def kill(point: str) -> None:
        if point == dies:
            raise Killed(point)

    world.of = ONLY_T4
    world.report([job(number) for number in range(1, jobs + 1)])
    world.break_with(kill)
    with pytest.raises(Killed):
        world.look()
    world.break_with(no_faults)
    return list(world.compute.everything)


def taken(offering: Offering, until_s: float) -> Resting:
    """What AWS's word on an instance leaves."""
    return Resting(offering, until_s, 1, TAKEN_BACK, "EC2 reclaims instances here")


def looks(world: World, number: int) -> None:
    for _ in range(number):
        world.clock.advance(LEASE_S)
        world.report([job(1)])
        world.look()


def spent_usd(world: World) -> float:
    charge = world.ledger.all_spent.get((day_of(world.clock.now_s()).name, CLUSTER_SCOPE))
    return charge.usd if charge else 0.0


@pytest.mark.parametrize("repeats_answers", [True, False])
@pytest.mark.parametrize(("of", "again"), [(FULL, 0), (ONLY_T4, 1)])
def test_what_ended_before_anybody_noted_it_is_spent_and_bought_again(
    world: World, of: Cluster, again: int, repeats_answers: bool
) -> None:
    world.compute.repeats_answers = repeats_answers
    (name,) = in_doubt(world)
    world.clock.advance(LEASE_S)
    world.compute.end(name)
    world.of = of

    looks(world, 3)

    record = world.ledger.all_nodes[name]
    assert record.ended_at_s is not None
    assert spent_usd(world) >= record.usd_per_hour * LEASE_S / 3600
    assert len(world.compute.live()) == again
    assert world.ledger.view().resting == ()


@pytest.mark.parametrize("how", ["by itself", "by AWS", "once it had joined"])
def test_what_ended_before_anybody_noted_it_has_failed_to_boot_or_not(
    world: World, how: str
) -> None:
    """Of a new template it is one of the two nodes that may come to nothing."""
    (name,) = in_doubt(world)
    (launch_id,) = world.ledger.all_launches
    if how == "by AWS":
        world.ledger.rest(taken(world.compute.everything[name].offering, world.clock.now_s() + 600))
    world.clock.advance(LEASE_S)
    world.compute.end(name)
    world.of = FULL
    known = [node(name)] if how == "once it had joined" else []

    for nodes in (known, known, [], []):
        world.clock.advance(LEASE_S)
        world.report([job(1)], nodes)
        world.look()

    history = world.ledger.all_pool_history.get("t4", PoolHistory("t4"))
    failed = [each.launch_id for each in history.failed]
    assert failed == ([launch_id] if how == "by itself" else [])
    assert world.ledger.all_nodes[name].phase is Phase.TERMINATED


@pytest.mark.parametrize("of", [FULL, ONLY_T4])
def test_what_describe_leaves_out_once_is_looked_for_again_and_bought_once(
    world: World, of: Cluster
) -> None:
    """EC2 says nothing when the request is repeated, or is not asked: the rest is in doubt."""
    world.compute.repeats_answers = False
    left_out, shown = in_doubt(world, jobs=2)
    world.of = of
    world.compute.hide(left_out, LEASE_S + 10.0)

    looks(world, 1)
    assert world.ledger.view().nodes == ()
    looks(world, 1)

    assert world.ledger.all_nodes.keys() == {left_out, shown} == world.compute.everything.keys()


def test_what_never_came_is_in_doubt_for_two_looks_and_no_longer(world: World) -> None:
    in_doubt(world, dies="before create_fleet")
    world.of = FULL

    looks(world, 1)
    assert len(world.ledger.view().launches) == 1
    looks(world, 1)

    assert world.ledger.view().launches == ()
    assert world.compute.requests == []


def test_a_describe_that_fails_leaves_it_in_doubt_and_others_are_bought(world: World) -> None:
    (name,) = in_doubt(world)
    doubted = world.ledger.view().launches[0].launch.launch_id

    def throttle(point: str) -> None:
        if point == "before launched_by":
            raise Throttled(point)

    world.break_with(throttle)
    world.clock.advance(LEASE_S)
    world.report([job(1), job(9, gpus=4, gpu_type="a10g")])
    looked = world.look()

    assert (
        "1 launches in doubt have to wait: before launched_by" in looked.rounds[0].outcome.trouble
    )
    assert [each.launch.launch_id for each in world.ledger.view().launches] == [doubted]
    assert {one.pool for one in world.compute.everything.values()} == {"t4", "a10g"}
    assert name not in world.ledger.all_nodes


@pytest.mark.parametrize(("why", "is_failure"), [(SHUT_DOWN, True), (RECLAIMED, False)])
def test_of_a_node_that_had_ended_before_it_was_written_down_ec2_is_asked_why(
    why: str, is_failure: bool
) -> None:
    """Its planner had died, and EC2's list has it no more."""
    world = World()
    spot = instance("i-1")
    world.compute.put(replace(spot, launched_at_s=world.clock.now_s() - 300, template="new-2"))
    world.compute.end("i-1", why)
    known = replace(record("i-1"), phase=Phase.RELEASED, interrupted_in=Phase.LAUNCHED)
    since_s = world.clock.now_s() - 300
    world.ledger.all_nodes["i-1"] = replace(known, launched_at_s=since_s, template="new-2")
    here = Resting(spot.offering, world.clock.now_s() + 60, 1, TAKEN_BACK, "")
    world.ledger.all_resting[here.key] = here
    world.report([], [])

    world.look()

    history = world.ledger.all_pool_history.get("t4")
    assert bool(history and history.failed) == is_failure
