"""Extensions for the blocks of a cluster that end with work on them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tidegate.adapters.block_extensions import BlockExtensions
from tidegate.core.explain.block_ends import BlockEnd, block_ends
from tidegate.core.model.capacity import Gone, days_sold
from tidegate.core.model.capacity_advice import ExtensionOffered
from tidegate.core.model.cluster import Cluster, Reservation
from tidegate.core.model.ec2 import Market
from tidegate.core.model.errors import BadConfig, TidegateError
from tidegate.core.model.snapshot import Snapshot
from tidegate.core.offers.reservations import drains_at_s

DAY_S = 86400.0


def block_named(reservations: Iterable[Reservation], name: str) -> Reservation:
    """The block of this id. Errors: BadConfig, the cluster has none."""
    blocks = {each.id: each for each in reservations if each.market is Market.CAPACITY_BLOCK}
    if name not in blocks:
        names = ", ".join(sorted(blocks)) or "none"
        raise BadConfig(f"{name} is no capacity block of the cluster file; it has {names}")
    return blocks[name]


def extensions_offered(
    snapshot: Snapshot,
    priced: Cluster,
    asked: BlockExtensions,
    *,
    extend: str,
    days: int,
    unknown: list[str],
) -> Iterator[ExtensionOffered]:
    """What EC2 offers for blocks that end within a day with work on them, or for the block
    `extend`, for `days` or as long as that work needs. `priced`: the cluster with all prices.
    """
    for end in _ending(snapshot, extend):
        block, wanted = end.reservation, days or _days(end, snapshot)
        try:
            found = asked.offers(block, wanted)
        except TidegateError as error:
            unknown.append(f"extensions of {block.id} by {wanted} d: {error}")
            continue
        if isinstance(found, Gone) or not found:
            said = f": {found.said}" if isinstance(found, Gone) else ""
            unknown.append(f"no extension of {block.id} by {wanted} d{said}")
            continue
        usd = priced.prices.get(replace(block.offering, market=Market.ON_DEMAND))
        for offer in found:
            hours = offer.hours * block.count
            on_demand = None if usd is None else round(usd * hours, 2)
            yield ExtensionOffered(offer, end.running, end.waiting, on_demand)


def _ending(snapshot: Snapshot, extend: str) -> list[BlockEnd]:
    ends = list(block_ends(snapshot))
    if not extend:
        return ends
    block = block_named(snapshot.cluster.reservations, extend)
    found = [each for each in ends if each.reservation.id == extend]
    return found or [BlockEnd(block, drains_at_s(block) or 0.0, (), 0)]


def _days(end: BlockEnd, snapshot: Snapshot) -> int:
    """As long as the jobs that run on it may still last; a day where nobody knows."""
    assert snapshot.digest is not None, "asked before"
    lasts = [
        job.started_at_s + job.time_limit_s - end.drains_at_s
        for job in snapshot.digest.reading.jobs
        if job.job_id in end.running
        if job.time_limit_s is not None and job.started_at_s is not None
    ]
    return days_sold(max(lasts, default=DAY_S) / DAY_S)
