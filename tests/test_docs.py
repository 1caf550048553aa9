"""The pages: every command in them can be typed, every page that they name is there."""

import ast
import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import typer.main

from bench import codes, glossary
from tests.doc_commands import PAGES, ROOT, Command, commands, spans
from tidegate.cli.main import app

# The class of all that cannot be meant; typer brings its own click and names only its children.
UsageError: Any = typer.BadParameter.__base__

CDK = {"bootstrap", "import", "deploy", "destroy", "diff", "list", "synth"}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence need not name it: this folder has two."""
    monkeypatch.setenv("TIDEGATE_CLUSTER", "clusters/dev.yaml")


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


def typed(words: list[str], *, is_whole: bool = True) -> None:
    try:
        type_in(words)
    except typer.Exit:  # --help, --version and the like end there
        pass
    except UsageError as wrong:
        is_short = re.match(r"Missing |Option .* requires an argument", wrong.format_message())
        if is_whole or not is_short:
            pytest.fail(f"{shlex.join(words)}: {wrong.format_message()}")


@pytest.mark.parametrize("command", commands(), ids=str)
def test_every_command_of_the_pages_can_be_typed(command: Command) -> None:
    """Those that tests/stack/test_docs.py runs as well: this says sooner what is misspelt."""
    program, *rest = command.words
    if rest == ["--install-completion"]:
        return  # typer's own; it would change this machine
    if program == "tidegate":
        typed(rest)
    elif program == "npx":
        assert rest[1] in CDK
    elif program == "make":
        assert rest[0] in TARGETS
    elif program == "python" and rest[0] == "-m":
        assert importlib.util.find_spec(rest[1]), rest[1]
    elif program == "python":
        assert (ROOT / rest[0]).exists(), rest[0]


# What stands for a job in a sentence.
MEANT = dict.fromkeys(("JOB", "JOBID"), "4711")


@pytest.mark.parametrize("span", spans("tidegate "))
def test_every_command_in_a_sentence_can_be_typed(span: str) -> None:
    """There the cluster and what is meant may be left out."""
    typed([MEANT.get(word, word) for word in shlex.split(span)[1:]], is_whole=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_that_are_named_are_there(page: Path) -> None:
    named = set(re.findall(r"`((?:docs/)?[\w-]+\.md)`", page.read_text()))
    missing = [each for each in named if not {ROOT / each, ROOT / "docs" / each} & set(PAGES)]

    assert not missing


PATH = re.compile(
    r"(?:tidegate|tests|cdk|lambdas|userdata|local|bench|scripts|clusters|docs)/[\w./-]+"
)
FLOW_STEP = re.compile(r"\| `([\w/]+\.py)` \| `(\w+)` \|")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_are_there(page: Path) -> None:
    named = {span for span in re.findall(r"`([^`\n]+)`", page.read_text()) if PATH.fullmatch(span)}

    assert [each for each in sorted(named) if not (ROOT / each).exists()] == []


def test_each_step_of_a_flow_names_what_its_file_defines() -> None:
    steps = FLOW_STEP.findall((ROOT / "docs/reading-the-code.md").read_text())
    defined = {file: names_of(ROOT / file) for file, _ in steps}

    assert len(steps) > 20, "the tables have another form"
    assert [step for step in steps if step[1] not in defined[step[0]]] == []


def names_of(file: Path) -> set[str]:
    """What a module defines at its top."""
    tree = ast.parse(file.read_text())
    defined = {each.name for each in tree.body if isinstance(each, ast.ClassDef | ast.FunctionDef)}
    targets = [each.targets for each in tree.body if isinstance(each, ast.Assign)]
    return defined | {one.id for each in targets for one in each if isinstance(one, ast.Name)}


def test_the_page_of_codes_says_what_the_command_says() -> None:
    assert (ROOT / "docs/codes.md").read_text() == codes.text(), "make screens"


def test_the_glossary_says_what_the_docstrings_say() -> None:
    assert (ROOT / "docs/glossary.md").read_text() == glossary.text(), "make screens"
