"""How the classes are made that only carry values: read-only, equal by value, quick to make."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import dataclass_transform, overload


@overload
def frozen[T](cls: type[T], /) -> type[T]: ...
@overload
def frozen[T](*, order: bool = ..., kw_only: bool = ...) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen[T](
    cls: type[T] | None = None, /, *, order: bool = False, kw_only: bool = False
) -> type[T] | Callable[[type[T]], type[T]]:
    """A dataclass whose fields mypy lets nobody assign, with slots and a hash.

    Nothing stops an assignment at run time: there a frozen dataclass takes eight times as long
    to make, and a plan makes 100,000 of them.
    """
    make = dataclass(slots=True, unsafe_hash=True, order=order, kw_only=kw_only)
    return make if cls is None else make(cls)
