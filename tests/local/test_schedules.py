"""Schedule expressions mean what EventBridge Scheduler's user guide says."""

from datetime import UTC, datetime

import pytest

from local.router.schedules import UnknownExpression, due


def instants(expression: str, zone: str, after: str, until: str) -> list[str]:
    found = due(
        expression,
        zone,
        created_at_s=datetime.fromisoformat(after).timestamp(),
        after_s=datetime.fromisoformat(after).timestamp(),
        until_s=datetime.fromisoformat(until).timestamp(),
    )
    return [datetime.fromtimestamp(at_s, UTC).strftime("%m-%d %H:%M") for at_s in found]


def test_tokyo_is_nine_hours_ahead():
    found = instants(
        "cron(0 20 ? * MON-FRI *)", "Asia/Tokyo", "2026-03-06T00:00Z", "2026-03-10T00:00Z"
    )

    assert found == ["03-06 11:00", "03-09 11:00"]


def test_summer_time_moves_the_instant_and_not_the_local_time():
    """Berlin changes on 29 March 2026 at 02:00."""
    found = instants("cron(0 8 * * ? *)", "Europe/Berlin", "2026-03-28T00:00Z", "2026-03-31T00:00Z")

    assert found == ["03-28 07:00", "03-29 06:00", "03-30 06:00"]


def test_a_local_time_that_is_skipped_does_not_happen():
    found = instants(
        "cron(30 2 * * ? *)", "Europe/Berlin", "2026-03-28T00:00Z", "2026-03-31T00:00Z"
    )

    assert found == ["03-28 01:30", "03-30 00:30"]


def test_a_local_time_that_comes_twice_happens_once():
    """Berlin goes back on 25 October 2026 at 03:00."""
    found = instants(
        "cron(30 2 * * ? *)", "Europe/Berlin", "2026-10-24T12:00Z", "2026-10-26T12:00Z"
    )

    assert found == ["10-25 00:30", "10-26 01:30"]


def test_days_of_the_week_count_from_sunday():
    by_number = instants("cron(0 0 ? * 1 *)", "UTC", "2026-03-01T00:00Z", "2026-03-20T00:00Z")
    by_name = instants("cron(0 0 ? * SUN *)", "UTC", "2026-03-01T00:00Z", "2026-03-20T00:00Z")

    assert by_number == by_name == ["03-08 00:00", "03-15 00:00"]


def test_the_start_is_left_out_and_the_end_is_in():
    found = instants("cron(0 * * * ? *)", "UTC", "2026-03-01T01:00Z", "2026-03-01T03:00Z")

    assert found == ["03-01 02:00", "03-01 03:00"]


def test_steps_lists_and_spans():
    found = instants(
        "cron(0/20,5 6-7 1 1/2 ? 2026)", "UTC", "2026-02-15T00:00Z", "2026-03-02T00:00Z"
    )

    assert [each.removeprefix("03-01 ") for each in found] == [
        *("06:00", "06:05", "06:20", "06:40"),
        *("07:00", "07:05", "07:20", "07:40"),
    ]


def test_a_rate_counts_from_the_creation_of_the_schedule():
    created_at_s = 1_000_007.0

    found = due(
        "rate(5 minutes)", "UTC", created_at_s=created_at_s, after_s=1_000_307, until_s=1_000_907
    )

    assert found == [1_000_607.0, 1_000_907.0]
    early = due("rate(1 hour)", "UTC", created_at_s=created_at_s, after_s=0, until_s=1_003_000)
    assert early == []


@pytest.mark.parametrize(
    "expression",
    [
        *("every day", "at(2026-03-01T00:00:00)", "rate(0 minutes)", "rate(5 weeks)", "rate(5)"),
        *("cron(0 20 * * *)", "cron(0 20 * * * *)", "cron(0 20 ? * ? *)", "cron(0 25 * * ? *)"),
        *(
            "cron(0 20 L * ? *)",
            "cron(0 20 ? * 0 *)",
            "cron(0 20 ? * 2#1 *)",
            "cron(5-1 2 * * ? *)",
        ),
    ],
)
def test_what_is_not_known_is_refused(expression):
    with pytest.raises(UnknownExpression):
        instants(expression, "UTC", "2026-03-01T00:00Z", "2026-03-02T00:00Z")
