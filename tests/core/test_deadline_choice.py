"""Spot, on demand, or wait: what is chosen before a deadline, and that none is missed for it."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench.deadline import (
    CHANGE_S,
    RULES,
    STEP_S,
    WORK_S,
    Spot,
    bound_h,
    moving,
    play,
    play_in,
    regions,
    staying,
    uniform_progress,
)
from tidegate.core.model.ec2 import Market
from tidegate.core.offers.deadline import KEPT_FOR_CHANGES, Choice, Pressure, choice

HOUR_S = 3600.0
# A job of 10 hours that boots for 6 minutes; the net is two boots.
EASY = Pressure(left_s=20 * HOUR_S, work_s=10 * HOUR_S, change_s=360.0, price_ratio=3.0)
TIGHT = replace(EASY, left_s=EASY.work_s + EASY.net_s)
# What spot must last: twice 360 s at three times the price, by what each hour saves.
LASTING_S = 2 * 3 * 360.0 / 2

DEADLINE_S = WORK_S / 0.8
STEPS = int(DEADLINE_S / STEP_S) + 1


def test_spot_is_used_where_it_is() -> None:
    assert choice(replace(EASY, spot_for_s=0.0)) is Choice.SPOT


def test_without_spot_a_job_waits_as_long_as_it_may() -> None:
    assert choice(EASY) is Choice.WAIT
    assert EASY.waits_s == 10 * HOUR_S - 720.0


def test_at_the_net_spot_is_tried_once_more_and_below_it_no_more() -> None:
    below = replace(TIGHT, left_s=TIGHT.left_s - 1)

    assert choice(replace(TIGHT, spot_for_s=0.0)) is Choice.SPOT
    assert choice(TIGHT) is Choice.ON_DEMAND  # there is nothing left to wait with
    assert choice(replace(below, spot_for_s=1e9)) is Choice.ON_DEMAND


@pytest.mark.parametrize(
    "net", [replace(TIGHT, lost_s=HOUR_S), replace(TIGHT, margin_s=60.0)], ids=["lost", "look"]
)
def test_what_an_interruption_loses_and_the_next_look_belong_to_the_net(net: Pressure) -> None:
    assert choice(replace(net, spot_for_s=0.0)) is Choice.ON_DEMAND


def test_who_runs_on_spot_stays_there() -> None:
    late = replace(TIGHT, left_s=0.0, on=Market.SPOT, spot_for_s=1.0)

    assert choice(late) is Choice.SPOT


def test_who_runs_on_demand_moves_only_to_spot_that_has_lasted() -> None:
    runs = replace(EASY, on=Market.ON_DEMAND, on_for_s=LASTING_S, may_move=True)

    assert choice(runs) is Choice.ON_DEMAND
    assert choice(replace(runs, spot_for_s=LASTING_S - 1)) is Choice.ON_DEMAND
    assert choice(replace(runs, spot_for_s=LASTING_S)) is Choice.SPOT
    assert choice(replace(runs, spot_for_s=LASTING_S, may_move=False)) is Choice.ON_DEMAND
    assert choice(replace(runs, spot_for_s=1e9, price_ratio=1.0)) is Choice.ON_DEMAND


def test_who_has_just_come_on_demand_is_not_moved_back_at_once() -> None:
    came = replace(EASY, on=Market.ON_DEMAND, on_for_s=LASTING_S - 1, may_move=True)

    assert choice(replace(came, spot_for_s=1e9)) is Choice.ON_DEMAND
    assert choice(replace(came, spot_for_s=1e9, on_for_s=LASTING_S)) is Choice.SPOT


def test_who_can_move_keeps_spare_time_for_it() -> None:
    moves = replace(EASY, may_move=True)
    kept_s = KEPT_FOR_CHANGES * EASY.work_s
    short = replace(moves, left_s=EASY.work_s + EASY.net_s + kept_s)

    assert choice(moves) is Choice.WAIT
    assert choice(short) is Choice.ON_DEMAND
    assert choice(replace(short, may_move=False)) is Choice.WAIT


def stretches(lengths: list[int]) -> Spot:
    """Spot that comes and goes; what is left of the time it is away."""
    found = [n % 2 == 0 for n, length in enumerate(lengths) for _ in range(length)][:STEPS]
    return [*found, *[False] * (STEPS - len(found))]


@given(st.lists(st.integers(1, 150), max_size=60), st.sampled_from(sorted(RULES)))
@example([1, 1] * 400, "tidegate, moves")  # spot that lasts no start, again and again
@example([int(WORK_S / STEP_S) - 3], "tidegate, stays")
def test_no_rule_ends_late_whatever_spot_does(lengths: list[int], rule: str) -> None:
    assert not play(RULES[rule], stretches(lengths), DEADLINE_S).is_late


@given(st.lists(st.integers(1, 150), max_size=60))
def test_no_rule_beats_the_bound(lengths: list[int]) -> None:
    spot = stretches(lengths)

    cheapest = min(play(rule, spot, DEADLINE_S).cost_h for rule in RULES.values())

    assert cheapest >= bound_h(spot, DEADLINE_S)


def test_with_spot_all_the_time_nothing_else_is_paid_for() -> None:
    always = [True] * STEPS

    costs = {name: play(rule, always, DEADLINE_S).cost_h for name, rule in RULES.items()}

    assert costs["tidegate, moves"] == pytest.approx((WORK_S + CHANGE_S) / HOUR_S)
    assert costs["on demand"] == pytest.approx(3 * (WORK_S + CHANGE_S) / HOUR_S)


def test_a_job_that_moves_uses_spot_that_comes_late() -> None:
    away = int(0.5 * DEADLINE_S / STEP_S)
    late = [False] * away + [True] * (STEPS - away)

    stays, moves = (play(rule, late, DEADLINE_S).cost_h for rule in (staying, moving))

    assert moves < 0.75 * stays
    assert moves < play(uniform_progress, late, DEADLINE_S).cost_h


def test_in_several_zones_a_job_takes_spot_of_whichever_has_it() -> None:
    half = STEPS // 2
    one, other = [True] * half + [False] * (STEPS - half), [False] * half + [True] * (STEPS - half)

    both = play_in(moving, [one, other], DEADLINE_S)

    # One change more, and nothing on demand.
    assert both.cost_h == pytest.approx((WORK_S + 2 * CHANGE_S) / HOUR_S)
    assert both.cost_h < play(moving, one, DEADLINE_S).cost_h
    assert play_in(moving, [one], DEADLINE_S) == play(moving, one, DEADLINE_S)


@given(st.lists(st.lists(st.integers(1, 150), max_size=60), min_size=2, max_size=3))
def test_in_several_zones_nobody_ends_late_either(lengths: list[list[int]]) -> None:
    assert not play_in(moving, [stretches(each) for each in lengths], DEADLINE_S).is_late


def test_zones_of_one_region_that_were_watched_together_are_found() -> None:
    two, one = [True, False], [True]
    every: dict[str, Spot] = {
        "a/us-east-1a_v100_1.json": two,
        "a/us-east-1b_v100_1.json": two,
        "a/us-east-1c_v100_1.json": one,
        "a/us-east-1b_k80_1.json": two,
        "a/us-east-2a_v100_1.json": two,
        "b/us-central1-a_c3-88.json": two,
        "b/us-central1-b_c3-88.json": two,
    }

    assert sorted(regions(every).values()) == [
        ["a/us-east-1a_v100_1.json", "a/us-east-1b_v100_1.json"],
        ["b/us-central1-a_c3-88.json", "b/us-central1-b_c3-88.json"],
    ]
