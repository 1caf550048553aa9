"""The schedule function: a cron of the calendar fired; what should be now, the calendar says."""

from typing import Any

from tidegate.core.model.errors import BadEvent
from tidegate.service.hours import Hours
from tidegate.wire.events import parse_schedule
from tidegate.wiring.function import Answer, Function, entry
from tidegate.wiring.hours import hours, keep_hours


def on_schedule(made: Function[Hours], event: Any) -> Answer:
    why = "schedule"
    try:
        why = parse_schedule(event)
    except BadEvent as bad:
        made.count(BadEvents=1)
        made.logger.warning("an event of the schedule cannot be read", extra={"reason": str(bad)})
    return keep_hours(made, made.work, why)


handler = entry(on_schedule, hours)
