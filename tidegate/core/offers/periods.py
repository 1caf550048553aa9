"""What is reported on: days, weeks from Monday on and months, all of UTC."""

from datetime import UTC, datetime
from enum import StrEnum

from tidegate.core.offers.spend import DAY_S, Period, day_of, month_of

WEEK_DAYS = 7
# Day 0 of the epoch was a Thursday.
DAYS_SINCE_MONDAY = 3


class Every(StrEnum):
    """How often there is a report."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


def period_of(every: Every, at_s: float) -> Period:
    """The one that a moment lies in; a week is called like ISO 8601's, 2026-W47."""
    match every:
        case Every.DAY:
            return day_of(at_s)
        case Every.WEEK:
            day = int(at_s // DAY_S)
            starts_at_s = (day - (day + DAYS_SINCE_MONDAY) % WEEK_DAYS) * DAY_S
            name = datetime.fromtimestamp(starts_at_s, UTC).strftime("%G-W%V")
            return Period(name, starts_at_s, starts_at_s + WEEK_DAYS * DAY_S)
        case Every.MONTH:
            return month_of(at_s)


def before(every: Every, period: Period) -> Period:
    """The one that ended when this one began."""
    return period_of(every, period.starts_at_s - 1.0)


def ended(every: Every, now_s: float, most: int) -> tuple[Period, ...]:
    """The last ones that are over, the oldest first."""
    found: list[Period] = []
    period = period_of(every, now_s)
    for _ in range(most):
        period = before(every, period)
        found.append(period)
    return tuple(reversed(found))
