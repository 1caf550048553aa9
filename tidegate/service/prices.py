"""Reading the market: what EC2 asks now, kept in the ledger for every look."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Protocol

from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market
from tidegate.core.model.errors import TidegateError
from tidegate.core.model.frozen import frozen
from tidegate.core.model.market import NEVER_SEEN, Quote, SeenMarket
from tidegate.core.offers.market import believed
from tidegate.ports import Clock, Ledger


class PriceFeed(Protocol):
    """What AWS asks for instances in the cluster's region, in USD per hour.

    Each may raise Throttled or NotAuthorized. Types that AWS does not sell there are left out.
    """

    def spot(self, instance_types: Collection[str]) -> tuple[Quote, ...]:
        """The spot prices of now, by zone."""
        ...

    def on_demand(self, instance_types: Collection[str]) -> tuple[Quote, ...] | None:
        """The list prices of Linux. None: this partition's cannot be asked for from within it."""
        ...


# Spot prices change a few times a day; list prices a few times a year.
SPOT_EVERY_S = 15 * 60.0
ON_DEMAND_EVERY_S = 86400.0


@frozen(kw_only=True)
class Prices:
    """The prices of the offerings for which the cluster file has none."""

    cluster: Cluster
    feed: PriceFeed
    ledger: Ledger
    clock: Clock
    spot_every_s: float = SPOT_EVERY_S

    def refresh(self) -> SeenMarket:
        """Read again what is old, and keep what can be believed.

        What cannot be read is tried again the next time; until then the last prices count, as long
        as they hold. The list comes first: spot prices are judged by it. Errors: Throttled and
        NotAuthorized of the ledger.
        """
        if not self.cluster.estimates:
            return NEVER_SEEN
        known = self.ledger.view().seen_market
        seen = self._with_spot(self._with_list(known))
        if seen != known:
            self.ledger.see_market(seen)
        return seen

    def _with_list(self, seen: SeenMarket) -> SeenMarket:
        """Of every type: where on demand is not bought, the list tells which spot price is odd."""
        now_s = self.clock.now_s()
        if not _is_due(seen.on_demand_at_s, now_s, ON_DEMAND_EVERY_S):
            return seen
        types = sorted({each.instance_type for each in self.cluster.estimates})
        quotes, trouble = self._read(Market.ON_DEMAND, lambda: self.feed.on_demand(types))
        seen = replace(seen, on_demand_trouble=trouble)
        return replace(seen, on_demand=quotes, on_demand_at_s=now_s) if quotes else seen

    def _with_spot(self, seen: SeenMarket) -> SeenMarket:
        now_s, estimates = self.clock.now_s(), self.cluster.estimates
        types = sorted({each.instance_type for each in estimates if each.market is Market.SPOT})
        if not types or not _is_due(seen.spot_at_s, now_s, self.spot_every_s):
            return seen
        listed = seen.on_demand if seen.has_on_demand(now_s) else ()
        quotes, trouble = self._read(Market.SPOT, lambda: self.feed.spot(types), listed)
        seen = replace(seen, spot_trouble=trouble)
        return replace(seen, spot=quotes, spot_at_s=now_s) if quotes else seen

    def _read(
        self,
        market: Market,
        read: Callable[[], tuple[Quote, ...] | None],
        listed: tuple[Quote, ...] = (),
    ) -> tuple[tuple[Quote, ...], str]:
        """What can be believed, and a sentence about the rest; both empty where nobody is asked."""
        try:
            quotes = read()
        except TidegateError as trouble:
            return (), f"{market} prices cannot be read, {type(trouble).__name__}: {trouble}"
        if quotes is None:
            return (), ""
        kept, doubt = believed(self.cluster, quotes, market, listed)
        if not kept and not doubt:
            return (), f"AWS says no {market} price of any instance type of the pools"
        return kept, doubt


def _is_due(at_s: float | None, now_s: float, every_s: float) -> bool:
    """Also where a clock was put back since."""
    return at_s is None or not 0 <= now_s - at_s < every_s
