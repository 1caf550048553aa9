"""Values of core as JSON for programs."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def as_json(value: "DataclassInstance") -> str:
    """Indented, one key per field."""
    return json.dumps(asdict(value), indent=2, default=str)
