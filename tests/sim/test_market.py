"""Worlds whose market moves: its prices are read, and what is bought and billed follows them."""

from functools import cache

from tidegate.core.model.ec2 import Market
from tidegate.sim.draw import draw
from tidegate.sim.story import Story


def stories(count: int) -> list[Story]:
    """Played to their ends, with no other fault."""
    return [played(seed) for seed in range(count)]


@cache
def played(seed: int) -> Story:
    """Once for all tests, which only read what has happened."""
    made = Story(draw(seed, {"prices"}))
    assert made.play().broken is None, seed
    return made


def test_prices_are_read_again_and_again_and_now_and_then_they_cannot_be() -> None:
    markets = [seen for each in stories(20) for _, seen in each.world.ledger.all_markets]

    assert len(markets) > 40
    assert any("cannot be read" in seen.spot_trouble for seen in markets)
    assert any("not believed" in seen.spot_trouble for seen in markets)


def test_running_nodes_of_both_markets_cost_what_ec2_asks_now() -> None:
    repriced = {
        ledger.all_nodes[name].offering.market
        for ledger in (each.world.ledger for each in stories(40))
        for name in ledger.all_prices
    }

    assert {Market.SPOT, Market.ON_DEMAND} <= repriced


def test_a_world_without_the_fault_knows_its_prices_from_its_file() -> None:
    assert not draw(7, set()).cluster.estimates
    assert draw(7, {"prices"}).cluster.estimates.keys() == draw(7, set()).cluster.prices.keys()
