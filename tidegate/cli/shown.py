"""Values of core for people and, as JSON, for programs.

What is piped is never wrapped, so that it can be searched; on a terminal no word is broken, so that
ids and names can be copied.
"""

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, OverflowMethod, RenderableType
from rich.table import Table
from rich.text import Text

from tidegate.cli.options import Output
from tidegate.core.model.text import printable_lines

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Of what is piped: nothing is as long.
UNBOUNDED = 100_000


def encoded(value: "DataclassInstance | Sequence[DataclassInstance]", output: Output) -> str:
    """As data, one key per field."""
    plain: Any = [asdict(v) for v in value] if isinstance(value, Sequence) else asdict(value)
    return in_format(json.dumps(plain, indent=2, default=str), output)


def in_format(text: str, output: Output) -> str:
    """JSON as it is, or the same as YAML."""
    if output is not Output.YAML:
        return text.rstrip("\n")
    from tidegate.wire.finite import parse_json

    return as_yaml(parse_json(text)).rstrip("\n")


def as_yaml(data: object) -> str:
    """Names that would write to the terminal, or turn its line around, are spelled out."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def analyze_scalar(self, scalar: str) -> Any:
            found = super().analyze_scalar(scalar)
            if printable_lines(scalar) != scalar:
                found.allow_flow_plain = found.allow_block_plain = False
                found.allow_single_quoted = found.allow_block = False
            return found

        def write_double_quoted(self, text: str, split: bool = True) -> None:
            self.allow_unicode = printable_lines(text) == text
            super().write_double_quoted(text, split)
            self.allow_unicode = True

    return str(yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True))


def columns(output: Output = Output.TEXT) -> int | None:
    """How wide the terminal is; None: nothing bounds a line, also where it goes to a file."""
    if output.is_wide or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def console(output: Output = Output.TEXT) -> Console:
    """Names are data: no markup, no guessing at colours, and `aws:x:` has no emoji in it."""
    width = columns(output) or UNBOUNDED
    return Console(markup=False, emoji=False, highlight=False, width=width)


def unfolded(*, is_quiet: bool = False) -> Console:
    """The same for lines that are left to the terminal to wrap."""
    return Console(markup=False, emoji=False, highlight=False, soft_wrap=True, quiet=is_quiet)


def show(what: RenderableType, output: Output = Output.TEXT) -> None:
    """What is wider than the terminal is left to it to wrap: it copies as it was written."""
    console(output).print(what, crop=False)


def lines(texts: Iterable[str], style: str = "", *, is_wrapped: bool) -> list[Text]:
    """One each. Those that are not wrapped stay one line on a narrower terminal too."""
    overflow: OverflowMethod = "fold" if is_wrapped else "ignore"
    return [Text(each, style=style, no_wrap=not is_wrapped, overflow=overflow) for each in texts]


def filled(text: str, *, indent: int, output: Output = Output.TEXT) -> str:
    """On a terminal in lines of its width, all but the first indented; no word is broken."""
    width = columns(output)
    if width is None:
        return text
    rest = " " * indent
    return fill(text, width, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False)


def table(*columns: str) -> Table:
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def fit(made: Table) -> Table:
    """The table, each column as wide as its longest word or wider: no word is broken."""
    for column in made.columns:
        words = (word for cell in column.cells for word in str(cell).split())
        column.min_width = max(map(len, (*words, str(column.header))), default=0)
    return made
