"""Interruptions in the ledger's table: a call for a hundred nodes, since a storm has a thousand."""

from collections.abc import Mapping
from itertools import batched
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_condition_failed, tolerating
from tidegate.adapters.dynamodb_writes import Pause, sleep, transact
from tidegate.adapters.ledger_items import key, number, packed
from tidegate.core.model.ledger import InterruptionLoss, Phase
from tidegate.wire.records import INTERRUPTION_LOSS, encode

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import UpdateTypeDef

# DynamoDB takes 100 items in a transaction.
CHUNK = 100


def interrupt(
    client: "DynamoDBClient",
    table: str,
    reclaim_at_s: Mapping[str, float],
    interruption_losses: Mapping[str, InterruptionLoss],
    pause: Pause = sleep,
) -> frozenset[str]:
    """Note when EC2 takes these nodes back; those that could be noted. Errors: as `aws_call`.

    All of a hundred in one transaction; where one of them is unknown, past that, or being
    written by somebody else, one by one.
    """
    noted: set[str] = set()
    for chunk in batched(sorted(reclaim_at_s.items()), CHUNK, strict=False):
        updates = {
            name: _update(table, name, at_s, interruption_losses.get(name, InterruptionLoss()))
            for name, at_s in chunk
        }
        with aws_call():
            if transact(client, [{"Update": each} for each in updates.values()], pause) is None:
                noted.update(updates)
            else:
                noted.update(name for name, each in updates.items() if _alone(client, each))
    return frozenset(noted)


def _alone(client: "DynamoDBClient", update: "UpdateTypeDef") -> bool:
    answer = tolerating(lambda: client.update_item(**update), is_condition_failed)
    return not isinstance(answer, ClientError)


def _update(
    table: str, instance_id: str, reclaim_at_s: float, interruption_loss: InterruptionLoss
) -> "UpdateTypeDef":
    return {
        "TableName": table,
        "Key": packed(key(f"node#{instance_id}")),
        "UpdateExpression": "SET phase = :phase, reclaim_at_s = :reclaim_at_s, "
        "interrupted_in = if_not_exists(interrupted_in, phase), "
        "interruption_loss = if_not_exists(interruption_loss, :interruption_loss)",
        "ConditionExpression": "attribute_exists(pk) AND phase <= :phase",
        "ExpressionAttributeValues": packed(
            {
                ":phase": int(Phase.INTERRUPTED),
                ":reclaim_at_s": number(reclaim_at_s),
                ":interruption_loss": encode(INTERRUPTION_LOSS, interruption_loss),
            }
        ),
    }
