"""A node that heard nothing of its head and ended itself: AWS took nothing back."""

from dataclasses import replace

import pytest

from tests.make import instance, node, record, snapshot
from tests.service.conftest import World
from tidegate.core.explain.node_report import node_reports
from tidegate.core.explain.overview import overview
from tidegate.core.model.ec2 import SHUT_DOWN, InstanceState
from tidegate.core.model.events import News, NodeOrphaned, SpotInterruption, StateChange
from tidegate.core.model.ledger import InterruptionLoss, Phase
from tidegate.service.control import Looked
from tidegate.service.describe import look_events

ORPHANED = NodeOrphaned("i-1", 1860.0)
ENDS = StateChange("i-1", InstanceState.SHUTTING_DOWN)


def with_a_node(phase: Phase = Phase.JOINED) -> World:
    world = World()
    world.compute.put(replace(instance("i-1"), launched_at_s=world.clock.now_s() - 100))
    world.ledger.all_nodes["i-1"] = record("i-1", phase=phase)
    world.report([], [node("i-1")] if phase is Phase.JOINED else [])
    return world


def until_it_is_gone(world: World, why: str = "") -> list[Looked]:
    """EC2 has ended it, and the head that is back has let go of it. `why`: as EC2 says."""
    one = replace(world.compute.everything["i-1"], state=InstanceState.TERMINATED)
    world.compute.put(replace(one, state_reason=why))
    world.clock.advance(600)
    world.report()
    return [world.look() for _ in range(3)]


@pytest.mark.parametrize(
    "batches", [[[ORPHANED], [ENDS]], [[ENDS], [ORPHANED]], [[ORPHANED, ENDS]], [[ENDS, ORPHANED]]]
)
def test_it_is_counted_apart_however_its_news_come(batches: list[list[News]]) -> None:
    world = with_a_node()
    for news in (*batches, *batches):
        world.control().interrupt(news)

    until_it_is_gone(world)

    (sums,) = world.ledger.view().losses
    assert (sums.nodes, sums.orphans) == (0, 1)


@pytest.mark.parametrize("news", [[ENDS], []])
@pytest.mark.parametrize(("why", "taken"), [(SHUT_DOWN, 0), ("Server.SpotInstanceTermination", 1)])
def test_where_its_word_is_lost_ec2_knows_that_nobody_took_it(
    news: list[News], why: str, taken: int
) -> None:
    """Else spot that was never taken back is learnt to be."""
    world = with_a_node()
    world.control().interrupt(news)

    until_it_is_gone(world, why)

    view = world.ledger.view()
    assert sum(each.nodes for each in view.losses) == (taken if news else 0)
    assert [each.taken for each in view.pool_history[0].spot] == [pytest.approx(taken, rel=0.01)]


def test_its_end_is_a_decision_with_a_code_of_its_own() -> None:
    world = with_a_node()
    for news in (ORPHANED, ENDS):
        world.control().interrupt([news])

    told = [each for looked in until_it_is_gone(world) for each in look_events(looked, 0.0)]

    (said,) = [each for each in told if each.code == "orphaned"]
    assert said.nodes == ("i-1",)
    assert "it ended itself: it had heard nothing of its head for 31 min" in said.sentence


def test_one_that_never_registered_is_no_boot_that_failed() -> None:
    world = with_a_node(Phase.LAUNCHED)
    for news in (ORPHANED, ENDS):
        world.control().interrupt([news])

    until_it_is_gone(world)

    assert world.ledger.view().resting == ()
    assert [each for each in world.ledger.view().pool_history if each.failed] == []


def test_the_word_of_a_node_alone_changes_nothing_of_it() -> None:
    """Whoever is root on a node can send it, of another node too."""
    world = with_a_node()

    world.control().interrupt([ORPHANED, NodeOrphaned("i-foreign", 1.0)])

    assert world.ledger.all_nodes["i-1"].phase is Phase.JOINED
    assert world.bus.orders == []
    assert "i-foreign" not in world.ledger.all_nodes


def test_a_reclaim_of_spot_counts_as_before() -> None:
    world = with_a_node()
    world.control().interrupt([SpotInterruption("i-1", world.clock.now_s())])

    until_it_is_gone(world)

    (sums,) = world.ledger.view().losses
    assert (sums.nodes, sums.orphans) == (1, 0)


def test_status_and_nodes_call_it_what_it_is_before_it_is_counted() -> None:
    gone = replace(
        record("i-1", phase=Phase.INTERRUPTED),
        interruption_loss=InterruptionLoss(),
        silent_s=1860.0,
        reclaim_at_s=1.0,
    )
    seen = snapshot([], records=[gone])

    found = overview(seen, None).losses
    (report,) = node_reports(seen)

    assert (found.nodes, found.orphans) == (0, 1)
    assert report.ends == "it ended itself: it had heard nothing of its head for 31 min"
