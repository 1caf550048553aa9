"""Reads a YAML file strictly: every plain value is text, no name is given twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from tidegate.core.model.errors import BadConfig
from tidegate.core.model.text import printable
from tidegate.wire.problems import Place, Problem
from tidegate.wire.yaml_words import in_words


class _Loader(yaml.SafeLoader):
    """Mappings, lists and text only; YAML's guesses are off, merges (`<<`) stay on.

    YAML 1.1 would read the version 22.10 as 22.1, the name `no` as false and `12:30` as 750.
    The models say what each value is, so nothing is guessed here.
    """

    yaml_implicit_resolvers = {"<": yaml.SafeLoader.yaml_implicit_resolvers["<"]}  # noqa: RUF012
    yaml_constructors = {  # noqa: RUF012
        tag: yaml.SafeLoader.yaml_constructors[tag]
        for tag in (
            "tag:yaml.org,2002:str",
            "tag:yaml.org,2002:seq",
            "tag:yaml.org,2002:map",
            None,  # any other tag: refused with its place
        )
    }


# What YAML calls nothing. As text it would be a cluster, a mount or a tag of this name.
NOTHING = ("null", "Null", "NULL", "~")
MERGE = "tag:yaml.org,2002:merge"
IS_NOTHING = "is null, which is no value: leave the key out, or put the word in quotes"


def read_yaml(path: Path) -> tuple[dict[str, object], list[Problem]]:
    """The file's mapping, and what YAML lets pass: names given twice, values that are nothing.

    Errors: BadConfig, when there is no mapping to speak of.
    """
    return parse_yaml(read_text(path), path)


def parse_yaml(text: str, path: object) -> tuple[dict[str, object], list[Problem]]:
    """The same for text that was read before; `path` says what it is called."""
    return _parse(_Loader, text, path)


def parse_guessing(text: str, path: object) -> tuple[dict[str, object], list[Problem]]:
    """The same for files of other tools, who rely on YAML's guesses: 3 is a number."""
    return _parse(yaml.SafeLoader, text, path)


def _parse(
    reader: type[yaml.SafeLoader], text: str, path: object
) -> tuple[dict[str, object], list[Problem]]:
    with faults_told(path):
        loader = reader(text)
        root = loader.get_single_node()
        if root is None:
            raise BadConfig(f"{path}: the file is empty")
        # Before it is read: that writes what `<<` brings beside the names that go before it.
        problems = list(_let_pass(root, (), set()))
        data = loader.construct_document(root)
    if not isinstance(data, dict):
        raise BadConfig(f"{path}: must be a mapping of names to values, like `name: dev`")
    return data, [each for each in problems if reader is _Loader or each.text != IS_NOTHING]


@contextmanager
def faults_told(path: object) -> Iterator[None]:
    """What YAML's parser raises becomes BadConfig, in one sentence."""
    try:
        yield
    except yaml.MarkedYAMLError as error:
        raise BadConfig(f"{path}: not valid YAML{_where(error)}") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that is none
        raise BadConfig(f"{path}: not valid YAML: {error}".splitlines()[0]) from error
    except RecursionError as error:
        raise BadConfig(f"{path}: not valid YAML: nested too deeply") from error


def read_text(path: Path) -> str:
    """A file of UTF-8 text. Errors: BadConfig, with one sentence."""
    return as_text(read_bytes(path), path)


def as_text(data: bytes, path: Path) -> str:
    """The text of a file that was read before. Errors: as `read_text`."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise BadConfig(f"{path}: not UTF-8 text (line {line})") from error


def read_bytes(path: Path) -> bytes:
    """A file. Errors: BadConfig, with one sentence."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise BadConfig(f"{path}: is not a regular file")
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise BadConfig(f"{path}: there is no such file") from error
    except IsADirectoryError as error:
        raise BadConfig(f"{path}: is a directory, not a file") from error
    except OSError as error:
        raise BadConfig(f"{path}: cannot be read: {error.strerror}") from error


def _where(error: yaml.MarkedYAMLError) -> str:
    """` at line 3, column 5: what is wrong`; lines and columns count from 1."""
    mark = error.problem_mark or error.context_mark
    place = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return f"{place}: {printable(in_words(str(error.problem or error.context)))}"


def _let_pass(node: yaml.Node, place: Place, seen: set[int]) -> Iterator[Problem]:
    """Names that stand twice in one mapping, of which YAML would silently keep the last one, and
    values that are nothing.

    `seen` holds nodes already walked: an alias can lead back to where we came from.
    """
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            yield from _let_pass(child, (*place, index), seen)
    elif isinstance(node, yaml.MappingNode):
        first_lines: dict[str, int] = {}
        for key, child in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in first_lines and key.tag != MERGE:
                text = f"given twice, in line {first_lines[name]} and line {line}"
                yield Problem((*place, name), text)
            first_lines.setdefault(name, line)
            yield from _let_pass(child, (*place, name), seen)
    elif isinstance(node, yaml.ScalarNode) and node.style is None and node.value in NOTHING:
        yield Problem(place, IS_NOTHING)
