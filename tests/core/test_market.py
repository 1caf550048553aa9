"""Prices that the cluster file leaves to the market: EC2's of now, as long as they hold."""

import math
from dataclasses import replace

import pytest

from tests.make import (
    NOW_S,
    T4,
    T4_BIG,
    ZONE,
    at_estimates,
    cluster,
    instance,
    job,
    node,
    offering,
    pool,
    record,
    snapshot,
)
from tidegate.core.model.cluster import Cluster
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.ledger import Launch
from tidegate.core.model.market import ON_DEMAND_HOLDS_S, SPOT_HOLDS_S, Quote, SeenMarket
from tidegate.core.model.plan import Reprice
from tidegate.core.offers.market import at_market, believed, price_troubles
from tidegate.core.planner import plan

SPOT, ON_DEMAND = offering(), offering(market=Market.ON_DEMAND)
SEEN = SeenMarket(
    spot=(Quote(T4.name, 0.35, ZONE), Quote(T4.name, 0.1, "us-east-1b")),
    spot_at_s=NOW_S - 60,
    on_demand=(Quote(T4.name, 0.6),),
    on_demand_at_s=NOW_S - 3600,
)


def left_open(beside_usd_per_hour: float = 0.0) -> Cluster:
    return at_estimates(cluster(), beside_usd_per_hour)


def test_the_market_decides_what_the_file_leaves_open_and_the_disk_is_added() -> None:
    priced = at_market(left_open(0.02), SEEN, NOW_S)

    assert priced.prices[SPOT] == pytest.approx(0.37)
    assert priced.prices[ON_DEMAND] == pytest.approx(0.62)
    assert priced.quoted == {SPOT, ON_DEMAND}
    others = cluster().prices.keys() - priced.quoted
    assert {each: priced.prices[each] for each in others} == {
        each: cluster().prices[each] for each in others
    }


def test_a_contract_takes_its_part_off_what_ec2_asks_and_off_nothing_beside() -> None:
    priced = at_market(replace(left_open(0.02), discount=0.1), SEEN, NOW_S)

    assert priced.prices[SPOT] == pytest.approx(0.35 * 0.9 + 0.02)
    assert priced.prices[ON_DEMAND] == pytest.approx(0.6 * 0.9 + 0.02)
    assert at_market(replace(cluster(), discount=0.1), SEEN, NOW_S).prices == cluster().prices


def test_a_price_of_the_file_holds_whatever_the_market_says() -> None:
    assert at_market(cluster(), SEEN, NOW_S) == cluster()


@pytest.mark.parametrize("after_s", [-1.0, 0.0])
def test_old_prices_hold_no_more(after_s: float) -> None:
    old = replace(
        SEEN,
        spot_at_s=NOW_S - SPOT_HOLDS_S - after_s,
        on_demand_at_s=NOW_S - ON_DEMAND_HOLDS_S - after_s,
    )

    priced = at_market(left_open(), old, NOW_S)

    assert priced.quoted == (frozenset() if after_s >= 0 else {SPOT, ON_DEMAND})
    assert len(list(price_troubles(left_open(), old, NOW_S))) == (2 if after_s >= 0 else 0)


def test_the_plan_follows_the_market() -> None:
    """Spot that costs more than on demand is not bought."""
    of = at_estimates(cluster(pool(types=(T4,), markets=(Market.SPOT, Market.ON_DEMAND))))
    dear = replace(SEEN, spot=(Quote(T4.name, 0.7, ZONE),))

    def bought(seen: SeenMarket) -> set[Market]:
        made = plan(snapshot([job(1)], of=at_market(of, seen, NOW_S)))
        launches = (a for a in made.actions if isinstance(a, Launch))
        return {each.market for launch in launches for each in launch.offerings}

    assert bought(SEEN) == {Market.SPOT}
    assert bought(dear) == {Market.ON_DEMAND}


@pytest.mark.parametrize("usd", [0.0, -1.0, 1e9, math.nan, math.inf, 0.79, 0.02])
def test_a_spot_price_that_cannot_be_meant_is_not_believed(usd: float) -> None:
    kept, said = believed(left_open(), [Quote(T4.name, usd, ZONE)], Market.SPOT)

    assert kept == ()
    assert f"AWS says {usd:g} USD per hour for spot g4dn.xlarge in {ZONE}" in said
    assert "prices_usd_per_hour" in said


