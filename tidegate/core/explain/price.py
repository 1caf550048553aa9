"""What a job costs, by the prices of its nodes now and by what it holds of them."""

from collections.abc import Iterator, Sequence

from tidegate.core.demand.fit import share
from tidegate.core.fleet.members import Member
from tidegate.core.fleet.node_price import usd_per_hour
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
    if limit_s := said_limit_s(job):
        said += f", at most {usd * limit_s / SECONDS_PER_HOUR:,.2f} by its time limit"
    yield said


def _usd_per_hour(job: Job, member: Member, snapshot: Snapshot) -> float | None:
    """Of one of its nodes; None: what it is and costs is not known."""
    kind = snapshot.cluster.instance_type(member.offering.instance_type)
    if kind is None or member.record is None:
        return None
    return usd_per_hour(snapshot, member) * share(job.shape, kind)
