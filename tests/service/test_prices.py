"""Reading the market: when, what is kept of it, and what happens when it cannot be read."""

from dataclasses import dataclass, field, replace

import pytest

from tests.make import A10G, T4, ZONE, at_estimates, cluster, offering, pool
from tests.service.conftest import World
from tidegate.core.model.ec2 import Market
from tidegate.core.model.errors import NotAuthorized, Throttled, TidegateError
from tidegate.core.model.market import NEVER_SEEN, ON_DEMAND_HOLDS_S, Quote, SeenMarket
from tidegate.service.prices import ON_DEMAND_EVERY_S, SPOT_EVERY_S, Prices
from tidegate.sim.faults import KillAt
from tidegate.sim.prices import SimPrices

SPOT = Quote(T4.name, 0.3, ZONE)
LISTED = Quote(T4.name, 0.55)


@dataclass
class Trading:
    """A cluster that leaves its prices to a feed."""

    world: World = field(default_factory=lambda: World(at_estimates(cluster())))
    feed: SimPrices = field(default_factory=lambda: SimPrices([SPOT], [LISTED]))

    def refresh(self) -> SeenMarket:
        of = self.world
        prices = Prices(cluster=of.of, feed=self.feed, ledger=of.ledger, clock=of.clock)
        assert prices.refresh() == of.ledger.seen_market
        return of.ledger.seen_market


@pytest.fixture
def market() -> Trading:
    return Trading()


def test_what_is_read_is_planned_with(market: Trading) -> None:
    market.refresh()

    (round_,) = market.world.look().rounds
    assert round_.snapshot.cluster.prices[offering()] == SPOT.usd_per_hour
    listed = offering(market=Market.ON_DEMAND)
    assert round_.snapshot.cluster.prices[listed] == LISTED.usd_per_hour


def test_spot_is_read_each_quarter_of_an_hour_and_the_list_each_day(market: Trading) -> None:
    market.refresh()
    assert len(market.feed.asked) == 2

    market.world.clock.advance(SPOT_EVERY_S - 1)
    market.refresh()
    assert len(market.feed.asked) == 2

    market.world.clock.advance(1)
    market.refresh()
    assert len(market.feed.asked) == 3

    market.world.clock.advance(ON_DEMAND_EVERY_S)
    market.refresh()
    assert len(market.feed.asked) == 5


def test_the_list_is_read_of_every_type_and_spot_of_those_bought_so() -> None:
    of = cluster(
        pool("a", (T4,), markets=(Market.SPOT,)), pool("b", (A10G,), markets=(Market.ON_DEMAND,))
    )
    market = Trading(World(at_estimates(of)))

    market.refresh()

    assert market.feed.asked == [(T4.name, A10G.name), (T4.name,)]


def test_spot_is_judged_by_the_list_of_the_region_as_long_as_that_holds() -> None:
    of = cluster(pool("a", (T4,), markets=(Market.SPOT,)))
    market = Trading(World(at_estimates(of)))
    dear = replace(SPOT, usd_per_hour=0.88)
    market.feed.listed, market.feed.sold = [replace(LISTED, usd_per_hour=0.894)], [dear]

    assert market.refresh().spot == (dear,)

    market.feed.listed = []
    market.world.clock.advance(ON_DEMAND_HOLDS_S)
    assert "is not believed beside an on-demand price of 0.526" in market.refresh().spot_trouble


def test_a_clock_that_was_put_back_does_not_stop_it(market: Trading) -> None:
    seen = market.refresh()
    ahead_s = market.world.clock.now_s() + 3600
    market.world.ledger.see_market(replace(seen, spot_at_s=ahead_s, on_demand_at_s=ahead_s))

    market.refresh()

    assert len(market.feed.asked) == 4


@pytest.mark.parametrize("trouble", [Throttled("slow down"), NotAuthorized("no right")])
def test_what_cannot_be_read_leaves_the_last_prices_and_is_said(
    market: Trading, trouble: TidegateError
) -> None:
    before = market.refresh()
    market.world.clock.advance(SPOT_EVERY_S)
    market.feed.trouble = trouble

    seen = market.refresh()

    assert (seen.spot, seen.spot_at_s) == (before.spot, before.spot_at_s)
    assert seen.spot_trouble == f"spot prices cannot be read, {type(trouble).__name__}: {trouble}"
    market.feed.trouble = None
    assert market.refresh().spot_trouble == ""


@pytest.mark.parametrize(
    "sold", [[], [replace(SPOT, usd_per_hour=0.0)], [replace(SPOT, usd_per_hour=1e9)]]
)
def test_a_feed_that_lies_changes_no_price(market: Trading, sold: list[Quote]) -> None:
    before = market.refresh()
    market.world.clock.advance(SPOT_EVERY_S)
    market.feed.sold = sold

    seen = market.refresh()

    assert (seen.spot, seen.spot_at_s) == (before.spot, before.spot_at_s)
    assert seen.spot_trouble


def test_trouble_with_one_of_them_is_not_hidden_by_the_other(market: Trading) -> None:
    market.feed.listed = [replace(LISTED, usd_per_hour=100.0)]
    assert market.refresh().on_demand_trouble
    market.feed.listed = [LISTED]
    market.world.clock.advance(SPOT_EVERY_S)

    assert not market.refresh().on_demand_trouble


def test_a_price_of_the_file_far_below_the_list_is_no_reason_to_doubt_the_list() -> None:
    """A Savings Plan: on demand is said, spot is open and judged by the list."""
    of = at_estimates(cluster(pool("a", (T4,), markets=(Market.SPOT,))))
    said = {
        each: replace(known, on_demand_usd_per_hour=0.14) for each, known in of.estimates.items()
    }
    market = Trading(World(replace(of, estimates=said)))

    seen = market.refresh()

    assert (seen.on_demand, seen.on_demand_trouble) == ((LISTED,), "")
    assert (seen.spot, seen.spot_trouble) == ((SPOT,), "")


def test_where_the_list_cannot_be_asked_for_nothing_is_wrong(market: Trading) -> None:
    market.feed.listed = None

    seen = market.refresh()

    assert (seen.on_demand, seen.on_demand_at_s, seen.on_demand_trouble) == ((), None, "")


def test_nobody_is_asked_where_the_file_says_every_price() -> None:
    market = Trading(World(cluster()))
    market.world.break_with(calls := KillAt(None))

    assert market.refresh() == NEVER_SEEN
    assert (market.feed.asked, calls.points) == ([], [])
