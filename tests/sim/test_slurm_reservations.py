"""Reservations of the simulated Slurm."""

from tests.make import T4, cluster, pool
from tidegate.core.model.slurm import NodeReservation, Shape
from tidegate.sim.slurm_parts import SimNode, Submit
from tidegate.sim.world import SimWorld


def test_one_of_all_nodes_that_is_over_lets_jobs_start() -> None:
    """Also where its own nodes are gone, and no node's words change by its end."""
    world = SimWorld(cluster(pool(types=(T4,))), lambda instance: 60.0)
    now_s = world.head_clock.now_s()
    world.slurm.register(SimNode("i-1", 4, 16000, 1, "t4", ("t4",)))
    lab = NodeReservation("lab", (), now_s, now_s + 100.0, ("MAINT", "ALL_NODES"), ("bob",))
    world.slurm.reserve(lab)
    job_id = world.slurm.submit(Submit("ada", Shape(1, "t4", 1, 1000), 3000.0))

    world.clock.advance(50.0)
    world.slurm.table.step()
    before = world.slurm.jobs[job_id].state
    for _ in range(4):
        world.clock.advance(30.0)
        world.slurm.table.step()

    assert (before, world.slurm.jobs[job_id].state) == ("PENDING", "RUNNING")
