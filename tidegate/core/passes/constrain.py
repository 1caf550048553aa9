"""Jobs that Slurm must not start on spot: interruptions would cost them more than spot saves."""

from collections.abc import Collection

from tidegate.core.demand.constraint import with_feature
from tidegate.core.demand.demand import Need
from tidegate.core.demand.fit import lacks, satisfies
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.slurm import Job
from tidegate.core.passes.work import Work

# An order is one message; the next look takes more.
NAMES_MAX = 200

STEADY = Market.ON_DEMAND.feature

type Spot = tuple[str, Offering]
"""A pool, and what a node of it was bought as."""


def keep_off_spot(work: Work) -> None:
    """Have such jobs ask for what nobody takes back, while there are spot nodes to start on.

    Slurm starts what waits on whatever has room. A job's constraint is the one thing by which it
    refuses a node to one job and not to the next.
    """
    spots = _spots(work)
    if not spots:
        return
    jobs = {job.job_id: job for job in work.digest.reading.jobs if job.is_pending}
    kinds: dict[int, bool] = {}
    names: dict[str, None] = {}
    for need in work.queue.needs:
        job = jobs.get(need.job_id)
        if job is None or job.het_job_id:  # Slurm changes all components with the first
            continue
        if need.kind not in kinds or need.kind < 0:
            kinds[need.kind] = _is_to_go(work, job, need, spots)
        if kinds[need.kind]:
            names[job.job_id] = None
    if names:
        why = "interruptions would cost it more than spot saves"
        chosen = tuple(names)[:NAMES_MAX]
        work.send(OrderKind.CONSTRAIN, chosen, STEADY, only_if=("PENDING",), why=why)


def _spots(work: Work) -> set[Spot]:
    """What is there on spot, boots, or is being bought."""
    there = {(each.pool, each.offering) for each in work.bins.all}
    return {each for each in there | work.launch_builder.bought if each[1].market is Market.SPOT}


def _is_to_go(work: Work, job: Job, need: Need, spots: Collection[Spot]) -> bool:
    """Whether it could start on one of them, should not, and has another place to go to."""
    constraint, cluster = with_feature(job.constraint, STEADY), work.snapshot.cluster
    if constraint is None or constraint == job.constraint:
        return False
    if not work.offer_groups.losses.is_elsewhere(need):
        return False
    pools = {pool.name: pool for pool in cluster.pools if pool.name in need.pools}
    for name, offering in spots:
        pool, of = pools.get(name), cluster.instance_type(offering.instance_type)
        if pool is None or of is None or lacks(need.shape, of):
            continue
        is_open = satisfies(need.constraint, pool.features(of.name, Market.SPOT))
        if is_open and work.offer_groups.losses.is_lossy(pool, offering, need):
            return True
    return False
