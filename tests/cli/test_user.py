"""`tidegate user` against a session whose head says what it was asked."""

import os
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.adapters.test_head_shell import SESSION
from tidegate.adapters.head_users import NAME
from tidegate.cli.main import app
from tidegate.wire.config import load_cluster

# In sudo's place: the words that the head's program gets, or one line of `list`.
HEAD = """#!/bin/sh
shift 2
[ "$1" != list ] || { printf 'ada\\t1000\\tada,vision\\t/shared/home/ada\\t2\\t?\\n'; exit; }
[ "$2" != nobody ] || { echo "there is no user nobody" >&2; exit 1; }
printf '<%s>' "$@"
"""
# Its head is named in the file, so EC2 is not asked.
FILE = Path("docs/example-app/old-cluster.yaml")
KEY = "ssh-ed25519 AAAA ada@home"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = load_cluster(FILE)
    assert file.existing.head
    session = SESSION.replace("eu-west-1", file.region)
    session = session.replace('"i-1"', f'"{file.existing.head.instance}"')
    for name, text in (("aws", session), ("sudo", HEAD)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def ask(*words: str) -> Result:
    return CliRunner().invoke(app, ["user", *words, "--cluster", str(FILE)])


def test_who_is_known_is_a_table_or_data(folder: Path) -> None:
    shown, data = ask("list"), ask("list", "-o", "yaml")

    assert shown.exit_code == data.exit_code == 0, shown.output
    assert shown.output.split()[-7:] == [
        "ada",
        "1000",
        "ada,",
        "vision",
        "/shared/home/ada",
        "2",
        "?",
    ]
    (ada,) = yaml.safe_load(data.output)
    assert (ada["name"], ada["groups"], ada["jobs"]) == ("ada", ["ada", "vision"], None)


def test_somebody_is_added_with_keys_groups_and_an_account(folder: Path) -> None:
    (folder / "ada.pub").write_text(f"# of ada\n{KEY}\n\n{KEY} 2\n")

    words = ("--key-file", str(folder / "ada.pub"), "--group", "vision", "--account", "lab")
    result = ask("add", "ada", *words)

    assert result.exit_code == 0, result.output
    assert result.output.strip() == (
        f"<add><ada><--key><{KEY}><--key><{KEY} 2><--group><vision><--account><lab>"
    )


def test_what_the_head_refuses_is_said_with_exit_code_1(folder: Path) -> None:
    result = ask("remove", "nobody")

    assert result.exit_code == 1
    assert "tidegate-user: there is no user nobody" in result.output


@pytest.mark.parametrize("words", [["bad name!"], ["Ada"], ["ada\n"], ["ada", "--group", "-x"]])
def test_a_name_that_nobody_can_have_is_refused_before_aws_is_asked(words: list[str]) -> None:
    result = ask("add", *words)

    assert result.exit_code == 2
    assert f"{words[-1]!r} is no name here" in " ".join(result.output.split())


def test_names_are_those_that_the_head_takes() -> None:
    assert f"readonly NAME='{NAME}'" in Path("userdata/head/tidegate-user.sh").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nx\n", "is a private key: give the .pub beside it"),
        ("# nothing\n", "holds no key"),
        (None, "cannot be read"),
    ],
)
def test_a_file_without_a_public_key_is_a_usage_error(
    folder: Path, text: str | None, said: str
) -> None:
    if text:
        (folder / "ada.pub").write_text(text)

    result = ask("add", "ada", "--key-file", str(folder / "ada.pub"))

    assert result.exit_code == 2
    assert said in " ".join(result.output.replace("│", " ").split())
