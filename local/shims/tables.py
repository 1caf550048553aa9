"""DynamoDB's transactions at a cost that a benchmark can live with.

moto copies the whole table once for every item of a transaction, to have it back when one fails:
a hundred copies of a table of a thousand nodes.
"""

import copy
import threading
from collections.abc import Callable
from typing import Any

from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.table import Table

_transact: Callable[..., None] = DynamoDBBackend.transact_write_items


class _Copies(threading.local):
    """The tables that the transaction of this thread has copied; None: there is none."""

    made: dict[int, Any] | None = None


_copies = _Copies()


def _transact_write_items(backend: Any, transact_items: list[dict[str, Any]]) -> None:
    _copies.made = {}
    try:
        _transact(backend, transact_items)
    finally:
        _copies.made = None


def _copied(table: Any, memo: dict[int, Any]) -> Any:
    """All copies of a transaction are made before it changes anything: one serves for all."""
    if _copies.made is not None and id(table) in _copies.made:
        return _copies.made[id(table)]
    made = Table.__new__(Table)
    memo[id(table)] = made
    made.__dict__.update({name: copy.deepcopy(of, memo) for name, of in vars(table).items()})
    if _copies.made is not None:
        _copies.made[id(table)] = made
    return made


def install() -> None:
    backend: Any = DynamoDBBackend
    table: Any = Table
    backend.transact_write_items = _transact_write_items
    table.__deepcopy__ = _copied
