"""Cron of five fields: what is understood, and EventBridge Scheduler's words for it."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

_WEEK_DAYS = 7
_HOUR_S = 3600
_YEAR_DAYS = 366
# Of one that fires each minute, and once more; and enough for two a day for a year.
_DAY_FIRINGS, _YEAR_FIRINGS = 24 * 60 + 1, 800
_FIELD = re.compile(r"[0-9A-Za-z*,/-]+")

_FIELDS = (
    ("minute", "0-59"),
    ("hour", "0-23"),
    ("day-of-month", "1-31, and a day that its month has"),
    ("month", "1-12 or JAN-DEC"),
    ("day-of-week", "0-7 or SUN-SAT"),
)

# Any moment will do to try whether an expression ever fires.
_SOME_TIME = datetime(2024, 1, 1, tzinfo=UTC)


def check_cron(cron: str) -> str:
    """The expression, when cron and EventBridge Scheduler both know it. Errors: ValueError."""
    fields = cron.split()
    if len(fields) != 5:
        raise ValueError(f"needs five fields (minute hour day month weekday), has {len(fields)}")
    for field in fields:
        if not _FIELD.fullmatch(field) or field in ("L", "l"):
            raise ValueError(f"{field} is not understood here: digits, names and * , - / are")
    try:
        next(CronSim(cron, _SOME_TIME))
    except StopIteration as error:
        raise ValueError("never comes") from error
    except CronSimError as error:
        raise ValueError(_bad_field(str(error).lower(), fields)) from error
    if fields[2] != "*" and fields[4] != "*":
        raise ValueError("day of month and weekday exclude each other; one of them must be *")
    return cron


def _bad_field(said: str, fields: list[str]) -> str:
    """cronsim says which field is bad; not what stands there, nor what may."""
    for field, (name, expected) in zip(fields, _FIELDS, strict=True):
        if said == f"bad {name}":
            return f"{name} must be {expected}, is {field}"
    return said


def covers_always(cron: str, duration_s: float) -> bool:
    """Whether stretches of this length that begin at each firing leave no moment out.

    One that is not the same on each day is looked at for a year; False where that is too long.
    """
    is_daily = cron.split()[2:] == ["*", "*", "*"]
    firings = list(islice(CronSim(cron, _SOME_TIME), _DAY_FIRINGS if is_daily else _YEAR_FIRINGS))
    gaps = (later - earlier for earlier, later in pairwise(firings))
    is_whole = is_daily or (firings[-1] - firings[0]).days > _YEAR_DAYS
    return is_whole and all(gap.total_seconds() <= duration_s for gap in gaps)


def check_time_zone(name: str) -> str:
    """The IANA name, when this computer's time zone data has it. Errors: ValueError."""
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError) as error:
        raise ValueError(f"{name} is not an IANA time zone like Europe/Berlin") from error
    return name


def firings_before(cron: str, at_s: float, zone: ZoneInfo) -> Iterator[datetime]:
    """When it fired up to then, the last first. cronsim's own are strictly before its start."""
    start_s = int(at_s) + 1
    start = datetime.fromtimestamp(start_s, zone)
    if not start.fold:
        return CronSim(cron, start, reverse=True)
    later = datetime.fromtimestamp(start_s + _HOUR_S, zone)
    return (each for each in CronSim(cron, later, reverse=True) if each.timestamp() < start_s)


def firings_after(cron: str, at_s: float, zone: ZoneInfo) -> Iterator[datetime]:
    """When it fires after then.

    In an hour that comes twice a fixed time fires in the first, as with cron; a cronsim that
    begins in the second fires it there too, so that it begins outside of it.
    """
    start_s = int(at_s)
    start = datetime.fromtimestamp(start_s, zone)
    if not start.fold:
        return CronSim(cron, start)
    earlier = datetime.fromtimestamp(start_s - _HOUR_S, zone)
    return (each for each in CronSim(cron, earlier) if each.timestamp() > start_s)


def scheduler_expression(cron: str) -> str:
    """`0 20 * * 1-5` as EventBridge Scheduler has it: `cron(0 20 ? * 2-6 *)`.

    Source: EventBridge Scheduler user guide, "Schedule types": weekdays are 1-7 from Sunday
    on, one of the two day fields is `?`, and a year follows.
    """
    minute, hour, day, month, weekday = cron.upper().split()
    if weekday == "*":
        return f"cron({minute} {hour} {day} {month} ? *)"
    return f"cron({minute} {hour} ? {month} {_aws_weekdays(weekday)} *)"


def _aws_weekdays(field: str) -> str:
    """Numbers moved by one; ranges that pass the end of cron's week become lists."""
    return ",".join(_aws_part(part) for part in field.split(","))


def _aws_part(part: str) -> str:
    days, slash, step = part.partition("/")
    if not re.search(r"\d", days):
        if days == "*":
            days = "1-7"
        return f"{days}{slash}{step}"
    ends = [int(end) for end in days.split("-")]
    if len(ends) == 1:
        shifted = str(ends[0] % _WEEK_DAYS + 1)
        return f"{shifted}-7/{step}" if slash else shifted
    listed = range(ends[0], ends[1] + 1, int(step) if slash else 1)
    return ",".join(str(day % _WEEK_DAYS + 1) for day in listed)
