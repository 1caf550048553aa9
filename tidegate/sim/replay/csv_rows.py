"""Reads a CSV file strictly: whole lines, and no column that is there twice."""

import csv
from collections.abc import Sequence

SHOWN_CHARS = 60


class BadCsv(Exception):
    """A file that cannot be read so; the message names it and the line."""


def cut(text: str) -> str:
    """Of a value what fits into a message."""
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}..."


def csv_rows(text: str, columns: Sequence[str], source: object) -> list[tuple[int, dict[str, str]]]:
    """Each line with its number, by column. Errors: BadCsv."""
    reader = csv.DictReader(text.splitlines())
    try:
        given = list(reader.fieldnames or ())
        rows = list(enumerate(reader, start=2))
    except csv.Error as error:
        raise BadCsv(f"{source}, line {reader.line_num + 1}: is no CSV: {error}") from error
    if missing := [each for each in columns if each not in given]:
        raise BadCsv(f"{source}, line 1: the columns {', '.join(missing)} are missing")
    if twice := sorted({each for each in given if given.count(each) > 1}):
        raise BadCsv(f"{source}, line 1: names {', '.join(map(cut, twice))} twice: keep one")
    for line, row in rows:
        if None in row or None in row.values():
            raise BadCsv(f"{source}, line {line}: must have {len(given)} fields")
    return rows
