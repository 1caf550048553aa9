"""EC2 at its real speed: an answer takes seconds, fleets come in part, and many are too fast."""

from dataclasses import replace

import pytest

from tests.replay.test_replay import cluster, trace
from tidegate.core.model.ec2 import Market, Offering
from tidegate.sim.replay.fleets import STARTS_AT_ONCE, STARTS_PER_S, Fleets
from tidegate.sim.replay.run import Replayed, replay
from tidegate.sim.replay.state import EPOCH_S
from tidegate.sim.replay.steps import Steps
from tidegate.sim.replay.world import HEARTBEAT_S, LOOK_S, Setting

ZONES = ("us-east-1a", "us-east-1b")
SMALL, LARGE = "g5.xlarge", "g5.48xlarge"


def on(name: str = SMALL, zone: str = ZONES[0], market: Market = Market.ON_DEMAND) -> Offering:
    return Offering(name, zone, market)


def played(*jobs: str, fleet_s: float = 3.0, zones: int = 1, **has: float) -> Replayed:
    """`has`: nodes of the small and the large type that EC2 has in the first zone."""
    of = cluster()
    of = replace(of, pools=tuple(replace(p, zones=ZONES[:zones]) for p in of.pools))
    other = {on(each.instance_type, ZONES[1]): usd for each, usd in of.prices.items()}
    names = {"small": on(), "large": on(LARGE)}
    capacity = {names[name]: Steps(((0.0, most),)) for name, most in has.items()}
    setting = Setting(error_sigma=0.0, fleet_s=fleet_s, capacity=capacity, heartbeat_s=3600.0)
    return replay(trace(*jobs), replace(of, prices={**other, **of.prices}), setting)


def waits_s(ended: Replayed) -> list[float]:
    return [run.wait_s for run in ended.world.runs]


@pytest.mark.parametrize("fleet_s", [0.0, 3.0, 20.0])
def test_a_node_boots_and_costs_from_the_answer_on(fleet_s):
    ended = played("10 600 1 1", fleet_s=fleet_s)

    assert waits_s(ended) == [LOOK_S + fleet_s + 300.0]
    (node,) = ended.world.gone
    assert node.launched_s == EPOCH_S + 10.0 + LOOK_S + fleet_s


@pytest.mark.parametrize("fleet_s", [0.0, 5.0])
def test_after_a_refusal_the_same_look_buys_elsewhere_when_it_has_the_answer(fleet_s):
    ended = played("10 600 1 1", fleet_s=fleet_s, small=0)

    assert waits_s(ended) == [pytest.approx(LOOK_S + 2 * fleet_s + 300.0, abs=1.0)]
    assert [each.offering.instance_type for each in ended.world.gone] == ["g5.12xlarge"]


def test_a_fleet_comes_in_part_and_what_is_short_is_bought_elsewhere_at_once():
    ended = played("10 600 1 1", "10 600 1 1", "10 600 1 1", small=2)

    kinds = sorted(each.offering.instance_type for each in ended.world.gone)
    assert kinds == ["g5.12xlarge", SMALL, SMALL]
    assert max(waits_s(ended)) < LOOK_S + 2 * 3.0 + 300.0 + 1.0


def test_a_gang_comes_whole_from_one_zone_or_not_at_all():
    ended = played("10 600 24 3", zones=2, large=2)

    assert {each.offering.zone for each in ended.world.gone} == {ZONES[1]}
    assert len(ended.world.gone) == 3
    assert waits_s(ended)[0] < LOOK_S + 2 * 3.0 + 300.0 + 5.0


def test_a_gang_of_which_a_part_could_come_gets_nothing():
    ended = played("10 600 24 3", "7200 60 1 1", large=2)

    assert [run.first_started_s < 0 for run in ended.world.runs] == [True, False]
    assert {each.offering.instance_type for each in ended.world.gone} == {SMALL}


def test_tokens_are_refilled_by_the_second_up_to_what_they_were():
    fleets = Fleets()

    first = fleets.given(on(), 800, [], EPOCH_S)
    second = fleets.given(on(), 800, [], EPOCH_S)
    later = fleets.given(on(), 800, [], EPOCH_S + 60.0)

    assert (first, second, later) == (800, STARTS_AT_ONCE - 800, 60 * STARTS_PER_S)
    assert fleets.starts_left(EPOCH_S + 1e6) == STARTS_AT_ONCE


def test_who_asks_too_fast_gets_the_rest_with_the_next_look_and_nothing_rests():
    setting = Setting(error_sigma=0.0, starts_at_once=10)

    ended = replay(trace(*["10 600 1 1"] * 13), cluster(), setting)

    assert {each.offering.instance_type for each in ended.world.gone} == {SMALL}
    soon_s = LOOK_S + 3.0 + 300.0
    assert waits_s(ended) == [soon_s] * 10 + [soon_s + HEARTBEAT_S] * 3
