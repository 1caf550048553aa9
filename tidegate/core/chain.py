"""An answer as one screen of at most 100 columns."""

from collections.abc import Iterator
from textwrap import wrap

from tidegate.core.answer import Answer

COLUMNS = 100
LABEL = 13

LINKS = (
    ("Slurm says", "slurm"),
    ("it needs", "needs"),
    ("verdict", "verdict"),
    ("pools", "pools"),
    ("nodes", "nodes"),
    ("you could", "change"),
)


def chain(answer: Answer) -> str:
    """The headline, then a link of the chain per paragraph; links without words are left out."""
    lines = wrap(answer.headline, COLUMNS, subsequent_indent="  ")
    for label, name in LINKS:
        lines.extend(_link(label, getattr(answer, name)))
    return "\n".join(lines)


def _link(label: str, sentences: tuple[str, ...]) -> Iterator[str]:
    for number, sentence in enumerate(sentences):
        first = f"  {label if number == 0 else '':<{LABEL}}"
        yield from wrap(
            sentence,
            COLUMNS,
            initial_indent=first,
            subsequent_indent=" " * (LABEL + 4),
            break_on_hyphens=False,
        )
