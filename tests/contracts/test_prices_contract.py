"""What AWS asks for instances: the simulated feed and the real one on the local cloud."""

import pytest

from local.cloud import LocalCloud
from tests.make import NOW_S
from tidegate.adapters.prices import AwsPrices
from tidegate.core.model.market import Quote
from tidegate.service.prices import PriceFeed
from tidegate.sim.clock import SimClock
from tidegate.sim.prices import SimPrices

TYPES = ["g5.xlarge", "g4dn.xlarge"]
SPOT = [
    Quote("g4dn.xlarge", 0.2, "us-east-1a"),
    Quote("g5.xlarge", 0.41, "us-east-1a"),
    Quote("g5.xlarge", 0.5, "us-east-1b"),
]
ON_DEMAND = [Quote("g4dn.xlarge", 0.526), Quote("g5.xlarge", 1.006)]


@pytest.fixture(params=["sim", "local cloud"])
def feed(request: pytest.FixtureRequest) -> PriceFeed:
    if request.param == "sim":
        return SimPrices(list(SPOT), list(ON_DEMAND))
    cloud: LocalCloud = request.getfixturevalue("cloud")
    cloud.prices.spot.clear()
    cloud.prices.on_demand.clear()
    for instance_type in TYPES:
        for zone in ("us-east-1a", "us-east-1b", "us-east-1c"):
            cloud.prices.spot[instance_type, zone] = ""
    for each in SPOT:
        cloud.prices.spot[each.instance_type, each.zone] = str(each.usd_per_hour)
    return _real(cloud)


def _real(cloud: LocalCloud, region: str = "us-east-1") -> AwsPrices:
    clock = SimClock(NOW_S)
    return AwsPrices(cloud.client("ec2"), cloud.client("pricing"), region, clock)


def test_spot_prices_are_those_of_each_zone_that_sells_the_type(feed: PriceFeed) -> None:
    assert sorted(feed.spot(TYPES), key=str) == sorted(SPOT, key=str)
    assert [each.zone for each in feed.spot(["g4dn.xlarge"])] == ["us-east-1a"]


def test_on_demand_prices_hold_in_every_zone(feed: PriceFeed) -> None:
    assert sorted(feed.on_demand(TYPES) or (), key=str) == sorted(ON_DEMAND, key=str)


def test_what_is_not_sold_has_no_price(feed: PriceFeed) -> None:
    assert feed.spot(["nothing.large"]) == ()
    assert feed.on_demand(["nothing.large"]) == ()


def test_a_type_that_is_sold_in_capacity_blocks_too_has_its_price_by_the_hour(
    cloud: LocalCloud,
) -> None:
    (quote,) = _real(cloud).on_demand(["p5.48xlarge"]) or ()

    assert (quote.instance_type, quote.usd_per_hour) == ("p5.48xlarge", 55.04)


@pytest.mark.parametrize("region", ["us-gov-west-1", "cn-north-1"])
def test_a_list_that_cannot_be_asked_for_is_not_asked_for(cloud: LocalCloud, region: str) -> None:
    before = cloud.aws_calls()

    assert _real(cloud, region).on_demand(TYPES) is None
    assert (cloud.aws_calls() - before)["pricing:GetProducts"] == 0


def test_a_price_in_another_currency_is_none(cloud: LocalCloud) -> None:
    cloud.prices.currency = "CNY"
    try:
        assert _real(cloud).on_demand(TYPES) == ()
    finally:
        cloud.prices.currency = "USD"


@pytest.mark.parametrize(
    "product",
    [
        "",
        "[]",
        "{}",
        '{"terms": null}',
        '{"terms": {"OnDemand": []}}',
        '{"terms": {"OnDemand": {"T": {"priceDimensions": {"D": null}}}}}',
        '{"terms": {"OnDemand": {"T": {"priceDimensions": {"D": {"pricePerUnit": "0.5"}}}}}}',
    ],
)
def test_a_product_of_another_shape_has_no_price(cloud: LocalCloud, product: str) -> None:
    cloud.prices.products_of["g5.xlarge"] = product
    try:
        assert _real(cloud).on_demand(TYPES) == (Quote("g4dn.xlarge", 0.526),)
    finally:
        cloud.prices.products_of.clear()


@pytest.mark.parametrize("said", ["free", "nan", "-1", "1e9"])
def test_what_is_no_price_is_told_as_it_is(cloud: LocalCloud, said: str) -> None:
    cloud.prices.spot["g5.xlarge", "us-east-1a"] = said

    found = {each.zone: each.usd_per_hour for each in _real(cloud).spot(["g5.xlarge"])}

    assert not 0 < found["us-east-1a"] < 1e6
