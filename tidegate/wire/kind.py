"""What reads and writes values of one type, built when it is first used."""

from functools import cached_property
from typing import Any, TypeAliasType

from pydantic import TypeAdapter

from tidegate.wire.finite import FINITE


class Kind[T]:
    """One type of values. Building its reader takes long, and most functions never need it."""

    def __init__(self, values: type[T]) -> None:
        self._values = values

    @cached_property
    def adapter(self) -> TypeAdapter[T]:
        """Its numbers are finite: those of everything in it too.

        Classes of the core have no configuration of pydantic's own; an alias passes it on.
        """
        alias: Any = TypeAliasType(self._values.__name__, self._values)
        return TypeAdapter(alias, config=FINITE)
