"""A market that moves in a story, and a feed of its prices that errs, fails or is silent."""

from contextlib import suppress
from dataclasses import replace
from random import Random

from tidegate.core.model.ec2 import Market
from tidegate.core.model.errors import NotAuthorized, Throttled, TidegateError
from tidegate.core.model.market import Quote
from tidegate.service.prices import Prices
from tidegate.sim.chaos import Chaos
from tidegate.sim.draw import stream
from tidegate.sim.prices import SimPrices

# Stories are short: in life spot prices move a few times a day.
MOVES_EVERY_S = (40.0, 300.0)
READ_EVERY_S = 30.0
# Of on-demand prices: what spot asks in the worst and the best of hours.
SPOT_SHARE = (0.1, 1.3)
LIST_SHARE = (0.8, 1.6)
ABSURD_USD = (0.0, -1.0, 1e9, float("nan"), float("inf"))


def move_market(chaos: Chaos) -> None:
    """From now on, until faults are over; then everything costs what the cluster's file guesses."""
    _Moving(chaos).move()


class _Moving:
    def __init__(self, chaos: Chaos) -> None:
        world = chaos.world
        self._chaos, self._chance = chaos, stream(chaos.options.seed, "market")
        self._feed = SimPrices()
        self._prices = Prices(
            cluster=world.cluster,
            feed=self._feed,
            ledger=world.ledger,
            clock=world.clock,
            spot_every_s=READ_EVERY_S,
        )
        share = self._chance.choice((1.0, self._chance.uniform(*LIST_SHARE)))
        self._listed = self._calm(Market.ON_DEMAND, share)

    def move(self) -> None:
        """The market goes on, and reconcile reads it."""
        chaos, chance, feed = self._chaos, self._chance, self._feed
        feed.listed, feed.trouble = list(self._listed), None
        if chaos.is_over:
            feed.sold = self._calm(Market.SPOT, 1.0)
        else:
            chaos.note("prices")
            feed.sold = [_moved(chance, each) for each in self._list_of_spot()]
            self._spoil()
        with chaos.world.acting("hours"), suppress(TidegateError):
            self._prices.refresh()
        after_s = chance.uniform(*MOVES_EVERY_S)
        chaos.world.at(chaos.world.clock.now_s() + after_s, self.move)

    def _spoil(self) -> None:
        """Now and then nobody answers, or nothing, or what cannot be meant."""
        chance, feed = self._chance, self._feed
        luck = chance.random()
        if luck < 0.1:
            feed.trouble = chance.choice((Throttled("later"), NotAuthorized("not you")))
        elif luck < 0.15:
            feed.sold = []
        elif luck < 0.2:
            feed.listed = None
        elif luck < 0.4:
            sold = feed.sold
            feed.sold = [_spoiled(chance, each) for each in sold if chance.random() < 0.8]

    def _calm(self, market: Market, share: float) -> list[Quote]:
        """The prices of the cluster's file; on demand a type has one for all zones."""
        found: dict[tuple[str, str], float] = {}
        for offering, usd in self._chaos.world.cluster.prices.items():
            if offering.market is market:
                zone = offering.zone if market is Market.SPOT else ""
                found[offering.instance_type, zone] = round(usd * share, 4)
        return [Quote(kind, usd, zone) for (kind, zone), usd in found.items()]

    def _list_of_spot(self) -> list[Quote]:
        """Each spot offering with the list price of its type."""
        estimates = self._chaos.world.cluster.estimates
        return [
            Quote(each.instance_type, estimate.on_demand_usd_per_hour, each.zone)
            for each, estimate in estimates.items()
            if each.market is Market.SPOT
        ]


def _moved(chance: Random, listed: Quote) -> Quote:
    return replace(listed, usd_per_hour=round(listed.usd_per_hour * chance.uniform(*SPOT_SHARE), 4))


def _spoiled(chance: Random, quote: Quote) -> Quote:
    if chance.random() < 0.7:
        return quote
    return replace(quote, usd_per_hour=chance.choice(ABSURD_USD))
