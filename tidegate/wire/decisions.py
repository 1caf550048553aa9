"""Verdicts and records of looks as bytes: JSON under gzip.

Verdicts carry no key that a reader must not know: a newer planner may add some.
"""

import gzip
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from pydantic import ValidationError

from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.model.errors import BadEvent
from tidegate.wire.finite import parse_json
from tidegate.wire.kind import Kind

VERDICTS = Kind(Verdicts)

# Level 1: 100,000 jobs take a planner 0.1 s; the object is a few per cent larger.
LEVEL = 1


def encode_verdicts(verdicts: Verdicts) -> bytes:
    written: dict[str, object] = {
        each.name: getattr(verdicts, each.name) for each in fields(verdicts)
    }
    for name in ("verdicts", "launches", "refused", "samples", "prices"):
        written[name] = [asdict(each) for each in getattr(verdicts, name)]
    return encode_record({"version": 1} | written)


def decode_verdicts(data: bytes) -> Verdicts:
    """Errors: BadEvent."""
    try:
        return VERDICTS.adapter.validate_python(decode_record(data))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise BadEvent(f"these are no verdicts: {place}: {first['msg']}") from error


def encode_record(record: Mapping[str, object]) -> bytes:
    text = json.dumps(record, separators=(",", ":"), allow_nan=False)
    return gzip.compress(text.encode(), LEVEL, mtime=0)


def decode_record(data: bytes) -> dict[str, Any]:
    """Errors: BadEvent."""
    try:
        found = parse_json(gzip.decompress(data))
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise BadEvent(f"this is no stored decision: {error}") from error
    if not isinstance(found, dict):
        raise BadEvent("this is no stored decision: it is no JSON object")
    return found
