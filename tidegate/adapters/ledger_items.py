"""The ledger's items: what stands in them, and DynamoDB's own form of it."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import cancellation_reasons
from tidegate.adapters.dynamodb_values import from_dynamodb, to_dynamodb
from tidegate.core.model.digest import Stamp
from tidegate.core.model.events import GpuReset, NodeOrphaned
from tidegate.core.model.ledger import (
    Charge,
    LaunchRecord,
    LaunchStatus,
    MonthlyLosses,
    NodeRecord,
    Phase,
)
from tidegate.core.model.market import NEVER_SEEN, SeenMarket
from tidegate.core.model.orders import PendingOrder
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import RestKey
from tidegate.core.model.snapshot import Epoch
from tidegate.ports import Finished
from tidegate.wire.records import (
    COMMITTED,
    CORDON,
    INTERRUPTION_LOSS,
    LAUNCH,
    NODE,
    OPEN,
    ORDER,
    POOL_HISTORY,
    SEEN_MARKET,
    decode,
    encode,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef, UpdateTypeDef

PARTITION = "ledger"

# `open` is a reserved word of expressions.
OPEN_NAME: Mapping[str, str] = {"#open": OPEN}

type Item = dict[str, Any]


def key(sk: str) -> Item:
    return {"pk": PARTITION, "sk": sk}


def open_key(sk: str) -> Item:
    """Of an item that looks read."""
    return key(sk) | {OPEN: 1}


def number(value: float) -> Decimal:
    """DynamoDB's numbers are decimal; `repr` gives the shortest text that reads back equal."""
    return Decimal(repr(value))


def packed(item: Item) -> Item:
    return {name: to_dynamodb(value) for name, value in item.items()}


def unpacked(item: Mapping[str, Any]) -> Item:
    return {name: from_dynamodb(value) for name, value in item.items()}


def put_if_absent(table: str, item: Item) -> "TransactWriteItemTypeDef":
    return {
        "Put": {
            "TableName": table,
            "Item": packed(item),
            "ConditionExpression": "attribute_not_exists(pk)",
        }
    }


def node_put(table: str, node: NodeRecord) -> "TransactWriteItemTypeDef":
    """Of a node that nobody knows yet. One that was started takes the place of what it was when
    it was stopped; no repeat of that, once it has been noted to be stopped again.
    """
    put = put_if_absent(table, node_item(node))
    if node.is_started:
        put["Put"]["ConditionExpression"] += (
            " OR (attribute_exists(stopped_at_s)"
            " AND (attribute_not_exists(launch) OR launch <> :launch))"
        )
        put["Put"]["ExpressionAttributeValues"] = packed({":launch": node.launch_id})
    return put


def node_item(node: NodeRecord) -> Item:
    makes = key if node.phase is Phase.TERMINATED else open_key
    item = makes(f"node#{node.instance_id}") | {
        "body": encode(NODE, node),
        "phase": int(node.phase),
        "gated_for": node.gated_for,
        "pending": encode(ORDER, node.order) if node.order else "",
        "cordon": encode(CORDON, node.cordon) if node.cordon else "",
        "launch": node.launch_id,
    }
    if node.stopped_at_s is not None:
        item["stopped_at_s"] = number(node.stopped_at_s)
    if node.reclaim_at_s is not None:
        item["reclaim_at_s"] = number(node.reclaim_at_s)
    if node.priced_at_s is not None:
        item["priced_at_s"] = number(node.priced_at_s)
    if node.ended_at_s is not None:
        item["ended_at_s"] = number(node.ended_at_s)
    if node.interrupted_in is not None:
        item["interrupted_in"] = int(node.interrupted_in)
    if node.joined_at_s is not None:
        item["joined_at_s"] = number(node.joined_at_s)
    if node.silent_s is not None:
        item["silent_s"] = number(node.silent_s)
    if node.reset_said:
        item["reset_said"] = node.reset_said
    if node.committed is not None:
        item["committed"] = encode(COMMITTED, node.committed)
    if node.interruption_loss is not None:
        item["interruption_loss"] = encode(INTERRUPTION_LOSS, node.interruption_loss)
    return item


def told_attribute(told: NodeOrphaned | GpuReset) -> tuple[str, Any]:
    """Where what a node says of itself is noted, and how."""
    match told:
        case NodeOrphaned(silent_s=silent_s):
            return "silent_s", number(silent_s)
        case GpuReset():
            return "reset_said", told.sentence


def launch_item(record: LaunchRecord) -> Item:
    makes = open_key if record.status is LaunchStatus.RECORDED else key
    return makes(f"launch#{record.launch.launch_id}") | {
        "status": record.status.value,
        "body": encode(LAUNCH, record),
    }


