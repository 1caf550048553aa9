"""What all commands have in common: how the cluster is named, how answers are shown, who asks."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from rich.console import Console
from typer.testing import CliRunner, Result

from tidegate.adapters import clients
from tidegate.cli.main import app
from tidegate.cli.nodes import MOST_JOBS, screen
from tidegate.cli.options import Output
from tidegate.cli.shown import UNBOUNDED, columns, in_format
from tidegate.core.explain.node_report import NodeReport

DEV = Path(__file__).parents[2] / "clusters" / "dev.yaml"

# They ask about no cluster of theirs: files, worlds and formats are named by other words.
NO_CLUSTER = {
    *("validate", "init", "import pcluster", "schema", "simulate", "dashboards", "explain"),
    "drill restore",  # a cluster of its own
}
# They do something, or write what has one form alone.
NO_OUTPUT = {
    "report",  # a page
    "mcp",  # it speaks with a program
    *("init", "import pcluster", "schema", "simulate", "retry", "keep-up", "stop"),
    *("image plan", "image bake", "sandbox", "dashboards", "user add", "user remove"),
    *("node hold", "node release"),
    *(f"rollout {word}" for word in ("pause", "resume", "abort", "finish")),
}


def commands(of: Any, *names: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(of, "commands"):
        yield " ".join(names), of
        return
    for name, each in of.commands.items():
        yield from commands(each, *names, name)


# Names a pool: an argument, or an option.
OF_POOLS = ("retry", *(f"rollout {word}" for word in ("pause", "resume", "abort", "finish")))
EVERY = dict(commands(typer.main.get_command(app)))


def options(name: str) -> dict[str, Any]:
    return {opt: each for each in EVERY[name].params for opt in each.opts}


@pytest.mark.parametrize("name", sorted(EVERY.keys() - NO_CLUSTER))
def test_the_cluster_is_named_in_one_way(name: str) -> None:
    (cluster,) = {options(name)["--cluster"], options(name)["-c"]}

    assert cluster.envvar == "TIDEGATE_CLUSTER"
    assert not cluster.required
    files = [each for each in EVERY[name].params if each.param_type_name == "argument"]
    assert [each for each in files if each.metavar == "FILE"] == []


@pytest.mark.parametrize("name", sorted(EVERY.keys() - NO_OUTPUT))
def test_answers_are_shown_in_one_way(name: str) -> None:
    found = options(name)

    assert found["--output"] is found["-o"]
    assert not {"--json", "--format"} & found.keys()


@pytest.mark.parametrize("name", sorted(EVERY))
def test_h_means_help(name: str) -> None:
    done = CliRunner().invoke(app, [*name.split(), "-h"])

    assert done.exit_code == 0
    assert "Usage:" in done.output


def desk(folder: Path, *names: str) -> None:
    (folder / "clusters").mkdir()
    for name in names:
        text = DEV.read_text().replace("name: dev", f"name: {name}")
        (folder / "clusters" / f"{name}.yaml").write_text(text)


def asked(*words: str, **env: str) -> Result:
    return CliRunner().invoke(app, ["schedule", "--offline", *words], env=env)


def test_the_only_cluster_needs_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk(tmp_path, "one")
    monkeypatch.chdir(tmp_path)

    assert asked().exit_code == 0
    assert "clusters/one.yaml: ok" in CliRunner().invoke(app, ["validate"]).output


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), "clusters/ holds none"),
        (("two", "one"), "clusters/ holds one.yaml, two.yaml"),
        (tuple("gfedcba"), "clusters/ holds a.yaml, b.yaml, c.yaml, d.yaml, e.yaml and 2 more"),
    ],
)
def test_where_it_is_not_clear_which_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], said: str
) -> None:
    desk(tmp_path, *names)
    monkeypatch.chdir(tmp_path)

    done = asked()

    assert done.exit_code == 2
    told = " ".join(done.output.replace("│", " ").split())
    assert f"which cluster? {said}: say --cluster FILE, or set TIDEGATE_CLUSTER" in told


def test_the_option_counts_before_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk(tmp_path, "one", "two")
    monkeypatch.chdir(tmp_path)

    assert asked(TIDEGATE_CLUSTER="clusters/one.yaml").exit_code == 0
    gone = asked(TIDEGATE_CLUSTER="clusters/gone.yaml")
    assert gone.exit_code == 1
    assert "clusters/gone.yaml: there is no such file" in gone.output
    assert asked("-c", "clusters/two.yaml", TIDEGATE_CLUSTER="clusters/gone.yaml").exit_code == 0


@pytest.mark.parametrize(
    "words", [["validate", str(DEV)], ["schedule", "--offline", "--cluster", str(DEV)]]
)
def test_yaml_says_what_json_says(words: list[str]) -> None:
    as_json = CliRunner().invoke(app, [*words, "-o", "json"]).stdout
    as_yaml = CliRunner().invoke(app, [*words, "-o", "yaml"]).stdout

    assert json.loads(as_json) != []
    assert not as_yaml.startswith(("[", "{"))
    assert [set(each) for each in yaml.safe_load(as_yaml)] == [
        set(each) for each in json.loads(as_json)
    ]


def test_numbers_and_names_survive_yaml() -> None:
    data = {"name": "no", "version": "22.10", "at": "12:30", "usd": 0.5, "jobs": ["1_3"]}

    assert yaml.safe_load(in_format(json.dumps(data), Output.YAML)) == data


def test_what_would_write_to_the_terminal_is_spelled_out_in_yaml() -> None:
    """Users name their jobs; other output spells it out as well."""
    data = {"\u202ename": ["a\u202eb", "\u200b", "\x1b[31m"], "größe": "two\nlines, und mehr"}

    said = in_format(json.dumps(data), Output.YAML)

    assert yaml.safe_load(said) == data
    assert said.replace("\n", "").isprintable()
    assert "größe" in said


def test_wide_bounds_no_line() -> None:
    assert columns(Output.WIDE) is None


def test_wide_shows_every_job_of_a_node() -> None:
    jobs = tuple(str(4710 + number) for number in range(MOST_JOBS + 2))
    node = NodeReport("i-1", "t4", "g5.xlarge", "MIXED", 30, 0.01, jobs, "", "")

    def shown(*, is_wide: bool) -> str:
        to = Console(file=StringIO(), width=UNBOUNDED)
        with to.capture() as printed:
            to.print(screen([node], None, is_wide=is_wide))
        return printed.get()

    assert jobs[-1] in shown(is_wide=True)
    assert jobs[-1] not in shown(is_wide=False)


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    config = tmp_path / "config"
    config.write_text("[profile lab]\nregion = eu-west-1\n")
    credentials = tmp_path / "credentials"
    credentials.write_text("[lab]\naws_access_key_id = LAB\naws_secret_access_key = x\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OTHER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "y")
    clients.use_profile("")
    yield
    clients.use_profile("")


@pytest.mark.usefixtures("profiles")
def test_a_profile_counts_before_the_environment() -> None:
    done = CliRunner().invoke(app, ["--profile", "lab", "validate", str(DEV)])

    assert done.exit_code == 0, done.output
    client = clients.client("sts", "us-east-1")
    assert client._request_signer._credentials.access_key == "LAB"
    assert client.meta.region_name == "us-east-1"


@pytest.mark.usefixtures("profiles")
def test_a_profile_that_is_not_there_is_a_usage_error() -> None:
    done = CliRunner().invoke(app, ["--profile", "lap", "validate", str(DEV)])

    assert done.exit_code == 2
    assert "there is no profile lap; known here: lab" in " ".join(done.output.split())


@pytest.mark.parametrize("words", [["status", "-o", "xml"], ["schema", "klaster"]])
def test_a_word_that_is_none_of_a_few_is_told_with_these(words: list[str]) -> None:
    done = CliRunner().invoke(app, words, env={"TIDEGATE_CLUSTER": str(DEV)})

    assert done.exit_code == 2
    said = done.output.partition("Error: ")[2]
    assert re.match(rf"Invalid value for .*: '{words[-1]}' is not one of '(text|cluster)'", said)


def test_a_number_that_is_none_is_told_in_our_words() -> None:
    done = CliRunner().invoke(app, ["simulate", "--seeds", "1:2", "--until", "soon"])

    assert done.exit_code == 2
    assert done.output.endswith("Invalid value for '--until': must be a valid number\n")


STRANGE = "\x1b[31m\u202egpj.yaml"


@pytest.mark.parametrize(
    "words",
    [
        ["validate", STRANGE],
        ["import", "pcluster", STRANGE],
        ["status", "--cluster", STRANGE],
        ["replay", STRANGE, "--cluster", str(DEV)],
        ["user", "add", "ada", "--key-file", STRANGE, "--cluster", str(DEV)],
        ["init", f"{STRANGE}/new.yaml", "--yes"],
        ["--profile", STRANGE, "status"],
        ["schedule", "--offline", "--cluster", str(DEV), "--next", STRANGE],
    ],
)
def test_what_a_terminal_would_obey_is_spelled_out(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)

    assert done.exit_code in (1, 2)
    assert "\\x1b[31m\\u202egpj" in done.output
    assert [line for line in done.output.split("\n") if not line.isprintable()] == []


@pytest.mark.parametrize("text", [None, DEV.read_text(), "name: dev"])
def test_so_is_the_name_of_a_file_that_is_there(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / STRANGE
    file.write_text(text or "a: b: c")

    said = CliRunner().invoke(app, ["validate", str(file)]).output

    assert "\\x1b[31m\\u202egpj" in said
    assert [line for line in said.split("\n") if not line.isprintable()] == []


def test_each_command_is_listed_once_and_with_a_whole_sentence() -> None:
    listed = CliRunner().invoke(app, ["-h"]).output.partition("Commands:\n")[2]

    lines = [line.split(maxsplit=1) for line in listed.partition("\n\n")[0].splitlines()]
    assert sorted(name for name, _ in lines) == sorted({name.split()[0] for name in EVERY})
    assert [said for _, said in lines if said.endswith("...")] == []


@pytest.mark.parametrize("words", [*(each.split() for each in OF_POOLS), ["nodes", "--pool"]])
@pytest.mark.parametrize(
    ("name", "said"),
    [("a10", "has no pool a10; did you mean a10g?"), ("\u202eabc", "has no pool \\u202eabc\n")],
)
def test_a_pool_that_the_file_does_not_have_is_a_usage_error(
    words: list[str], name: str, said: str
) -> None:
    done = CliRunner().invoke(app, [*words, name, "--cluster", str(DEV)])

    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.parametrize("option", ["--night-off", "--name", "--region", "--types"])
def test_what_is_no_text_is_not_written_into_a_file(tmp_path: Path, option: str) -> None:
    made = tmp_path / "new.yaml"

    done = CliRunner().invoke(app, ["init", str(made), "--yes", option, "a\udcff"])

    assert (done.exit_code, made.exists()) == (2, False)
    assert "plain text, not 'a\\udcff'" in done.output


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", [["-h"], ["schema", "plan"]])
def test_where_nothing_can_be_written_it_says_so(words: list[str], unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tidegate.cli.main", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )

    assert (done.returncode, done.stderr) == (1, "output: No space left on device\n")
