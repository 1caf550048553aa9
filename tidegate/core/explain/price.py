"""What a job costs, by the prices of its nodes now and by what it holds of them."""

from collections.abc import Iterator, Sequence

from tidegate.core.demand.fit import lacks, satisfies, share
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.node_price import usd_per_hour
from tidegate.core.model.cluster import Pool
from tidegate.core.model.slurm import Job
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.spend import SECONDS_PER_HOUR

# What Slurm gives a job without time limit when it starts, in a partition without MaxTime.
# Source: Slurm's slurm.h, YEAR_MINUTES.
NO_LIMIT_S = 365 * 86400.0


def said_limit_s(job: Job) -> float | None:
    """The time limit that somebody set; None: nobody did."""
    return job.time_limit_s if job.time_limit_s and job.time_limit_s < NO_LIMIT_S else None


def price(job: Job, nodes: Sequence[Member], snapshot: Snapshot) -> Iterator[str]:
    """A sentence for users; none where not all its nodes are known, or where they cost nothing."""
    parts = [_usd_per_hour(job, each, snapshot) for each in nodes[: job.nodes]]
    if len(parts) < job.nodes or None in parts:
        return
    usd = sum(part for part in parts if part is not None)
    if usd <= 0:
        return
    said = f"it pays {usd:.2f} USD an hour for its part of {'them' if len(parts) > 1 else 'it'}"
    if job.is_running and job.started_at_s is not None:
        hours = max(0.0, snapshot.now_s - job.started_at_s) / SECONDS_PER_HOUR
        said += f", {usd * hours:.2f} so far"
    yield said + _at_most(job, usd)


def likely_price(job: Job, pools: Sequence[Pool], snapshot: Snapshot) -> Iterator[str]:
    """The same of a job that nothing is bought for yet: on the nodes of these pools that would cost
    it least now. What is paid for in advance does not count; none where nothing fits or is priced.
    """
    prices = snapshot.cluster.prices
    fitting = (
        (share(job.shape, of) * prices[offering], str(offering.market), of.name)
        for pool in pools
        for of, offering in pool.offerings()
        if prices.get(offering, 0.0) > 0
        and not offering.market.is_prepaid
        and not lacks(job.shape, of)
        and satisfies(job.constraint, pool.features(of.name, offering.market))
    )
    if found := min(fitting, default=None):
        part_usd, market, name = found
        usd = part_usd * job.nodes
        yield (
            f"it would pay {usd:.2f} USD an hour for its part of {name} {market}, the cheapest that"
            f" fits{_at_most(job, usd)}"
        )


def _at_most(job: Job, usd_per_hour: float) -> str:
    limit_s = said_limit_s(job)
    if not limit_s:
        return ""
    return f", at most {usd_per_hour * limit_s / SECONDS_PER_HOUR:,.2f} by its time limit"


def _usd_per_hour(job: Job, member: Member, snapshot: Snapshot) -> float | None:
    """Of one of its nodes; None: what it is and costs is not known."""
    kind = snapshot.cluster.instance_type(member.offering.instance_type)
    if kind is None or member.record is None:
        return None
    return usd_per_hour(snapshot, member) * share(job.shape, kind)
