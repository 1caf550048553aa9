"""Nodes that are paid for in advance and cut in another way than a waiting job needs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.core.reading import launches, orders
from tests.core.shared_gpus import ONE_A100, asks, cut
from tests.make import NOW_S, ZONE, node, snapshot
from tidegate.core.demand.demand import demand
from tidegate.core.model.budgets import Budget, Disruption
from tidegate.core.model.cluster import Reservation
from tidegate.core.model.devices import Devices
from tidegate.core.model.ec2 import Instance, InstanceState, Market, Offering
from tidegate.core.model.ledger import NodeRecord, Phase
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.plan import Plan, Unmet
from tidegate.core.model.slurm import Job, Node
from tidegate.core.passes.departures import IdleNodes
from tidegate.core.passes.queue import Queue
from tidegate.core.passes.recut import cut_otherwise
from tidegate.core.planner import plan

RESERVED = Offering(ONE_A100.name, ZONE, Market.RESERVED)


def cut_into(name: str, *, state: str = "IDLE+DYNAMIC_NORM", **types: int) -> Node:
    """An idle node with so many instances of each profile, of a GPU of 40 GB."""
    of = {"small": "a100_1g.5gb", "large": "a100_3g.20gb"}
    found = tuple(Devices(of[kind], count) for kind, count in types.items())
    one = node(name, ONE_A100, state=state, idle_s=900)
    return replace(
        one,
        gpus=sum(types.values()),
        gpu_type=found[0].gpu_type,
        devices=found if len(found) > 1 else (),
    )


def made(nodes: Sequence[Node], *jobs: Job, min_nodes: int = 0, places: int = 0) -> Plan:
    """What a plan does where as many nodes are reserved as there are, or so many."""
    of = cut(ONE_A100)
    pool = replace(
        of.pools[0],
        markets=(Market.RESERVED,),
        disruption=Disruption((Budget(percent=100.0),)),
        min_nodes=min_nodes,
    )
    held = Reservation(
        "cr-1", ONE_A100.name, ZONE, places or len(nodes), Market.RESERVED, 0.0, None
    )
    of = replace(of, pools=(pool,), reservations=(held,), prices={RESERVED: 0.0})
    names = [each.name for each in nodes]
    return plan(
        snapshot(
            jobs,
            nodes,
            of=of,
            records=[
                NodeRecord(name, "l-0", "mig", RESERVED, NOW_S - 2000, 0.0, Phase.JOINED)
                for name in names
            ],
            instances=[
                Instance(name, RESERVED, InstanceState.RUNNING, NOW_S - 2000, "l-0", "mig")
                for name in names
            ],
        )
    )


def released(plan_: Plan) -> list[str]:
    return [name for each in orders(plan_, OrderKind.RELEASE) for name in each.names]


def test_an_idle_node_goes_for_a_job_that_it_cannot_hold_as_it_is_cut() -> None:
    found = made([cut_into("i-1", small=7)], asks("3g.20gb", job_id=9))

    assert released(found) == ["i-1"]
    (order,) = orders(found, OrderKind.RELEASE)
    assert "cut into 7 a100_1g.5gb, while job 9 waits for 1 a100_3g.20gb" in order.text
    assert launches(found) == []  # first its place has to be free


def test_once_it_is_gone_a_node_comes_that_is_cut_for_the_job() -> None:
    found = made([], asks("3g.20gb", job_id=9), places=1)

    assert [each.layout for each in launches(found)] == ["1=3g.20gb:2"]


def test_one_node_goes_for_each_kind_of_job() -> None:
    nodes = [cut_into(f"i-{n}", small=7) for n in range(1, 4)]

    found = made(nodes, asks("3g.20gb", 20, job_id=9), asks("4g.20gb", job_id=10))

    assert len(released(found)) == 2


def test_a_node_with_such_an_instance_stays_and_so_does_one_that_is_busy() -> None:
    fits = cut_into("i-1", large=1, small=4)
    busy = cut_into("i-1", small=7, state="MIXED+DYNAMIC_NORM")

    assert released(made([fits], asks("3g.20gb"))) == []
    assert released(made([busy], asks("3g.20gb"))) == []


def test_nothing_goes_for_a_job_that_no_layout_would_hold() -> None:
    assert released(made([cut_into("i-1", small=7)], asks("3g.20gb", gpus=3))) == []
    assert released(made([cut_into("i-1", small=7)], asks("3g.20gb", cpus=64))) == []


def test_what_a_pool_keeps_at_least_stays() -> None:
    assert released(made([cut_into("i-1", small=7)], asks("3g.20gb"), min_nodes=1)) == []


class Counting(dict[str, Unmet]):
    """Why jobs get nothing, and how often that was asked."""

    asked = 0

    def get(self, *key: Any) -> Any:
        self.asked += 1
        return super().get(*key)


def test_each_job_of_a_long_queue_is_looked_at_once() -> None:
    seen = snapshot([asks("3g.20gb", job_id=each) for each in range(50)], of=cut(ONE_A100))
    needs, _ = demand(seen.heard.reading, seen.cluster, frozenset())
    queue = Queue(needs=needs, unmet=Counting())

    assert list(cut_otherwise(seen, queue, IdleNodes(), ())) == []
    assert isinstance(queue.unmet, Counting)
    assert queue.unmet.asked == len(needs) == 50
