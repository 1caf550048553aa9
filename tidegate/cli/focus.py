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
from tidegate.core.offers.allocation import Run, Share, TimeUse
from tidegate.core.offers.spend import Period, day_of, month_of

AWS = "AWS"
HOURS = "Hours"
# What AWS sets at each moment is dynamic, what was agreed on or stands in a list is standard.
PRICING = {Market.SPOT: "Dynamic"}


@frozen
class Payer:
    """Whose cluster it is. `account_arn`: as FOCUS wants identifiers, "fully-qualified".
    `region_name`: AWS's words for the region.
    """

    cluster: str
    account_arn: str
    region: str
    region_name: str


@frozen
class FocusCharge:
    """What one use of a node on one day cost, at one price. `run` None: nobody's."""

    bill: Bill
    use: TimeUse
    run: Run | None
    day: Period
    hours: float
    gpu_hours: float

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
            hours = usd / bill.usd_per_hour
            yield FocusCharge(bill, use, run, day_of(starts_at_s), hours, gpu_hours)


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


def _tags(charge: FocusCharge, payer: Payer) -> str:
    tags = {CLUSTER_TAG: payer.cluster, POOL_TAG: charge.bill.pool}
    if run := charge.run:
        tags |= {ACCOUNT_TAG: run.account, USER_TAG: run.user, JOB_TAG: run.job_id}
    return json.dumps({key: value for key, value in tags.items() if value})


# What is committed to is paid for whether nodes use it or not, so that it is no charge of theirs.
OF_COMMITMENTS = tuple(
    f"CommitmentDiscount{each}"
    for each in ("Category", "Id", "Name", "Quantity", "Status", "Type", "Unit")
)
# What a price list would say is not known of a past day: no ListUnitPrice, SkuId or SkuPriceId.
COLUMNS: Mapping[str, Column] = {
    "AvailabilityZone": lambda charge, payer: charge.bill.offering.zone,
    "BilledCost": _usd,
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
    **dict.fromkeys(OF_COMMITMENTS, _nothing),
    "ConsumedQuantity": _hours,
    "ConsumedUnit": _always(HOURS),
    "ContractedCost": _usd,
    "ContractedUnitPrice": _number(lambda charge: charge.bill.usd_per_hour),
    "EffectiveCost": _usd,
    "InvoiceId": _nothing,
    "InvoiceIssuerName": _always(AWS),
    "ListCost": _usd,
    "PricingCategory": lambda charge, payer: PRICING.get(charge.bill.offering.market, "Standard"),
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
    "ServiceName": _always("Amazon Elastic Compute Cloud"),
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


def as_focus(shares: Iterable[Share], payer: Payer) -> str:
    """CSV with a header. Strings are in quotes, so that no reader takes a job's id for a number;
    what is null is empty without them. Nothing is rounded.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_STRINGS)
    writer.writerow(COLUMNS)
    for charge in charges(shares):
        writer.writerow([of(charge, payer) for of in COLUMNS.values()])
    return text.getvalue()


def _moment(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
