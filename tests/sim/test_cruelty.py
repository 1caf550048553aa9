"""Stories that once went wrong, and must not again."""

from dataclasses import replace

from tests.make import A10G, T4, ZONE, cluster, pool
from tests.sim.test_world import gang, one_gpu, run, states, world
from tidegate.agent.orders import Worker
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.orders import Order, OrderKind, OrderOutcome
from tidegate.core.model.slurm import Shape
from tidegate.sim.slurm_parts import SimNode, Submit
from tidegate.sim.world import SimWorld

TWO_HOURS_S = 7200


def test_a_late_requeue_leaves_a_job_alone_that_runs_elsewhere_by_now() -> None:
    w = world()
    job_id = w.slurm.submit(one_gpu(duration_s=400.0))
    run(w, 100)
    w.notice(w.slurm.jobs[job_id].node_names[0])  # its requeue comes 95 s later
    run(w, 5)
    w.slurm.requeue([job_id])  # the user is faster
    run(w, 5)
    w.slurm.start([job_id])

    run(w, 900)

    assert w.slurm.jobs[job_id].requeues == 1
    assert w.slurm.jobs[job_id].state == "COMPLETED"


def test_a_late_undrain_does_not_reopen_a_node_that_ec2_reclaims() -> None:
    w = world()
    w.slurm.submit(one_gpu())
    run(w, 70)
    name = next(iter(w.slurm.nodes))
    w.slurm.drain([name], "tidegate: EC2 reclaims this spot instance")
    undrain = Order("x", OrderKind.UNDRAIN, (name,), w.clock.now_s() + 60, only_if=("DRAIN",))

    results = Worker(w.slurm).carry_out([undrain], w.clock.now_s()).results

    assert results[0].outcome is OrderOutcome.KEPT
    assert w.slurm.nodes[name].is_drain


def test_a_gang_that_loses_one_node_buys_one_node() -> None:
    w = world()
    job_id = w.slurm.submit(gang(duration_s=2000.0))
    run(w, 100)

    w.notice(w.slurm.jobs[job_id].node_names[0])
    run(w, 4000)

    assert w.slurm.jobs[job_id].state == "COMPLETED"
    assert len(w.compute.everything) == 4
    assert w.compute.live() == ()


def test_an_array_of_gangs_runs_gang_by_gang_where_capacity_is_short() -> None:
    w = world()
    for market, left in ((Market.SPOT, 0), (Market.ON_DEMAND, 3)):
        w.compute.shortages[Offering("g5.12xlarge", ZONE, market)] = left
    w.slurm.submit(Submit("ada", Shape(4, "a10g", 4, 1000), 100.0, nodes=3, array=2))

    run(w, TWO_HOURS_S, 5.0)

    assert "COMPLETED" in states(w).values()


def test_nodes_that_join_too_small_are_not_bought_in_a_loop() -> None:
    w = world()
    w.booted = lambda node: replace(node, memory_mib=node.memory_mib - 600)
    whole = Shape(1, "t4", 1, T4.slurm_memory_mib)
    w.slurm.submit(Submit("ada", whole, 100.0, constraint="g4dn.xlarge"))

    run(w, TWO_HOURS_S, 5.0)

    assert len(w.compute.everything) <= 8  # 120 without a rest


def test_nodes_that_join_down_are_not_bought_in_a_loop() -> None:
    def broken(node: SimNode) -> SimNode:
        return replace(node, is_down=True)

    w = world()
    w.booted = broken
    w.slurm.submit(one_gpu())

    run(w, TWO_HOURS_S, 5.0)

    assert len(w.compute.everything) <= 16  # 120 without a rest; four offerings take turns


def test_boots_that_never_end_are_not_bought_in_a_loop() -> None:
    w = SimWorld(cluster(pool(types=(T4,))), lambda instance: 1e9)
    w.slurm.submit(one_gpu())

    run(w, 3 * TWO_HOURS_S, 10.0)

    assert len(w.compute.everything) <= 12  # 23 without a longer rest


def test_a_gang_is_not_split_over_zones_or_types_of_another_pool() -> None:
    w = SimWorld(cluster(pool("a10g", (A10G,), zones=(ZONE, "us-east-1b"))), lambda instance: 60.0)
    w.slurm.submit(gang())

    run(w, 200)

    assert len({one.offering.zone for one in w.compute.everything.values()}) == 1
