"""The schedule function: a cron of the calendar fired; what should be now, the calendar says."""

from typing import Any

from tidegate.core.errors import BadEvent
from tidegate.wire.events import parse_schedule
from tidegate.wiring import Answer, Function, entry


def on_schedule(made: Function, event: Any) -> Answer:
    why = "schedule"
    try:
        why = parse_schedule(event)
    except BadEvent as bad:
        made.count(BadEvents=1)
        made.logger.warning("an event of the schedule cannot be read", extra={"reason": str(bad)})
    return made.keep_hours(why)


handler = entry(on_schedule)
