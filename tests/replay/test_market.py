"""Market files: prices and hazards by zone and time, and capacity that runs out."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.replay.test_replay import EXACT, cluster, trace
from tidegate.core.model.ec2 import Market, Offering
from tidegate.sim.replay.market import BadMarket, Conditions, conditions
from tidegate.sim.replay.outcome import as_days
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.state import EPOCH_S
from tidegate.sim.replay.steps import Steps

PRICED = "instance_type,zone,spot\nx,y,1\n"
XLARGE = Offering("g5.xlarge", "us-east-1a", Market.SPOT)


def of(files: dict[str, str], market: str = "spot", starts_at_s: float | None = None) -> Conditions:
    return conditions(cluster(market=market), "us-east-1", files, starts_at_s)


def history(
    *entries: tuple[str, str], product: str = "Linux/UNIX", zone: str = "us-east-1a"
) -> str:
    """As `aws ec2 describe-spot-price-history` prints it: instants and prices of g5.xlarge."""
    told: list[dict[str, Any]] = [
        {
            "AvailabilityZone": zone,
            "InstanceType": "g5.xlarge",
            "ProductDescription": product,
            "SpotPrice": price,
            "Timestamp": at,
        }
        for at, price in entries
    ]
    return json.dumps({"SpotPriceHistory": told})


def test_prices_and_hazards_replace_those_of_the_cluster_file():
    files = {
        "spot_prices.csv": "instance_type,zone,spot\ng5.xlarge,us-east-1a,0.25\n",
        "hazards.csv": "instance_type,zone,hazard_per_hour\ng5.xlarge,*,0.5\n",
    }
    changed = of(files).cluster

    assert changed.prices[XLARGE] == 0.25
    assert changed.hazard_per_hour(XLARGE) == 0.5
    other = replace(XLARGE, instance_type="g5.12xlarge")
    assert changed.prices[other] == cluster(market="spot").prices[other]


def test_nobody_gets_more_than_there_is():
    text = "instance_type,zone,market,nodes\ng5.xlarge,*,on-demand,1\n"
    there = of({"capacity.csv": text}, "on-demand")
    few = replace(EXACT, capacity=there.capacity)
    ended = replay(trace("0 600 1 1", "0 600 1 1"), there.cluster, few)

    small = [m for m in ended.world.gone if m.instance_type.name == "g5.xlarge"]
    changes = [(m.launched_s, 1) for m in small]
    changes += [(m.ended_s, -1) for m in small if m.ended_s]
    alive = [sum(sign for _, sign in sorted(changes)[:n]) for n in range(len(changes) + 1)]
    assert max(alive) == 1
    assert ended.outcome.jobs_ended == 2


def test_what_runs_out_for_a_while_is_bought_when_it_is_back():
    text = "instance_type,zone,market,nodes,at_s\n"
    text += "".join(f"g5.{size},*,on-demand,0,0\n" for size in ("xlarge", "12xlarge", "48xlarge"))
    text += "g5.xlarge,*,on-demand,5,7200\n"
    there = of({"capacity.csv": text}, "on-demand")
    ended = replay(
        trace("0 600 1 1"), there.cluster, replace(EXACT, capacity=there.capacity)
    ).outcome

    assert ended.jobs_ended == 1
    assert 7200 < ended.waits.p50_s < 7200 + 1800


def test_a_price_that_changes_is_billed_as_it_changes():
    prices = history(("2026-03-02T02:00:00Z", "3.0"), ("2026-03-02T00:00:00+00:00", "0.5"))
    market = of({"spot_price_history.json": prices})
    ended = replay(
        trace("0 10800 1 1"), market.cluster, replace(EXACT, prices=market.prices), "tidegate"
    )

    (machine,) = ended.world.gone
    assert machine.ended_s is not None
    from_s, to_s = machine.launched_s - EPOCH_S, machine.ended_s - EPOCH_S
    dear_s = to_s - 7200
    assert dear_s > 3600
    assert ended.outcome.cost_usd == pytest.approx((0.5 * (7200 - from_s) + 3.0 * dear_s) / 3600)
    assert sum(usd for _, usd in as_days(ended.world)) == pytest.approx(ended.outcome.cost_usd)


def test_a_history_with_dates_meets_the_prices_of_its_own_days():
    prices = history(("2026-03-02T00:00:00Z", "0.5"), ("2026-03-04T00:00:00Z", "0.75"))
    third_s = datetime(2026, 3, 3, tzinfo=UTC).timestamp()

    steps = of({"spot_price_history.json": prices}, starts_at_s=third_s).prices[XLARGE]

    assert [steps.at(at_s) for at_s in (0, 86399, 86400)] == [0.5, 0.5, 0.75]


def test_the_planner_knows_the_mean_of_prices_that_change():
    prices = history(
        ("2026-03-02T00:00:00Z", "1.0"),
        ("2026-03-02T01:00:00Z", "2.0"),
        ("2026-03-02T04:00:00Z", "9.0"),
    )

    assert of({"spot_price_history.json": prices}).cluster.prices[XLARGE] == pytest.approx(1.75)


def test_a_contract_takes_its_part_off_what_aws_prints_and_not_off_the_file_s_own():
    prices = history(("2026-03-02T00:00:00Z", "0.5"), ("2026-03-02T01:00:00Z", "0.75"))
    under_contract = replace(cluster(market="spot"), discount=0.2)

    def price(**files: str) -> float:
        named = {name.replace("__", "."): text for name, text in files.items()}
        return conditions(under_contract, "us-east-1", named).prices[XLARGE].at(0)

    assert price(spot_price_history__json=prices) == pytest.approx(0.4)
    assert price(spot_prices__csv=PRICED.replace("x,y,1", "g5.xlarge,us-east-1a,0.5")) == 0.5


def test_a_history_without_a_start_begins_with_its_first_day_in_utc():
    prices = history(("2026-03-02T07:00:00+01:00", "0.5"), ("2026-03-02T09:00:00Z", "0.75"))

    found = of({"spot_price_history.json": prices}).prices[XLARGE]

    assert found.changes == ((6 * 3600.0, 0.5), (9 * 3600.0, 0.75))


def test_prices_of_one_s_own_come_before_the_history_s():
    files = {
        "spot_price_history.json": history(("2026-03-02T00:00:00Z", "0.5")),
        "spot_prices.csv": "instance_type,zone,spot\ng5.xlarge,us-east-1a,0.25\n",
    }

    assert of(files).prices[XLARGE].at(0) == of(files).cluster.prices[XLARGE] == 0.25


def test_a_row_of_another_zone_changes_nothing():
    rows = "us-east-1b,9\n"
    for name, column in (("spot_prices", "spot"), ("hazards", "hazard_per_hour")):
        files = {f"{name}.csv": f"instance_type,zone,{column}\ng5.xlarge,{rows}"}
        assert of(files) == of({})


def test_linux_of_a_vpc_is_linux():
    text = history(("2026-03-02T00:00:00Z", "0.25"), product="Linux/UNIX (Amazon VPC)")

    assert of({"spot_price_history.json": text}).prices[XLARGE].at(0) == 0.25


@pytest.mark.parametrize(
    "different", [{"product": "Windows"}, {"product": "SUSE Linux"}, {"zone": "us-east-1f"}]
)
def test_prices_of_other_systems_and_zones_change_nothing(different):
    text = history(("2026-03-02T00:00:00Z", "0.01"), **different)

    assert of({"spot_price_history.json": text}) == of({})


def test_spot_advisor_s_classes_become_interruptions_per_hour():
    text = json.dumps(
        {"spot_advisor": {"us-east-1": {"Linux": {"g5.xlarge": {"r": 2, "s": 60}}}}, "ranges": []}
    )
    hazards = of({"spot-advisor-data.json": text}).cluster.hazards

    assert hazards[XLARGE] == pytest.approx(0.125 / 730)
    assert replace(XLARGE, instance_type="g5.12xlarge") not in hazards


@pytest.mark.parametrize(
    ("kind", "share"), [(0, 0.025), (1, 0.075), (2, 0.125), (3, 0.175), (4, 0.25)]
)
def test_a_class_of_spot_advisor_is_a_share_of_a_month_in_the_cluster_s_region(kind, share):
    both = {"Linux": {"g5.xlarge": {"r": kind}}, "Windows": {"g5.xlarge": {"r": 4 - kind}}}
    other = {"Linux": {"g5.xlarge": {"r": 4 - kind}, "g5.12xlarge": {"r": 4}}}
    text = json.dumps({"spot_advisor": {"ap-south-1": other, "us-east-1": both}})

    assert of({"spot-advisor-data.json": text}).cluster.hazards == {
        XLARGE: pytest.approx(share / 730)
    }


def test_spot_advisor_knows_nothing_of_what_is_bought_on_demand():
    text = json.dumps({"spot_advisor": {"us-east-1": {"Linux": {"g5.xlarge": {"r": 2}}}}})

    assert of({"spot-advisor-data.json": text}, "on-demand").cluster.hazards == {}


def test_the_planner_knows_the_mean_of_hazards_that_change():
    rows = "".join(f"g5.xlarge,*,{value},{at_s}\n" for value, at_s in ((0.5, 0), (0.1, 900)))
    rows += "g5.xlarge,*,9,3600\n"
    text = f"instance_type,zone,hazard_per_hour,at_s\n{rows}"

    assert of({"hazards.csv": text}).cluster.hazards[XLARGE] == pytest.approx(0.2)


def test_hazards_of_one_s_own_come_before_spot_advisor_s():
    text = json.dumps({"spot_advisor": {"us-east-1": {"Linux": {"g5.xlarge": {"r": 2}}}}})
    own = "instance_type,zone,hazard_per_hour\ng5.xlarge,*,0.5\n"

    found = of({"spot-advisor-data.json": text, "hazards.csv": own})

    assert found.cluster.hazards[XLARGE] == 0.5


def test_steps_add_up_over_any_span():
    steps = Steps(((10.0, 1.0), (20.0, 3.0), (20.0, 5.0)))

    assert [steps.at(at_s) for at_s in (0, 10, 19.9, 20, 99)] == [1, 1, 1, 5, 5]
    assert steps.sum(0, 30) == 20 * 1 + 10 * 5
    assert steps.sum(15, 15) == 0
    assert steps.mean == 1.0


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("hazards.csv", "instance_type,zone\nx,y\n", "line 1"),
        ("hazards.csv", f"{'x' * 200_000},zone\nx,y\n", "line 1: is no CSV: field larger"),
        ("spot_prices.csv", f"{PRICED}x,{'y' * 200_000},1\n", "line 3: is no CSV: field larger"),
        ("spot_prices.csv", "instance_type,zone,spot,spot\nx,y,1,2\n", "line 1: names spot twice"),
        ("hazards.csv", "instance_type,zone,hazard_per_hour\nx,y,often\n", "line 2"),
        ("spot_prices.csv", "instance_type,zone,spot\nx,y\n", "line 2"),
        ("spot_prices.csv", "instance_type,zone,spot\nx,y,1,2\n", "line 2: must have 3 fields"),
        ("spot_prices.csv", "instance_type,zone,spot\nx,y,-1\n", "line 2"),
        ("spot_prices.csv", "instance_type,zone,spot\nx,y,nan\n", "line 2"),
        (
            "spot_prices.csv",
            "instance_type,zone,spot,at_s\nx,y,1,soon\n",
            "line 2: must be a number of at least 0, is soon",
        ),
        ("spot_price_history.json", "[]", "the file"),
        ("spot_price_history.json", history(("now", "1")), "SpotPriceHistory.0.Timestamp"),
        ("spot-advisor-data.json", '{"spot_advisor": {"a": {"b": {"c": {"r": 9}}}}}', r".*\.c\.r"),
    ],
)
def test_a_broken_market_file_is_named(name, text, said):
    with pytest.raises(BadMarket, match=f"{name}, {said}"):
        of({name: text})


def test_a_market_that_does_not_exist_is_named():
    text = "instance_type,zone,market,nodes\nx,y,barter,1\n"
    with pytest.raises(BadMarket, match=r"capacity\.csv, line 2"):
        of({"capacity.csv": text})


def test_a_file_that_knows_too_little_of_interruptions_learns_them_in_a_replay():
    """A job of six hours each hour; half of the nodes are taken back twice in five hours."""
    told = "hazards_per_hour: {g5.xlarge: 0.002, g5.12xlarge: 0.002, g5.48xlarge: 0.002}\n"
    jobs = trace(*(f"{n * 3600} 21600 1 1" for n in range(150)))
    of = cluster(market="spot, on-demand", more=told)
    spot = [on for _, on in of.pools[0].offerings() if on.market is Market.SPOT]
    often = replace(EXACT, hazards=dict.fromkeys(spot, 0.2))

    ended = replay(jobs, of, often)

    ours = [run.first_on for run in ended.world.runs]
    assert ended.outcome.jobs_ended == 150
    assert [on.market for on in ours[:5] if on] == [Market.SPOT] * 5
    assert {on.market for on in ours[75:] if on} == {Market.ON_DEMAND}
