"""Capacity blocks in their last day, while there is work that needs them."""

from collections.abc import Iterator

from tidegate.core.demand.demand import Need, demand
from tidegate.core.demand.fit import lacks, satisfies
from tidegate.core.explain.capacity import NAMED_MAX, day
from tidegate.core.model.cluster import Cluster, Reservation
from tidegate.core.model.durations import span
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.reservations import active, drains_at_s

# Time enough to buy the next one, and to deploy it.
TOLD_BEFORE_S = 86400.0


@frozen
class BlockEnd:
    """A block that ends soon with work. `drains_at_s`: when its nodes take no more jobs.

    `running`: jobs on it that may not have ended by then. `waiting`: how many jobs wait that could
    run on its kind of node, and that nothing else would serve now.
    """

    reservation: Reservation
    drains_at_s: float
    running: tuple[str, ...]
    waiting: int

    def sentence(self, now_s: float) -> str:
        of = self.reservation
        ends = f"{of.id} ends in {span((of.ends_at_s or now_s) - now_s)}"
        told = []
        if self.running:
            named = ", ".join(self.running[:NAMED_MAX])
            more = len(self.running) - NAMED_MAX
            named += f" and {more} more" if more > 0 else ""
            told.append(f"{named} may run longer and are requeued then")
        if self.waiting:
            one = "a job waits" if self.waiting == 1 else f"{self.waiting} jobs wait"
            told.append(f"{one} that nothing else serves now")
        before = day(self.drains_at_s)
        by = f"extend it or buy the next one before {before}: tidegate capacity"
        return f"the capacity block {ends}: {'; '.join(told)}; {by}"


def block_ends(snapshot: Snapshot) -> Iterator[BlockEnd]:
    """Those that end within a day, the first to end first."""
    if snapshot.digest is None:
        return
    ending = [
        each
        for each in active(snapshot.cluster, snapshot.now_s)
        if each.market is Market.CAPACITY_BLOCK and each.ends_at_s is not None
        if each.ends_at_s - snapshot.now_s <= TOLD_BEFORE_S
    ]
    if not ending:
        return
    needs, _ = demand(snapshot.digest.reading, snapshot.cluster, frozenset(), snapshot.now_s)
    for each in sorted(ending, key=lambda each: (each.ends_at_s or 0.0, each.id)):
        until_s = drains_at_s(each)
        assert until_s is not None, "a block ends"
        running = tuple(job.job_id for job in _on(each, snapshot) if _lasts(job, until_s))
        waiting = sum(need.count for need in needs if _needs_it(need, each, snapshot))
        if running or waiting:
            yield BlockEnd(each, until_s, running, waiting)


def _on(block: Reservation, snapshot: Snapshot) -> Iterator[Job]:
    """Jobs that have a node in the block. Where EC2 has not said which one, the offering counts."""
    names = {
        each.instance_id
        for each in snapshot.instances
        if each.capacity_reservation_id == block.id
        or (not each.capacity_reservation_id and each.offering == block.offering)
    }
    assert snapshot.digest is not None, "asked before"
    for job in snapshot.digest.reading.jobs:
        if job.is_running and names.intersection(job.node_names):
            yield job


def _lasts(job: Job, until_s: float) -> bool:
    if job.time_limit_s is None or job.started_at_s is None:
        return True
    return job.started_at_s + job.time_limit_s > until_s


def _needs_it(need: Need, block: Reservation, snapshot: Snapshot) -> bool:
    """Whether it could use the block's kind of node, and EC2 has nothing else for it now."""
    cluster = snapshot.cluster
    is_fit = any(
        each.name == block.instance_type and not lacks(need.shape, each)
        for pool in cluster.pools
        if pool.name in need.pools and pool.may_have(block.offering)
        for each in pool.instance_types
    )
    return is_fit and not _is_sold_elsewhere(need, cluster, snapshot)


def _is_sold_elsewhere(need: Need, cluster: Cluster, snapshot: Snapshot) -> bool:
    rests = [each for each in snapshot.resting if each.until_s > snapshot.now_s]
    for pool in cluster.pools:
        if pool.name not in need.pools:
            continue
        stopped = {each.offering for each in rests if each.stops(pool.name)}
        for instance_type, offering in pool.offerings():
            if (
                offering.market.is_prepaid
                or offering in stopped
                or lacks(need.shape, instance_type)
            ):
                continue
            if satisfies(need.constraint, pool.features(instance_type.name, offering.market)):
                return True
    return False
