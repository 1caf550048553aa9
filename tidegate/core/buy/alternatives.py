"""What EC2 may give instead of the offering that a launch wants first."""

from tidegate.core.buy.pending_launch import PendingLaunch
from tidegate.core.model.ec2 import OVERRIDES_MAX, Market, Offering
from tidegate.core.offers.limits import Load, Usage
from tidegate.core.offers.offers import OfferGroups

# EC2 weighs capacity above our order on spot, so a much dearer type in the same request
# could come although the cheap one is to be had.
OVERRIDE_PRICE_FACTOR = 1.5


def alternatives(
    pending: PendingLaunch, offer_groups: OfferGroups, usage: Usage
) -> tuple[Offering, ...]:
    """The first offering and what may stand beside it: same pool and market, like price.

    Beyond a like price only as many types as the pool wants at least.
    """
    if pending.offer_group.market.is_prepaid:
        return (pending.offering,)
    pool, catalogue = pending.offer_group.pool, pending.offer_group.catalogue
    mask = pending.choice
    found, types = [pending.offering], {pending.number}
    lossy, but = _lossy(pending, mask, offer_groups), {pending.offering, *pending.but}
    for position, (usd, number, offering) in enumerate(catalogue.by_zone()):
        if offering in but or not mask >> number & 1 or lossy >> position & 1:
            continue
        if pending.zone not in ("", offering.zone):
            continue
        is_like = usd <= pending.usd_per_hour * OVERRIDE_PRICE_FACTOR
        if not is_like and (number in types or len(types) >= pool.min_types):
            continue
        counted = offer_groups.usd_in_limits(pending.offer_group, offering, usd)
        wider = pending.each.most(Load.of(catalogue.entries[number].instance_type, counted))
        if usage.widen(pool.name, pending.count, pending.each, wider):
            pending.each = wider
            found.append(offering)
            types.add(number)
        if len(found) == OVERRIDES_MAX:
            break
    return tuple(found)


def _lossy(pending: PendingLaunch, mask: int, offer_groups: OfferGroups) -> int:
    """What one of its jobs would be kept off, by its place in `Catalogue.by_zone`: the mask's
    entries were judged by their cheapest zones.
    """
    offer_group, dearer, found = pending.offer_group, 0, 0
    if offer_group.market is not Market.SPOT:
        return 0
    entries, losses = offer_group.catalogue.entries, offer_groups.losses
    for position, (usd, number, _) in enumerate(offer_group.catalogue.by_zone()):
        if mask >> number & 1 and usd > entries[number].usd_per_hour:
            dearer |= 1 << position
    for need in pending.needs.values() if dearer else ():
        of = offer_group.pool, offer_group.catalogue
        found |= losses.mask(need, *of, dearer, is_by_zone=True)
    return found
