"""How many nodes a pool may keep without a job; written without the planner."""

from tidegate.core.model.cluster import Pool
from tidegate.sim.world import SimWorld


def most_kept(world: SimWorld, pool: Pool) -> int:
    """Its minimum or its headroom, and where waiting has a price as many as all jobs ask for."""
    return max(pool.min_nodes, pool.headroom_nodes) + most_spare(world)


def most_spare(world: SimWorld) -> int:
    """Spare nodes of a pool: no more than would take every job so far at once."""
    if not world.cluster.waiting.most_usd:
        return 0
    return sum(job.submit.nodes for job in world.slurm.table.jobs.values())
