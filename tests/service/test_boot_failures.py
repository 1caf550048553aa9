"""A node that ends while it boots is not bought again at once, and people hear what it said."""

from dataclasses import replace

from tests.make import job, record
from tests.service.conftest import World
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.events import BootFailed, StateChange
from tidegate.core.model.ledger import Phase
from tidegate.core.model.resting import Resting

SAID = "NVIDIA-SMI has failed: no devices were found"


def booting() -> tuple[World, str]:
    """A world in which a node boots for job 7."""
    world = World()
    world.report([job(7)])
    world.look()
    (one,) = world.compute.live()
    return world, one.instance_id


def rests(world: World) -> list[Resting]:
    return list(world.ledger.all_resting.values())


def test_what_a_node_said_rests_its_offering_and_is_told() -> None:
    world, name = booting()

    for _ in range(3):  # the queue delivers at least once
        world.control().interrupt([BootFailed(name, "gpu", SAID)])

    (made,) = rests(world)
    assert made.code == "BootstrapFailed"
    assert made.message == f"stage gpu failed on {name}: {SAID}"
    assert made.until_s == world.clock.now_s() + 8 * 180
    assert world.bus.looks


def test_the_end_that_follows_keeps_what_was_said() -> None:
    world, name = booting()

    world.control().interrupt([BootFailed(name, "gpu", SAID)])
    world.compute.end(name)
    world.control().interrupt([StateChange(name, InstanceState.SHUTTING_DOWN)])
    world.look()

    assert [(each.code, each.failures) for each in rests(world)] == [("BootstrapFailed", 1)]


def test_a_node_that_just_ends_rests_its_offering_even_when_no_event_comes() -> None:
    world, name = booting()
    world.compute.ending_s = 60.0
    offering = world.compute.everything[name].offering

    world.compute.end(name)
    world.look()
    world.look()

    assert [(each.offering, each.code) for each in rests(world)] == [
        (offering, "EndedWhileBooting")
    ]


def test_nodes_that_joined_or_that_we_ended_are_no_boot_failures() -> None:
    world = World()
    at_s = world.clock.now_s()
    joined = record("i-1", phase=Phase.JOINED)
    ours = replace(record("i-2", phase=Phase.LAUNCHED), ended_at_s=at_s)
    world.ledger.all_nodes = {"i-1": joined, "i-2": ours}

    world.control().interrupt(
        [BootFailed(name, "gpu", SAID) for name in ("i-1", "i-2", "i-foreign")]
        + [StateChange(name, InstanceState.SHUTTING_DOWN) for name in ("i-1", "i-2")]
    )

    assert rests(world) == []
