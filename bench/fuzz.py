"""Damaged cluster files and ParallelCluster files: what is said of them, and that it is all of it.

    python -m bench.fuzz                 5,000 of them, drawn by seed 0
    python -m bench.fuzz 500 7           500, by seed 7

Every file goes through `tidegate validate` or `tidegate import pcluster`. What must not be: a
traceback, an exit code that is not the command's, a refusal without a word, a line that a terminal
would obey, and of two faults in different sections one that hides the other.
"""

import random
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from typer.testing import CliRunner

from bench.figures import Figure, table
from tidegate.cli.main import app
from tidegate.cli.progress import progress
from tidegate.core.model.errors import BadConfig
from tidegate.wire.config import load_cluster

REPOSITORY = Path(__file__).parents[1]
CLUSTERS = (Path(__file__).with_suffix(".yaml"), REPOSITORY / "clusters" / "research.yaml")
OLD = tuple(sorted((REPOSITORY / "tests" / "cli" / "pcluster" / "files").glob("*.yaml")))
COUNT = 5_000

type Where = tuple[str | int, ...]

# What people and other programs write where something else is meant, and what breaks programs.
ODD: tuple[Any, ...] = (
    *(None, "", " ", "x", "-1", "0", "1e400", "nan", "inf", "-inf", "9" * 5000, "0x10", "1_000"),
    *("no", "TRUE", "~", "2027-02-30T00:00:00Z", "2027-01-01", "99999-01-01T00:00:00Z", "12:30"),
    *("../../etc/passwd", "a" * 10_000, "\u202eabc", "tab\there", "\x1b[31m", "\u0000", "ä", "🚀"),
    *("us-moon-1", "us-east-1z", "m99.huge", "*", "arn:aws:iam::1:role/x", "* * * * *", "0%"),
    *(-1, 0, 10**30, 1.5, float("nan"), float("inf"), True, False),
    *([], {}, [None], [[]], {"": 1}, {"x": {"x": {"x": 1}}}, ["ALL", "ALL"], [{}], {1: 2}),
)
TEXT: tuple[str, ...] = (*"\t{}[]\"'%\0", ": ", "- ", "&a ", "*a", "<<: *a", "!!python/x ")


@dataclass(frozen=True, slots=True)
class Damaged:
    """A file to try. `command`: what is asked about it."""

    command: tuple[str, ...]
    text: bytes
    codes: frozenset[int]


VALIDATE = ("validate",), frozenset({0, 1})
IMPORT = ("import", "pcluster"), frozenset({0, 1, 3})


def damaged(draw: random.Random, count: int) -> Iterator[Damaged]:
    sources = [*((each, VALIDATE) for each in CLUSTERS), *((each, IMPORT) for each in OLD)]
    texts = [(each.read_text(), how) for each, how in sources]
    for number in range(count):
        # Both commands as often, whatever the number of files to start from.
        mine = [each for each in texts if (each[1] is VALIDATE) == (number % 2 == 0)]
        text, (command, codes) = draw.choice(mine)
        if draw.random() < 0.3:
            made = _in_letters(draw, text.encode())
        else:
            data = yaml.safe_load(text)
            for _ in range(draw.randint(1, 3)):
                _in_meaning(draw, data)
            plain = draw.random() < 0.5
            made = str(yaml.safe_dump(data, sort_keys=False, allow_unicode=plain)).encode()
        yield Damaged(command, made, codes)


def _in_letters(draw: random.Random, text: bytes) -> bytes:
    """Cut, doubled, moved, or with a letter too many."""
    at, to = sorted(draw.randrange(len(text)) for _ in range(2))
    lines = text.splitlines(keepends=True)
    line = draw.randrange(len(lines))
    match draw.randrange(6):
        case 0:
            return text[:at]
        case 1:
            return text[:at] + text[to:]
        case 2:
            return text[:at] + draw.choice(TEXT).encode() + text[at:]
        case 3:
            return text[:at] + bytes([draw.randrange(256)]) + text[at + 1 :]
        case 4:
            return b"".join([*lines[:line], lines[line], *lines[line:]])
    return b"".join([*lines[:line], b" " * draw.randint(1, 3) + lines[line], *lines[line + 1 :]])


