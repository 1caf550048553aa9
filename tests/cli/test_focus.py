"""`tidegate cost --focus` against the rules of FOCUS 1.2, and sums that stay whole."""

import csv
import io
import json
import re
from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from tests.cli.a_week import DAY_S, NOW_S, ODD, idle_of, two_weeks
from tests.cli.conftest import Town
from tests.cli.test_cost_by import bought_node, line
from tidegate.cli.focus import Payer, as_focus
from tidegate.core.model.ledger import Bill
from tidegate.core.model.savings_plans import Committed, PlanKind
from tidegate.core.offers.allocation import Run, allocated
from tidegate.core.offers.plan_use import PlanUse
from tidegate.wire.catalogue import load_catalogue

TYPES = {name: row.instance_type for name, row in load_catalogue().items()}
PAYER = Payer("dev", "arn:aws:iam::123456789012:root", "us-east-1", "US East (N. Virginia)")

# FOCUS 1.2, "CostAndUsage": columns whose feature level is mandatory, and, of those that are
# recommended or conditional, what holds for AWS: zones, regions, resources with types, tags, usage
# that is measured, several pricing categories, negotiated prices, commitments, reservations. The
# type is the column's data type.
MANDATORY = {
    "BilledCost": "decimal", "BillingAccountId": "string", "BillingAccountName": "string",
    "BillingCurrency": "currency", "BillingPeriodEnd": "moment", "BillingPeriodStart": "moment",
    "ChargeCategory": "string", "ChargeClass": "string", "ChargeDescription": "string",
    "ChargePeriodEnd": "moment", "ChargePeriodStart": "moment", "ContractedCost": "decimal",
    "EffectiveCost": "decimal", "InvoiceIssuerName": "string", "ListCost": "decimal",
    "PricingQuantity": "decimal", "PricingUnit": "string", "ProviderName": "string",
    "PublisherName": "string", "ServiceCategory": "string", "ServiceName": "string",
}  # fmt: skip
CONDITIONAL = {
    "AvailabilityZone": "string", "ChargeFrequency": "string", "CapacityReservationId": "string",
    "CapacityReservationStatus": "string", "ConsumedQuantity": "decimal", "InvoiceId": "string",
    "ConsumedUnit": "string", "ContractedUnitPrice": "decimal", "PricingCategory": "string",
    "CommitmentDiscountCategory": "string", "CommitmentDiscountId": "string",
    "CommitmentDiscountName": "string", "CommitmentDiscountQuantity": "decimal",
    "CommitmentDiscountStatus": "string", "CommitmentDiscountType": "string",
    "CommitmentDiscountUnit": "string", "RegionId": "string", "RegionName": "string",
    "ResourceId": "string", "ResourceName": "string",
    "ResourceType": "string", "ServiceSubcategory": "string", "Tags": "json",
}  # fmt: skip
# For a charge of usage that is no correction, of no commitment and no reservation, on no invoice
# yet, of a resource without a name of its own.
NULL = {
    "BillingAccountName", "CapacityReservationId", "CapacityReservationStatus", "ChargeClass",
    "InvoiceId", "ResourceName", *(name for name in CONDITIONAL if name.startswith("Commitment")),
}  # fmt: skip
ALLOWED = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "PricingCategory": {"Standard", "Dynamic", "Committed", "Other"},
}
FORMATS = {
    "decimal": re.compile(r"-?\d+(\.\d+)?(E-?\d+)?"),
    "moment": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
    "currency": re.compile(r"[A-Z]{3}"),
    "string": re.compile(r".*\S.*"),
    "json": re.compile(r"\{.*\}"),
}


type Row = dict[str, Any]


def read(text: str) -> list[Row]:
    """Strings and numbers, and None for what is empty without quotes."""
    return list(csv.DictReader(io.StringIO(text), quoting=csv.QUOTE_NOTNULL))


def focus(bills: list[Bill], runs: list[Run]) -> list[Row]:
    shares = allocated(bills, runs, TYPES, NOW_S - 14 * DAY_S, NOW_S, idle_of(bills))
    return read(as_focus(shares, PAYER))


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return focus(*two_weeks())


