"""When a cluster is up, by table, and cron in EventBridge Scheduler's words."""

from dataclasses import replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

from tidegate.core.model.calendar import OnRunningJobs, OverrideKind, ScheduleOverride, Wanted
from tidegate.wire.calendar import Holidays, PreWarm, Schedules, Window, changes
from tidegate.wire.cron import (
    check_cron,
    check_time_zone,
    firings_after,
    firings_before,
    scheduler_expression,
)

TOKYO = Schedules("Asia/Tokyo", (Window("0 8 * * MON-FRI", "0 20 * * MON-FRI"),))
BERLIN = Schedules("Europe/Berlin", (Window("30 6 * * *", "30 2 * * *"),))
NEW_YORK = Schedules("America/New_York", (Window("0 7 * * *", "0 22 * * *"),))


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


@pytest.mark.parametrize(
    ("minutes", "is_up", "until"),
    [
        (-65, True, "2026-11-01T01:05:00-04:00"),
        (-50, False, "2026-11-01T01:55:00-04:00"),
        (-3, True, "2026-11-01T23:00:00-05:00"),
        # The same minutes on the wall once more: what fired in the first hour is over.
        (2, True, "2026-11-01T23:00:00-05:00"),
        (10, True, "2026-11-01T23:00:00-05:00"),
        (62, True, "2026-11-01T23:00:00-05:00"),
    ],
)
def test_in_the_hour_that_comes_twice_a_window_opens_and_closes_in_the_first(minutes, is_up, until):
    windows = (Window("0 0 * * *", "5 1 * * *"), Window("55 1 * * *", "0 23 * * *"))
    comes_again_s = datetime.fromisoformat("2026-11-01T01:00:00-05:00").timestamp()

    wanted = Schedules("America/New_York", windows).wanted(comes_again_s + 60 * minutes)

    assert wanted.is_up is is_up
    assert wanted.until_s == datetime.fromisoformat(until).timestamp()


def test_what_fires_every_half_hour_fires_in_both_of_two_like_hours():
    zone = ZoneInfo("America/New_York")
    comes_again_s = datetime.fromisoformat("2026-11-01T01:00:00-05:00").timestamp()
    after = firings_after("*/30 * * * *", comes_again_s + 60, zone)
    before = firings_before("*/30 * * * *", comes_again_s + 60, zone)

    assert (next(iter(after)).timestamp() - comes_again_s) / 60 == 30
    assert (next(iter(before)).timestamp() - comes_again_s) / 60 == 0


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
        ("0 25 * * *", "hour must be 0-23, is 25"),
        ("0 20 30 2 *", "day-of-month must be 1-31, and a day that its month has, is 30"),
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


def utc(when: str) -> float:
    return datetime.fromisoformat(when + "Z").timestamp()


WEEK = Window("0 8 * * MON-FRI", "0 20 * * MON-FRI")
NIGHT = Window("0 22 * * *", "0 4 * * *")  # over midnight
TWO = Schedules("UTC", (Window("0 8 * * *", "0 12 * * *"), Window("0 11 * * *", "0 18 * * *")))
FREE = Schedules("Asia/Tokyo", (WEEK,), Holidays("JP", dates=frozenset({date(2026, 11, 24)})))
BAVARIA = Schedules("Europe/Berlin", (WEEK,), Holidays("DE", "BY"))
LEAP = Schedules("America/New_York", (Window("0 8 29 2 *", "0 20 29 2 *"),))


