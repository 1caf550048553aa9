"""Time against money among what is sold: why nodes that boot sooner are bought, or those that cost
less.
"""

from collections.abc import Iterable

from tidegate.core.demand.demand import Need
from tidegate.core.model.frozen import frozen
from tidegate.core.offers.catalogue import lowest
from tidegate.core.offers.cost import SECONDS_PER_HOUR
from tidegate.core.offers.offers import OfferGroups
from tidegate.core.offers.ranges import OfferGroup


@frozen
class _Other:
    """What else would do for a job: how much sooner its nodes are up, and how much dearer they are
    for the whole job.
    """

    pool: str
    sooner_s: float
    dearer_usd: float


def why_so_soon(
    offer_groups: OfferGroups, needs: Iterable[Need], bought: OfferGroup, usd_per_hour: float
) -> str:
    """What the boot has to do with buying this for the first of the jobs; "": nothing."""
    need = next(iter(needs), None)
    if need is None or not need.wait_usd_per_hour:
        return ""
    others = list(_others(offer_groups, need, bought, usd_per_hour))
    slower = [each for each in others if each.sooner_s < 0 and each.dearer_usd < 0]
    if slower:
        best = min(slower, key=lambda each: (each.dearer_usd, each.pool))
        return (
            f"; its nodes are up {-best.sooner_s:.0f} s sooner than those of pool {best.pool}, for "
            f"{-best.dearer_usd:.2f} USD more"
        )
    quicker = [each for each in others if each.sooner_s > 0 and each.dearer_usd > 0]
    if not quicker:
        return ""
    best = min(quicker, key=lambda each: (each.dearer_usd, each.pool))
    wait_usd = need.wait_usd_per_hour * best.sooner_s / SECONDS_PER_HOUR
    return (
        f"; those of pool {best.pool} are up {best.sooner_s:.0f} s sooner, for "
        f"{best.dearer_usd:.2f} USD more, and to wait so long costs {wait_usd:.2f}"
    )


def _others(
    offer_groups: OfferGroups, need: Need, bought: OfferGroup, usd_per_hour: float
) -> Iterable[_Other]:
    """Of the same tier, where cost decides, and of pools whose nodes boot sooner or later."""
    nodes = need.nodes + len(need.beside)
    usd = usd_per_hour * bought.expected(need).hours
    for tier in offer_groups.fitting(need):
        if all(each is not bought for each, _ in tier):
            continue
        for each, mask in tier:
            sooner_s = bought.pool.boot_s - each.pool.boot_s
            if sooner_s and not each.is_paid_for:
                entry = each.catalogue.entries[lowest(mask)]
                other_usd = entry.usd_per_hour * each.expected(need).hours
                yield _Other(each.pool.name, sooner_s, (other_usd - usd) * nodes)
