"""The report function: every half hour, the page of what is over and was handed in."""

from tidegate.service.reporting import Reporter
from tidegate.wiring.function import Answer, Event, Function, entry
from tidegate.wiring.report import reporter


def on_time(made: Function[Reporter], event: Event) -> Answer:
    """Trouble fails the run: Lambda tries again, and an alarm tells."""
    pages = made.work.make()
    if pages:
        made.logger.info("report", extra={"pages": pages})
    return {"pages": list(pages)}


handler = entry(on_time, reporter)
