"""DynamoDB's transactions at a cost that a benchmark can live with.

moto copies the whole table once for every item of a transaction, to have it back when one fails:
a hundred copies of a table of a thousand nodes. A transaction changes none but its own items, so
that one copy of the table is enough, which shares all the others.
"""

import copy
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from moto.dynamodb.models import DynamoDBBackend
from moto.dynamodb.models.dynamo_type import DynamoType
from moto.dynamodb.models.table import Table

_transact: Callable[..., None] = DynamoDBBackend.transact_write_items


class _Transaction(threading.local):
    """That of this thread: its items, and the tables it has copied; None: there is none."""

    items: list[dict[str, Any]] | None = None
    copies: dict[int, Any]


_running = _Transaction()


def _transact_write_items(backend: Any, transact_items: list[dict[str, Any]]) -> None:
    _running.items, _running.copies = transact_items, {}
    try:
        _transact(backend, transact_items)
    finally:
        _running.items, _running.copies = None, {}


def _copied(table: Any, memo: dict[int, Any]) -> Any:
    """All copies of a transaction are made before it changes anything: one serves for all."""
    if _running.items is None:
        return _copy(table, memo, vars(table).keys())
    if id(table) not in _running.copies:
        made = _copy(table, memo, vars(table).keys() - {"items"})
        made.items = defaultdict(dict, {of: copy.copy(each) for of, each in table.items.items()})
        for hash_key, range_key in _named(table, _running.items):
            _set_apart(made.items, hash_key, range_key)
        _running.copies[id(table)] = made
    return _running.copies[id(table)]


def _copy(table: Any, memo: dict[int, Any], names: Iterable[str]) -> Any:
    made = Table.__new__(Table)
    memo[id(table)] = made
    made.__dict__.update({name: copy.deepcopy(vars(table)[name], memo) for name in names})
    return made


def _named(table: Any, items: list[dict[str, Any]]) -> Iterator[tuple[Any, Any]]:
    """The keys in this table that a transaction names, well-formed or not."""
    for operation in (each for item in items for each in item.values()):
        key = operation.get("Key") or operation.get("Item") or {}
        hash_key, range_key = key.get(table.hash_key_attr), key.get(table.range_key_attr)
        if operation.get("TableName") == table.name and hash_key:
            yield DynamoType(hash_key), DynamoType(range_key) if range_key else None


def _set_apart(items: Any, hash_key: Any, range_key: Any) -> None:
    """A copy of one item, which an update would change in its place."""
    if range_key is None and hash_key in items:
        items[hash_key] = copy.deepcopy(items[hash_key])
    elif hash_key in items and range_key in items[hash_key]:
        items[hash_key][range_key] = copy.deepcopy(items[hash_key][range_key])


def install() -> None:
    backend: Any = DynamoDBBackend
    table: Any = Table
    backend.transact_write_items = _transact_write_items
    table.__deepcopy__ = _copied
