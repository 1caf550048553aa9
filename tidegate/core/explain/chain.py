"""An answer as one screen, or as one line per sentence."""

from textwrap import wrap

from tidegate.core.explain.answer import Answer

LABEL = 13

LINKS = (
    ("Slurm says", "slurm"),
    ("it needs", "needs"),
    ("verdict", "verdict"),
    ("pools", "pools"),
    ("nodes", "nodes"),
    ("you could", "change"),
)


def chain(answer: Answer, columns: int | None) -> str:
    """The headline, then a link of the chain per paragraph; links without words are left out.

    `columns`: of the screen; None: a sentence is a line, however long. What a person may copy is
    whole in any case: no word is broken, nor is advice, which may hold a command.
    """
    lines = _line(answer.headline, columns, first="", rest="  ")
    for label, name in LINKS:
        for number, sentence in enumerate(getattr(answer, name)):
            first = f"  {label if number == 0 else '':<{LABEL}}"
            width = None if name == "change" else columns
            lines += _line(sentence, width, first=first, rest=" " * (LABEL + 4))
    return "\n".join(lines)


def _line(sentence: str, columns: int | None, *, first: str, rest: str) -> list[str]:
    if columns is None:
        return [first + " ".join(sentence.split())]
    return wrap(
        sentence,
        columns,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
