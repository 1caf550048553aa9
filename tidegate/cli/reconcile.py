"""Our bill of nodes beside AWS's Cost and Usage Report, as a table or as data."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from tidegate.adapters.cost_report import read_cost_report
from tidegate.cli.live import bills
from tidegate.cli.shown import table
from tidegate.core.model.ec2 import CLUSTER_TAG, POOL_TAG
from tidegate.core.offers.allocation import allocated
from tidegate.core.offers.reconcile import OneSided, Reconciled, reconciled
from tidegate.wire.catalogue import load_catalogue
from tidegate.wire.config import ClusterFile
from tidegate.wiring.resources import Clients

# More of them are counted, not listed; -o json has all.
LISTED_MAX = 10


def compared(file: ClusterFile, report: Iterable[Path], clients: Clients | None) -> Reconciled:
    """The cluster's bill for the days of the report beside it. Errors: BadConfig; as `live`."""
    theirs = read_cost_report(report, file.cluster.name)
    ours, _ = bills(file, theirs.since_s, clients)
    types = {name: row.instance_type for name, row in load_catalogue().items()}
    shares = allocated(ours, (), types, theirs.since_s, theirs.until_s)
    return reconciled(theirs.charges, ours, shares)


def screen(found: Reconciled) -> Table:
    """A row for each day and pool; the last is the sum."""
    shown = table("day", "pool", "USD ours", "USD AWS", "AWS asks more")
    for column in shown.columns[2:]:
        column.justify = "right"
    for row in found.rows:
        shown.add_row(row.day, row.pool, *map(_usd, (row.ours_usd, row.aws_usd)), _more(row))
    shown.add_row("all", "", _usd(found.ours_usd), _usd(found.aws_usd), _more(found))
    return shown


def remarks(found: Reconciled) -> Iterator[str]:
    """What the sums do not say, a sentence each."""
    yield from _listed(
        found.only_aws, "AWS charges {} as a node of this cluster, and the ledger knows none"
    )
    yield from _listed(found.only_ours, "AWS charges nothing for {}, which the ledger knows")
    if not found.is_tagged:
        yield (
            f"no charge has the tag {CLUSTER_TAG}: only nodes that the ledger knows are compared;"
            f" activate {CLUSTER_TAG} and {POOL_TAG} as cost allocation tags for all others"
        )


def as_data(found: Reconciled) -> dict[str, Any]:
    return {
        **asdict(found),
        "rows": [{**asdict(row), "difference_usd": row.difference_usd} for row in found.rows],
        "ours_usd": found.ours_usd,
        "aws_usd": found.aws_usd,
    }


def _listed(those: tuple[OneSided, ...], says: str) -> Iterator[str]:
    for each in those[:LISTED_MAX]:
        named = f"{each.instance_id} ({each.pool}, {_usd(each.usd)} USD since {each.since})"
        yield says.format(named)
    if more := those[LISTED_MAX:]:
        usd = sum(each.usd for each in more)
        yield says.format(f"{len(more)} more ({_usd(usd)} USD; -o json names them)")


def _more(of: Any) -> str:
    return f"{of.aws_usd - of.ours_usd:+,.2f}"


def _usd(usd: float) -> str:
    return f"{usd:,.2f}"
