"""Spans of time and instants as people read them."""

from datetime import UTC, datetime

# Nothing that is meant is as long, and dates far before our time cannot be counted.
LONGEST_SPAN_S = 3660 * 86400.0
SPAN_DIGITS = 10


def clock(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%H:%M:%S UTC")


def span(seconds: float) -> str:
    """`42 s`, `5 min`, `3.2 h`, `2.5 d`: as exact as one has to know."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 2 * 86400 else f"{seconds / 86400:.1f} d"


def moment(at_s: float) -> str:
    """Day and time, sortable."""
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S")


def span_s(text: str) -> float | None:
    """`90s`, `15m`, `2h`, `7d` in seconds; None: it is none of these, or more than ten years."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    number, unit = text[:-1], text[-1:]
    if unit not in units or not number.isdecimal() or len(number) > SPAN_DIGITS:
        return None
    seconds = int(number) * units[unit]
    return seconds if seconds <= LONGEST_SPAN_S else None
