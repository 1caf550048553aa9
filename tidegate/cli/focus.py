"""What jobs have cost as rows of FOCUS, the FinOps Open Cost and Usage Specification.

Source: FOCUS 1.2, the version that AWS's own export FOCUS_1_2_AWS has too, "CostAndUsage". It knows
no allocation of a charge to those who shared a node (1.3 does), so each share is a charge of its
own: all charges of a node add up to what it cost, and who had a share stands in `Tags`, under the
keys that AWS's cost allocation tags have, and in columns of ours.
"""

import csv
import io
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from decimal import Decimal

from tidegate.core.model.ec2 import (
    ACCOUNT_TAG,
    CLUSTER_TAG,
    JOB_TAG,
    POOL_TAG,
    USER_TAG,
    Market,
)
from tidegate.core.model.frozen import frozen
from tidegate.core.model.ledger import Bill
from tidegate.core.model.savings_plans import PlanKind, name_of
from tidegate.core.offers.allocation import Run, Share, TimeUse
from tidegate.core.offers.plan_use import PlanUse
from tidegate.core.offers.spend import Period, day_of, month_of

AWS = "AWS"
EC2 = "Amazon Elastic Compute Cloud"
HOURS, USD = "Hours", "USD"
# What sums of decimal fractions miss is nothing that nobody used.
UNUSED_LEAST_USD = 1e-6
# AWS's words for what a Savings Plan covers.
PLAN_TYPES = {
    PlanKind.COMPUTE: "ComputeSavingsPlans",
    PlanKind.EC2_INSTANCE: "EC2InstanceSavingsPlans",
}
# What AWS sets at each moment is dynamic, what was agreed on or stands in a list is standard.
PRICING = {Market.SPOT: "Dynamic"}


@frozen
class Payer:
    """Whose cluster it is. `account_arn`: as FOCUS wants identifiers, "fully-qualified".
    `region_name`: AWS's words for the region. `plans`: the kinds of Savings Plans, by their ARNs.
    """

    cluster: str
    account_arn: str
    region: str
    region_name: str
    plans: Mapping[str, PlanKind] = field(default_factory=dict)

    def plan_type(self, arn: str) -> str:
        """What is in the cluster file no more is a plan of some kind."""
        kind = self.plans.get(arn)
        return PLAN_TYPES[kind] if kind else "SavingsPlans"


@frozen
class FocusCharge:
    """What one use of a node on one day cost, at one price. `run` None: nobody's; `plan`: the
    Savings Plan that paid for it, "": none.
    """

    bill: Bill
    use: TimeUse
    run: Run | None
    day: Period
    hours: float
    gpu_hours: float
    plan: str = ""

    @property
    def usd(self) -> float:
        """The product that FOCUS wants to be exactly this."""
        return self.hours * self.bill.usd_per_hour

    @property
    def month(self) -> Period:
        return month_of(self.day.starts_at_s)

    @property
    def description(self) -> str:
        of = f"job {self.run.job_id} of {self.run.user}, " if self.run else ""
        on = self.bill.offering
        return f"{of}{self.use}: {on.instance_type} {on.market} in {on.zone}"


def charges(shares: Iterable[Share]) -> Iterator[FocusCharge]:
    """Shares of one node, day, price and run are one charge; what costs nothing is none."""
    found: defaultdict[tuple[Bill, str, TimeUse, Run | None], list[Share]] = defaultdict(list)
    for share in shares:
        found[share.bill, share.day, share.use, share.run].append(share)
    for (bill, day, use, run), those in found.items():
        usd = sum(each.usd for each in those)
        if usd > 0:
            starts_at_s = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
            gpu_hours = sum(each.gpu_hours for each in those)
            hours, known = usd / bill.usd_per_hour, (bill, use, run, day_of(starts_at_s))
            for part, plan in _parts(bill):
                yield FocusCharge(*known, part * hours, part * gpu_hours, plan)


