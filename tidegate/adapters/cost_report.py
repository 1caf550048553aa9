"""AWS's Cost and Usage Report as files: CUR 2.0 of Data Exports, and the older one.

Source: AWS Data Exports user guide, "Cost and Usage Report (CUR) 2.0" with its table dictionary,
and "Line item details", "Reservation details", "Savings Plans details" of the older one, whose
columns have the same names in another spelling: `lineItem/UsageStartDate` is
`line_item_usage_start_date`. Tags are a map in one column of the newer (`user_tidegate_cluster`)
and a column each in the older one (`resourceTags/user:tidegate:cluster`).
"""

import csv
import gzip
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import TextIOWrapper
from math import inf
from pathlib import Path
from typing import IO

from tidegate.core.model.ec2 import CLUSTER_TAG, POOL_TAG
from tidegate.core.model.errors import BadConfig
from tidegate.core.model.frozen import frozen
from tidegate.core.offers.reconcile import AwsCharge
from tidegate.core.offers.spend import DAY_S, day_of
from tidegate.wire.finite import parse_json

START, END = "line_item_usage_start_date", "line_item_usage_end_date"
TYPE = "line_item_line_item_type"
RESOURCE, CURRENCY = "line_item_resource_id", "line_item_currency_code"
UNBLENDED, NET = "line_item_unblended_cost", "line_item_net_unblended_cost"
NEEDED = (START, END, TYPE, RESOURCE, UNBLENDED)

# What is committed to is worth its part of the commitment; the columns with discounts come first.
EFFECTIVE = {
    "DiscountedUsage": ("reservation_net_effective_cost", "reservation_effective_cost"),
    "SavingsPlanCoveredUsage": (
        "savings_plan_net_savings_plan_effective_cost",
        "savings_plan_savings_plan_effective_cost",
    ),
}
# Charges of no node: the commitments themselves and what makes up for them, taxes, credits.
OTHERS = frozenset(
    {
        *("Tax", "Credit", "Refund", "Fee", "RIFee", "SavingsPlanNegation"),
        *("SavingsPlanRecurringFee", "SavingsPlanUpfrontFee"),
    }
)
UNREADABLE = (OSError, EOFError, ValueError, TypeError, csv.Error, zipfile.BadZipFile)
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_LETTER = re.compile(r"[^a-z0-9]+")
_OF_TAG = ("resourceTags/", "resource_tags_")
_OF_USER = re.compile(r"^(?:resourceTags/|resource_tags_)?(?:user[:_])?")


@frozen
class CostReport:
    """Charges of instances, and of whatever has the cluster's tag, by day and resource, between
    the first and the last moment (epoch seconds) that the files are about.
    """

    charges: tuple[AwsCharge, ...]
    since_s: float
    until_s: float


def read_cost_report(paths: Iterable[Path], cluster: str) -> CostReport:
    """Read all files of a report. Errors: BadConfig, with the file and what to export instead."""
    found = _Found(cluster)
    for path in paths:
        try:
            for row in _rows(path):
                found.take(row)
        except BadConfig as error:
            raise BadConfig(f"{path}: {error}") from error
        except UNREADABLE as error:
            raise BadConfig(f"{path}: it cannot be read as a report in CSV: {error}") from error
    if not found.until_s:
        raise BadConfig("the report holds no line of an hour or a day")
    charges = tuple(AwsCharge(*key, each) for key, each in sorted(found.usd.items()))
    return CostReport(charges, found.since_s, found.until_s)


@dataclass(slots=True)
class _Found:
    """USD by day, resource, pool and whether the cluster's tag is there."""

    cluster: str
    usd: defaultdict[tuple[str, str, str, bool], float] = field(
        default_factory=lambda: defaultdict(float)
    )
    since_s: float = inf
    until_s: float = 0.0

    def take(self, row: Mapping[str, str]) -> None:
        """Errors: BadConfig."""
        begins_s, ends_s = _moment_s(row[START]), _moment_s(row[END])
        cost_usd, tags = _usd(row), _tags(row)
        if cost_usd is None:
            return
        # Some services charge by the month, in hourly reports too.
        is_long = ends_s - begins_s > DAY_S
        if not is_long:
            self.since_s, self.until_s = min(self.since_s, begins_s), max(self.until_s, ends_s)
        is_tagged = tags.get(_plain(CLUSTER_TAG)) == self.cluster
        resource = row[RESOURCE].rpartition("/")[2]
        if not is_tagged and not resource.startswith("i-"):
            return
        if is_long and resource.startswith("i-"):
            raise BadConfig("its lines are of more than a day: export it hourly or daily")
        if (currency := row.get(CURRENCY) or "USD") != "USD":
            raise BadConfig(f"it is in {currency}, and Tidegate knows prices in USD alone")
        pool = tags.get(_plain(POOL_TAG), "") if is_tagged else ""
        self.usd[day_of(begins_s).name, resource, pool, is_tagged] += cost_usd


def _rows(path: Path) -> Iterator[Mapping[str, str]]:
    with _opened(path) as text:
        reader = csv.reader(text)
        names = [_column(name) for name in next(reader, [])]
        if missing := [name for name in NEEDED if name not in names]:
            raise BadConfig(
                f"it has no column {', '.join(missing)}: export a Cost and Usage Report as CSV,"
                " with resource IDs"
            )
        for values in reader:
            yield dict(zip(names, values, strict=True))


@contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    if path.suffix == ".parquet":
        raise BadConfig("Parquet is not read: export it as CSV, with gzip")
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as member:
            yield TextIOWrapper(member, encoding="utf-8-sig", newline="")
        return
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as text:
        yield text


def _column(name: str) -> str:
    """The newer spelling of a column; that of a tag stays as it is."""
    if name.startswith(_OF_TAG):
        return name
    return _WORD.sub("_", name).replace("/", "_").lower()


def _tags(row: Mapping[str, str]) -> dict[str, str]:
    """Its tags, under names of letters and underscores."""
    found = {name: value for name, value in row.items() if name.startswith(_OF_TAG)}
    for column in ("resource_tags", "tags"):
        if text := row.get(column):
            found |= parse_json(text)
    return {_plain(_OF_USER.sub("", name)): str(value) for name, value in found.items()}


def _plain(key: str) -> str:
    return _NO_LETTER.sub("_", key.lower())


def _usd(row: Mapping[str, str]) -> float | None:
    """What a line costs in the end; None: it is no charge of a resource's use."""
    kind = row[TYPE]
    # Where costs with discounts have a column of their own, the discounts are in there.
    if kind in OTHERS or (kind.endswith("Discount") and NET in row):
        return None
    for column in (*EFFECTIVE.get(kind, ()), NET, UNBLENDED):
        if text := row.get(column):
            return float(parse_json(text))
    return 0.0


def _moment_s(text: str) -> float:
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
