"""The reference of a file format as Markdown, made from its JSON schema: nothing is told twice."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from tidegate.wire.problems import HARDLY_MEANT

type Schema = Mapping[str, Any]


def reference(model: type[BaseModel], title: str, intro: str) -> str:
    """A table for the file, and one for each section in it, in the order they are met."""
    schema = model.model_json_schema()
    lines = [f"# {title}", "", intro, ""]
    lines += _table(schema, schema)
    for name in _sections(schema, schema, []):
        section = schema["$defs"][name]
        lines += [f"## {_title(name)}", ""]
        lines += [*_said(section), *_table(section, schema)]
    return "\n".join(lines).rstrip() + "\n"


def _sections(section: Schema, schema: Schema, found: list[str]) -> list[str]:
    for each in section.get("properties", {}).values():
        for name in _named(each):
            if name not in found and "properties" in schema["$defs"][name]:
                found.append(name)
                _sections(schema["$defs"][name], schema, found)
    return found


def _named(field: Any) -> Iterator[str]:
    """The definitions that a field refers to, however deep."""
    if isinstance(field, Mapping):
        if ref := field.get("$ref"):
            yield str(ref).rpartition("/")[2]
        for value in field.values():
            yield from _named(value)
    elif isinstance(field, list):
        for value in field:
            yield from _named(value)


def _said(section: Schema) -> list[str]:
    text = " ".join(str(section.get("description", "")).split())
    return [text, ""] if text else []


def _table(section: Schema, schema: Schema) -> list[str]:
    required = section.get("required", ())
    rows = ["| key | what it is | values | default |", "|---|---|---|---|"]
    for name, field in section.get("properties", {}).items():
        default = "**required**" if name in required else _default(field)
        told = (field.get("description", ""), _values(field, schema), default)
        rows.append(f"| `{name}` | {' | '.join(each.replace('|', '&#124;') for each in told)} |")
    return [*rows, ""]


def _default(field: Schema) -> str:
    value = field.get("default")
    if value is None or value in ({}, [], ()):
        return ""
    if isinstance(value, Mapping):
        return "as in its section"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _values(field: Schema, schema: Schema) -> str:
    if ref := field.get("$ref"):
        name = str(ref).rpartition("/")[2]
        found = schema["$defs"][name]
        return f"see {_title(name)}" if "properties" in found else _values(found, schema)
    if choices := field.get("anyOf"):
        told = [_values(each, schema) for each in choices if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(told))
    if "enum" in field or "const" in field:
        return ", ".join(f"`{each}`" for each in field.get("enum", [field.get("const")]))
    return _plain(field, schema)


def _plain(field: Schema, schema: Schema) -> str:
    kind = field.get("type", "")
    if kind == "array":
        items = field.get("items") or {"type": "text"}
        return f"list of {_values(items, schema)}"
    if kind == "object":
        named = {"": field.get("additionalProperties"), **field.get("patternProperties", {})}
        values = next((each for each in named.values() if isinstance(each, Mapping)), None)
        return f"name: {_values(values, schema)}" if isinstance(values, Mapping) else "mapping"
    bounds = [
        f"{word} {field[key]}"
        for key, word in (
            *(("minimum", "from"), ("exclusiveMinimum", "above")),
            *(("maximum", "to"), ("exclusiveMaximum", "below")),
        )
        if key in field and (key != "maximum" or field[key] < HARDLY_MEANT)
    ]
    words = {"integer": "whole number", "number": "number", "boolean": "true or false"}
    return " ".join([words.get(str(kind), "text"), *bounds])


def _title(name: str) -> str:
    return name.removesuffix("Model")
