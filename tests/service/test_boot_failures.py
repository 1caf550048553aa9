"""A node that ends while it boots is not bought again at once, and people hear what it said."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.make import T4, cluster, job, node, offering, pool, record
from tests.service.conftest import World
from tidegate.core.explain.history import Narrator
from tidegate.core.model.ec2 import (
    NO_KEY,
    NO_ROOM,
    NO_SNAPSHOT,
    RECLAIMED,
    Cure,
    InstanceState,
    Market,
    Template,
)
from tidegate.core.model.events import BootFailed, SpotInterruption, StateChange
from tidegate.core.model.ledger import Phase
from tidegate.core.model.plan import Learn
from tidegate.core.model.resting import TAKEN_BACK, Resting
from tidegate.core.offers.hazards import learnt_hazards

SAID = "NVIDIA-SMI has failed: no devices were found"


def booting() -> tuple[World, str]:
    """A world in which a node boots for job 7."""
    world = World()
    world.report([job(7)])
    world.look()
    (one,) = world.compute.live()
    world.clock.advance(30)
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


def test_what_begins_to_rest_is_counted_once_until_it_is_tried_again() -> None:
    world, name = booting()
    launched_at_s = world.clock.now_s() - 30
    other = replace(record("i-2", pool="a10g", phase=Phase.LAUNCHED), launched_at_s=launched_at_s)
    world.ledger.all_nodes["i-2"] = other
    news = [BootFailed(each, "gpu", SAID) for each in (name, "i-2")]

    counted = [world.control().interrupt(news).boot_failed for _ in range(2)]
    (until_s,) = {each.until_s for each in rests(world)}
    world.clock.advance(until_s - world.clock.now_s())
    counted.append(world.control().interrupt(news).boot_failed)

    assert counted == [2, 0, 2]
    assert {each.failures for each in rests(world)} == {2}


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


# -- whose it is ---------------------------------------------------------------------------

OLD, NEW = Template("lt-first", "1", "old-1"), Template("lt-first", "2", "new-2")


def said(world: World, name: str) -> None:
    world.control().interrupt([BootFailed(name, "gpu", SAID)])


def ended(world: World, name: str) -> None:
    world.compute.ending_s = 60.0
    world.compute.end(name)


def never_came(world: World, name: str) -> None:
    world.clock.advance(world.of.timings.given_up_s + 1)
    world.report([job(7)])


def joined_down(world: World, name: str) -> None:
    world.report([job(7)], [node(name, state="DOWN+DYNAMIC_NORM")])


def joined_small(world: World, name: str) -> None:
    world.report([job(7)], [replace(node(name), cpus=1)])


HOW = [said, ended, never_came, joined_down, joined_small]


def of_first() -> tuple[World, str]:
    """A node boots for pool `first`, of its old template; `second` sells the same, and no more."""
    world = World(
        cluster(
            pool("first", (T4,), weight=2, markets=(Market.SPOT,)),
            pool("second", (T4,), markets=(Market.SPOT,)),
        )
    )
    world.report([job(7)])
    world.look(first=OLD)
    (one,) = world.compute.live()
    assert one.pool == "first"
    return world, one.instance_id


def bought(world: World, template: Template = OLD) -> set[str]:
    """The pools of which a look buys for more jobs than what is on its way holds."""
    before = {one.instance_id for one in world.compute.live()}
    world.report([job(number) for number in range(7, 11)])
    world.look(first=template)
    return {one.pool for one in world.compute.live() if one.instance_id not in before}


@pytest.mark.parametrize("fails", HOW)
def test_a_boot_failure_of_one_pool_rests_nothing_of_another(
    fails: Callable[[World, str], None],
) -> None:
    world, name = of_first()
    fails(world, name)
    world.look(first=OLD)

    assert {(each.offering, each.pool, each.template) for each in rests(world)} == {
        (offering(), "first", "old-1")
    }
    assert bought(world) == {"second"}


@pytest.mark.parametrize("fails", HOW)
def test_a_new_template_of_the_pool_lifts_them(fails: Callable[[World, str], None]) -> None:
    world, name = of_first()
    fails(world, name)
    world.look(first=OLD)

    assert bought(world, NEW) == {"first"}


@pytest.mark.parametrize("fails", HOW)
def test_what_a_node_of_an_old_template_does_says_nothing_of_the_new(
    fails: Callable[[World, str], None],
) -> None:
    world, name = of_first()
    fails(world, name)
    world.look(first=NEW)

    assert bought(world, NEW) == {"first"}


def test_the_failure_of_an_old_template_takes_no_place_of_a_refusal_of_the_new() -> None:
    world, name = of_first()
    ours = Resting(offering(), world.clock.now_s() + 600, 1, "x", "", pool="first")
    world.ledger.rest(replace(ours, template="lt-first:2"))

    said(world, name)

    assert len(rests(world)) == 2
    assert bought(world, NEW) == {"second"}


def test_a_shortage_after_a_boot_failure_rests_for_all_and_leaves_what_the_node_said() -> None:
    world, name = of_first()
    said(world, name)
    world.compute.shortages = {offering(): 0}

    bought(world)

    codes = {(each.pool, each.template): each.code for each in rests(world)}
    assert codes[("first", "old-1")] == "BootstrapFailed"
    assert codes[("", "")] == "InsufficientInstanceCapacity"


def test_failures_of_one_pool_count_for_it_alone() -> None:
    world, name = of_first()
    other = record("i-2", pool="second", phase=Phase.LAUNCHED)
    world.ledger.all_nodes["i-2"] = other

    said(world, name)
    said(world, "i-2")

    assert {each.pool: each.failures for each in rests(world)} == {"first": 1, "second": 1}


@pytest.mark.parametrize("state", [InstanceState.STOPPING, InstanceState.STOPPED])
def test_a_start_that_stops_again_is_judged_by_what_describe_says_of_it(
    state: InstanceState,
) -> None:
    """The event does not say why; where EC2 had no room, that is a refusal and rests as long."""
    world, name = booting()
    known = world.ledger.all_nodes[name]
    world.ledger.all_nodes[name] = replace(known, is_started=True)

    world.control().interrupt([StateChange(name, state, world.clock.now_s())])
    assert rests(world) == []
    shown = replace(world.compute.everything[name], state=state, state_reason=NO_ROOM)
    world.compute.put(shown)
    world.look()

    (made,) = rests(world)
    assert (made.pool, made.code) == ("", "InsufficientInstanceCapacity")
    assert made.until_s == world.clock.now_s() + 180
    assert not any(each.failed for each in world.ledger.all_pool_history.values())


def is_ended(world: World, name: str, why: str) -> None:
    """EC2 ends it, and says in its description why: for an hour, like all that has ended."""
    known = world.compute.everything[name]
    world.compute.put(replace(known, state=InstanceState.TERMINATED, state_reason=why))


@pytest.mark.parametrize("is_event_first", [True, False])
@pytest.mark.parametrize(("why", "cure"), [(NO_KEY, Cure.KEY), (NO_SNAPSHOT, Cure.IMAGE)])
def test_what_ec2_ends_as_it_starts_is_told_by_ec2_s_own_word_and_counts_once(
    why: str, cure: Cure, is_event_first: bool
) -> None:
    """The event of its end does not say why, Describe does."""
    world, name = booting()
    is_ended(world, name, why)
    event = StateChange(name, InstanceState.SHUTTING_DOWN, world.clock.now_s())

    if is_event_first:
        world.control().interrupt([event])
        assert [each.cure for each in rests(world)] == [Cure.NONE]
    world.look()
    world.control().interrupt([event])
    world.look()

    (made,) = rests(world)
    assert made.message == f"EC2 ended {name} as it started: {why}"
    assert (made.cure, made.failures) == (cure, 1)
    assert made.until_s == world.clock.now_s() + 8 * 180


def test_an_end_that_ec2_gives_no_reason_for_is_a_boot_that_failed() -> None:
    world, name = booting()
    is_ended(world, name, "Client.InstanceInitiatedShutdown")

    world.look()

    (made,) = rests(world)
    assert (made.code, made.message) == ("EndedWhileBooting", "a node ended while it booted")
    assert made.cure is Cure.NONE


def test_a_boot_that_ec2_cuts_short_by_taking_the_node_back_is_no_failure() -> None:
    """Its notice never came, and the event of its end did not either: Describe says why."""
    world, name = booting()
    is_ended(world, name, RECLAIMED)

    world.look()

    (made,) = rests(world)
    assert (made.code, made.pool, made.failures) == ("spot interruption", "", 1)
    assert not any(each.failed for each in world.ledger.all_pool_history.values())


def test_what_ec2_takes_back_is_the_first_loss_whatever_else_the_offering_rested_for() -> None:
    """Five refusals before tell nothing of how often EC2 takes nodes back."""
    world, name = booting()
    on = world.compute.everything[name].offering
    short = Resting(on, world.clock.now_s() - 60, 5, "InsufficientInstanceCapacity", "none")
    world.ledger.rest(short)
    is_ended(world, name, RECLAIMED)

    world.look()

    (made,) = rests(world)
    assert (made.code, made.failures) == (TAKEN_BACK, 1)
    assert made.until_s == world.clock.now_s() + world.of.timings.rest_min_s
    assert learnt_hazards(rests(world)) == {on: 1.0}


def test_a_node_whose_notice_came_is_one_loss_however_late_its_end_is_seen() -> None:
    """The rest that its notice made is over, and the event of its end never came."""
    world, name = booting()
    on = world.compute.everything[name].offering
    warned_s = world.clock.now_s()
    world.control().interrupt([SpotInterruption(name, warned_s)])
    world.clock.advance(world.of.timings.rest_min_s + 60)
    is_ended(world, name, RECLAIMED)
    world.report([job(7)])

    world.look()

    assert world.ledger.all_nodes[name].phase is Phase.TERMINATED
    (made,) = [each for each in rests(world) if each.offering == on]
    assert (made.code, made.failures) == (TAKEN_BACK, 1)
    assert made.until_s == warned_s + world.of.timings.rest_min_s
    assert not any(each.failed for each in world.ledger.all_pool_history.values())


def test_the_events_of_a_node_have_the_failure_of_its_launch() -> None:
    world, name = booting()
    world.compute.ending_s = 60.0
    world.compute.end(name)

    (done, *_) = world.look().rounds

    narrator = Narrator.of(done.plan, done.snapshot)
    told = [narrator.decided(each) for each in done.plan.actions if isinstance(each, Learn)]
    (ours,) = (each for each in told if each.is_about(node=name))
    assert ours.sentence.endswith(f"gave a node that is no good: {name}")
