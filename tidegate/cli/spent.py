"""What nodes have cost, as a table: the last days and months, by pool and by account."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from tidegate.cli.shown import table
from tidegate.core.model.cluster import CLUSTER_SCOPE
from tidegate.core.model.ledger import Charge
from tidegate.core.offers.spend import DAY_S, day_of, month_of

SHOWN_MONTHS = 3


def screen(found: Sequence[Charge], now_s: float) -> Table:
    """A row for each scope: the cluster, its pools, its accounts; the dearest of a kind first."""
    periods = list(_periods(found, now_s))
    usd = {(each.period, each.scope): each.usd for each in found}
    month = month_of(now_s).name

    def place(scope: str) -> tuple[bool, str, float, str]:
        kind = scope.partition(" ")[0]
        order = {"pool": "0", "account": "1"}.get(kind, kind)
        return scope != CLUSTER_SCOPE, order, -usd.get((month, scope), 0.0), scope

    shown = table("USD, nodes alone", *periods)
    for column in shown.columns[1:]:
        column.justify = "right"
    for scope in sorted({each.scope for each in found}, key=place):
        shown.add_row(
            "all" if scope == CLUSTER_SCOPE else scope,
            *(f"{usd.get((period, scope), 0.0):,.2f}" for period in periods),
        )
    return shown


def _periods(found: Iterable[Charge], now_s: float) -> Iterable[str]:
    """Today, yesterday, and the last months of which anything is known."""
    yield day_of(now_s).name
    yield day_of(now_s - DAY_S).name
    months = {each.period for each in found if each.period.count("-") == 1}
    yield from sorted(months | {month_of(now_s).name}, reverse=True)[:SHOWN_MONTHS]
