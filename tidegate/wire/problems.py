"""Says what is wrong with a file, in words: one line per problem, with its place."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from tidegate.core.model.errors import BadConfig
from tidegate.core.model.frozen import frozen
from tidegate.core.model.text import printable
from tidegate.wire.hints import elsewhere, instead, unit

type Place = tuple[str | int, ...]
type Schema = Mapping[str, Any]

MAX_SHOWN_CHARS = 60
MAX_ALIGNED_CHARS = 40
NAMES_MAX = 4
HARDLY_MEANT = 1_000_000

_KIND_WORDS = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "string": "text",
}


@frozen
class Problem:
    """One thing to correct, and where it stands in the file."""

    place: Place
    text: str

    @property
    def path(self) -> str:
        """`pools.t4.zones[0]`."""
        path = "".join(
            f"[{part}]" if isinstance(part, int) else f".{shown(part)}" for part in self.place
        )
        return path.removeprefix(".")

    def __str__(self) -> str:
        """`pools.t4.zones[0]: must be ...`; without a place only the text."""
        return printable(": ".join(filter(None, (self.path, self.text))))


def render(file: object, problems: Iterable[Problem]) -> str:
    """The whole message: a headline, then one aligned line per problem."""
    lines = [(printable(problem.path), printable(problem.text)) for problem in problems]
    width = max((len(path) for path, _ in lines if len(path) <= MAX_ALIGNED_CHARS), default=0)
    count = f"{len(lines)} problem{'' if len(lines) == 1 else 's'}"
    head = f"{printable(str(file))}: {count}"
    return "\n".join([head, *(f"  {path:<{width}}  {text}" for path, text in lines)])


def refusal(file: object, problems: Sequence[Problem]) -> BadConfig:
    """The error that tells all of them."""
    return BadConfig(render(file, problems), tuple(map(str, problems)))


def shown(value: object) -> str:
    """A value of the file as it may stand in a message: one word for the long ones."""
    match value:
        case "" | None:
            return "empty"
        case list():
            return "a list"
        case dict():
            return "a mapping"
    text = str(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[: MAX_SHOWN_CHARS - 3]}..."


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or "" when nothing comes near."""
    names = {each.lower(): each for each in reversed(list(known))}
    near = get_close_matches(wrong.lower(), names, n=1)
    return f"; did you mean {names[near[0]]}?" if near else ""