def _parts(bill: Bill) -> Iterator[tuple[float, str]]:
    """Which part of it which Savings Plan paid, and which none."""
    paid = bill.committed.usd_per_hour / bill.usd_per_hour if bill.committed else 0.0
    if bill.committed and paid > 0:
        yield min(paid, 1.0), bill.committed.plan
    if paid < 1.0:
        yield 1.0 - paid, ""


type Cell = str | Decimal | None
type Column = Callable[[FocusCharge, Payer], Cell]


def _of_run(name: str) -> Column:
    return lambda charge, payer: (getattr(charge.run, name) or None) if charge.run else None


def _always(text: str) -> Column:
    return lambda charge, payer: text


def _number(of: Callable[[FocusCharge], float]) -> Column:
    """As many digits as the number has, of an exponent `E` as FOCUS wants it."""
    return lambda charge, payer: Decimal(repr(of(charge)))


def _nothing(charge: FocusCharge, payer: Payer) -> None:
    """Nullable, and nothing is known."""


_usd = _number(lambda charge: charge.usd)
_hours = _number(lambda charge: charge.hours)


def _pricing(charge: FocusCharge) -> str:
    return "Committed" if charge.plan else PRICING.get(charge.bill.offering.market, "Standard")


def _tags(charge: FocusCharge, payer: Payer) -> str:
    tags = {CLUSTER_TAG: payer.cluster, POOL_TAG: charge.bill.pool}
    if run := charge.run:
        tags |= {ACCOUNT_TAG: run.account, USER_TAG: run.user, JOB_TAG: run.job_id}
    return json.dumps({key: value for key, value in tags.items() if value})


def _of_plan(of: Callable[[FocusCharge, Payer], Cell]) -> Column:
    """Where a Savings Plan paid, else null."""
    return lambda charge, payer: of(charge, payer) if charge.plan else None


# FOCUS wants a plan's part of a charge in EffectiveCost alone: AWS bills the commitment by itself.
OF_COMMITMENTS: Mapping[str, Column] = {
    "CommitmentDiscountCategory": _of_plan(_always("Spend")),
    "CommitmentDiscountId": _of_plan(lambda charge, payer: charge.plan),
    "CommitmentDiscountName": _of_plan(lambda charge, payer: name_of(charge.plan)),
    "CommitmentDiscountQuantity": _of_plan(_usd),
    "CommitmentDiscountStatus": _of_plan(_always("Used")),
    "CommitmentDiscountType": _of_plan(lambda charge, payer: payer.plan_type(charge.plan)),
    "CommitmentDiscountUnit": _of_plan(_always(USD)),
}
# What a price list would say is not known of a past day: no ListUnitPrice, SkuId or SkuPriceId.
COLUMNS: Mapping[str, Column] = {
    "AvailabilityZone": lambda charge, payer: charge.bill.offering.zone,
    "BilledCost": lambda charge, payer: Decimal(0) if charge.plan else _usd(charge, payer),
    "BillingAccountId": lambda charge, payer: payer.account_arn,
    "BillingAccountName": _nothing,
    "BillingCurrency": _always("USD"),
    "BillingPeriodEnd": lambda charge, payer: _moment(charge.month.ends_at_s),
    "BillingPeriodStart": lambda charge, payer: _moment(charge.month.starts_at_s),
    "CapacityReservationId": _nothing,
    "CapacityReservationStatus": _nothing,
    "ChargeCategory": _always("Usage"),
    "ChargeClass": _nothing,
    "ChargeDescription": lambda charge, payer: charge.description,
    "ChargeFrequency": _always("Usage-Based"),
    "ChargePeriodEnd": lambda charge, payer: _moment(charge.day.ends_at_s),
    "ChargePeriodStart": lambda charge, payer: _moment(charge.day.starts_at_s),
    **OF_COMMITMENTS,
    "ConsumedQuantity": _hours,
    "ConsumedUnit": _always(HOURS),
    "ContractedCost": _usd,
    "ContractedUnitPrice": _number(lambda charge: charge.bill.usd_per_hour),
    "EffectiveCost": _usd,
    "InvoiceId": _nothing,
    "InvoiceIssuerName": _always(AWS),
    "ListCost": _usd,
    "PricingCategory": lambda charge, payer: _pricing(charge),
    "PricingQuantity": _hours,
    "PricingUnit": _always(HOURS),
    "ProviderName": _always(AWS),
    "PublisherName": _always(AWS),
    "RegionId": lambda charge, payer: payer.region,
    "RegionName": lambda charge, payer: payer.region_name,
    "ResourceId": lambda charge, payer: charge.bill.instance_id,
    "ResourceName": _nothing,
    "ResourceType": _always("Instance"),
    "ServiceCategory": _always("Compute"),
    "ServiceName": _always(EC2),
    "ServiceSubcategory": _always("Virtual Machines"),
    "Tags": _tags,
    "x_Use": lambda charge, payer: charge.use.value,
    "x_GpuHours": _number(lambda charge: charge.gpu_hours),
    "x_InstanceType": lambda charge, payer: charge.bill.offering.instance_type,
    "x_Pool": lambda charge, payer: charge.bill.pool,
    "x_JobId": _of_run("job_id"),
    "x_JobName": _of_run("name"),
    "x_User": _of_run("user"),
    "x_Account": _of_run("account"),
    "x_Partition": _of_run("partition"),
}


