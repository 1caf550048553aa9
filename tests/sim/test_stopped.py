"""A node that idles out is stopped, and started for the next job: the whole loop."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.make import T4, cluster, pool
from tests.sim.test_world import one_gpu, run, states
from tidegate.core.fleet.stopped import settled_s
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import Phase
from tidegate.core.model.waiting import Waiting
from tidegate.sim.chaos import Chaos
from tidegate.sim.checks.ending import BAD_LUCK_S, RECONCILE_S
from tidegate.sim.checks.stopped import StoppedNodesKept
from tidegate.sim.checks.witness import Broken, Checks, Witness
from tidegate.sim.draw import draw
from tidegate.sim.faults import Killed, no_faults
from tidegate.sim.world import SimWorld

DISK_USD = 0.011
ON = Offering("g4dn.xlarge", "us-east-1a", Market.ON_DEMAND)
SETTLED_S = 400.0


def world(stopped_nodes: int = 1) -> SimWorld:
    of = pool(types=(T4,), markets=(Market.ON_DEMAND,), idle_s=10.0)
    kept = replace(of, stopped_nodes=stopped_nodes, stopped_usd_per_hour=DISK_USD)
    return SimWorld(cluster(kept), lambda instance: 60.0)


def test_where_spot_is_bought_first_what_stands_is_started_if_waiting_costs_more() -> None:
    of = world().cluster
    both = pool(types=(T4,), markets=(Market.SPOT, Market.ON_DEMAND), idle_s=10.0)
    kept = replace(both, stopped_nodes=1, stopped_usd_per_hour=DISK_USD)
    prices = {**of.prices, replace(ON, market=Market.SPOT): 0.2}
    priced = replace(of, pools=(kept,), prices=prices, waiting=Waiting(50.0))
    w = SimWorld(priced, lambda instance: 60.0)
    w.slurm.submit(one_gpu(constraint="on-demand"))
    run(w, 600 + SETTLED_S)
    (name,) = w.compute.stopped

    w.slurm.submit(one_gpu())
    run(w, 100)

    assert [each.instance_id for each in w.compute.live()] == [name]
    run(w, 300)
    assert set(states(w).values()) == {"COMPLETED"}


def with_a_stopped_node() -> SimWorld:
    w = world()
    w.slurm.submit(one_gpu())
    run(w, 600)
    assert list(w.compute.stopped)
    return w


def usd(w: SimWorld) -> float:
    return sum(
        each.usd
        for each in w.ledger.all_spent.values()
        if each.scope == "cluster" and len(each.period) == len("2026-01")
    )


def test_the_next_job_starts_what_the_one_before_left() -> None:
    w = with_a_stopped_node()
    (name,) = w.compute.stopped
    run(w, SETTLED_S)

    w.slurm.submit(one_gpu())
    run(w, 100)

    assert [each.instance_id for each in w.compute.live()] == [name]
    assert len(w.compute.everything) == 1
    assert w.ledger.all_nodes[name].phase is Phase.JOINED
    run(w, 300)
    assert set(states(w).values()) == {"COMPLETED"}
    assert w.compute.live() == ()
    assert list(w.compute.stopped) == [name]


def test_a_job_that_comes_too_soon_gets_a_node_of_its_own() -> None:
    w = world()
    w.slurm.submit(one_gpu())
    run(w, 300)
    assert list(w.compute.stopped)

    w.slurm.submit(one_gpu())
    run(w, 100)

    assert len(w.compute.everything) == 2


def test_a_stopped_node_is_charged_as_a_disk_and_a_started_one_as_a_node() -> None:
    w = with_a_stopped_node()
    (stopped,) = w.ledger.all_nodes.values()
    assert stopped.usd_per_hour == DISK_USD
    before = usd(w)
    run(w, SETTLED_S)
    w.slurm.submit(one_gpu())
    run(w, 100)

    ((former, _),) = w.ledger.all_former
    hours = ((former.ended_at_s or 0.0) - (former.stopped_at_s or 0.0)) / 3600
    assert usd(w) - before == pytest.approx(hours * DISK_USD, rel=0.01)
    assert w.ledger.all_nodes[former.instance_id].usd_per_hour == pytest.approx(0.526)


def test_where_ec2_has_none_another_is_bought_in_the_same_look() -> None:
    w = world()
    w.slurm.submit(one_gpu())
    run(w, 600 + SETTLED_S)
    (pool_of,) = w.cluster.pools
    other = replace(ON, zone="us-east-1b")
    w.cluster = replace(
        w.cluster,
        pools=(replace(pool_of, zones=("us-east-1a", "us-east-1b")),),
        prices={**w.cluster.prices, other: 0.526},
    )
    w.control = replace(
        w.control,
        cluster=w.cluster,
        placement=replace(
            w.control.placement, subnets={"us-east-1a": "subnet-a", "us-east-1b": "subnet-b"}
        ),
    )
    w.compute.shortages[ON] = 0

    w.slurm.submit(one_gpu())
    run(w, 10)

    (launched,) = w.compute.live()
    assert launched.offering == other
    assert len(w.compute.stopped) == 1
    assert [bool(each.starts) for each in w.compute.requests[-2:]] == [True, False]


def dying(point: str) -> Callable[[str], None]:
    """A planner dies there, once."""
    left = [point]

    def passes(reached: str) -> None:
        if left and reached == left[0]:
            left.clear()
            raise Killed(reached)

    return passes


STOP_POINTS = ["before stop_nodes", "after stop_nodes", "before stop", "after stop", "after charge"]
START_POINTS = [
    *("after commit", "before create_fleet", "after create_fleet", "before charge", "after charge"),
    *("before finish_launches", "after finish_launches"),
]


@pytest.mark.parametrize("point", STOP_POINTS)
def test_a_planner_that_dies_while_it_stops_leaves_one_stopped_node(point: str) -> None:
    w = world()
    w.redelivery_s = 60.0
    w.slurm.submit(one_gpu())
    run(w, 165)
    for port in (w.compute, w.ledger):
        port.faults = dying(point)
    run(w, 600)

    (name,) = w.compute.stopped
    assert w.ledger.all_nodes[name].usd_per_hour == DISK_USD
    assert w.compute.live() == ()


@pytest.mark.parametrize("point", START_POINTS)
def test_a_planner_that_dies_while_it_starts_buys_nothing_beside_it(point: str) -> None:
    w = with_a_stopped_node()
    run(w, SETTLED_S)
    w.redelivery_s = 60.0
    fault = dying(point)
    w.compute.faults = w.ledger.faults = fault
    w.slurm.submit(one_gpu())
    run(w, 500)
    w.compute.faults = w.ledger.faults = no_faults
    run(w, 600)

    assert set(states(w).values()) == {"COMPLETED"}
    assert len(w.compute.everything) == 1
    assert list(w.compute.stopped) == list(w.compute.everything)
    assert len(w.ledger.all_former) == 1


def test_nothing_is_started_while_a_digest_of_its_former_life_may_count() -> None:
    w = with_a_stopped_node()

    assert settled_s(w.control.look().rounds[-1].snapshot) > w.cluster.timings.digest_stale_s


def test_one_that_is_not_worth_its_disk_is_found() -> None:
    """By a planner that keeps a number, where a start saves less than the disks cost."""
    w = with_a_stopped_node()
    (kept,) = w.cluster.pools
    Checks(Witness(w, Chaos(draw(0), w)), (StoppedNodesKept,)).install()
    run(w, RECONCILE_S + BAD_LUCK_S + 600)

    dear = replace(kept, is_stopped_auto=True, stopped_usd_per_hour=1.0)
    w.cluster = replace(w.cluster, pools=(dear,), waiting=Waiting(1.0))
    with pytest.raises(Broken, match="is not worth its disk"):
        run(w, RECONCILE_S + BAD_LUCK_S + 600)
