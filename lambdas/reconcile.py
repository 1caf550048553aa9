"""The reconcile function: every few minutes a look that needs no head, the head's hours, and what
EC2 asks for instances now.
"""

from tidegate.core.model.errors import TidegateError
from tidegate.wiring.function import Answer, Event, Function, entry
from tidegate.wiring.hours import keep_hours
from tidegate.wiring.reconcile import Reconcile, reconcile


def on_time(made: Function[Reconcile], event: Event) -> Answer:
    """Prices come last, and hinder nothing: without new ones the last ones count."""
    answer = keep_hours(made, made.work.hours, "reconcile")
    try:
        seen = made.work.prices.refresh()
    except TidegateError as trouble:
        made.logger.warning("prices cannot be kept", extra={"reason": str(trouble)})
        return answer
    for said in filter(None, (seen.spot_trouble, seen.on_demand_trouble)):
        made.logger.warning("prices", extra={"reason": said})
    return answer


handler = entry(on_time, reconcile)
