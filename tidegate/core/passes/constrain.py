"""Jobs that Slurm must not start on spot: interruptions would cost them too much."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field

from tidegate.core.buy.bins import Bins
from tidegate.core.buy.purchase import Purchase
from tidegate.core.demand.constraint import with_feature
from tidegate.core.demand.demand import Need
from tidegate.core.demand.fit import satisfies
from tidegate.core.interruption.progress import PROGRESS_KEY
from tidegate.core.model.cluster import Pool
from tidegate.core.model.ec2 import Market
from tidegate.core.model.frozen import frozen
from tidegate.core.model.orders import OrderKind, OrderOutcome
from tidegate.core.model.plan import Action
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.catalogue import Catalogue, entry, gres, vector
from tidegate.core.passes.orders import order

# An order is one message; the next look takes more.
NAMES_MAX = 200

STEADY = Market.ON_DEMAND.feature


def keep_off_spot(
    snapshot: Snapshot,
    purchase: Purchase,
    bins: Bins,
    needs: Iterable[Need],
    starting: Collection[str] = (),
) -> Iterator[Action]:
    """Have such jobs ask for what nobody takes back, while there are spot nodes to start on.

    Slurm starts what waits on whatever has room. A job's constraint is the one thing by which it
    refuses a node to one job and not to the next. A gang whose nodes are all there (`starting`)
    has its first start on them: opened, and refused by it, they would be others'.
    """
    spots = _spots(snapshot, purchase, bins)
    if not spots:
        return
    refused = _refused(snapshot)
    jobs = {job.job_id: job for job in snapshot.heard.reading.jobs if job.is_pending}
    kinds: dict[int, bool] = {}
    names: dict[str, None] = {}
    for need in needs:
        job = jobs.get(need.job_id)
        if job is None or job.het_job_id:  # Slurm changes all components with the first
            continue
        if job.job_id in refused:
            continue
        if need.gang in starting and not need.restarts:
            continue
        if PROGRESS_KEY in job.comment and job.progress is None:  # it cannot be taken back
            continue
        if need.kind not in kinds or need.kind < 0:
            kinds[need.kind] = _is_to_go(purchase, job, need, spots)
        if kinds[need.kind]:
            names[job.job_id] = None
    if names:
        why = "interruptions would cost it too much"
        chosen = tuple(names)[:NAMES_MAX]
        yield order(OrderKind.CONSTRAIN, chosen, STEADY, only_if=("PENDING",), why=why)


def _refused(snapshot: Snapshot) -> frozenset[str]:
    """Jobs of which Slurm would not hear it. The head keeps results for ten minutes: until then it
    would say the same, and each answer is a reason to look again.
    """
    return frozenset(
        each.name
        for each in snapshot.heard.results
        if each.kind is OrderKind.CONSTRAIN and each.outcome is OrderOutcome.FAILED
    )


@frozen
class _Spots:
    """What a pool has on spot: an entry for each offering. `by_constraint`: those that meet it."""

    pool: Pool
    catalogue: Catalogue
    by_constraint: dict[str, int] = field(default_factory=dict)

    def open_to(self, need: Need) -> int:
        """Those on which Slurm would start the job."""
        fitting = self.catalogue.fit(vector(need.shape), gres(need.shape))
        if not fitting or not need.constraint:
            return fitting
        if need.constraint not in self.by_constraint:
            found = 0
            for number, each in enumerate(self.catalogue.entries):
                features = self.pool.features(each.instance_type.name, Market.SPOT)
                found |= satisfies(need.constraint, features) << number
            self.by_constraint[need.constraint] = found
        return fitting & self.by_constraint[need.constraint]


def _spots(snapshot: Snapshot, purchase: Purchase, bins: Bins) -> list[_Spots]:
    """What is there on spot, boots, or is being bought, by pool."""
    cluster = snapshot.cluster
    there = {(each.pool, each.offering) for each in bins.all} | purchase.builder.bought
    found: list[_Spots] = []
    for pool in cluster.pools:
        entries = [
            entry(of, [(cluster.prices.get(offering, 0.0), offering)])
            for name, offering in there
            if name == pool.name and offering.market is Market.SPOT
            if (of := cluster.instance_type(offering.instance_type))
        ]
        entries.sort(key=lambda each: (each.usd_per_hour, each.offering))
        if entries:
            found.append(_Spots(pool, Catalogue(tuple(entries))))
    return found


def _is_to_go(purchase: Purchase, job: Job, need: Need, spots: Sequence[_Spots]) -> bool:
    """Whether it could start on one of them, should not, and has another place to go to."""
    constraint = with_feature(job.constraint, STEADY)
    if constraint is None or constraint == job.constraint:
        return False
    losses = purchase.offer_groups.losses
    if not losses.is_elsewhere(need):
        return False
    open_to = [
        (each, fitting)
        for each in spots
        if each.pool.name in need.pools and (fitting := each.open_to(need))
    ]
    is_lossy = any(losses.mask(need, each.pool, each.catalogue, fit) for each, fit in open_to)
    if not (is_lossy or (open_to and purchase.offer_groups.due.is_pressed(need))):
        return False
    best = next(purchase.offer_groups.options(need), None)
    # Spot of another type or zone is bought for it: it must be let on that.
    return best is None or best.offer_group.market is not Market.SPOT
