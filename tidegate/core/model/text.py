"""Text from elsewhere as it may be shown: names of files and jobs, what AWS and Slurm say."""

from collections.abc import Sequence


def printable(text: str) -> str:
    """The text with control characters spelled out: they must not reach a terminal."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def printable_lines(text: str) -> str:
    """The same for what may have several lines."""
    return "\n".join(map(printable, text.split("\n")))


def some(names: Sequence[str], most: int) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