def and_(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def problems_of(error: ValidationError, model: type[BaseModel]) -> list[Problem]:
    """Pydantic's errors in our words."""
    schema = _schema_of(model)
    found = error.errors(include_url=False)
    # Pydantic also calls a list too short when its entries were refused, and a default wrong that
    # follows from what was refused: neither says anything new.
    telling = [
        each
        for each in found
        if each["type"] != "default_factory_not_called"
        if not (each["type"] == "too_short" and each["input"])
    ]
    return [_problem(each["type"], each["loc"], each, schema) for each in telling]


@cache
def _schema_of(model: type[BaseModel]) -> Schema:
    """Pydantic makes it anew at each call: that of a cluster file for 40 ms."""
    return model.model_json_schema()


def _problem(kind: str, place: Place, error: Mapping[str, Any], schema: Schema) -> Problem:
    value = error["input"]
    if place and place[-1] == "[key]":
        return _bad_key(place[:-1], error, schema)
    match kind:
        case "missing":
            return Problem(place, _missing(_at(schema, place)))
        case "extra_forbidden":
            names = _at(schema, place[:-1]).get("properties", {})
            return Problem(place, f"unknown name{_unknown_name_hint(str(place[-1]), names)}")
        case "value_error":
            return Problem(place, str(error["ctx"]["error"]))
        case "too_short":
            return Problem(place, "must have at least one entry, has none")
    wanted, name = _at(schema, place), _name(place)
    hint = did_you_mean(str(value), wanted["enum"]) if "enum" in wanted else ""
    hint = hint or instead(wanted, name, value)
    what = _expected(wanted, kind)
    if kind.endswith(("_parsing", "_type")):
        what += unit(name) if "number" in what else ""
        what += "".join(f", or {each}" for each in wanted.get("x-words", ()))
    return Problem(place, f"must be {what}, is {shown(value)}{hint}")


def _name(place: Place) -> str:
    """The name that a value stands under, also in a list."""
    return next((each for each in reversed(place) if isinstance(each, str)), "")


def _missing(wanted: Schema) -> str:
    description = wanted.get("description", "")
    return f"missing: {description}" if description else "missing"


def _bad_key(place: Place, error: Mapping[str, Any], schema: Schema) -> Problem:
    """A name that may not be used as such: of a pool, a partition, a zone, a market."""
    if error["type"] == "value_error":
        return Problem(place, str(error["ctx"]["error"]))
    names = _at(schema, place[:-1]).get("propertyNames", {})
    names = _resolved(schema, names)
    if "enum" in names:
        hint = did_you_mean(str(place[-1]), names["enum"])
        return Problem(place, f"the name must be {' or '.join(names['enum'])}{hint}")
    return Problem(place, f"the name must be {_expected(names, error['type'])}")


def _unknown_name_hint(wrong: str, names: Iterable[str]) -> str:
    """The nearest valid name, or the valid names when there are few."""
    known = list(names)
    starting = [name for name in known if name.startswith(wrong) or wrong.startswith(name)]
    if starting:
        return f"; did you mean {starting[0]}?"
    near = elsewhere(wrong) or did_you_mean(wrong, known)
    return near or f"; known here: {', '.join(known)}"


def _expected(wanted: Schema, kind: str) -> str:
    """What should stand there: `1-100`, `more than 0`, `a whole number`, `spot or on-demand`."""
    if "enum" in wanted:
        return " or ".join(map(str, wanted["enum"]))
    if "const" in wanted:
        may_be_left_out = wanted.get("default", wanted["const"]) is None
        return f"{wanted['const']}{', or left out' if may_be_left_out else ''}"
    if kind == "string_pattern_mismatch":
        return str(wanted.get("x-expected", f"text like {wanted.get('pattern')}"))
    if kind in ("greater_than", "greater_than_equal", "less_than_equal", "finite_number"):
        return _bounds(wanted, is_over=kind in ("less_than_equal", "finite_number"))
    if consts := [str(each["const"]) for each in wanted.get("anyOf", ()) if "const" in each]:
        return f"{' or '.join(consts)}, or left out"
    if wanted.get("format") == "date":
        return "a date like 2026-12-29"
    word = _KIND_WORDS.get(str(wanted.get("type")), "valid")
    names = list(wanted.get("properties", ()))
    if not names:
        return word
    return f"{word} with {', '.join(names[:NAMES_MAX])}{', ...' * (len(names) > NAMES_MAX)}"


def _bounds(wanted: Schema, *, is_over: bool) -> str:
    """A bound that only keeps typing errors out is told to those who passed it."""
    low, high = wanted.get("minimum"), wanted.get("maximum")
    high = None if high is not None and high >= HARDLY_MEANT and not is_over else high
    if low is not None and high is not None:
        return f"{_number(low)}-{_number(high)}"
    if low is not None:
        return f"at least {_number(low)}"
    above = wanted.get("exclusiveMinimum", 0)
    at_most = f", at most {_number(high)}" if high is not None else ""
    return f"more than {_number(above)}{at_most}"


def _number(value: float) -> str:
    return f"{value:g}" if abs(value) < 1e6 else f"{value:,.0f}"


def _at(root: Schema, place: Place) -> Schema:
    """The JSON schema of the value at `place`."""
    here = _resolved(root, root)
    for part in place:
        if isinstance(part, int):
            inner = here.get("items", {})
        else:
            inner = here.get("properties", {}).get(part) or _entries(here)
        here = _resolved(root, inner)
    return here


def _entries(mapping: Schema) -> Schema:
    """The schema of the values of a mapping whose names are free."""
    patterned = list(mapping.get("patternProperties", {}).values())
    entries = patterned[0] if patterned else mapping.get("additionalProperties")
    return entries or {}


def _resolved(root: Schema, schema: Schema) -> Schema:
    """Follow a reference, see through "this or null" and "this or a word"; keywords beside stay."""
    own = {key: value for key, value in schema.items() if key not in ("$ref", "anyOf")}
    if "$ref" in schema:
        return {**_resolved(root, root["$defs"][schema["$ref"].rsplit("/", 1)[-1]]), **own}
    choices = [
        each
        for each in schema.get("anyOf", ())
        if each.get("type") != "null" and "const" not in each
    ]
    words = [each["const"] for each in schema.get("anyOf", ()) if "const" in each]
    if len(choices) != 1:
        return schema
    return {**_resolved(root, choices[0]), **own, **({"x-words": words} if words else {})}