def _unused(use: PlanUse, payer: Payer) -> Mapping[str, Cell]:
    """What of a commitment no node used on a day; all other columns are null."""
    day = day_of(datetime.fromisoformat(use.day).replace(tzinfo=UTC).timestamp())
    month, usd = month_of(day.starts_at_s), Decimal(repr(use.unused_usd))
    return {
        **dict.fromkeys(("ContractedCost", "EffectiveCost", "ListCost", "PricingQuantity"), usd),
        **dict.fromkeys(("BillingCurrency", "CommitmentDiscountUnit", "PricingUnit"), USD),
        **dict.fromkeys(("InvoiceIssuerName", "ProviderName", "PublisherName"), AWS),
        "BilledCost": Decimal(0),
        "BillingAccountId": payer.account_arn,
        "BillingPeriodEnd": _moment(month.ends_at_s),
        "BillingPeriodStart": _moment(month.starts_at_s),
        "ChargeCategory": "Usage",
        "ChargeDescription": f"{use.name}: what no node used of its commitment",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodEnd": _moment(day.ends_at_s),
        "ChargePeriodStart": _moment(day.starts_at_s),
        "CommitmentDiscountCategory": "Spend",
        "CommitmentDiscountId": use.plan,
        "CommitmentDiscountName": use.name,
        "CommitmentDiscountQuantity": usd,
        "CommitmentDiscountStatus": "Unused",
        "CommitmentDiscountType": payer.plan_type(use.plan),
        "ContractedUnitPrice": Decimal(1),
        "PricingCategory": "Committed",
        "ServiceCategory": "Compute",
        "ServiceName": EC2,
        "ServiceSubcategory": "Virtual Machines",
        "Tags": json.dumps({CLUSTER_TAG: payer.cluster}),
        "x_Use": "unused commitment",
    }


def as_focus(shares: Iterable[Share], payer: Payer, uses: Iterable[PlanUse] = ()) -> str:
    """CSV with a header. Strings are in quotes, so that no reader takes a job's id for a number;
    what is null is empty without them. Nothing is rounded. `uses`: of Savings Plans, each day.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_STRINGS)
    writer.writerow(COLUMNS)
    for charge in charges(shares):
        writer.writerow([of(charge, payer) for of in COLUMNS.values()])
    for row in (_unused(use, payer) for use in uses if use.unused_usd > UNUSED_LEAST_USD):
        writer.writerow([row.get(name) for name in COLUMNS])
    return text.getvalue()


def _moment(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
