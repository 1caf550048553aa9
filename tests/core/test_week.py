"""What comes at an hour of the week, and when that is believed."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tidegate.core.fleet.arrivals import SPARE_MAX, saved, until, used, with_jobs
from tidegate.core.fleet.week import HOUR_S, HOURS, Forecast, forecast, hour_at, is_trusted, judged
from tidegate.core.model.pool_history import Arrivals, Week

BOOT_S = 300.0
WEEK_S = HOURS * HOUR_S
MONDAY_S = 1_699_833_600.0  # 2023-11-13 0:00 UTC
NINE_S = 9 * HOUR_S


def after(came: Iterable[tuple[float, float]], until_s: float) -> Arrivals:
    """`came`: when jobs came, and how many, each for a node of its own."""
    found = Arrivals("g5.xlarge")
    for at_s, jobs in came:
        found = with_jobs(until(found, BOOT_S, at_s), jobs, jobs)
    return until(found, BOOT_S, until_s)


def rush(weeks: int, jobs: float = 4) -> list[tuple[float, float]]:
    """On Mondays at nine so many jobs within two boots."""
    begins = [MONDAY_S + week * WEEK_S + NINE_S for week in range(weeks)]
    return [(at_s + late_s, jobs / 2) for at_s in begins for late_s in (60.0, 400.0)]


def ahead(week: Week | None, at_s: float) -> Forecast:
    return forecast(week, hour_at(at_s), BOOT_S)


def test_the_hour_of_the_rush_is_known_by_its_name_before_it_begins():
    week = after(rush(3), MONDAY_S + 3 * WEEK_S).week

    nine = ahead(week, MONDAY_S + 3 * WEEK_S + NINE_S)
    assert (nine.name, nine.times) == ("Monday 9:00 UTC", 3)
    assert nine.nodes == pytest.approx(4, rel=1e-3)
    assert nine.off == pytest.approx(0, abs=0.01)
    assert ahead(week, MONDAY_S + 3 * WEEK_S + NINE_S + HOUR_S).nodes == 0
    assert ahead(week, MONDAY_S + 3 * WEEK_S + NINE_S + 24 * HOUR_S).nodes == 0


def test_the_forecast_says_how_far_off_it_may_be():
    uneven = [*rush(1, 2), *[(at_s + WEEK_S, jobs) for at_s, jobs in rush(1, 6)]]

    nine = ahead(after(uneven, MONDAY_S + 2 * WEEK_S).week, MONDAY_S + 2 * WEEK_S + NINE_S)

    assert 4 < nine.nodes < 5  # the later week counts for more
    assert 1.5 < nine.off < 2.1


def test_an_hour_that_was_never_seen_is_said_to_be_so():
    week = after(rush(1), MONDAY_S + NINE_S + HOUR_S).week

    assert ahead(week, MONDAY_S + NINE_S + HOUR_S).times == 0
    assert ahead(None, MONDAY_S).times == 0
    assert ahead(week, MONDAY_S + WEEK_S + NINE_S).times == 1
    # Of the hours before the first job nobody knows anything.
    assert ahead(week, MONDAY_S + WEEK_S + NINE_S - HOUR_S).times == 0


def test_a_history_of_two_jobs_is_no_week():
    two = after([(MONDAY_S + NINE_S, 1), (MONDAY_S + NINE_S + 5 * HOUR_S, 1)], MONDAY_S + WEEK_S)

    assert not is_trusted(two.week)
    assert not is_trusted(None)


def test_a_rush_is_believed_after_it_came_twice_and_no_more_when_it_stays_away():
    assert not is_trusted(after(rush(1), MONDAY_S + WEEK_S).week)
    twice = after(rush(2), MONDAY_S + 2 * WEEK_S)
    assert is_trusted(twice.week)

    assert not is_trusted(until(twice, BOOT_S, MONDAY_S + 3 * WEEK_S).week)


def test_what_keeps_no_hours_is_not_believed():
    """The same jobs, each week at another hour."""
    moved = [(at_s + n // 2 * 7 * HOUR_S, jobs) for n, (at_s, jobs) in enumerate(rush(6))]

    assert not is_trusted(after(moved, MONDAY_S + 6 * WEEK_S).week)


def test_a_rush_that_ends_for_good_fades():
    found = after(rush(3), MONDAY_S + 3 * WEEK_S).week

    nodes = [ahead(found, MONDAY_S + week * WEEK_S + NINE_S).nodes for week in (3, 4, 6)]
    assert nodes[0] > 1.5 * nodes[1] > 1.5 * nodes[2] > 0


def test_hours_in_which_nothing_comes_any_more_are_forgotten():
    tuesday = [(at_s + 24 * HOUR_S, 1.0) for at_s, _ in rush(30)]

    week = after([*rush(2), *tuesday[4:]], MONDAY_S + 30 * WEEK_S).week

    assert week is not None
    assert [each.hour for each in week.hours] == [9 + 24]


def test_each_further_spare_node_saves_less_and_no_boot_has_more_jobs_than_came():
    nine = ahead(after(rush(3, 8), MONDAY_S + 3 * WEEK_S).week, MONDAY_S + 3 * WEEK_S + NINE_S)

    spare = [nine.spare(number) for number in range(SPARE_MAX)]
    assert [saved(each) for each in spare] == sorted(map(saved, spare), reverse=True)
    assert used(spare[0]) == pytest.approx(2 / 12, rel=1e-2)  # two boots of twelve
    assert sum(map(saved, spare)) * nine.pieces == pytest.approx(8, rel=0.05)
    assert saved(Forecast(9, 0, 12).spare(0)) == 0


def test_each_hour_of_a_silence_is_judged_by_what_was_expected_of_it_then():
    hour = hour_at(MONDAY_S)
    week = judged(Week(hour - HOURS, hour, late_nodes=2.0), hour + 3, late_nodes=0.5)

    assert week is not None
    assert (week.judged, week.late_nodes, week.week_error) == (hour + 3, 0.5, 0)
    # 2 in the first hour; then what fades to 0.5, by two thirds an hour.
    assert week.late_error == pytest.approx(4 + 1.4**2 + 0.84**2, rel=0.03)


def test_another_boot_time_keeps_the_week():
    found = after(rush(2), MONDAY_S + 2 * WEEK_S)

    other = until(replace(found, jobs=0, nodes=0), 90.0, MONDAY_S + 2 * WEEK_S + 600)

    assert other.week is not None
    assert ahead(other.week, MONDAY_S + 2 * WEEK_S + NINE_S).nodes == pytest.approx(4, rel=1e-3)


def test_a_silence_of_months_is_judged_in_bounded_time_and_leaves_finite_figures():
    found = until(after(rush(2), MONDAY_S + 2 * WEEK_S), BOOT_S, MONDAY_S + 60 * WEEK_S)

    assert found.week is not None
    assert found.week.late_error < 1e6
    assert found.week.week_error < 1e6
