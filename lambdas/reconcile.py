"""The reconcile function: every few minutes a look that needs no head, and the head's hours."""

from tidegate.service.hours import Hours
from tidegate.wiring.function import Answer, Event, Function, entry
from tidegate.wiring.hours import hours, keep_hours


def on_time(made: Function[Hours], event: Event) -> Answer:
    return keep_hours(made, "reconcile")


handler = entry(on_time, hours)
