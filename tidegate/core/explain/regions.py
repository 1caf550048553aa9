"""The cost of the same work in other regions, in sentences."""

from collections.abc import Iterator

from tidegate.core.model.durations import span
from tidegate.core.model.region_market import Played, RegionCost, RegionMarket


def region_lines(market: RegionMarket) -> Iterator[str]:
    """The whole answer, a line each; what is about a region is indented below it."""
    own = next((each.played for each in market.regions if each.is_own), None)
    for region in market.regions:
        yield _title(region, own)
        yield from (f"  {each}" for each in _details(region, market.data_gb))
    for note in market.notes:
        yield f"note: {note}"


def _title(region: RegionCost, own: Played | None) -> str:
    named = f"{region.region} ({region.name})"
    played = region.played
    if played is None:
        return f"{named}: not possible"
    told = f"{named}: {played.usd:,.2f} USD"
    if region.is_own:
        return f"{told}, the cluster's own region"
    return f"{told}, {played.usd / own.usd:.2f} x of its own region" if own and own.usd else told


def _details(region: RegionCost, data_gb: float) -> Iterator[str]:
    if played := region.played:
        ran = f"{played.jobs_ended} of {played.jobs} jobs ran"
        waits = f"half waited {span(played.wait_p50_s)}, 95 % {span(played.wait_p95_s)} at most"
        yield f"{ran}; {waits}; {played.interruptions} interruptions"
        for reason, count in played.never_ran:
            yield f"{count} never ran: {reason}"
    if not region.is_own and data_gb:
        yield _move(region, data_gb)
    yield from region.not_possible
    if region.unsold and not region.is_own:
        yield f"not sold there: {', '.join(region.unsold)}"
    for quota in region.quotas or ():
        if not quota.is_enough:
            yield (
                f"the quota `{quota.name}` allows {quota.allowed_vcpus:g} vCPUs and the play used"
                f" {quota.used_vcpus}: ask AWS for more first"
            )
    for unknown in region.unknown:
        yield f"not known: {unknown}"


def _move(region: RegionCost, data_gb: float) -> str:
    of = f"moving {data_gb:g} GB there once"
    if region.move_usd is None:
        return f"{of} costs an unknown sum"
    return f"{of} costs {region.move_usd:,.2f} USD ({region.usd_per_gb:g} USD per GB)"
