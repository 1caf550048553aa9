"""Nodes that a budget counts are known to whoever may plan next, however many go at once."""

from dataclasses import replace

from tests.make import instance, node, record
from tests.service.conftest import World
from tidegate.core.model.ledger import Phase
from tidegate.core.model.orders import OrderKind
from tidegate.ports import COMMIT_MAX

NUM_NODES = COMMIT_MAX + 21


def noted(world: World) -> int:
    return sum(each.order is not None for each in world.ledger.all_nodes.values())


def test_releases_are_noted_with_the_epoch_and_what_is_too_much_before_they_are_sent() -> None:
    world = World()
    names = [f"i-{number:04}" for number in range(NUM_NODES)]
    for name in names:
        launched_at_s = world.clock.now_s() - 9999.0
        world.compute.put(replace(instance(name), launched_at_s=launched_at_s))
        world.ledger.all_nodes[name] = replace(record(name), launched_at_s=launched_at_s)
    world.report([], [node(name, idle_s=9999) for name in names])
    seen: dict[str, int] = {}

    def look_at_the_ledger(point: str) -> None:
        seen.setdefault(point, noted(world))

    world.break_with(look_at_the_ledger)

    world.look()

    sent = [name for o in world.bus.orders if o.kind is OrderKind.RELEASE for name in o.names]
    assert sorted(sent) == names
    assert (seen["after commit"], seen["before send_orders"]) == (COMMIT_MAX, NUM_NODES)


def test_a_node_is_noted_as_joined_before_an_order_lets_it_go() -> None:
    """Else it would count as booting, until its boot bound, if the planner died in between."""
    world = World()
    launched_at_s = world.clock.now_s() - 9999.0
    world.compute.put(replace(instance("i-1"), launched_at_s=launched_at_s))
    booting = replace(record("i-1"), launched_at_s=launched_at_s, phase=Phase.LAUNCHED)
    world.ledger.all_nodes["i-1"] = booting
    world.report([], [node("i-1", idle_s=9999)])
    seen: list[Phase] = []

    def look_at_the_ledger(point: str) -> None:
        if point == "before send_orders":
            seen.append(world.ledger.all_nodes["i-1"].phase)

    world.break_with(look_at_the_ledger)

    world.look()

    assert seen == [Phase.JOINED]