@pytest.mark.parametrize(("usd", "is_kept"), [(0.526, True), (1.0, True), (0.1, False), (5, False)])
def test_an_on_demand_price_may_differ_as_regions_do(usd: float, is_kept: bool) -> None:
    kept, said = believed(left_open(), [Quote(T4.name, usd)], Market.ON_DEMAND)

    assert bool(kept) == is_kept
    assert bool(said) != is_kept


def test_bounds_follow_the_type_and_others_are_counted() -> None:
    """g4dn.12xlarge costs 3.912 on demand: between 0.157 and 5.868."""
    said = [
        Quote(T4_BIG.name, usd, zone)
        for usd, zone in ((5.86, "b"), (0.157, "a"), (5.87, "c"), (0.156, "d"), (9.0, "e"))
    ]

    kept, doubt = believed(left_open(), said, Market.SPOT)

    assert [(each.zone, each.usd_per_hour) for each in kept] == [("a", 0.157), ("b", 5.86)]
    assert "g4dn.12xlarge in c, and 2 more, which is not believed" in doubt
    _, of_one = believed(left_open(), said[2:3], Market.SPOT)
    assert "g4dn.12xlarge in c, which is not believed" in of_one


def test_spot_is_judged_by_the_list_of_the_region() -> None:
    """g4dn.xlarge costs 0.526 on demand in us-east-1, and in Sao Paulo 0.894."""
    near_on_demand, listed = Quote(T4.name, 0.88, ZONE), Quote(T4.name, 0.894)
    assert believed(left_open(), [near_on_demand], Market.SPOT)[0] == ()

    kept, doubt = believed(left_open(), [near_on_demand], Market.SPOT, [listed])

    assert (kept, doubt) == ((near_on_demand,), "")
    dear = replace(near_on_demand, usd_per_hour=1.35)
    _, doubt = believed(left_open(), [dear], Market.SPOT, [listed])
    assert "beside an on-demand price of 0.894" in doubt


def test_what_was_not_asked_for_is_left_out() -> None:
    assert believed(left_open(), [Quote("x9.large", 0.1, ZONE)], Market.SPOT) == ((), "")


@pytest.mark.parametrize(("usd", "noted"), [(0.35, {"i-1": 0.35}), (0.203, {}), (0.2, {})])
def test_a_running_spot_node_costs_what_spot_costs_now(usd: float, noted: dict[str, float]) -> None:
    """A change of less than 2 % is not written down."""
    seen = replace(SEEN, spot=(Quote(T4.name, usd, ZONE),))

    assert repriced(seen) == noted


def test_it_keeps_its_price_when_the_market_was_not_read_for_long() -> None:
    old = replace(SEEN, spot_at_s=NOW_S - 2 * SPOT_HOLDS_S)

    assert repriced(old, usd_per_hour=0.35) == {}


@pytest.mark.parametrize(("usd", "noted"), [(0.6, {"i-1": 0.6}), (0.53, {})])
def test_a_node_on_demand_that_was_bought_at_a_guess_costs_what_the_list_says(
    usd: float, noted: dict[str, float]
) -> None:
    """Bought before the list was read, at us-east-1's price."""
    seen = replace(SEEN, on_demand=(Quote(T4.name, usd),))

    assert repriced(seen, usd_per_hour=0.526, on=ON_DEMAND) == noted


def repriced(seen: SeenMarket, usd_per_hour: float = 0.2, on: Offering = SPOT) -> dict[str, float]:
    busy = node("i-1", state="ALLOCATED+DYNAMIC_NORM", gpus_alloc=1)
    seen_at = snapshot(
        [job(1, on=["i-1"])],
        [busy],
        instances=[instance("i-1", on)],
        records=[replace(record("i-1", on=on), usd_per_hour=usd_per_hour)],
        of=at_market(left_open(), seen, NOW_S),
    )
    found = (a for a in plan(seen_at).actions if isinstance(a, Reprice))
    return {each.instance_id: each.usd_per_hour for each in found}
