"""Which jobs of a history the cluster could ever run: one question for every policy alike."""

from tidegate.core.demand.constraint import Unplannable, read_constraint
from tidegate.core.demand.fit import has_devices, lacks, satisfies
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.slurm import Job


def meets(job: Job, features: tuple[str, ...]) -> bool:
    """Whether a node with these features is what the job's constraint asks for."""
    if not job.constraint:
        return True
    try:
        return satisfies(str(read_constraint(job.constraint)), features)
    except Unplannable:
        return False


def never_runs(job: Job, cluster: Cluster) -> str:
    """Why no node that any pool of its partition may have could run it; "" when one could."""
    parts = (cluster.partition(name) for name in job.partitions)
    names = {name for part in parts if part for name in part.pools}
    pools = [pool for pool in cluster.pools if pool.name in names]
    sized = [(p, of) for p in pools for of in p.instance_types if not lacks(job.shape, of)]
    where = f"no pool of partition {' or '.join(job.partitions)}"
    if not sized:
        largest = max(
            (of for pool in pools for of in pool.instance_types),
            key=lambda of: (has_devices(job.shape, of), of.gpus, of.cpus, of.memory_mib),
        )
        return f"{where} can hold it: {lacks(job.shape, largest)}"
    if not any(meets(job, p.features(of.name, m)) for p, of in sized for m in p.markets):
        return f"{where} has nodes of its size that meet the constraint {job.constraint}"
    return ""
