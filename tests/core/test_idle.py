"""When a node has idled long enough, whatever the head's clock says."""

from dataclasses import replace

from tests.core.reading import orders
from tests.make import instance, node, record, snapshot
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.slurm import Node
from tidegate.core.planner import plan


def released(idle: Node, age_s: float = 100.0) -> bool:
    there, known = instance(age_s=age_s), record(age_s=age_s)
    made = plan(snapshot([], [idle], instances=[there], records=[known]))
    return bool(orders(made, OrderKind.RELEASE))


def test_a_node_goes_after_its_pools_idle_time() -> None:
    assert not released(node(idle_s=59))
    assert released(node(idle_s=61))


def test_a_busy_time_in_the_future_does_not_keep_a_node() -> None:
    """The head's clock was an hour ahead while its last job ended."""
    ahead = replace(node(), last_busy_at_s=node().last_busy_at_s + 3600)

    assert released(ahead)
    assert not released(ahead, age_s=59.0)
