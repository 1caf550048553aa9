"""AWS's Cost and Usage Report, in the columns that its user guide documents."""

import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tidegate.adapters.cost_report import CostReport, read_cost_report
from tidegate.core.model.errors import BadConfig

DAY = "2026-11-20"
MIDNIGHT_S = 1_795_132_800.0

# What stands beside what is read, so that an order or a neighbour is not relied on.
# Source: AWS Data Exports user guide, table dictionary of CUR 2.0, and of the older report.
NEWER = (
    "bill_bill_type bill_billing_period_start_date identity_line_item_id identity_time_interval"
    " line_item_availability_zone line_item_currency_code line_item_line_item_type"
    " line_item_net_unblended_cost line_item_operation line_item_product_code"
    " line_item_resource_id line_item_unblended_cost line_item_usage_account_id"
    " line_item_usage_amount line_item_usage_end_date line_item_usage_start_date"
    " line_item_usage_type pricing_public_on_demand_cost product"
    " reservation_effective_cost reservation_net_effective_cost resource_tags"
    " savings_plan_net_savings_plan_effective_cost savings_plan_savings_plan_effective_cost"
)
OLDER = (
    "identity/LineItemId identity/TimeInterval bill/BillType lineItem/UsageAccountId"
    " lineItem/LineItemType lineItem/UsageStartDate lineItem/UsageEndDate lineItem/ProductCode"
    " lineItem/UsageType lineItem/Operation lineItem/AvailabilityZone lineItem/ResourceId"
    " lineItem/UsageAmount lineItem/CurrencyCode lineItem/UnblendedCost lineItem/NetUnblendedCost"
    " reservation/EffectiveCost reservation/NetEffectiveCost savingsPlan/SavingsPlanEffectiveCost"
    " savingsPlan/NetSavingsPlanEffectiveCost resourceTags/aws:createdBy"
    " resourceTags/user:tidegate:cluster resourceTags/user:tidegate:pool"
)
SPELLED = {
    "type": ("line_item_line_item_type", "lineItem/LineItemType"),
    "start": ("line_item_usage_start_date", "lineItem/UsageStartDate"),
    "end": ("line_item_usage_end_date", "lineItem/UsageEndDate"),
    "resource": ("line_item_resource_id", "lineItem/ResourceId"),
    "currency": ("line_item_currency_code", "lineItem/CurrencyCode"),
    "usd": ("line_item_unblended_cost", "lineItem/UnblendedCost"),
    "net": ("line_item_net_unblended_cost", "lineItem/NetUnblendedCost"),
    "ri": ("reservation_effective_cost", "reservation/EffectiveCost"),
    "net_ri": ("reservation_net_effective_cost", "reservation/NetEffectiveCost"),
    "sp": (
        "savings_plan_savings_plan_effective_cost",
        "savingsPlan/SavingsPlanEffectiveCost",
    ),
    "net_sp": (
        "savings_plan_net_savings_plan_effective_cost",
        "savingsPlan/NetSavingsPlanEffectiveCost",
    ),
}  # fmt: skip


def line(resource: str = "i-1", **more: Any) -> dict[str, Any]:
    hour = {"start": f"{DAY}T10:00:00Z", "end": f"{DAY}T11:00:00Z"}
    return {"resource": resource, "type": "Usage", "currency": "USD", "usd": 0.5, **hour, **more}


def cell(said: Mapping[str, Any], column: str, number: int) -> Any:
    for word, names in SPELLED.items():
        if names[number] == column:
            return said.get(word, "")
    tags = {"user_tidegate_cluster": said.get("cluster"), "user_tidegate_pool": said.get("pool")}
    if column == "resource_tags":
        return json.dumps({key: value for key, value in tags.items() if value})
    if column.startswith("resourceTags/user:"):
        return said.get(column.rpartition(":")[2], "")
    return ""


def as_csv(number: int, *said: Mapping[str, Any], without: tuple[str, ...] = ()) -> str:
    columns = [name for name in (NEWER, OLDER)[number].split() if name not in without]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows([cell(each, column, number) for column in columns] for each in said)
    return text.getvalue()


def plain(path: Path, text: str) -> Path:
    found = path / "report.csv"
    found.write_text(text)
    return found


def gzipped(path: Path, text: str) -> Path:
    found = path / "report-00001.csv.gz"
    found.write_bytes(gzip.compress(text.encode()))
    return found


def zipped(path: Path, text: str) -> Path:
    found = path / "report-1.csv.zip"
    with zipfile.ZipFile(found, "w") as archive:
        archive.writestr("report-1.csv", text)
    return found


BOTH = pytest.mark.parametrize("number", [0, 1], ids=["CUR 2.0", "legacy"])


