"""Core values as JSON that people read and write: pydantic models made from the dataclasses.

Each model has the fields and defaults of its class, stricter values than the class itself
(no negative counts, finite times) and what `#:` says of every field, for the schema. What a
class gains appears in its model by itself.
"""

import dataclasses
import inspect
import re
from collections.abc import Collection, Mapping
from enum import Enum, IntEnum
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import Field, TypeAdapter, create_model

from tidegate.core.model.slurm import NodeState
from tidegate.wire.section import Section

# The largest that every reader of JSON has exactly (RFC 8259, section 6); far beyond any count,
# and small enough that the planner's sums and products stay numbers.
INTEGER_MAX = 2**53
_NUMBERS = {
    int: Annotated[int, Field(ge=0, le=INTEGER_MAX)],
    float: Annotated[float, Field(ge=0)],
}
_ABOVE = re.compile(r"    #: (.*)")
_FIELD = re.compile(r"    (\w+): [^#]*(?:#: (.*))?")
_STATE = Annotated[str, Field(pattern=r"^[A-Za-z_]+[*]?(\+[A-Za-z_]+[*]?)*$")]


class Described(Section):
    """The base of a model that was made from a class of the core."""


class Describer:
    """Makes models, once per class; nested classes get models of their own."""

    def __init__(self) -> None:
        self.models: dict[type, type[Described]] = {}

    def model(self, core: type) -> type[Described]:
        """The model of a dataclass."""
        if core not in self.models:
            found = self.fields(core)
            made = create_model(core.__name__, __base__=Described, __doc__=core.__doc__, **found)
            self.models[core] = made
        return self.models[core]

    def fields(
        self,
        core: type,
        only: Collection[str] | None = None,
        defaults: Mapping[str, object] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """The fields of a dataclass for `create_model`; `only` these, with more defaults."""
        hints = get_type_hints(core)
        texts = field_texts(core)
        found: dict[str, Any] = {}
        for each in dataclasses.fields(core):
            if only is None or each.name in only:
                kind = self._kind(hints[each.name])
                default = _default(each, kind, defaults)
                found[each.name] = (kind, Field(description=texts.get(each.name, ""), **default))
        return found

    def _kind(self, hint: Any) -> Any:
        """The type of a field as JSON has it."""
        if hint is NodeState:
            return _STATE
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            return self.model(hint)
        if isinstance(hint, type) and issubclass(hint, IntEnum):
            return Literal[tuple(each.name.lower() for each in hint)]
        if get_origin(hint) in (Union, UnionType):
            return Union[tuple(self._kind(part) for part in get_args(hint))]  # noqa: UP007
        if get_origin(hint) is tuple:
            parts = get_args(hint)
            kinds = tuple(part if part is ... else self._kind(part) for part in parts)
            return tuple.__class_getitem__(kinds)
        return _NUMBERS.get(hint, hint)


def field_texts(core: type) -> dict[str, str]:
    """What `#:` says of each field of a class, beside it or in the lines above it."""
    texts: dict[str, str] = {}
    above: list[str] = []
    for line in inspect.getsource(core).splitlines():
        if text := _ABOVE.match(line):
            above.append(text[1])
        elif found := _FIELD.match(line):
            beside = [found[2]] if found[2] else []
            texts[found[1]] = " ".join(above + beside)
            above = []
    return texts


def _default(
    field: "dataclasses.Field[Any]", kind: Any, more: Mapping[str, object]
) -> dict[str, Any]:
    if field.name in more:
        value = more[field.name]
    elif field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    else:
        return {}
    return {"default": TypeAdapter(kind).validate_python(as_json(value))}


def as_json(value: object) -> Any:
    """A core value as plain lists, mappings, texts and numbers."""
    match value:
        case NodeState():
            return str(value)
        case IntEnum():
            return value.name.lower()
        case Enum():
            return value.value
        case tuple() | list():
            return [as_json(each) for each in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {
                each.name: as_json(getattr(value, each.name)) for each in dataclasses.fields(value)
            }
    return value


def as_core(hint: Any, value: Any) -> Any:
    """The core value of type `hint` that a model's field holds."""
    if hint is NodeState:
        return NodeState.parse(value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        return hint(**{name: as_core(hints[name], getattr(value, name)) for name in hints})
    if isinstance(hint, type) and issubclass(hint, IntEnum):
        return hint[value.upper()]
    if get_origin(hint) in (Union, UnionType):
        if value is None:
            return None
        return as_core(next(part for part in get_args(hint) if part is not NoneType), value)
    if get_origin(hint) is tuple:
        parts = get_args(hint)
        if parts[-1] is ...:
            return tuple(as_core(parts[0], each) for each in value)
        return tuple(as_core(part, each) for part, each in zip(parts, value, strict=True))
    return value
