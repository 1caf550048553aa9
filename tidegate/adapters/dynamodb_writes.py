"""Transactions, no faster than a partition takes them; and many writes that do not hang together,
in as few calls as DynamoDB allows.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import batched
from time import sleep as sleep
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import (
    aws_call,
    is_condition_failed,
    is_lost_race,
    is_too_fast,
    tolerating,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

type Pause = Callable[[float], None]

# A partition takes 1,000 write units a second, whatever the table has, and the ledger is one
# partition: a hundred nodes are some 400 units. What comes faster is cancelled, and botocore does
# not try a cancelled transaction again. Sources: DynamoDB developer guide, "Best practices for
# designing and using partition keys"; API reference, TransactWriteItems.
PAUSES_S = (0.2, 0.4, 0.8, 1.6)

# DynamoDB takes 100 items in a transaction.
CHUNK = 100


def transact(
    client: "DynamoDBClient",
    writes: "Sequence[TransactWriteItemTypeDef]",
    pause: Pause = sleep,
    **more: Any,
) -> ClientError | None:
    """All of them, or the cancellation of a lost race. Errors: as botocore."""
    for pause_s in PAUSES_S:
        answer = tolerating(
            lambda: client.transact_write_items(TransactItems=writes, **more),
            lambda error: is_lost_race(error) or is_too_fast(error),
        )
        if not isinstance(answer, ClientError):
            return None
        if not is_too_fast(answer):
            return answer
        pause(pause_s)
    last = tolerating(
        lambda: client.transact_write_items(TransactItems=writes, **more), is_lost_race
    )
    return last if isinstance(last, ClientError) else None


def write(
    client: "DynamoDBClient", writes: Iterable["TransactWriteItemTypeDef"], pause: Pause = sleep
) -> None:
    """Puts and updates of different items, in this order as far as calls go.

    Where one of a hundred does not meet its condition, or a rival writes it, they are written
    one by one, and what does not meet its condition then is left as it is. A transaction is
    allowed to whoever may put and update; a batch would need a permission of its own.
    Errors: Throttled, NotAuthorized.
    """
    for chunk in batched(writes, CHUNK, strict=False):
        with aws_call():
            if not _is_written(client, chunk, pause):
                for each in chunk:
                    _write_alone(client, each)


def _is_written(
    client: "DynamoDBClient", chunk: Sequence["TransactWriteItemTypeDef"], pause: Pause
) -> bool:
    """One is written as cheaply alone."""
    return len(chunk) > 1 and transact(client, chunk, pause) is None


def _write_alone(client: "DynamoDBClient", each: "TransactWriteItemTypeDef") -> None:
    if "Put" in each:
        put = each["Put"]
        tolerating(lambda: client.put_item(**put), is_condition_failed)
    else:
        update = each["Update"]
        tolerating(lambda: client.update_item(**update), is_condition_failed)
