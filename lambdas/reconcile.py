"""The reconcile function: every few minutes a look that needs no head, the head's hours, what EC2
asks for instances now, and the reservations that the account has.
"""

from collections.abc import Iterable

from tidegate.core.model.errors import TidegateError
from tidegate.wiring.function import Answer, Event, Function, entry
from tidegate.wiring.hours import keep_hours
from tidegate.wiring.reconcile import Reconcile, reconcile


def on_time(made: Function[Reconcile], event: Event) -> Answer:
    """Prices and reservations come last, and hinder nothing: without new ones the last count."""
    answer = keep_hours(made, made.work.hours, "reconcile")
    for name, read in (("prices", _prices), ("reservations", _reservations)):
        try:
            for said in read(made.work):
                made.logger.warning(name, extra={"reason": said})
        except TidegateError as trouble:
            made.logger.warning(f"{name} cannot be kept", extra={"reason": str(trouble)})
    return answer


def _prices(work: Reconcile) -> Iterable[str]:
    seen = work.prices.refresh()
    return filter(None, (seen.spot_trouble, seen.on_demand_trouble))


def _reservations(work: Reconcile) -> Iterable[str]:
    return work.reservations.refresh().troubles


handler = entry(on_time, reconcile)
