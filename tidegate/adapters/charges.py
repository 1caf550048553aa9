"""What nodes have cost, as counters in the ledger: an item per day and per month.

    spent#2026-11-21    an attribute for each scope, in USD; DynamoDB's numbers are decimal
    spent#2026-11       the same for a month
    lost#2026-11        nodes that AWS took back, what that did to jobs, and orphans

Beside them each stretch is a line of the bill, under the day of its end, in a partition of its own,
which no look reads:

    bill#2026-11-21     INSTANCE#SECONDS of its begin: what it was, and its price as JSON

A node's end, or its new price, and what it adds to the counters are one transaction, on the
condition that the node has not ended and has the price that was read: whatever is repeated counts
once.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from itertools import batched
from typing import TYPE_CHECKING

from tidegate.adapters.aws_errors import aws_call, cancellation_reasons
from tidegate.adapters.dynamodb_writes import Pause, sleep, transact
from tidegate.adapters.ledger_items import OPEN_NAME, Item, key, number, packed, unpacked
from tidegate.core.model.errors import Throttled
from tidegate.core.model.ledger import Bill, MonthlyLosses, Stretch
from tidegate.core.offers.spend import MONTHS_CHARGED_S, day_of, kept_until_s, month_of
from tidegate.wire.records import BILL, COMMITTED, decode, encode

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

# DynamoDB takes 100 items in a transaction, and a stretch is two: the node and its line of the
# bill. A node that ran for a year adds to 16 counters.
CHUNK = 40

# A billionth of a dollar or GPU-hour; sums of rounded numbers are exact in decimals.
DIGITS = 9


def charge(
    client: "DynamoDBClient", table: str, stretches: Sequence[Stretch], pause: Pause = sleep
) -> None:
    """Count each stretch of a node that is known and that has not been counted.

    Errors: Throttled (also when a rival holds the counters, or has noted another price than the
    end of a node was reckoned with), NotAuthorized.
    """
    for chunk in batched(stretches, CHUNK, strict=False):
        if not _is_counted(client, table, chunk, pause):
            for each in chunk:
                if not _is_counted(client, table, (each,), pause):
                    raise Throttled("another planner writes the counters of what was spent")


def _is_counted(
    client: "DynamoDBClient", table: str, stretches: Sequence[Stretch], pause: Pause
) -> bool:
    """All of them now, or the only one before; False: one of several was, or a rival writes."""
    writes = [
        *(_end_or_new_price(table, each) for each in stretches),
        *(_line(table, each.bill) for each in stretches if each.bill),
        *_counters(table, stretches),
        *_interruption_losses(table, stretches),
    ]
    with aws_call():
        failed = transact(client, writes, pause)
    if failed is None:
        return True
    reasons = cancellation_reasons(failed)
    if len(stretches) > 1 or any(each.get("Code") == "TransactionConflict" for each in reasons):
        return False
    found = unpacked(reasons[0].get("Item", {}))
    is_end = stretches[0].next_usd_per_hour is None
    return not found or "ended_at_s" in found or not is_end


def _end_or_new_price(table: str, stretch: Stretch) -> "TransactWriteItemTypeDef":
    """The node ends, or has another price from now on."""
    values: Item = {":until_s": number(stretch.until_s)}
    change = "SET ended_at_s = :until_s"
    if stretch.next_usd_per_hour is not None:
        change = "SET priced_at_s = :until_s, usd_per_hour = :usd, committed = :committed"
        values[":usd"] = number(stretch.next_usd_per_hour)
        paid = stretch.next_committed
        values[":committed"] = encode(COMMITTED, paid) if paid else ""
    is_as_read = "attribute_not_exists(priced_at_s)"
    if stretch.priced_at_s is not None:
        is_as_read = "priced_at_s = :priced_at_s"
        values[":priced_at_s"] = number(stretch.priced_at_s)
    return {
        "Update": {
            "TableName": table,
            "Key": packed(key(f"node#{stretch.instance_id}")),
            "UpdateExpression": change,
            "ConditionExpression": "attribute_exists(pk) AND attribute_not_exists(ended_at_s) "
            f"AND {is_as_read}",
            "ExpressionAttributeValues": packed(values),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


def bills(client: "DynamoDBClient", table: str, days: Collection[str]) -> tuple[Bill, ...]:
    """The lines that ended on these days. Errors: Throttled, NotAuthorized."""
    with aws_call():
        return tuple(line for day in sorted(set(days)) for line in _lines(client, table, day))


def _lines(client: "DynamoDBClient", table: str, day: str) -> Iterator[Bill]:
    pages = client.get_paginator("query").paginate(
        TableName=table,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues=packed({":pk": f"bill#{day}"}),
    )
    for page in pages:
        yield from (decode(BILL, unpacked(item)["body"]) for item in page["Items"])


def _line(table: str, bill: Bill) -> "TransactWriteItemTypeDef":
    day = day_of(bill.until_s)
    item = {
        "pk": f"bill#{day.name}",
        "sk": f"{bill.instance_id}#{bill.since_s:.3f}",
        "body": encode(BILL, bill),
        "expires_at": int(bill.until_s + MONTHS_CHARGED_S),
    }
    return {"Put": {"TableName": table, "Item": packed(item)}}


def _counters(table: str, stretches: Sequence[Stretch]) -> list["TransactWriteItemTypeDef"]:
    """One write per period: a transaction may touch an item only once."""
    sums: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for each in stretches:
        for one in each.charges:
            sums[one.period][one.scope] += one.usd
    return [_counter(table, period, scopes) for period, scopes in sorted(sums.items())]


def _interruption_losses(
    table: str, stretches: Sequence[Stretch]
) -> Iterator["TransactWriteItemTypeDef"]:
    """One write per month in which AWS took nodes back, or some ended themselves."""
    months = {month_of(each.until_s).name for each in stretches}
    for month in sorted(months):
        none = MonthlyLosses(month, 0, 0.0, 0)
        ours = (each for each in stretches if month_of(each.until_s).name == month)
        added = reduce(MonthlyLosses.plus, ours, none)
        if added == none:
            continue
        yield {
            "Update": {
                "TableName": table,
                "Key": packed(key(f"lost#{month}")),
                "UpdateExpression": "SET expires_at = :expires_at, #open = :open "
                "ADD nodes :nodes, lost_gpu_hours :lost_gpu_hours, saved_jobs :saved_jobs, "
                "orphans :orphans",
                "ExpressionAttributeNames": OPEN_NAME,
                "ExpressionAttributeValues": packed(
                    {
                        ":open": 1,
                        ":expires_at": int(kept_until_s(month)),
                        ":nodes": added.nodes,
                        ":lost_gpu_hours": number(round(added.lost_gpu_hours, DIGITS)),
                        ":saved_jobs": added.saved_jobs,
                        ":orphans": added.orphans,
                    }
                ),
            }
        }


def _counter(table: str, period: str, scopes: dict[str, float]) -> "TransactWriteItemTypeDef":
    names = {f"#s{at}": scope for at, scope in enumerate(scopes)}
    added = {f":s{at}": number(round(usd, DIGITS)) for at, usd in enumerate(scopes.values())}
    adds = ", ".join(f"{name} :{name[1:]}" for name in names)
    return {
        "Update": {
            "TableName": table,
            "Key": packed(key(f"spent#{period}")),
            "UpdateExpression": f"SET expires_at = :expires_at, #open = :open ADD {adds}",
            "ExpressionAttributeNames": {**names, **OPEN_NAME},
            "ExpressionAttributeValues": packed(
                {":expires_at": int(kept_until_s(period)), ":open": 1, **added}
            ),
        }
    }
