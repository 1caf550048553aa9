"""What a job is expected to cost on spot, by what it costs elsewhere."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.make import A10G, NOW_S, T4, T4_BIG, cluster, job, offering, pool
from tidegate.core.buy.bins import Bin, BinKind
from tidegate.core.demand.demand import Need, demand
from tidegate.core.demand.fit import lacks
from tidegate.core.model.cluster import Cluster, Partition, Pool
from tidegate.core.model.ec2 import Market
from tidegate.core.model.slurm import Job, Reading
from tidegate.core.offers.catalogue import Catalogue, bits, entry
from tidegate.core.offers.cost import billed_hours
from tidegate.core.offers.loss import HOPELESS_FACTOR, Losses, asked, lossy

HOUR_S = 3600.0
ZONES = ("us-east-1a", "us-east-1b")
SPOT = offering()


def need(of: Cluster, wants: Job | None = None) -> Need:
    reading = Reading("23.11", (wants or job(time_limit_s=HOUR_S),), ())
    (found,), _ = demand(reading, of, frozenset(), NOW_S)
    return found


def with_prices(of: Cluster, *, hazard: float = 0.0, **usd: float) -> Cluster:
    """`usd`: spot and on_demand of T4 in the first zone."""
    markets = {"spot": Market.SPOT, "on_demand": Market.ON_DEMAND}
    prices = {offering(T4, markets[name]): each for name, each in usd.items()}
    return replace(of, prices={**of.prices, **prices}, hazards={SPOT: hazard})


def ratio(of: Cluster, wants: Job | None = None) -> float:
    return Losses(of).ratio(need(of, wants), of.pools[0], SPOT)


def only(*pools: Pool) -> Cluster:
    return cluster(*pools)


@pytest.mark.parametrize(
    ("spot_usd", "is_lossy"), [(0.39, False), (0.4, True), (0.41, True), (0.7, True)]
)
def test_spot_has_to_cost_less_than_the_same_on_demand(spot_usd: float, is_lossy: bool) -> None:
    of = with_prices(only(pool(types=(T4,))), spot=spot_usd, on_demand=0.4)

    assert Losses(of).is_lossy(of.pools[0], SPOT, need(of)) is is_lossy


def test_the_same_type_on_demand_counts_before_a_cheaper_one() -> None:
    of = with_prices(only(pool(types=(T4, T4_BIG))), spot=0.3, on_demand=0.4)
    big = {offering(T4_BIG, Market.ON_DEMAND): 0.1}

    assert ratio(replace(of, prices={**of.prices, **big})) == pytest.approx(0.75)


def test_where_the_type_is_not_sold_on_demand_the_cheapest_that_holds_the_job_counts() -> None:
    spot = pool("spot", (T4,), markets=(Market.SPOT,))
    of = with_prices(only(spot, pool("other", (T4_BIG,)), pool("a10g", (A10G,))), spot=0.3)
    prices = {offering(T4_BIG, Market.ON_DEMAND): 3.0, offering(A10G, Market.ON_DEMAND): 0.01}

    assert ratio(replace(of, prices={**of.prices, **prices})) == pytest.approx(0.1)


def test_of_several_types_on_demand_the_cheapest_counts() -> None:
    spot = pool("spot", (T4,), markets=(Market.SPOT,))
    of = with_prices(only(spot, pool("other", (T4_BIG,)), pool("a10g", (A10G,))), spot=0.3)
    prices = {offering(T4_BIG, Market.ON_DEMAND): 3.0, offering(A10G, Market.ON_DEMAND): 0.6}
    wants = job(time_limit_s=HOUR_S, gpu_type="")

    assert ratio(replace(of, prices={**of.prices, **prices}), wants) == pytest.approx(0.5)


def test_the_cheapest_zone_and_the_cheapest_of_the_others_count() -> None:
    spot = pool("spot", (T4,), markets=(Market.SPOT,))
    of = with_prices(only(spot, pool("other", (T4_BIG,), zones=ZONES)), spot=0.3)
    prices = {
        offering(T4_BIG, Market.ON_DEMAND, ZONES[0]): 3.0,
        offering(T4_BIG, Market.ON_DEMAND, ZONES[1]): 1.5,
    }

    assert ratio(replace(of, prices={**of.prices, **prices})) == pytest.approx(0.2)


@pytest.mark.parametrize("how", ["another partition's", "spot alone", "too short", "a constraint"])
def test_what_the_job_cannot_have_on_demand_does_not_count(how: str) -> None:
    spot = pool("spot", (T4,), markets=(Market.SPOT,))
    other = pool("other", (T4_BIG,))
    wants = job(time_limit_s=HOUR_S, constraint="spot" if how == "a constraint" else "")
    if how == "spot alone":
        other = replace(other, markets=(Market.SPOT,))
    elif how == "too short":
        other = replace(other, max_job_time_s=HOUR_S - 1)
    of = with_prices(only(spot, other), spot=0.3)
    of = replace(of, prices={**of.prices, offering(T4_BIG, Market.ON_DEMAND): 3.0})
    if how == "another partition's":
        of = replace(of, partitions=(Partition("gpu", ("spot",), is_default=True),))

    assert Losses(of).elsewhere(need(of, wants)) == {}
    assert ratio(of, wants) == pytest.approx(1 / HOPELESS_FACTOR)


def test_a_type_without_a_price_on_demand_is_not_sold_there() -> None:
    of = with_prices(only(pool(types=(T4,))), on_demand=0.0)

    assert Losses(of).elsewhere(need(of)) == {}


def test_what_has_no_price_at_all_is_no_loss() -> None:
    of = replace(only(pool("spot", (T4,), markets=(Market.SPOT,))), prices={})

    assert ratio(of) == 0.0


def test_interruptions_make_spot_dearer_by_what_they_cost() -> None:
    of = with_prices(only(pool(types=(T4,))), spot=0.2, on_demand=0.4, hazard=0.1)
    wants, boot_s = need(of), of.pools[0].boot_s
    hours = [
        billed_hours(wants, boot_s=boot_s, hazard_per_hour=each, checkpoint_s=None)
        for each in (0.1, 0.0)
    ]

    assert ratio(of) == pytest.approx(0.5 * hours[0] / hours[1])
    assert hours[0] > hours[1]


def test_nodes_that_a_gang_has_already_count_as_those_that_it_wants() -> None:
    """Each of them may be taken back: one that lost a node is no job of a single one."""
    of = only(pool())
    whole = need(of, job(nodes=4, time_limit_s=HOUR_S))
    rest = replace(whole, nodes=1, beside=("i-1", "i-2", "i-3"))

    assert asked(rest) == asked(whole)
    assert asked(rest) != asked(replace(rest, beside=()))


SAID = [
    ({}, "its node is taken back", True),
    ({"nodes": 2}, "each of its 2 nodes is taken back", True),
    ({}, "is known to write no checkpoints", True),
    ({"checkpoint_s": 0.0}, ", writes checkpoints: ", True),
    ({"is_requeueable": False}, "may not be requeued", True),
    ({"is_requeueable": False, "checkpoint_s": 0.0}, "writes checkpoints", False),
    ({}, "was requeued", False),
    ({"restarts": 3}, ", was requeued 3 times", True),
]


@pytest.mark.parametrize(("changes", "words", "is_said"), SAID)
def test_the_sentence_names_what_makes_spot_dear(
    changes: dict[str, object], words: str, is_said: bool
) -> None:
    of = with_prices(only(pool(types=(T4,))), spot=0.3, on_demand=0.4, hazard=0.1)
    wants = replace(need(of), **changes)  # type: ignore[arg-type]

    said = lossy(Losses(of), wants, of.pools[0], offering=SPOT).sentence

    assert (words in said) is is_said


@pytest.mark.parametrize(
    ("spot", "times"), [(3.0, "3.0"), (99.94, "99.9"), (100.0, "over 100"), (5000.0, "over 100")]
)
def test_the_sentence_says_how_many_times(spot: float, times: str) -> None:
    of = with_prices(only(pool(types=(T4,))), spot=spot, on_demand=1.0)

    found = lossy(Losses(of), need(of), of.pools[0], offering=SPOT)

    assert f"counts {times} times what it costs on demand" in found.sentence
    assert "checkpoint_s" in found.remedy


def test_where_nothing_else_is_sold_the_remedy_is_to_sell_it() -> None:
    of = with_prices(only(pool("spot", (T4,), markets=(Market.SPOT,))), spot=0.3)

    found = lossy(Losses(of), need(of), of.pools[0], offering=SPOT)

    assert "what it costs without interruptions" in found.sentence
    assert "have pool spot buy on demand too" in found.remedy


SLICED = replace(T4_BIG, gpus=16, gpu_type="t4.slice")


@given(
    st.lists(st.floats(0.05, 8.0), min_size=6, max_size=6),
    st.lists(st.sampled_from([0.0, 0.05, 0.4, 3.0]), min_size=3, max_size=3),
    st.sampled_from([600.0, HOUR_S, 30 * HOUR_S]),
    st.booleans(),
    st.sampled_from(["one pool", "spot alone", "sliced elsewhere", "no price"]),
)
def test_all_entries_at_once_are_judged_as_each_by_itself(
    usd: list[float], hazards: list[float], time_limit_s: float, is_requeueable: bool, how: str
) -> None:
    types = (T4, T4_BIG, A10G)
    markets = (Market.SPOT,) if how == "spot alone" else (Market.SPOT, Market.ON_DEMAND)
    of = only(pool("first", types, markets=markets), pool("second", (SLICED, A10G)))
    pairs = [offering(each, market) for each in types for market in reversed(Market)]
    paid = [each for each in pairs if not each.market.is_prepaid]
    prices = {**of.prices, **dict(zip(paid, usd, strict=True))}
    if how == "no price":
        prices[offering(T4, Market.ON_DEMAND)] = 0.0
    if how == "one pool":
        of = replace(of, pools=of.pools[:1], partitions=(Partition("gpu", ("first",)),))
    spot = [offering(each) for each in types]
    of = replace(of, prices=prices, hazards=dict(zip(spot, hazards, strict=True)))
    entries = tuple(entry(each, [(prices[on], on)]) for each, on in zip(types, spot, strict=True))
    wants = need(of, job(time_limit_s=time_limit_s, is_requeueable=is_requeueable))
    fitting = [number for number, each in enumerate(types) if not lacks(wants.shape, each)]

    mask = sum(1 << number for number in fitting)
    found = Losses(of).mask(wants, of.pools[0], Catalogue(entries), mask)

    alone = {number for number in fitting if Losses(of).is_lossy(of.pools[0], spot[number], wants)}
    assert set(bits(found)) == alone


@pytest.mark.parametrize(
    ("gated_for", "opened_for", "suits"),
    [("", "", False), ("1", "", True), ("", "1", True), ("", "2", False)],
)
def test_what_was_bought_for_a_job_suits_it_also_in_the_moment_after_it_was_opened(
    gated_for: str, opened_for: str, suits: bool
) -> None:
    """Else what a gang was dealt at its gates is dealt anew once they are open, and closed."""
    of = cluster()
    there = Bin(
        *("i-1", BinKind.EXISTING, of.pools[0].name, SPOT, (), T4.gpu_type, "gpu"),
        gpus=T4.gpus,
        cpus=T4.cpus,
        memory_mib=T4.memory_mib,
        gated_for=gated_for,
        opened_for=opened_for,
        is_lossy=lambda _: True,
    )

    assert there.suits(need(of, job("1", time_limit_s=HOUR_S))) is suits