def launch(item: Item) -> LaunchRecord:
    recorded = decode(LAUNCH, item["body"])
    taken_at_s = float(item["taken_at_s"]) if "taken_at_s" in item else None
    return replace(recorded, taken_at_s=taken_at_s)


def node(item: Item) -> NodeRecord:
    launched = decode(NODE, item["body"])
    # The word of version 0.1, whose note is the first where both are there. To be read until no
    # node is left that it saw interrupted: an hour after the deployment, at the latest.
    loss = item.get("toll") or item.get("interruption_loss")
    return replace(
        launched,
        usd_per_hour=float(item.get("usd_per_hour", launched.usd_per_hour)),
        priced_at_s=float(item["priced_at_s"]) if "priced_at_s" in item else None,
        phase=Phase(int(item["phase"])),
        gated_for=item["gated_for"],
        reclaim_at_s=float(item["reclaim_at_s"]) if "reclaim_at_s" in item else None,
        order=decode(ORDER, item["pending"]) if item["pending"] else None,
        interrupted_in=Phase(int(item["interrupted_in"])) if "interrupted_in" in item else None,
        # Written since cordons exist.
        cordon=decode(CORDON, item["cordon"]) if item.get("cordon") else None,
        ended_at_s=float(item["ended_at_s"]) if "ended_at_s" in item else None,
        joined_at_s=float(item["joined_at_s"]) if "joined_at_s" in item else None,
        silent_s=float(item["silent_s"]) if "silent_s" in item else None,
        reset_said=item.get("reset_said", ""),
        stopped_at_s=float(item["stopped_at_s"]) if "stopped_at_s" in item else None,
        interruption_loss=decode(INTERRUPTION_LOSS, loss) if loss else None,
        committed=decode(COMMITTED, item["committed"]) if item.get("committed") else None,
    )


def spent(item: Item) -> Iterator[Charge]:
    """The counters of one period: an attribute for each scope."""
    period = item["sk"].removeprefix("spent#")
    for name, usd in item.items():
        if name not in ("pk", "sk", "expires_at", OPEN):
            yield Charge(period, name, float(usd))


def losses(item: Item) -> MonthlyLosses:
    """The counters of one month."""
    month = item["sk"].removeprefix("lost#")
    hours, orphans = float(item["lost_gpu_hours"]), int(item.get("orphans", 0))
    return MonthlyLosses(month, int(item["nodes"]), hours, int(item["saved_jobs"]), orphans)


def stamp_attributes(stamp: Stamp) -> Item:
    return {
        "head": stamp.head_instance_id,
        "started_at_s": number(stamp.agent_started_at_s),
        "sequence": stamp.sequence,
    }


def stamp(item: Item) -> Stamp:
    return Stamp(item["head"], float(item["started_at_s"]), int(item["sequence"]))


def is_own_commit(failed: ClientError, token: str) -> bool:
    """Whether the epoch that barred the commit was moved by the same commit before."""
    epoch_item = unpacked(cancellation_reasons(failed)[0].get("Item", {}))
    return bool(epoch_item) and epoch_item["committed_by"] == token


