"""What a version writes, as samples and schemas: `python -m tests.wire.version_samples`.

Run with a version's own code, it writes what the next version is held against: for every kind of
message and record a sample with every field filled, and the JSON schema by which it is read.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date
from enum import Enum
from itertools import count
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeAliasType, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter

from tidegate.core.model import calendar, ledger, orders, pool_history, resting, stuck
from tidegate.core.model.digest import Digest
from tidegate.core.model.ec2 import Market

PREVIOUS = Path(__file__).parent / "previous_version.json"

# What the version before does not know, and nobody writes unless the cluster file names it: such a
# file is deployed after the version (docs/recovery.md). At a release this is emptied.
NAMED_LATER: tuple[Enum, ...] = (Market.INTERRUPTIBLE,)

type Samples = dict[str, dict[str, Any]]


def kinds() -> dict[str, type]:
    """What head and functions tell each other, and what the ledger keeps between versions."""
    records = ("Order", "LaunchRecord", "NodeRecord", "PendingOrder", "Cordon", "Stuck")
    found: dict[str, type] = {"Digest": Digest}
    for module, names in (
        (orders, records),
        (ledger, (*records, "InterruptionLoss")),
        (calendar, ("ScheduleOverride",)),
        (pool_history, ("PoolHistory",)),
        (resting, ("Resting",)),
        (stuck, ("Stuck",)),
    ):
        found |= {name: getattr(module, name) for name in names if hasattr(module, name)}
    return found


def samples() -> Samples:
    """Kind -> its `sample` and its `schema`."""
    made = {}
    for name, kind in kinds().items():
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        value = filled(kind, numbers=count(1000, -1))
        made[name] = {
            "sample": json.loads(adapter.dump_json(value)),
            "schema": adapter.json_schema(),
        }
    return made


def filled(kind: Any, numbers: "count[int]") -> Any:
    """A value of a type, with every field filled, no two numbers and texts alike."""
    if isinstance(kind, TypeAliasType):
        return filled(kind.__value__, numbers)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        names = [each.name for each in fields(kind) if each.init]
        return kind(**{name: filled(hints[name], numbers) for name in names})  # type: ignore[operator]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return filled(next(each for each in arguments if each is not NoneType), numbers)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return tuple(filled(each, numbers) for each in arguments)
    if origin in (tuple, frozenset, Sequence):
        return (origin if origin is not Sequence else tuple)([filled(arguments[0], numbers)])
    if origin in (Mapping, dict):
        return {filled(arguments[0], numbers): filled(arguments[1], numbers)}
    return _single(kind, numbers)


def _single(kind: Any, numbers: "count[int]") -> Any:
    number = next(numbers)
    if kind is bool:
        return True
    if kind in (int, float):
        return kind(number)
    if kind is str:
        return f"s{number}"
    if kind is date:
        return date(2026, 1, 1)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [each for each in kind if each not in NAMED_LATER][-1]
    raise TypeError(f"no sample of {kind}")


if __name__ == "__main__":
    print(json.dumps(samples(), indent=1, sort_keys=True))
