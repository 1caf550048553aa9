"""Offers of capacity in sentences: what they start, how much sooner, at what price."""

from collections.abc import Iterator
from datetime import UTC, datetime

from tidegate.core.model.capacity import BlockOffer, ExtensionOffer, Holding, Score
from tidegate.core.model.capacity_advice import (
    Advice,
    ExtensionOffered,
    IdlePlaces,
    Offered,
    Sooner,
    TypeMarket,
)
from tidegate.core.model.durations import span
from tidegate.core.offers.seen_reservations import short

# Jobs that are named in a line.
NAMED_MAX = 5


def _many(count: int, one: str, more: str = "") -> str:
    return f"{count} {one if count == 1 else more or f'{one}s'}"


def day(at_s: float) -> str:
    """`Tue 2026-12-01 11:30 UTC`."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%a %Y-%m-%d %H:%M UTC")


def price(offer: BlockOffer) -> str:
    return f"{offer.fee:,.2f} {offer.currency}"


def title(offer: BlockOffer) -> str:
    """What, where, when and for how much."""
    what = f"{offer.count} x {offer.instance_type}"
    if offer.ultraservers:
        what = f"{offer.ultraservers} x {offer.ultraserver} ({what})"
    what = f"{what} in {offer.zone}"
    lasts = span(offer.ends_at_s - offer.starts_at_s)
    return f"{what}, {lasts} from {day(offer.starts_at_s)}, {price(offer)}"


def lines(advice: Advice, file: str) -> Iterator[str]:
    """The whole answer, a line each; what is about an offer is indented below it.

    `file`: the cluster file, as it is called in commands.
    """
    yield f"{_many(advice.waiting, 'job waits', 'jobs wait')} for capacity"
    for why, count in advice.left_out:
        yield f"  left out: {_many(count, 'job')} {why}"
    for market in advice.markets:
        yield from _market(market)
    for offered in advice.offers:
        yield f"{offered.offer.offer_id}: {title(offered.offer)}"
        yield from (f"  {each}" for each in judged(offered))
        yield f"  buy it: {purchase(offered.offer, file)}"
    if not advice.offers:
        yield "no offer that this queue could use"
    for extension in advice.extensions:
        yield f"{extension.offer.offer_id}: {extension_title(extension.offer)}"
        yield from (f"  {each}" for each in _needed(extension))
        yield f"  buy it: {extension_purchase(extension.offer, file)}"
    for block in advice.unlisted:
        yield f"! {unlisted(block, file)}"
    for places in advice.idle:
        yield _idle(places)
    for trouble in advice.troubles:
        yield f"! {trouble}"
    for unknown in advice.unknown:
        yield f"not known: {unknown}"


def judged(offered: Offered) -> Iterator[str]:
    """What an offer would do."""
    jobs = offered.jobs
    if not jobs and not offered.later:
        yield "starts no job: what waits would not start on it, or not end before it does"
        return
    if jobs:
        named = ", ".join(jobs[:NAMED_MAX])
        more = f" and {len(jobs) - NAMED_MAX} more" if len(jobs) > NAMED_MAX else ""
        yield f"runs {_many(len(jobs), 'waiting job')}: {named}{more}"
    if offered.later:
        yield f"runs {_many(offered.later, 'job')} like those of the history"
    if offered.if_refused:
        yield f"if EC2 goes on to refuse what it refuses now: {_sooner(offered.if_refused)}"
    if offered.if_sold:
        yield f"if EC2 sold all of it now: {_sooner(offered.if_sold)}"
    yield f"costs {_times(offered, offered.spot_usd)} the same work on spot"
    yield f"costs {_times(offered, offered.on_demand_usd)} the same work on demand"
    yield f"{100 * offered.idle_share:.0f} % of its GPU-hours would be idle"


def purchase(offer: BlockOffer, file: str) -> str:
    """The command that buys it, and asks EC2 for it again as it was asked now."""
    asked = f"--type {offer.instance_type} --nodes {offer.count} --days {offer.asked_days}"
    buys = f"--buy {offer.offer_id} --at-most {offer.fee:.2f}"
    return f"tidegate capacity {asked} {buys} --cluster {file}"


def extension_title(offer: ExtensionOffer) -> str:
    """What ends later, until when, and for how much."""
    of, lasts = offer.block, span(offer.ends_at_s - offer.starts_at_s)
    what = f"{of.id}, {of.count} x {of.instance_type} in {of.zone}"
    until = f"{lasts} longer until {day(offer.ends_at_s)}"
    return f"{what}, {until}, {offer.fee:,.2f} {offer.currency}"


def extension_purchase(offer: ExtensionOffer, file: str) -> str:
    """The command that buys it, and asks EC2 for it again as it was asked now."""
    asked = f"--extend {offer.block.id} --days {offer.asked_days}"
    buys = f"--buy {offer.offer_id} --at-most {offer.fee:.2f}"
    return f"tidegate capacity {asked} {buys} --cluster {file}"


def _needed(extension: ExtensionOffered) -> Iterator[str]:
    if jobs := extension.running:
        named = ", ".join(jobs[:NAMED_MAX])
        more = f" and {len(jobs) - NAMED_MAX} more" if len(jobs) > NAMED_MAX else ""
        end = day(extension.offer.starts_at_s)
        yield f"{named}{more} may run past its end {end} and are requeued then"
    if extension.waiting:
        yield f"{_many(extension.waiting, 'job waits', 'jobs wait')} that nothing else serves now"
    usd, fee = extension.on_demand_usd, extension.offer.usd
    if usd and fee is not None:
        yield f"costs {fee / usd:.2f} x ({usd:,.2f} USD) the same hours on demand"
    else:
        yield "costs an unknown multiple of the same hours on demand"


def unlisted(block: Holding, file: str) -> str:
    """A block that is paid for and that nobody uses."""
    of = block.reservation
    what = f"{of.count} x {of.instance_type} in {of.zone} from {day(of.starts_at_s)}"
    again = f"tidegate capacity --buy {block.offer_id} --cluster {file}"
    return f"{of.id} ({what}) is paid for and not in the cluster file; add it: {again}"


def _idle(places: IdlePlaces) -> str:
    of, usd = places.reservation, places.usd_per_hour
    group = f" of group {short(of.group)}" if of.group else ""
    costs = "paid for" if usd is None else f"{usd:.2f} USD an hour"
    what = f"{of.id}{group}, {of.count} x {of.instance_type} in {of.zone}"
    return f"{what}: {places.free} idle, {costs}"


def _sooner(found: Sooner) -> str:
    if not found.mean_s and not found.is_at_least:
        return "they start no sooner"
    least = "at least " if found.is_at_least and found.mean_s > 0 else ""
    than = "sooner" if found.mean_s >= 0 else "later"
    return f"they start {least}{span(abs(found.mean_s))} {than} on average"


def _times(offered: Offered, usd: float | None) -> str:
    times = offered.times(usd)
    return "an unknown multiple of" if times is None else f"{times:.2f} x ({usd:,.2f} USD)"


def _market(market: TypeMarket) -> Iterator[str]:
    yield f"{market.instance_type} of pool {market.pool}: {_many(market.jobs, 'job')} could use it"
    spot = _usd(market.spot_usd_per_hour)
    yield f"  spot {spot}, placement score {_score(market.spot_score)}, {_interrupted(market)}"
    yield f"  on demand {_usd(market.on_demand_usd_per_hour)}"
    quotas = (("spot", market.spot_quota_nodes), ("on demand", market.on_demand_quota_nodes))
    told = (f"{_count(nodes)} nodes {name}" for name, nodes in quotas)
    yield f"  the account's quotas allow {', '.join(told)}"
    for refused in market.refused:
        yield f"  EC2 refuses {refused} now"


def _usd(usd: float | None) -> str:
    return "price not known" if usd is None else f"{usd:.2f} USD an hour"


def _score(score: Score) -> str:
    return f"not known ({score.why})" if score.value is None else f"{score.value} of 10"


def _interrupted(market: TypeMarket) -> str:
    known = market.interrupted
    return f"{known} interrupted in a month" if known else "interruptions not known"


def _count(nodes: int | None) -> str:
    return "an unknown number of" if nodes is None else str(nodes)
