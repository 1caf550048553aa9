"""What reads and writes values of one type, built when it is first used."""

from functools import cached_property

from pydantic import TypeAdapter


class Kind[T]:
    """One type of values. Building its reader takes long, and most functions never need it."""

    def __init__(self, values: type[T]) -> None:
        self._values = values

    @cached_property
    def adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self._values)