def billed(bills: list[Bill]) -> float:
    return sum((each.until_s - each.since_s) / 3600 * each.usd_per_hour for each in bills)


def test_every_column_of_the_specification_is_there_before_those_of_ours(
    rows: list[Row],
) -> None:
    names = list(rows[0])
    ours = [name for name in names if name.startswith("x_")]

    assert set(names) - set(ours) == MANDATORY.keys() | CONDITIONAL.keys()
    assert names[-len(ours) :] == ours
    assert all(re.fullmatch(r"x_[A-Z][A-Za-z]+", name) for name in ours)


def test_each_value_has_its_type_and_what_is_null_is_empty(rows: list[Row]) -> None:
    for name, kind in {**MANDATORY, **CONDITIONAL}.items():
        found = {row[name] for row in rows}
        if name in NULL:
            assert found == {None}, name
        else:
            wrong = [value for value in found if not FORMATS[kind].fullmatch(value)]
            assert wrong == [], name
        assert found <= ALLOWED.get(name, found), name


def test_costs_are_prices_times_quantities_and_periods_hold_each_other(
    rows: list[Row],
) -> None:
    for row in rows:
        product = float(row["ContractedUnitPrice"]) * float(row["PricingQuantity"])
        costs = {row[name] for name in ("BilledCost", "EffectiveCost", "ListCost")}
        assert {float(cost) for cost in costs} == {product, float(row["ContractedCost"])}
        assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"]
        assert row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]
    assert {row["PricingCategory"] for row in rows} == {"Dynamic"}


def test_what_is_allocated_adds_up_to_what_each_node_cost(rows: list[Row]) -> None:
    bills, _ = two_weeks()
    of_node: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        of_node[row["ResourceId"]] += float(row["BilledCost"])

    assert sum(of_node.values()) == pytest.approx(billed(bills), abs=0.005)
    for name, usd in of_node.items():
        theirs = billed([each for each in bills if each.instance_id == name])
        assert usd == pytest.approx(theirs, abs=1e-6)


def test_who_had_a_share_stands_in_the_tags_that_aws_has_too(rows: list[Row]) -> None:
    of_jobs = [row for row in rows if row["x_JobId"]]
    nobodys = [row for row in rows if not row["x_JobId"]]

    assert {row["x_Use"] for row in of_jobs} == {"jobs", "cut short", "lost"}
    of_idle = {"kept", "waiting", "drained", "idle"}
    assert {row["x_Use"] for row in nobodys} == {"unused", *of_idle, "boot"}
    for row in of_jobs:
        tags = json.loads(row["Tags"])
        assert tags["tidegate:cluster"] == "dev"
        assert tags["tidegate:user"] == row["x_User"]
        assert tags["tidegate:account"] == row["x_Account"]
    assert {"tidegate:user"} & {key for row in nobodys for key in json.loads(row["Tags"])} == set()
    assert ODD in {row["x_JobName"] for row in rows}


def test_sums_stay_whole_when_a_node_dies_under_a_job_and_its_user_is_gone() -> None:
    bills, runs = two_weeks()
    dead, alive = bills[0], bills[2]
    gang = replace(
        runs[0],
        job_id="9000",
        user="uid 1001",
        nodes=(dead.instance_id, alive.instance_id),
        started_at_s=NOW_S - 14 * DAY_S,
        ended_at_s=NOW_S,
        is_cut_short=True,
    )
    found = focus(bills, [*runs, gang])

    assert sum(float(row["BilledCost"]) for row in found) == pytest.approx(billed(bills), abs=0.005)
    theirs = [row for row in found if row["x_JobId"] == "9000"]
    assert {row["ResourceId"] for row in theirs} == set(gang.nodes)
    assert {json.loads(row["Tags"])["tidegate:user"] for row in theirs} == {"uid 1001"}


PLAN = "arn:aws:savingsplans::123456789012:savingsplan/0f3a"


