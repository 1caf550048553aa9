"""Which jobs of a history the cluster could ever run: one question for every policy alike."""

from collections.abc import Sequence

from tidegate.core.demand.constraint import Unplannable, read_constraint
from tidegate.core.demand.fit import has_devices, lacks, satisfies
from tidegate.core.model.cluster import Cluster, Pool
from tidegate.core.model.devices import SHARD, SHARED_GRES
from tidegate.core.model.mig import named_profile
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
        return f"{where} can hold it: {lacks(job.shape, largest)}{_mended(job, pools)}"
    if not any(meets(job, p.features(of.name, m)) for p, of in sized for m in p.markets):
        return f"{where} has nodes of its size that meet the constraint {job.constraint}"
    return ""


def _mended(job: Job, pools: Sequence[Pool]) -> str:
    """What would help a job of parts of GPUs, or one that asks for whole ones of pools without."""
    shape, types = job.shape, [of for pool in pools for of in pool.instance_types]
    if shape.gpus and shape.gres in SHARED_GRES:
        key = "shards_per_gpu" if shape.gres == SHARD else "mps_per_gpu"
        has_any = any(of.shared_gres == shape.gres and of.shards_per_gpu for of in types)
        return "" if has_any else f": set gpu.{key} of a pool"
    asked = named_profile(shape.gpu_type) if shape.gpus else None
    has_type = any(has_devices(shape, of) for of in types)
    if asked and not has_type:
        said = "validate refuses what its GPUs do not have"
        return f": no pool has {asked[1]}; name it in a pool's gpu.mig_profiles ({said})"
    if shape.gpus and not shape.gpu_type and all(of.profiles for of in types if of.gpus):
        return (
            ": the history has no types: name them in the column gpu_type, or the likes of"
            " gres/gpu:a100_1g.5gb in AccountingStorageTRES for the next one"
        )
    return ""
