"""The cluster at the market's prices: what the file leaves open follows what EC2 asks now."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.durations import span
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.market import Quote, SeenMarket
from tidegate.core.offers.seen_reservations import with_seen

# A price outside of these is not believed: a feed that fails must not steer what is bought.
# Regions ask up to 1.7 times us-east-1's list price for a GPU type. Spot saved up to 90 % of it in
# AWS's Spot Advisor of July 2025; beside on demand only p5.48xlarge in ca-central-1 was dearer than
# SPOT_MOST, by 1.62, in the weeks after its list price was cut.
ON_DEMAND_FACTOR = 3.0
# How many times a price that the file says the list may be: Savings Plans and contracts are far
# below it, and spot is judged by the list all the same.
FILE_FACTOR = 20.0
SPOT_LEAST, SPOT_MOST = 1 / 25, 1.5

# As the ledger's decimals and the cluster file's sums.
DIGITS = 6


def at_market(cluster: Cluster, seen: SeenMarket, now_s: float) -> Cluster:
    """The cluster with the prices that EC2 asks, less what a contract takes off them, where the
    file says none and they still hold, and with the reservations that EC2 shows.

    What stands beside an instance, as its disk, is added as to the file's own prices.
    """
    cluster = with_seen(cluster, seen.reservations)
    spot = _by_place(seen.spot) if seen.has_spot(now_s) else {}
    on_demand = _by_place(seen.on_demand) if seen.has_on_demand(now_s) else {}
    prices: dict[Offering, float] = {}
    for offering, estimate in cluster.estimates.items():
        zone = offering.zone if offering.market is Market.SPOT else ""
        quotes = spot if offering.market is Market.SPOT else on_demand
        usd = quotes.get((offering.instance_type, zone))
        if usd is not None:
            paid = usd * (1 - cluster.discount)
            prices[offering] = round(paid + estimate.beside_usd_per_hour, DIGITS)
    if not prices:
        return cluster
    listed = {
        of.instance_type: usd
        for of in prices
        if of.market is Market.ON_DEMAND
        and (usd := on_demand.get((of.instance_type, ""))) is not None
    }
    return replace(
        cluster,
        prices={**cluster.prices, **prices},
        quoted=frozenset(prices),
        savings_plans=tuple(each.at(listed, cluster.discount) for each in cluster.savings_plans),
    )


def believed(
    cluster: Cluster, quotes: Iterable[Quote], market: Market, listed: Iterable[Quote] = ()
) -> tuple[tuple[Quote, ...], str]:
    """Those of the quotes that can be meant, in order, and a sentence about the others or "".

    `listed`: the region's own list prices, by which its spot prices are judged; for types without
    one, the file's on-demand price or us-east-1's list.
    """
    about = {
        offering.instance_type: estimate.on_demand_usd_per_hour
        for offering, estimate in cluster.estimates.items()
    }
    known = about | {each.instance_type: each.usd_per_hour for each in listed}
    is_open = {each.instance_type for each in cluster.estimates if each.market is market}
    kept, odd = list[Quote](), list[Quote]()
    for each in quotes:
        if each.instance_type in about:
            least, most = _bounds(market, is_said=each.instance_type not in is_open)
            usd = known[each.instance_type]
            # A comparison with what is no number is false.
            can_be_meant = least * usd <= each.usd_per_hour <= most * usd
            (kept if can_be_meant else odd).append(each)
    kept.sort(key=lambda each: (each.instance_type, each.zone))
    return tuple(kept), _disbelief(odd, known, market) if odd else ""


def price_troubles(cluster: Cluster, seen: SeenMarket, now_s: float) -> Iterator[str]:
    """What a person should know of the prices that are planned with."""
    if not cluster.estimates:
        return
    yield from filter(None, (seen.spot_trouble, seen.on_demand_trouble))
    markets = {offering.market for offering in cluster.estimates}
    for market, at_s, holds in (
        (Market.SPOT, seen.spot_at_s, seen.has_spot(now_s)),
        (Market.ON_DEMAND, seen.on_demand_at_s, seen.has_on_demand(now_s)),
    ):
        if market in markets and at_s is not None and not holds:
            yield (
                f"{market} prices were last read {span(now_s - at_s)} ago: those of the cluster"
                " file count instead, or AWS's list in us-east-1 where it has none"
            )


def _by_place(quotes: Iterable[Quote]) -> Mapping[tuple[str, str], float]:
    return {(each.instance_type, each.zone): each.usd_per_hour for each in quotes}


def _bounds(market: Market, *, is_said: bool) -> tuple[float, float]:
    """By how much a price may differ from the on-demand price that is known. `is_said`: the file
    says it.
    """
    if market is Market.SPOT:
        return SPOT_LEAST, SPOT_MOST
    return 1 / ON_DEMAND_FACTOR, FILE_FACTOR if is_said else ON_DEMAND_FACTOR


def _disbelief(odd: list[Quote], about: Mapping[str, float], market: Market) -> str:
    first = odd[0]
    of = f"{first.instance_type} in {first.zone}" if first.zone else first.instance_type
    more = f", and {len(odd) - 1} more" if len(odd) > 1 else ""
    return (
        f"AWS says {first.usd_per_hour:g} USD per hour for {market} {of}{more}, which is not"
        f" believed beside an on-demand price of {about[first.instance_type]:g}: give it in"
        " prices_usd_per_hour if it is right"
    )