@pytest.mark.parametrize("pack", [plain, gzipped, zipped])
@BOTH
def test_both_reports_say_the_same_however_they_are_packed(
    tmp_path: Path, number: int, pack: Callable[[Path, str], Path]
) -> None:
    ours = {"cluster": "dev", "pool": "t4"}
    text = as_csv(
        number,
        line(**ours),
        line(**ours, usd=0.25),
        line("vol-1", **ours, usd=0.01),
        line("i-head", cluster="dev", usd=0.1),
        line("i-other", cluster="prod", pool="t4"),
        line("arn:aws:s3:::bucket", usd=9.0),
        line("", usd=3.0),
    )

    found = read_cost_report([pack(tmp_path, text)], "dev")

    assert {(c.resource_id, c.pool, c.is_tagged): c.usd for c in found.charges} == {
        ("i-1", "t4", True): 0.75,
        ("vol-1", "t4", True): 0.01,
        ("i-head", "", True): 0.1,
        ("i-other", "", False): 0.5,
    }
    assert {c.day for c in found.charges} == {DAY}
    assert (found.since_s, found.until_s) == (MIDNIGHT_S + 36_000, MIDNIGHT_S + 39_600)


@BOTH
@pytest.mark.parametrize(
    ("said", "usd"),
    [
        ({"usd": 1.0}, 1.0),
        ({"usd": 1.0, "net": 0.9}, 0.9),
        ({"type": "DiscountedUsage", "usd": 0.0, "ri": 0.6}, 0.6),
        ({"type": "DiscountedUsage", "usd": 0.0, "ri": 0.6, "net_ri": 0.5}, 0.5),
        ({"type": "SavingsPlanCoveredUsage", "usd": 1.0, "sp": 0.7}, 0.7),
        ({"type": "SavingsPlanCoveredUsage", "usd": 1.0, "net": 1.0, "net_sp": 0.4}, 0.4),
        ({"type": "SavingsPlanNegation", "usd": -1.0}, None),
        ({"type": "Tax", "usd": 0.2}, None),
        ({"type": "Credit", "usd": -5.0}, None),
        ({"type": "EdpDiscount", "usd": -0.1, "net": 0.0}, None),
    ],
)
def test_a_line_costs_what_it_comes_to_in_the_end(
    tmp_path: Path, number: int, said: dict[str, Any], usd: float | None
) -> None:
    text = as_csv(number, line("i-0", usd=0.0), line(**said))

    found = read_cost_report([plain(tmp_path, text)], "dev")

    assert {c.resource_id: c.usd for c in found.charges}.get("i-1") == usd


@BOTH
def test_discounts_count_where_no_column_has_them_taken_off(tmp_path: Path, number: int) -> None:
    discount = line(type="PrivateRateDiscount", usd=-0.1)
    text = as_csv(number, line(), discount, without=SPELLED["net"])

    (charge,) = read_cost_report([plain(tmp_path, text)], "dev").charges

    assert charge.usd == pytest.approx(0.4)


def test_what_a_service_charges_by_the_month_bounds_no_days(tmp_path: Path) -> None:
    monthly = {"start": "2026-11-01T00:00:00Z", "end": "2026-12-01T00:00:00Z"}
    text = as_csv(0, line(), line("arn:aws:route53:::hostedzone/Z1", **monthly))

    assert read_cost_report([plain(tmp_path, text)], "dev").since_s == MIDNIGHT_S + 36_000


def test_several_files_are_one_report(tmp_path: Path) -> None:
    later = line(start="2026-11-21T00:00:00.000Z", end="2026-11-21T01:00:00.000Z")
    files = [plain(tmp_path, as_csv(0, line())), gzipped(tmp_path, as_csv(0, later))]

    found: CostReport = read_cost_report(files, "dev")

    assert [c.day for c in found.charges] == [DAY, "2026-11-21"]


MONTHLY = {"start": "2026-11-01T00:00:00Z", "end": "2026-12-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("report.csv", "", "it has no column line_item_usage_start_date"),
        (
            "report.csv",
            as_csv(0, line(), without=("line_item_resource_id",)),
            "it has no column line_item_resource_id: export a Cost and Usage Report as CSV, with",
        ),
        ("report.csv", as_csv(0), "the report holds no line"),
        ("report.csv", as_csv(0, line(**MONTHLY)), "export it hourly or daily"),
        ("report.csv", as_csv(0, line(currency="CNY")), "it is in CNY"),
        ("report.csv", as_csv(0, line(usd="NaN")), "cannot be read as a report in CSV"),
        ("report.csv", as_csv(0, line(usd="1e999")), "cannot be read as a report in CSV"),
        ("report.csv", as_csv(0, line(usd="[]")), "cannot be read as a report in CSV"),
        ("report.csv", as_csv(0, line(usd="much")), "cannot be read as a report in CSV"),
        ("report.csv", as_csv(0, line())[:-20], "cannot be read as a report in CSV"),
        ("report.csv.gz", as_csv(0, line()), "cannot be read as a report in CSV"),
        ("report.zip", as_csv(0, line()), "cannot be read as a report in CSV"),
        ("report.snappy.parquet", "PAR1", "Parquet is not read: export it as CSV, with gzip"),
    ],
)
def test_what_cannot_be_read_says_why_and_what_to_export(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(BadConfig, match=re.escape(says)):
        read_cost_report([tmp_path / name], "dev")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"nowhere\.csv"):
        read_cost_report([tmp_path / "nowhere.csv"], "dev")
