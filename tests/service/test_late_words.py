"""What a node says of its boot's failure may come after word of its end, or while a look plans."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.service.conftest import World
from tests.service.test_boot_failures import SAID, booting, rests, said
from tidegate.core.model.ec2 import Cure, InstanceState
from tidegate.core.model.events import StateChange
from tidegate.core.planner import plan
from tidegate.service.apply import Applier
from tidegate.service.observe import observe


def its_end_is_news(world: World, name: str) -> None:
    world.control().interrupt([StateChange(name, InstanceState.SHUTTING_DOWN)])


def a_look_sees_its_end(world: World, name: str) -> None:
    world.look()


def both(world: World, name: str) -> None:
    its_end_is_news(world, name)
    a_look_sees_its_end(world, name)


@pytest.mark.parametrize("seen", [its_end_is_news, a_look_sees_its_end, both])
def test_words_that_come_after_the_end_say_why_it_rests(
    seen: Callable[[World, str], None],
) -> None:
    """EventBridge keeps no order."""
    world, name = booting()
    world.compute.ending_s = 60.0
    world.compute.end(name)
    seen(world, name)
    (before,) = rests(world)
    assert before.code == "EndedWhileBooting"

    world.clock.advance(5)
    for _ in range(2):  # the queue delivers at least once
        said(world, name)
    world.look()

    (after,) = rests(world)
    assert after == replace(
        before,
        code="BootstrapFailed",
        message=f"stage gpu failed on {name}: {SAID}",
        cure=after.cure,
    )
    assert after.cure is Cure.DRIVER


def test_late_words_begin_no_rest() -> None:
    """What it rested for may have been mended since, and lifted by a person."""
    world, name = booting()
    world.compute.ending_s = 60.0
    world.compute.end(name)
    world.look()
    world.ledger.lift(*rests(world))

    said(world, name)

    assert rests(world) == []


def test_a_look_that_sees_the_end_keeps_what_was_said_while_it_planned() -> None:
    world, name = booting()
    world.compute.ending_s = 60.0
    world.compute.end(name)
    looking = world.control()
    seen, _ = observe(
        world.of,
        compute=world.compute,
        ledger=world.ledger,
        bus=world.bus,
        clock=world.clock,
        calendar=looking.calendar,
    )

    said(world, name)
    placed = looking.placement
    applier = Applier(world.compute, world.ledger, world.bus, placed, world.clock)
    applier.apply(plan(seen), seen)

    assert [each.code for each in rests(world)] == ["BootstrapFailed"]