@pytest.fixture(scope="module")
def with_plan() -> tuple[list[Bill], list[Row]]:
    """Every third line of the bill is paid by a plan but for 0.1 USD an hour, of which 7 USD of a
    day nobody used.
    """
    bills, runs = two_weeks()
    bills = [
        replace(each, committed=Committed(PLAN, each.usd_per_hour - 0.1)) if n % 3 == 0 else each
        for n, each in enumerate(bills)
    ]
    payer = replace(PAYER, plans={PLAN: PlanKind.COMPUTE})
    uses = [PlanUse(PLAN, "Savings Plan 0f3a", PlanKind.COMPUTE, "2026-11-20", 24.0, 17.0)]
    uses += [replace(uses[0], day="2026-11-21", used_usd=24.0)]
    shares = allocated(bills, runs, TYPES, NOW_S - 14 * DAY_S, NOW_S, idle_of(bills))
    return bills, read(as_focus(shares, payer, uses))


def test_what_a_plan_paid_is_a_charge_of_its_own_and_sums_stay_whole(
    with_plan: tuple[list[Bill], list[Row]],
) -> None:
    bills, rows = with_plan
    paid = [row for row in rows if row["CommitmentDiscountStatus"] == "Used"]
    others = [row for row in rows if not row["CommitmentDiscountId"]]

    by_plan = [replace(e, usd_per_hour=e.committed.usd_per_hour) for e in bills if e.committed]
    assert sum(float(row["EffectiveCost"]) for row in paid) == pytest.approx(billed(by_plan))
    nodes = [row for row in rows if row["ResourceId"]]
    assert sum(float(row["EffectiveCost"]) for row in nodes) == pytest.approx(billed(bills))
    assert sum(float(row["x_GpuHours"]) for row in nodes) == pytest.approx(
        sum(float(row["x_GpuHours"]) for row in focus(bills, two_weeks()[1]))
    )
    for row in paid:
        assert float(row["BilledCost"]) == 0, "AWS bills the commitment, not what uses it"
        assert row["CommitmentDiscountQuantity"] == row["EffectiveCost"] == row["ContractedCost"]
        known = ("Category", "Id", "Name", "Type", "Unit")
        assert [row[f"CommitmentDiscount{each}"] for each in known] == [
            *("Spend", PLAN, "Savings Plan 0f3a", "ComputeSavingsPlans", "USD")
        ]
        assert row["PricingCategory"] == "Committed"
    for row in others:
        assert {row[name] for name in row if name.startswith("Commitment")} == {None}


def test_what_of_a_plan_nobody_used_is_a_charge_of_nobody(
    with_plan: tuple[list[Bill], list[Row]],
) -> None:
    _, rows = with_plan

    (row,) = [each for each in rows if each["CommitmentDiscountStatus"] == "Unused"]
    assert float(row["EffectiveCost"]) == float(row["CommitmentDiscountQuantity"]) == 7.0
    product = float(row["ContractedUnitPrice"]) * float(row["PricingQuantity"])
    assert product == float(row["ContractedCost"]) == float(row["ListCost"])
    assert (float(row["BilledCost"]), row["ChargePeriodStart"]) == (0, "2026-11-20T00:00:00Z")
    null = {"ConsumedQuantity", "ConsumedUnit", "ResourceId", "ResourceType", "x_User", "RegionId"}
    assert {row[name] for name in null} == {None}
    for name, kind in MANDATORY.items():
        if name not in NULL:
            assert FORMATS[kind].fullmatch(row[name]), name
    assert json.loads(row["Tags"]) == {"tidegate:cluster": "dev"}


def test_the_command_writes_it(counted: Town) -> None:
    node = bought_node(counted)
    runs = counted.file.parent / "runs"
    runs.write_text(line(node.instance_id, node.launched_at_s - 5))

    done = counted.ask("cost", "--focus", "--since", "1d")

    assert done.exit_code == 0, done.output
    (row,) = [each for each in read(done.output) if each["x_User"]]
    assert (row["x_User"], row["RegionId"]) == ("ada", "us-east-1")
    assert row["RegionName"] == "US East (N. Virginia)"
    assert re.fullmatch(r"arn:aws:iam::\d{12}:root", row["BillingAccountId"])
