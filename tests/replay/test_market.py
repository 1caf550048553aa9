"""Market files: prices and hazards by zone, and capacity that runs out."""

from dataclasses import replace

import pytest

from tests.replay.test_replay import EXACT, cluster, trace
from tidegate.core.ec2 import Market, Offering
from tidegate.sim.replay.market import BadMarket, capacities, with_market
from tidegate.sim.replay.run import replay

XLARGE = Offering("g5.xlarge", "us-east-1a", Market.SPOT)


def test_prices_and_hazards_replace_those_of_the_cluster_file():
    files = {
        "spot_prices.csv": "instance_type,zone,spot\ng5.xlarge,us-east-1a,0.25\n",
        "hazards.csv": "instance_type,zone,hazard_per_hour\ng5.xlarge,*,0.5\n",
    }
    changed = with_market(cluster(market="spot"), files)

    assert changed.prices[XLARGE] == 0.25
    assert changed.hazard_per_hour(XLARGE) == 0.5
    other = replace(XLARGE, instance_type="g5.12xlarge")
    assert changed.prices[other] == cluster(market="spot").prices[other]


def test_nobody_gets_more_than_there_is():
    text = "instance_type,zone,market,nodes\ng5.xlarge,*,on-demand,1\n"
    of = cluster()
    few = replace(EXACT, capacity=capacities(of, {"capacity.csv": text}))
    ended = replay(trace("0 600 1 1", "0 600 1 1"), of, few)

    small = [m for m in ended.world.gone if m.instance_type.name == "g5.xlarge"]
    changes = [(m.launched_s, 1) for m in small]
    changes += [(m.ended_s, -1) for m in small if m.ended_s]
    alive = [sum(sign for _, sign in sorted(changes)[:n]) for n in range(len(changes) + 1)]
    assert max(alive) == 1
    assert ended.outcome.jobs_ended == 2


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("hazards.csv", "instance_type,zone\nx,y\n", "line 1"),
        ("hazards.csv", "instance_type,zone,hazard_per_hour\nx,y,often\n", "line 2"),
        ("spot_prices.csv", "instance_type,zone,spot\nx,y\n", "line 2"),
        ("spot_prices.csv", "instance_type,zone,spot\nx,y,-1\n", "line 2"),
    ],
)
def test_a_broken_market_file_is_named(name, text, said):
    with pytest.raises(BadMarket, match=f"{name}, {said}"):
        with_market(cluster(), {name: text})


def test_a_market_that_does_not_exist_is_named():
    text = "instance_type,zone,market,nodes\nx,y,barter,1\n"
    with pytest.raises(BadMarket, match=r"capacity\.csv, line 2"):
        capacities(cluster(), {"capacity.csv": text})
