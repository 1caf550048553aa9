"""How the classes are made that only carry values: read-only, equal by value."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import dataclass_transform, overload


@overload
def frozen[T](cls: type[T], /) -> type[T]: ...
@overload
def frozen[T](
    *, order: bool = ..., kw_only: bool = ..., quick: bool = ...
) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen[T](
    cls: type[T] | None = None,
    /,
    *,
    order: bool = False,
    kw_only: bool = False,
    quick: bool = False,
) -> type[T] | Callable[[type[T]], type[T]]:
    """A dataclass whose fields nobody may assign, with slots and a hash.

    `quick`: there is one for each job, a hundred thousand in a long queue, and a frozen one takes
    seven times as long to make. Then mypy alone refuses an assignment; nothing does at run time.
    """
    make = dataclass(slots=True, frozen=not quick, unsafe_hash=True, order=order, kw_only=kw_only)
    return make if cls is None else make(cls)
