"""When a cluster is up, by table, and cron in EventBridge Scheduler's words."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from tidegate.wire.calendar import Schedules, check_cron, check_time_zone, scheduler_expression

TOKYO = Schedules("Asia/Tokyo", stop="0 20 * * MON-FRI", start="0 8 * * MON-FRI")
BERLIN = Schedules("Europe/Berlin", stop="30 2 * * *", start="30 6 * * *")
NEW_YORK = Schedules("America/New_York", stop="0 22 * * *", start="0 7 * * *")


def at(schedules: Schedules, when: str) -> float:
    """Epoch seconds of a wall-clock time in the schedules' own zone."""
    return datetime.fromisoformat(when).replace(tzinfo=ZoneInfo(schedules.time_zone)).timestamp()


@pytest.mark.parametrize(
    ("schedules", "when", "is_up", "until"),
    [
        (TOKYO, "2026-11-24T07:59:59", False, "2026-11-24T08:00"),
        (TOKYO, "2026-11-24T08:00:00", True, "2026-11-24T20:00"),
        (TOKYO, "2026-11-24T19:59:59.9", True, "2026-11-24T20:00"),
        (TOKYO, "2026-11-24T20:00:00", False, "2026-11-25T08:00"),
        # Friday evening to Monday morning.
        (TOKYO, "2026-11-28T12:00:00", False, "2026-11-30T08:00"),
        # The night in which 02:30 does not exist, and the one in which it comes twice.
        (BERLIN, "2026-03-29T01:59:00", True, "2026-03-29T03:00"),
        (BERLIN, "2026-03-29T03:30:00", False, "2026-03-29T06:30"),
        (BERLIN, "2026-10-25T02:45:00", False, "2026-10-25T06:30"),
        (NEW_YORK, "2028-02-29T12:00:00", True, "2028-02-29T22:00"),
        (NEW_YORK, "2026-11-01T06:59:00", False, "2026-11-01T07:00"),
    ],
)
def test_what_fired_last_decides(schedules, when, is_up, until):
    wanted = schedules.wanted(at(schedules, when))

    assert wanted.is_up is is_up
    assert wanted.until_s == at(schedules, until)


def test_the_sentence_names_the_time_and_its_zone():
    assert TOKYO.wanted(at(TOKYO, "2026-11-24T21:00")).sentence == (
        "stopped until Wed 25 Nov 08:00 Asia/Tokyo"
    )
    assert TOKYO.wanted(at(TOKYO, "2026-11-24T12:00")).sentence == (
        "up until Tue 24 Nov 20:00 Asia/Tokyo"
    )


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("0 20 * * MON-FRI", "cron(0 20 ? * MON-FRI *)"),
        ("0 20 * * mon,wed", "cron(0 20 ? * MON,WED *)"),
        ("0 20 * * 1-5", "cron(0 20 ? * 2,3,4,5,6 *)"),
        ("0 20 * * 0", "cron(0 20 ? * 1 *)"),
        ("0 20 * * 7", "cron(0 20 ? * 1 *)"),
        ("0 20 * * 5-7", "cron(0 20 ? * 6,7,1 *)"),
        ("0 20 * * 1-5/2", "cron(0 20 ? * 2,4,6 *)"),
        ("0 20 * * */2", "cron(0 20 ? * 1-7/2 *)"),
        ("*/15 8-18 1 JAN *", "cron(*/15 8-18 1 JAN ? *)"),
        ("0 20 * * *", "cron(0 20 * * ? *)"),
    ],
)
def test_cron_in_the_words_of_eventbridge_scheduler(cron, expected):
    assert scheduler_expression(check_cron(cron)) == expected


@pytest.mark.parametrize(
    ("cron", "complaint"),
    [
        ("0 20 * *", "needs five fields"),
        ("0 0 20 * * *", "needs five fields"),
        ("0 25 * * *", "bad hour"),
        ("0 20 30 2 *", "bad day-of-month"),
        ("0 20 L * *", "L is not understood"),
        ("0 20 * * MON#1", "MON#1 is not understood"),
        ("0 20 1 * MON", "exclude each other"),
        ("@daily", "needs five fields"),
    ],
)
def test_a_wrong_expression_is_told_why(cron, complaint):
    with pytest.raises(ValueError, match=complaint):
        check_cron(cron)


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../etc/passwd", "Europe"])
def test_a_wrong_time_zone_is_told(name):
    with pytest.raises(ValueError, match="not an IANA time zone"):
        check_time_zone(name)