@pytest.mark.parametrize(
    ("schedules", "when", "is_up", "until"),
    [
        # Overlapping windows are one.
        (TWO, "2026-11-20T09:00", True, "2026-11-20T18:00"),
        (TWO, "2026-11-20T12:30", True, "2026-11-20T18:00"),
        (TWO, "2026-11-20T18:00", False, "2026-11-21T08:00"),
        # Over midnight, and over the change of the clocks in both directions.
        (Schedules("UTC", (NIGHT,)), "2026-11-21T01:00", True, "2026-11-21T04:00"),
        (Schedules("Europe/Berlin", (NIGHT,)), "2026-03-29T03:30", True, "2026-03-29T04:00"),
        (Schedules("America/New_York", (NIGHT,)), "2026-11-01T03:59", True, "2026-11-01T04:00"),
        # 23 November 2026 is Labour Thanksgiving Day, the 24th is on the file's list.
        (FREE, "2026-11-22T12:00", False, "2026-11-25T08:00"),
        (FREE, "2026-11-24T12:00", False, "2026-11-25T08:00"),
        (FREE, "2026-11-25T08:00", True, "2026-11-25T20:00"),
        # Corpus Christi is a holiday in Bavaria, not in Berlin.
        (BAVARIA, "2026-06-04T12:00", False, "2026-06-05T08:00"),
        (
            Schedules("Europe/Berlin", (WEEK,), Holidays("DE", "BE")),
            "2026-06-04T12:00",
            True,
            "2026-06-04T20:00",
        ),
        # Once in four years.
        (LEAP, "2027-06-01T00:00", False, "2028-02-29T08:00"),
        (LEAP, "2028-02-29T09:00", True, "2028-02-29T20:00"),
    ],
)
def test_windows_and_holidays(schedules, when, is_up, until):
    wanted = schedules.wanted(at(schedules, when))

    assert wanted.is_up is is_up
    assert wanted.until_s == at(schedules, until)


WARM = Schedules("UTC", (WEEK,), pre_warm=(PreWarm("0 8 * * MON", {"t4": 2}, 3600.0, 1200.0),))


@pytest.mark.parametrize(
    ("when", "is_up", "warm"),
    [
        ("2026-11-23T07:39:59", False, {}),
        ("2026-11-23T07:40", True, {"t4": 2}),  # before the window, so that they are ready at 8
        ("2026-11-23T08:59:59", True, {"t4": 2}),
        ("2026-11-23T09:00", True, {}),
        ("2026-11-24T08:00", True, {}),
    ],
)
def test_nodes_are_bought_before_they_are_to_be_ready(when, is_up, warm):
    wanted = WARM.wanted(utc(when))

    assert (wanted.is_up, wanted.warm_nodes) == (is_up, warm)


def test_nothing_is_made_ready_on_a_holiday():
    free = replace(WARM, holidays=Holidays(dates=frozenset({date(2026, 11, 23)})))

    assert not free.wanted(utc("2026-11-23T07:50")).is_up
    assert free.wanted(utc("2026-11-30T07:50")).warm_nodes == {"t4": 2}


@pytest.mark.parametrize("first", [2, 3])
def test_of_two_that_make_a_pool_ready_the_larger_counts(first):
    both = [PreWarm("0 8 * * MON", {"t4": n}, 3600.0, 1200.0) for n in (first, 5 - first)]

    wanted = replace(WARM, pre_warm=tuple(both)).wanted(utc("2026-11-23T08:30"))

    assert wanted.warm_nodes == {"t4": 3}


def test_of_several_windows_the_last_stop_is_when_jobs_were_told():
    schedules = replace(TWO, on_running_jobs=OnRunningJobs.REQUEUE)

    wanted = schedules.wanted(utc("2026-11-20T18:01"))

    assert wanted.since_s == utc("2026-11-20T18:00")
    assert wanted.jobs_end_at_s == utc("2026-11-20T18:02")


@pytest.mark.parametrize(
    ("said", "after_s", "ends_all"),
    [(None, 600 + 120, False), (OnRunningJobs.STOP, 120, True), (OnRunningJobs.WAIT, None, False)],
)
def test_a_stop_by_hand_does_with_jobs_as_the_file_says_unless_it_says_itself(
    said, after_s, ends_all
):
    schedules = replace(TWO, on_running_jobs=OnRunningJobs.REQUEUE, wait_s=600.0)
    from_s = utc("2026-11-20T09:00")
    stop = ScheduleOverride("a", OverrideKind.STOP, from_s, from_s + 7200, from_s, "ada", "")

    wanted = schedules.wanted(from_s + 60, [replace(stop, on_running_jobs=said)])

    assert wanted.jobs_end_at_s == (after_s and from_s + after_s)
    assert wanted.ends_all is ends_all
    assert not wanted.is_up


@pytest.mark.parametrize("keeps_head", [False, True])
def test_a_stop_by_hand_that_leaves_the_head_alone_starts_none_when_it_is_over(keeps_head):
    """A head that a person has stopped for good stays so, unless a stop of ours is what ended."""
    always = Schedules("UTC")
    from_s = utc("2026-11-20T09:00")
    stop = ScheduleOverride("a", OverrideKind.STOP, from_s, from_s + 600, from_s, "ada", "")
    stops = [replace(stop, keeps_head=keeps_head)]

    during, after = always.wanted(from_s, stops), always.wanted(from_s + 660, stops)

    assert (during.is_up, during.keeps_head) == (False, keeps_head)
    assert (after.is_up, after.keeps_head) == (True, keeps_head)


