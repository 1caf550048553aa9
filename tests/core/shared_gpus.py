"""Instance types whose GPUs are shared, and jobs that ask for parts of them."""

from dataclasses import replace

from tests.make import T4, T4_BIG, ZONE, job, snapshot
from tidegate.core.model.cluster import Cluster, Partition, Pool
from tidegate.core.model.devices import MPS, SHARD
from tidegate.core.model.ec2 import InstanceType, Market
from tidegate.core.model.mig import profile
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot

# How many of each profile a GPU holds. Source: NVIDIA MIG User Guide.
A100_PROFILES = {"1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1}
PROFILES = tuple(
    found
    for name, most in A100_PROFILES.items()
    if (found := profile(name, f"a100_{name}", most=most, slices=7))
)
P4D = InstanceType(
    *("p4d.24xlarge", 96, 1_179_648, 8, "a100"),
    profiles=PROFILES,
)
# One GPU of the same kind, which EC2 does not sell: for what is decided by size.
ONE_A100 = InstanceType("p4x.4xlarge", 12, 147_456, 1, "a100", profiles=PROFILES)
SHARED_T4 = replace(T4, shards_per_gpu=4)
SHARED_T4_BIG = replace(T4_BIG, shards_per_gpu=4)
SERVED_T4 = replace(T4, shards_per_gpu=100, shared_gres=MPS)
SERVED_T4_BIG = replace(T4_BIG, shards_per_gpu=100, shared_gres=MPS)
USD = {"p4d.24xlarge": 22.0, "p4x.4xlarge": 3.0, T4.name: 0.5, T4_BIG.name: 3.9}


def cut(*types: InstanceType, **more: object) -> Cluster:
    """A cluster whose only pool, mig, has these types on demand."""
    pool = Pool("mig", types or (P4D,), (ZONE,), (Market.ON_DEMAND,), **more)  # type: ignore[arg-type]
    prices = {each: USD[each.instance_type] for _, each in pool.offerings()}
    return Cluster("test", (pool,), (Partition("gpu", ("mig",), is_default=True),), prices)


def asks(profile_name: str, count: int = 1, *, gpus: int = 1, **more: object) -> Job:
    """`count` jobs of an array that want instances of a profile."""
    number = more.pop("job_id", profile_name.replace(".", ""))
    return job(str(number), gpus=gpus, gpu_type=f"a100_{profile_name}", count=count, **more)  # type: ignore[arg-type]


def shards(job_id: int, number: int, gres: str = SHARD, **more: object) -> Job:
    """A job that wants so many shards of a GPU."""
    made = job(job_id, gpus=number, gpu_type="", **more)  # type: ignore[arg-type]
    return replace(made, shape=replace(made.shape, gres=gres))


def mps(job_id: int, percent: int, **more: object) -> Job:
    """A job that wants so much of a GPU that MPS serves."""
    return shards(job_id, percent, MPS, **more)


def waiting(*jobs: Job, of: Cluster | None = None) -> Snapshot:
    return snapshot(jobs, of=of or cut())
