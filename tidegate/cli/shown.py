"""Values of core for people, at most 100 columns wide, and as JSON for programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

COLUMNS = 100


def as_json(value: "DataclassInstance | Sequence[DataclassInstance]") -> str:
    """Indented, one key per field."""
    plain: Any = [asdict(v) for v in value] if isinstance(value, Sequence) else asdict(value)
    return json.dumps(plain, indent=2, default=str)


def console() -> Console:
    """Names are data: no markup, no guessing at colours. Never wider than 100 columns."""
    made = Console(markup=False, highlight=False)
    is_known = made.is_terminal and made.width < COLUMNS
    return Console(markup=False, highlight=False, width=made.width if is_known else COLUMNS)


def show(what: RenderableType) -> None:
    console().print(what)


def table(*columns: str) -> Table:
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made