def epoch_update(table: str, epoch: Epoch, token: str) -> "TransactWriteItemTypeDef":
    """Move the epoch on, unless somebody has."""
    return {
        "Update": {
            "TableName": table,
            "Key": packed(key("epoch")),
            "UpdateExpression": "SET epoch = :next, committed_by = :token",
            "ConditionExpression": "lineage = :lineage AND epoch = :epoch",
            "ExpressionAttributeValues": packed(
                {
                    ":lineage": epoch.lineage,
                    ":epoch": epoch.number,
                    ":next": epoch.number + 1,
                    ":token": token,
                }
            ),
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


def order_update(table: str, instance_id: str, order: PendingOrder | None) -> "UpdateTypeDef":
    """Remember the order on its way to a node that is known; None: it has arrived."""
    return {
        "TableName": table,
        "Key": packed(key(f"node#{instance_id}")),
        "UpdateExpression": "SET pending = :pending",
        "ConditionExpression": "attribute_exists(pk)",
        "ExpressionAttributeValues": packed({":pending": encode(ORDER, order) if order else ""}),
    }


def phase_update(
    table: str, instance_id: str, phase: Phase, now_s: float, kept_s: float
) -> "UpdateTypeDef":
    """A node that is known only goes forward; the record of one that is gone expires."""
    values: Item = {":phase": int(phase)}
    update: UpdateTypeDef = {
        "TableName": table,
        "Key": packed(key(f"node#{instance_id}")),
        "UpdateExpression": "SET phase = :phase",
        "ConditionExpression": "attribute_exists(pk) AND phase < :phase",
    }
    if phase is Phase.JOINED:
        values[":now_s"] = number(now_s)
        update["UpdateExpression"] += ", joined_at_s = :now_s"
    if phase is Phase.TERMINATED:
        values[":expires_at"] = int(now_s + kept_s)
        update["UpdateExpression"] += ", expires_at = :expires_at REMOVE #open"
        update["ExpressionAttributeNames"] = OPEN_NAME
    return {**update, "ExpressionAttributeValues": packed(values)}


def stop_update(table: str, instance_id: str, now_s: float) -> "UpdateTypeDef":
    """A node that is known and has not ended is let go, to be stopped; the first time counts."""
    return {
        "TableName": table,
        "Key": packed(key(f"node#{instance_id}")),
        "UpdateExpression": "SET phase = :released, stopped_at_s = :now_s",
        "ConditionExpression": "attribute_exists(pk) AND phase <= :released"
        " AND attribute_not_exists(stopped_at_s)",
        "ExpressionAttributeValues": packed(
            {":released": int(Phase.RELEASED), ":now_s": number(now_s)}
        ),
    }


def ungating_update(table: str, instance_id: str) -> "UpdateTypeDef":
    """A node that is known waits for no gang any more."""
    return {
        "TableName": table,
        "Key": packed(key(f"node#{instance_id}")),
        "UpdateExpression": "SET gated_for = :none",
        "ConditionExpression": "attribute_exists(pk)",
        "ExpressionAttributeValues": packed({":none": ""}),
    }


def closing_update(table: str, finished: Finished, expires_at: int) -> "UpdateTypeDef":
    """The launch is not in doubt any more; one that is not known, or closed, stays as it is."""
    return {
        "TableName": table,
        "Key": packed(key(f"launch#{finished.launch_id}")),
        "UpdateExpression": "SET #status = :status, expires_at = :expires_at REMOVE #open",
        "ConditionExpression": "attribute_exists(pk) AND #status = :recorded",
        "ExpressionAttributeNames": {"#status": "status", **OPEN_NAME},
        "ExpressionAttributeValues": packed(
            {
                ":status": finished.status.value,
                ":expires_at": expires_at,
                ":recorded": LaunchStatus.RECORDED.value,
            }
        ),
    }


def commit_token(
    planner: str,
    epoch: Epoch,
    launches: Sequence[LaunchRecord],
    going: Mapping[str, PendingOrder],
) -> str:
    """Names this commit of this planner: equal only when everything in it is equal."""
    told = [planner, str(epoch), *(encode(LAUNCH, record) for record in launches)]
    told += [f"{name} {encode(ORDER, order)}" for name, order in sorted(going.items())]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:36]


def pool_histories(by_kind: Mapping[str, Sequence[Item]]) -> tuple[PoolHistory, ...]:
    """Version 0.1 called them `learnt`, and they never expire: such an item counts, for as long as
    a cluster that it wrote to may be updated (before 1.0), until its pool has a newer one.
    """
    items = (*by_kind.get("learnt", ()), *by_kind.get("pool_history", ()))
    found = (decode(POOL_HISTORY, one["body"]) for one in items)
    return tuple({each.pool: each for each in found}.values())


def learnt_put(pool_history: PoolHistory) -> dict[str, Any]:
    """What `put_item` needs to note it where nobody has noted anything since it was read.

    Version 0.1 did not count: such an item is replaced by whoever comes first.
    """
    noted = pool_history.noted
    body = encode(POOL_HISTORY, replace(pool_history, noted=noted + 1))
    item = open_key(f"pool_history#{pool_history.pool}") | {"body": body, "noted": noted + 1}
    return {
        "Item": packed(item),
        "ConditionExpression": "attribute_not_exists(noted) OR noted = :noted",
        "ExpressionAttributeValues": packed({":noted": noted}),
    }


def seen_market(by_kind: Mapping[str, Sequence[Item]]) -> SeenMarket:
    for item in by_kind.get("market", ()):
        return decode(SEEN_MARKET, item["body"])
    return NEVER_SEEN


def resting_sk(rest: RestKey) -> str:
    """Version 0.1 wrote no template here: such items are gone six hours after a deployment."""
    offering, pool, template, reservation, subnet = rest
    into = f"in {reservation}" if reservation else ""  # no pool has a space in its name
    full = f"full {subnet}" if subnet else ""
    return "#".join(("resting", str(offering), *filter(None, (pool, template, into, full))))
