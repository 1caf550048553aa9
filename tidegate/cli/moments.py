"""Moments as people type them."""

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

import typer

from tidegate.core.model.durations import LONGEST_SPAN_S, span_s

EXPECTED = "now, a time like 23:00, a span like 3h or 2d, or 2026-12-01T08:00"


def moment_s(text: str, now_s: float, time_zone: str) -> float:
    """Epoch seconds; a time of day is the next one, in the cluster's time zone.

    Errors: typer.BadParameter.
    """
    zone = ZoneInfo(time_zone)
    now = datetime.fromtimestamp(now_s, zone)
    if text == "now":
        return now_s
    if (after_s := span_s(text)) is not None:
        return now_s + after_s
    try:
        if len(text) <= len("23:00"):
            return _next(time.fromisoformat(text), now).timestamp()
        at = datetime.fromisoformat(text)
        at_s = (at if at.tzinfo else at.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{text!r} is not {EXPECTED}") from None
    if abs(at_s - now_s) > LONGEST_SPAN_S:
        raise typer.BadParameter(f"{text!r} is more than ten years away")
    return at_s


def _next(at: time, now: datetime) -> datetime:
    today = datetime.combine(now.date(), at, now.tzinfo)
    tomorrow = datetime.combine(now.date() + timedelta(days=1), at, now.tzinfo)
    return today if today > now else tomorrow