def places(data: Any, above: Where = ()) -> Iterator[Where]:
    inside = data.items() if isinstance(data, dict) else ()
    for name, each in enumerate(data) if isinstance(data, list) else inside:
        yield (*above, name)
        yield from places(each, (*above, name))


def _in_meaning(draw: random.Random, data: Any) -> Where:
    """Something else in one place, or a name that is mistyped or gone."""
    place = draw.choice([*places(data)] or [()])
    if not place:
        return ()
    here = data
    for part in place[:-1]:
        here = here[part]
    match draw.randrange(8):
        case 0:
            del here[place[-1]]
        case 1 if isinstance(here, dict):
            here[f"{place[-1]}x"] = here.pop(place[-1])
        case 2 if isinstance(here, list):
            here.append(here[int(place[-1])])
        case 3:
            other = data
            for part in draw.choice([*places(data)]):
                other = other[part]
            here[place[-1]] = deepcopy(other)
        case _:
            here[place[-1]] = deepcopy(draw.choice(ODD))
    return place


def faults_of(each: Damaged, file: Path) -> Iterator[str]:
    """What the command does that it must not."""
    file.write_bytes(each.text)
    ran = CliRunner().invoke(app, [*each.command, str(file)])
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        yield f"{type(ran.exception).__name__}: {ran.exception}"[:200]
    elif ran.exit_code not in each.codes:
        yield f"exit code {ran.exit_code}: {ran.output[:200]}"
    elif ran.exit_code and not ran.output.strip():
        yield "refused without a word"
    said = ran.output if each.command == VALIDATE[0] else ran.stderr
    if bad := [line for line in said.split("\n") if not line.isprintable()]:
        yield f"a line that is not to be printed: {bad[0]!r}"[:200]


def _named(data: Any, file: Path) -> set[str] | None:
    """The places that a cluster file is refused for; None: it is not, or is no mapping."""
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    try:
        load_cluster(file)
    except BadConfig as error:
        return {each.split(": ")[0] for each in error.problems} or None
    return None


def hidden(draw: random.Random, file: Path) -> str:
    """Of two faults in different sections what is not told beside the other; "": both are."""
    whole = yaml.safe_load(draw.choice(CLUSTERS).read_text())
    one, other, both = deepcopy(whole), deepcopy(whole), deepcopy(whole)
    sections = draw.sample(sorted(whole), 2)
    said: list[set[str]] = []
    for data, section in zip((one, other), sections, strict=True):
        part = {section: data[section]}
        _in_meaning(draw, part)
        if section not in part:
            return ""
        data[section] = both[section] = part[section]
        names = _named(data, file)
        if names is None:
            return ""
        said.append(names)
    told = _named(both, file) or set()
    # Of what the other one has put out of the file nothing more can be said.
    gone = tuple(f"{each}{sign}" for each in told for sign in ".[")
    missing = {each for each in (said[0] | said[1]) - told if not each.startswith(gone)}
    return f"{' and '.join(sections)}: {', '.join(sorted(missing))}" if missing else ""


def main() -> None:
    reader = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    reader.add_argument("count", type=int, nargs="?", default=COUNT, help="how many files")
    reader.add_argument("seed", type=int, nargs="?", default=0)
    asked = reader.parse_args()
    count, draw = asked.count, random.Random(asked.seed)
    began_s, faults, hides = time.monotonic(), 0, 0
    with TemporaryDirectory() as folder:
        file = Path(folder) / "cluster.yaml"
        with progress("damaged files", sys.stderr) as tell:
            for number, each in enumerate(damaged(draw, count)):
                tell(number, count)
                for fault in faults_of(each, file):
                    faults += 1
                    print(f"file {number}, {' '.join(each.command)}: {fault}", flush=True)
        with progress("pairs of faults", sys.stderr) as tell:
            for number in range(count // 5):
                tell(number, count // 5)
                if said := hidden(draw, file):
                    hides += 1
                    print(f"pair {number}, hidden in {said}", flush=True)
    print(
        table(
            [
                Figure("damaged files", count, ""),
                Figure("faults of the commands", faults, ""),
                Figure("pairs of faults", count // 5, ""),
                Figure("pairs of which one is hidden", hides, ""),
                Figure("took", time.monotonic() - began_s, "s"),
            ]
        )
    )
    sys.exit(bool(faults or hides))


if __name__ == "__main__":
    main()
