"""The reconcile function: every few minutes a look that needs no head, and the head's hours."""

from tidegate.wiring import Answer, Event, Function, entry


def on_time(made: Function, event: Event) -> Answer:
    return made.keep_hours("reconcile")


handler = entry(on_time)
