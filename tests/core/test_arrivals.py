"""What a spare node would have saved, from the jobs that came."""

import pytest

from tidegate.core.fleet.arrivals import SPARE_MAX, saved, until, used, with_jobs
from tidegate.core.model.pool_history import Arrivals

BOOT_S = 300.0
DAY_S = 86_400.0
NOW_S = 1_700_000_100.0  # the first second of a piece


def after(arrivals: Arrivals, seconds: float) -> Arrivals:
    return until(arrivals, BOOT_S, NOW_S + seconds)


def steady(jobs: float, nodes: float, for_s: float, every_s: float = BOOT_S) -> Arrivals:
    """So many jobs in every so many seconds, up to now; nothing of the last piece is open."""
    found = until(Arrivals("g5.xlarge"), BOOT_S, NOW_S - for_s)
    for number in range(int(for_s / every_s)):
        found = until(found, BOOT_S, NOW_S - for_s + number * every_s)
        found = with_jobs(found, jobs, nodes)
    return until(found, BOOT_S, NOW_S)


def test_a_node_that_a_job_takes_in_every_boot_is_used_all_the_time():
    first, *others = steady(1, 1, 3 * DAY_S).spare

    assert used(first) == pytest.approx(1, abs=0.03)
    assert saved(first) == pytest.approx(1, abs=0.03)
    assert not others


def test_the_third_node_is_used_in_part_when_jobs_fill_two_and_a_half():
    found = steady(10, 2.5, 3 * DAY_S).spare

    assert [round(saved(each)) for each in found] == [4, 4, 2]
    assert [round(used(each)) for each in found] == [1, 1, 1]


def test_jobs_in_every_tenth_boot_use_a_node_a_tenth_of_the_time():
    found = steady(1, 1, 5 * DAY_S, every_s=10 * BOOT_S).spare

    assert used(found[0]) == pytest.approx(0.1, rel=0.5)


def test_one_burst_says_little_and_two_say_more():
    burst = with_jobs(until(Arrivals("g5.xlarge"), BOOT_S, NOW_S), 10, 10)
    again = with_jobs(after(burst, 1800), 10, 10)

    once, twice = after(burst, BOOT_S).spare[9], after(again, 1800 + BOOT_S).spare[9]
    assert saved(once) < 0.02
    assert saved(twice) > 1.5 * saved(once)


def test_a_day_that_is_over_is_forgotten_within_hours_and_then_wholly():
    busy = steady(1, 1, DAY_S)

    worths = [saved(after(busy, hours * 3600).spare[0]) for hours in (0, 1, 4)]
    assert worths[1] < 0.65 * worths[0]
    assert worths[2] < 0.15 * worths[0]
    assert after(busy, 20 * DAY_S).spare == ()


def test_it_is_the_same_whether_somebody_looked_meanwhile():
    open_one = with_jobs(steady(2, 1, DAY_S), 3, 2)

    at_once = after(open_one, 5000).spare
    looked = open_one
    for seconds in range(0, 5000, 130):
        looked = after(looked, seconds)
    looked = after(looked, 5000)

    for one, other in zip(at_once, looked.spare, strict=True):
        assert saved(one) == pytest.approx(saved(other), abs=1e-4)
        assert used(one) == pytest.approx(used(other), abs=1e-4)


def test_a_piece_of_time_counts_only_when_it_has_ended():
    open_one = with_jobs(until(Arrivals("g5.xlarge"), BOOT_S, NOW_S), 1, 1)

    assert after(open_one, BOOT_S - 1).spare == ()
    assert len(after(open_one, BOOT_S).spare) == 1


def test_a_thousand_jobs_at_once_are_not_worth_a_thousand_nodes():
    burst = with_jobs(until(Arrivals("g5.xlarge"), BOOT_S, NOW_S), 1000, 1000)

    assert len(after(burst, BOOT_S).spare) == SPARE_MAX


def test_a_longer_boot_or_a_clock_set_back_begins_a_new_piece_and_forgets_nothing():
    busy = steady(1, 1, DAY_S)

    for changed in (until(busy, 2 * BOOT_S, NOW_S), until(busy, BOOT_S, NOW_S - 7200)):
        assert changed.spare == busy.spare
        assert changed.piece < busy.piece


@pytest.mark.parametrize("boot_s", [0.0, 1e-300])
def test_a_boot_that_takes_no_time_has_pieces_all_the_same(boot_s):
    busy = with_jobs(until(Arrivals("g5.xlarge"), boot_s, NOW_S), 1, 1)

    assert len(until(busy, boot_s, NOW_S + 10).spare) == 1


def test_a_shorter_boot_begins_anew():
    assert until(steady(1, 1, DAY_S), BOOT_S / 2, NOW_S).spare == ()
