"""What a job asks for, of which pools it may get that, and what it would pay."""

from collections.abc import Sequence

from tidegate.core.explain.advised import about_advised
from tidegate.core.explain.data_sets import about_data_sets
from tidegate.core.explain.deadline import about_deadline
from tidegate.core.explain.lost_work import about_steps
from tidegate.core.explain.price import likely_price, said_limit_s
from tidegate.core.fleet.members import Member
from tidegate.core.model.cluster import Pool
from tidegate.core.model.durations import span
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot


def needs(
    job: Job, snapshot: Snapshot, on: Sequence[Member] = (), *, is_served: bool = True
) -> tuple[str, ...]:
    """`on`: the nodes of a job that runs. `is_served`: it has nodes, or they are on their way, so
    that what it pays is known.
    """
    pools = pools_of(job, snapshot)
    limit_s = said_limit_s(job)
    limit = f"at most {span(limit_s)}" if limit_s else "no time limit"
    constraint = f", constraint {job.constraint!r}" if job.constraint else ""
    count = f"{job.nodes} node{'s' if job.nodes > 1 else ''}"
    named = ", ".join(each.name for each in pools) or "none"
    return (
        f"{count}: {job.shape}{constraint}; {limit}",
        f"partition {', '.join(job.partitions)}, served by pools: {named}",
        *(() if is_served else likely_price(job, pools, snapshot)),
        *about_advised(job),
        *about_deadline(job, on, snapshot),
        *about_data_sets(job, snapshot),
        *about_steps(job),
    )


def pools_of(job: Job, snapshot: Snapshot) -> list[Pool]:
    """Those that serve its partitions, the ones tried first at first."""
    parts = [part for name in job.partitions if (part := snapshot.cluster.partition(name))]
    names = {name for part in parts for name in part.pools}
    found = [pool for pool in snapshot.cluster.pools if pool.name in names]
    return sorted(found, key=lambda pool: (-pool.weight, pool.name))
