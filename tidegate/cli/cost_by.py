"""What jobs and their owners have cost, as a table or as data."""

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table

from tidegate.cli.shown import table
from tidegate.core.model.durations import span_s
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.frozen import frozen
from tidegate.core.offers.allocation import Row, TimeUse
from tidegate.core.offers.plan_use import PlanUse
from tidegate.core.offers.spend import MONTHS_CHARGED_S

NOBODY = "no job"
TOTAL = "all"
HOURS = ("gpu_hours", "idle_gpu_hours", "seen_gpu_hours")


@frozen
class Spent:
    """`rows` by one of `allocation.BY`, of what was billed between two moments (epoch seconds), and
    what was used of Savings Plans, by plan and day.
    """

    cluster: str
    by: str
    since_s: float
    until_s: float
    rows: tuple[Row, ...]
    plan_uses: tuple[PlanUse, ...] = ()

    @property
    def plans(self) -> dict[str, tuple[float, float]]:
        """USD by plan: committed, and used of that."""
        usd: dict[str, tuple[float, float]] = {}
        for each in self.plan_uses:
            committed, used = usd.get(each.name, (0.0, 0.0))
            usd[each.name] = committed + each.committed_usd, used + each.used_usd
        return usd

    @property
    def total(self) -> Row:
        usd = {use: sum(row.usd.get(use, 0.0) for row in self.rows) for use in TimeUse}
        return Row(
            TOTAL,
            sum(row.gpu_hours for row in self.rows),
            usd,
            sum(row.idle_gpu_hours for row in self.rows),
            sum(row.seen_gpu_hours for row in self.rows),
        )


def since(text: str, now_s: float) -> float:
    """Epoch seconds of a span back from now, `7d`, or of a moment in UTC, `2026-11-01`.

    Errors: BadConfig.
    """
    if (back_s := span_s(text)) is not None:
        at_s = now_s - back_s
    else:
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            said = f"--since {text!r} is neither a span like 7d nor a day like 2026-11-01"
            raise BadConfig(said) from None
        at_s = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    if not now_s - MONTHS_CHARGED_S <= at_s < now_s:
        raise BadConfig(f"--since {text}: the bill of nodes is kept for 400 days, until now")
    return at_s


def screen(found: Spent) -> Table:
    """A row for each of them, by what it cost; the last is the sum."""
    is_seen = found.total.seen_gpu_hours > 0
    idle = ["of them seen", "of them idle"] if is_seen else []
    usd = (f"USD {use}" for use in _uses(found))
    shown = table(found.by, "GPU-hours", *idle, *usd, "USD in all")
    for column in shown.columns[1:]:
        column.justify = "right"
    for row in (*found.rows, found.total):
        hours = [row.gpu_hours, *([row.seen_gpu_hours, row.idle_gpu_hours] if is_seen else [])]
        cells = [*(f"{each:,.1f}" for each in hours)]
        cells += [_usd(row.usd.get(use, 0.0)) for use in _uses(found)]
        shown.add_row(row.name or NOBODY, *cells, _usd(row.total_usd))
    return shown


def of_plans(found: Spent) -> Iterator[str]:
    """A sentence for each Savings Plan; what nodes used of it is in the table too."""
    for name, (committed, used) in found.plans.items():
        yield (
            f"{name}: {_usd(committed)} USD committed, of which nodes used {_usd(used)};"
            f" {_usd(committed - used)} idled"
        )


def as_csv(found: Spent) -> str:
    """The rows, without the sum; nothing is rounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = (f"usd_{use.name.lower()}" for use in TimeUse)
    writer.writerow([found.by, *HOURS, *names, "usd"])
    for row in found.rows:
        usd = (row.usd.get(use, 0.0) for use in TimeUse)
        hours = (getattr(row, each) for each in HOURS)
        writer.writerow([row.name, *hours, *usd, row.total_usd])
    return text.getvalue()


def as_data(found: Spent) -> dict[str, Any]:
    """The same for programs; `name` null: no job had it."""
    return {
        "cluster": found.cluster,
        "since": _moment(found.since_s),
        "until": _moment(found.until_s),
        "by": found.by,
        "rows": [_plain(row) for row in found.rows],
        "total": _plain(found.total),
        "savings_plans": [
            {"name": name, "usd_committed": committed, "usd_used": used}
            for name, (committed, used) in found.plans.items()
        ],
    }


def _plain(row: Row) -> dict[str, Any]:
    usd = {use.name.lower(): row.usd.get(use, 0.0) for use in TimeUse}
    name = row.name or None
    hours = {each: getattr(row, each) for each in HOURS}
    return {"name": name, **hours, "usd": usd, "usd_in_all": row.total_usd}


def _uses(found: Spent) -> Sequence[TimeUse]:
    """A use that nobody had is no column."""
    return [use for use in TimeUse if found.total.usd[use] > 0]


def _usd(usd: float) -> str:
    return f"{usd:,.2f}"


def _moment(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")
