"""When a schedule of EventBridge Scheduler is due.

Source: EventBridge Scheduler user guide, "Schedule types": cron has six fields, days of the week
are 1-7 from Sunday; a local time that a change to summer time skips does not happen, one that
comes twice happens once.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
UNITS_S = {"minute": 60, "hour": 3600, "day": 86400}
NUM_FIELDS = 6


class UnknownExpression(Exception):
    """A schedule expression that is not modelled here, or that EventBridge would refuse."""


@dataclass(frozen=True, slots=True)
class Field:
    """The values one field of a cron expression stands for; None: any."""

    values: frozenset[int] | None

    def __contains__(self, value: int) -> bool:
        return self.values is None or value in self.values


def due(
    expression: str, zone: str, *, created_at_s: float, after_s: float, until_s: float
) -> list[float]:
    """The instants (epoch seconds) in (after_s, until_s], in order.

    Rates count from the schedule's creation. Raises UnknownExpression.
    """
    match = re.fullmatch(r"(cron|rate)\((.*)\)", expression.strip())
    if not match:
        raise UnknownExpression(expression)
    kind, body = match.groups()
    if kind == "rate":
        return _rate(expression, body, created_at_s, after_s, until_s)
    return list(_cron(expression, body, ZoneInfo(zone), after_s, until_s))


def _rate(
    expression: str, body: str, created_at_s: float, after_s: float, until_s: float
) -> list[float]:
    match = re.fullmatch(r"([1-9]\d*) (minute|hour|day)s?", body.strip())
    if not match:
        raise UnknownExpression(expression)
    every_s = int(match[1]) * UNITS_S[match[2]]
    number = max(1, int((after_s - created_at_s) // every_s) + 1)
    found: list[float] = []
    while (at_s := created_at_s + number * every_s) <= until_s:
        found.append(at_s)
        number += 1
    return found


def _cron(
    expression: str, body: str, zone: ZoneInfo, after_s: float, until_s: float
) -> Iterator[float]:
    fields = body.split()
    if len(fields) != NUM_FIELDS or (fields[2] == "?") == (fields[4] == "?"):
        raise UnknownExpression(f"{expression}: six fields, and exactly one of the days is ?")
    try:
        minutes = sorted(_values(fields[0], 0, 59))
        hours = sorted(_values(fields[1], 0, 23))
        days = Field(None if fields[2] == "?" else _values(fields[2], 1, 31))
        months = Field(_values(fields[3], 1, 12, MONTHS))
        weekdays = Field(None if fields[4] == "?" else _values(fields[4], 1, 7, DAYS))
        years = Field(None if fields[5] == "*" else _values(fields[5], 1970, 2199))
    except ValueError as bad:
        raise UnknownExpression(f"{expression}: {bad}") from bad
    for day in _days(after_s, until_s, zone):
        weekday = day.isoweekday() % 7 + 1
        if day.day in days and day.month in months and weekday in weekdays and day.year in years:
            for at_s in _instants(day, hours, minutes, zone):
                if after_s < at_s <= until_s:
                    yield at_s


def _days(after_s: float, until_s: float, zone: ZoneInfo) -> Iterator[date]:
    day = datetime.fromtimestamp(after_s, zone).date()
    last = datetime.fromtimestamp(until_s, zone).date()
    while day <= last:
        yield day
        day += timedelta(days=1)


def _instants(
    day: date, hours: Sequence[int], minutes: Sequence[int], zone: ZoneInfo
) -> Iterator[float]:
    for hour in hours:
        for minute in minutes:
            local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
            back = local.astimezone(UTC).astimezone(zone)
            if (back.hour, back.minute) == (hour, minute):
                yield local.timestamp()


def _values(text: str, low: int, high: int, names: Sequence[str] = ()) -> frozenset[int]:
    """The numbers of `*`, `a`, `a-b`, `a/n`, `a-b/n` and lists of these."""
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        start = low if span == "*" else _number(first, low, high, names)
        open_end = high if span == "*" or slash else start
        end = _number(last, low, high, names) if dash else open_end
        if end < start:
            raise ValueError(f"{part} ends before it begins")
        found |= set(range(start, end + 1, int(step) if slash else 1))
    return frozenset(found)


def _number(text: str, low: int, high: int, names: Sequence[str]) -> int:
    if text.upper() in names:
        return names.index(text.upper()) + low
    if not text.isdigit() or not low <= int(text) <= high:
        raise ValueError(f"{text!r} is not in {low}-{high}")
    return int(text)
