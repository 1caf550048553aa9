"""What a cluster file says of letting nodes go, and when its budgets count."""

from datetime import datetime

import pytest

from tests.wire.cluster_files import GOOD, good, load
from tidegate.core.model.budgets import DEFAULT_DISRUPTION, Budget, Disruption, DisruptionReason
from tidegate.wire.disruption import CronWindow

NINE_HOURS_S = 9 * 3600.0


def open_at(window: CronWindow, at: str) -> bool:
    return window.is_open(datetime.fromisoformat(at).timestamp())


TOKYO = CronWindow("0 9 * * MON-FRI", NINE_HOURS_S, "Asia/Tokyo")
# 22:00 to 6:00: over midnight, and over the change of the clock on 28 March 2027 at 2:00.
NIGHT = CronWindow("0 22 * * *", 8 * 3600.0, "Europe/Berlin")
LEAP = CronWindow("0 0 29 2 *", 86400.0, "America/New_York")


@pytest.mark.parametrize(
    ("window", "at", "is_open"),
    [
        (TOKYO, "2026-11-23T08:59:59+09:00", False),
        (TOKYO, "2026-11-23T09:00:00+09:00", True),
        (TOKYO, "2026-11-23T17:59:59+09:00", True),
        (TOKYO, "2026-11-23T18:00:00+09:00", False),
        (TOKYO, "2026-11-22T12:00:00+09:00", False),  # a Sunday
        (NIGHT, "2026-11-24T00:30:00+01:00", True),
        (NIGHT, "2026-11-24T06:00:00+01:00", False),
        (NIGHT, "2027-03-28T06:59:59+02:00", True),  # eight hours, of which one was skipped
        (NIGHT, "2027-03-28T07:00:00+02:00", False),
        (NIGHT, "2027-10-31T04:59:59+01:00", True),
        (NIGHT, "2027-10-31T05:00:00+01:00", False),
        (LEAP, "2028-02-29T12:00:00-05:00", True),
        (LEAP, "2027-03-01T00:00:00-05:00", False),
    ],
)
def test_a_window_is_open_for_its_duration_from_each_time_that_it_begins(window, at, is_open):
    assert open_at(window, at) is is_open


@pytest.mark.parametrize(
    "window",
    [
        CronWindow("0 9 * * NEVER", 60.0, "UTC"),
        CronWindow("0 9 30 2 *", 60.0, "UTC"),
        CronWindow("0 9 * * *", 60.0, "Mars/Olympus"),
    ],
    ids=["no cron", "no such day", "no zone"],
)
def test_what_nobody_can_read_is_an_error(window):
    with pytest.raises(ValueError, match="nobody can tell"):
        open_at(window, "2026-11-23T12:00:00+00:00")


def test_a_cluster_file_may_say_how_nodes_are_let_go(tmp_path):
    window = {"schedule": "0 9 * * MON-FRI", "duration_s": 32400, "time_zone": "Asia/Tokyo"}
    says = {
        "budgets": [{"nodes": 3, "reasons": ["drifted"]}, {"nodes": "10%", **window}],
        "expire_after_s": 604800,
        "keep_max_s": 3600,
        "roll_back_after": 4,
        "hold_max_nodes": 0,
        "hold_max_s": 7200,
    }

    pool = load(tmp_path, good({"pools.t4.disruption": says})).cluster.pools[0]

    drifted = Budget(nodes=3, reasons=frozenset({DisruptionReason.DRIFTED}))
    assert pool.disruption == Disruption(
        (drifted, Budget(percent=10.0, window=TOKYO)), 604800, 3600, 4, 0, 7200
    )


def test_a_cluster_file_that_says_nothing_of_it_has_the_defaults_of_core(tmp_path):
    assert load(tmp_path, GOOD).cluster.pools[0].disruption == DEFAULT_DISRUPTION


def test_an_empty_list_of_budgets_bounds_nothing(tmp_path):
    pool = load(tmp_path, good({"pools.t4.disruption": {"budgets": []}})).cluster.pools[0]

    assert pool.disruption.budgets == ()


def test_an_idle_time_may_be_left_to_what_is_seen(tmp_path):
    pool = load(tmp_path, good({"pools.t4.idle_s": "auto"})).cluster.pools[0]

    assert (pool.is_idle_auto, pool.idle_s) == (True, 120.0)
    assert not load(tmp_path, GOOD).cluster.pools[0].is_idle_auto
