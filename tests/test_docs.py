"""The pages: every command in them can be typed, every page that they name is there."""

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main

from tidegate.cli.main import app

# The class of all that cannot be meant; typer brings its own click and names only its children.
UsageError: Any = typer.BadParameter.__base__

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CDK = {"bootstrap", "import", "deploy", "destroy", "diff", "list", "synth"}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def commands(page: Path) -> Iterator[list[str]]:
    """The commands in a page's blocks, which are indented, as argument lists."""
    text = page.read_text().replace("\\\n", " ")
    for line in text.splitlines():
        found = re.match(r"\s{4,}(?:\.venv/bin/)?((?:tidegate|npx cdk|make|python) .*)", line)
        if found:
            words = re.split(r"\s+#\s|\s\||\s>", found[1])[0]
            yield shlex.split(words)


EVERY = [
    pytest.param(each, id=f"{p.name}-{n}") for p in PAGES for n, each in enumerate(commands(p))
]


def type_in(words: list[str]) -> None:
    """Parse a command of ours to its last option, without running it. Errors: UsageError."""
    command: Any = typer.main.get_command(app)
    name, rest, context = "tidegate", words, None
    while True:
        asks = name == "init"  # for what it was not given, as it should
        context = command.make_context(name, list(rest), parent=context, resilient_parsing=asks)
        if not hasattr(command, "resolve_command"):
            return
        left = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, left)


@pytest.mark.parametrize("words", EVERY)
def test_every_command_of_the_pages_can_be_typed(words: list[str]) -> None:
    program, *rest = words
    if rest == ["--install-completion"]:
        return  # typer's own; it would change this machine
    if program == "tidegate":
        try:
            type_in(rest)
        except typer.Exit:  # --help, --version and the like end there
            pass
        except UsageError as wrong:
            pytest.fail(f"{shlex.join(words)}: {wrong.format_message()}")
    elif program == "npx":
        assert rest[1] in CDK
    elif program == "make":
        assert rest[0] in TARGETS
    elif rest[0] == "-m":
        assert importlib.util.find_spec(rest[1]), rest[1]
    else:
        assert (ROOT / rest[0]).exists(), rest[0]


def test_the_pages_have_commands() -> None:
    assert len(EVERY) > 40


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_that_are_named_are_there(page: Path) -> None:
    named = set(re.findall(r"`((?:docs/)?[\w-]+\.md)`", page.read_text()))
    missing = [each for each in named if not {ROOT / each, ROOT / "docs" / each} & set(PAGES)]

    assert not missing
