"""Many writes that do not hang together, in as few calls as DynamoDB allows."""

from collections.abc import Iterable, Sequence
from itertools import batched
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_condition_failed, is_lost_race, tolerating

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

# DynamoDB takes 100 items in a transaction.
CHUNK = 100


def write(client: "DynamoDBClient", writes: Iterable["TransactWriteItemTypeDef"]) -> None:
    """Puts and updates of different items, in this order as far as calls go.

    Where one of a hundred does not meet its condition, or a rival writes it, they are written
    one by one, and what does not meet its condition then is left as it is. A transaction is
    allowed to whoever may put and update; a batch would need a permission of its own.
    Errors: Throttled, NotAuthorized.
    """
    for chunk in batched(writes, CHUNK, strict=False):
        with aws_call():
            if not _is_written(client, chunk):
                for each in chunk:
                    _write_alone(client, each)


def _is_written(client: "DynamoDBClient", chunk: Sequence["TransactWriteItemTypeDef"]) -> bool:
    """One is written as cheaply alone."""
    if len(chunk) == 1:
        return False
    failed = tolerating(lambda: client.transact_write_items(TransactItems=chunk), is_lost_race)
    return not isinstance(failed, ClientError)


def _write_alone(client: "DynamoDBClient", each: "TransactWriteItemTypeDef") -> None:
    if "Put" in each:
        put = each["Put"]
        tolerating(lambda: client.put_item(**put), is_condition_failed)
    else:
        update = each["Update"]
        tolerating(lambda: client.update_item(**update), is_condition_failed)