def test_a_stop_by_hand_that_ends_in_the_night_leaves_the_night_as_it_is():
    from_s = utc("2026-11-20T17:00")
    stop = ScheduleOverride("a", OverrideKind.STOP, from_s, from_s + 7200, from_s, "ada", "")
    night_s = from_s + 7260

    assert TWO.wanted(night_s, [stop]) == TWO.wanted(night_s)


def test_kept_up_a_cluster_ends_no_job_that_a_stop_would_have_ended():
    schedules = replace(TWO, on_running_jobs=OnRunningJobs.STOP, keeps_head=True)
    now_s = utc("2026-11-20T19:00")
    kept = ScheduleOverride("a", OverrideKind.KEEP_UP, now_s - 60, now_s + 7200, now_s, "ada", "")

    wanted = schedules.wanted(now_s, [kept])

    assert (wanted.is_up, wanted.since_s) == (True, now_s - 60)
    assert (wanted.jobs_end_at_s, wanted.ends_all, wanted.keeps_head) == (None, False, False)


def test_kept_up_by_day_a_cluster_is_up_since_the_morning():
    """Else a head that was silent before would be given its time to start once more."""
    now_s = utc("2026-11-20T09:00")
    kept = ScheduleOverride("a", OverrideKind.KEEP_UP, now_s - 60, now_s + 7200, now_s, "ada", "")

    assert TWO.wanted(now_s, [kept]).since_s == utc("2026-11-20T08:00")


def test_pre_warming_alone_never_stops_a_cluster():
    alone = Schedules("UTC", pre_warm=WARM.pre_warm)

    assert alone.wanted(utc("2026-11-21T00:00")) == Wanted(True, "up", keeps_head=True)
    assert alone.wanted(utc("2026-11-23T08:30")).warm_nodes == {"t4": 2}


def test_what_will_happen_is_told_in_order():
    told = [
        (one.at_s, one.wanted.is_up, dict(one.wanted.warm_nodes))
        for one in changes(WARM, utc("2026-11-21T12:00"), utc("2026-11-24T12:00"))
    ]

    assert told == [
        (utc("2026-11-21T12:00"), False, {}),
        (utc("2026-11-23T07:40"), True, {"t4": 2}),
        (utc("2026-11-23T08:00"), True, {"t4": 2}),  # not on the way any more, but kept
        (utc("2026-11-23T09:00"), True, {}),
        (utc("2026-11-23T20:00"), False, {}),
        (utc("2026-11-24T08:00"), True, {}),
    ]


def test_overrides_are_told_among_them():
    made_s = utc("2026-11-21T12:00")
    kept = ScheduleOverride(
        "a", OverrideKind.KEEP_UP, made_s, made_s + 3600, made_s, "ada", "demo tonight"
    )

    first, second, *_ = changes(WARM, made_s, utc("2026-11-22T12:00"), [kept])

    assert first.wanted.sentence == ("up until Sat 21 Nov 13:00 UTC: kept up by ada (demo tonight)")
    assert (second.at_s, second.wanted.is_up) == (made_s + 3600, False)


@pytest.mark.parametrize(
    ("policy", "wait_s", "ends", "ends_all"),
    [
        (OnRunningJobs.WAIT, 0.0, None, False),
        (OnRunningJobs.REQUEUE, 0.0, "2026-11-20T20:02", False),
        (OnRunningJobs.REQUEUE, 3600.0, "2026-11-20T21:02", False),
        (OnRunningJobs.STOP, 0.0, "2026-11-20T20:02", True),
    ],
)
def test_how_long_running_jobs_are_waited_for(policy, wait_s, ends, ends_all):
    schedules = replace(Schedules("UTC", (WEEK,)), on_running_jobs=policy, wait_s=wait_s)

    wanted = schedules.wanted(utc("2026-11-21T12:00"))  # Saturday; Friday's stop counts

    assert wanted.jobs_end_at_s == (utc(ends) if ends else None)
    assert wanted.ends_all is ends_all
    assert (", running jobs end by " in wanted.sentence) is (ends is not None)
