"""`tidegate init`: what it writes is what `validate` takes, and nobody has to be there."""

import errno
import os
import pty
import subprocess
import sys
from typing import Any

import pytest
from typer.testing import CliRunner

from tidegate.cli.main import app
from tidegate.wire.config import load_cluster


def run(*arguments: str, answers: str | None = None) -> Any:
    """Without a terminal. `answers`: what a pipe says."""
    return CliRunner().invoke(app, list(arguments), input=answers)


def on_terminal(*arguments: str, answers: list[str]) -> "subprocess.CompletedProcess[str]":
    """With somebody who types this and a new line after each."""
    ours, theirs = pty.openpty()
    os.write(ours, "".join(f"{each}\n" for each in answers).encode())
    command = [sys.executable, "-m", "tidegate.cli.main", *arguments]
    try:
        return subprocess.run(
            command, stdin=theirs, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        os.close(ours)
        os.close(theirs)


def test_answers_become_a_good_file(tmp_path):
    file = tmp_path / "new.yaml"
    answers = ["lab", "eu-west-1", "abc", "g5.xlarge, g6.xlarge", "y", "4", "9.5"]
    answers += ["Europe/Berlin", "ops@example.org", "quick"]

    done = on_terminal("init", str(file), answers=answers)

    assert done.returncode == 0, done.stderr
    read = load_cluster(file)
    assert (read.cluster.name, read.region) == ("lab", "eu-west-1")
    assert read.zones == ("eu-west-1a", "eu-west-1b", "eu-west-1c")
    assert (read.cluster.limits.nodes, read.cluster.limits.usd_per_hour) == (4, 9.5)
    assert read.schedules is not None
    assert read.alarm_email == "ops@example.org"
    assert read.cluster.waiting.usd_per_job_hour == 100
    assert [market.value for market in read.cluster.pools[0].markets] == ["spot", "on-demand"]
    assert run("validate", str(file)).exit_code == 0


def test_a_bad_answer_is_asked_again_at_once(tmp_path):
    file = tmp_path / "new.yaml"
    answers = ["My_Lab", "lab", "us-moon-1", "us-west-2", "ab", "g5.xlrage", "g5.xlarge", "y"]
    answers += ["64 GPUs", "4", "$200", "200", "Tokyo", "Asia/Tokyo", "ops", "", ""]

    done = on_terminal("init", str(file), answers=answers)

    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [
        "Error: must be lower-case letters, digits and -, first a letter, at most 31, is My_Lab",
        "Error: us-moon-1 is no region of AWS, like us-east-1",
        "Error: g5.xlrage is not a known instance type; did you mean g5.xlarge?",
        "Error: must be a plain number like 8, is 64 GPUs",
        "Error: must be a plain number like 8, is $200",
        "Error: Tokyo is not an IANA time zone like Europe/Berlin",
        "Error: must be an e-mail address, is ops",
    ]
    assert load_cluster(file).cluster.name == "lab"


def options() -> list[str]:
    return [
        *("--name", "ci", "--region", "us-east-1", "--zones", "a", "--types", "g4dn.xlarge"),
        *("--no-spot", "--nodes", "2", "--usd-per-hour", "5", "--night-off", ""),
        *("--alarm-email", "", "--waiting", "thrifty"),
    ]


def test_options_ask_nothing(tmp_path):
    file = tmp_path / "ci.yaml"

    done = run("init", str(file), *options())

    assert done.exit_code == 0, done.output
    read = load_cluster(file)
    assert [market.value for market in read.cluster.pools[0].markets] == ["on-demand"]
    assert (read.schedules, read.alarm_email) == (None, None)
    assert read.cluster.waiting.most_usd == 0


@pytest.mark.parametrize("more", [("--yes",), ("-y",), ()])
def test_a_script_gets_the_defaults_of_what_it_does_not_say(tmp_path, more):
    file = tmp_path / "gpu-lab.yaml"

    done = run("init", str(file), "--nodes", "3", *more)

    assert done.exit_code == 0, done.output
    assert "?" not in done.output
    assert "AWS region" not in done.output
    read = load_cluster(file)
    assert (read.cluster.name, read.region, read.cluster.limits.nodes) == (
        "gpu-lab",
        "us-east-1",
        3,
    )
    assert [each.name for each in read.cluster.pools[0].instance_types] == ["g5.xlarge"]


def test_yes_asks_nothing_on_a_terminal_either(tmp_path):
    done = on_terminal("init", str(tmp_path / "ci.yaml"), "--yes", answers=["other"])

    assert done.returncode == 0, done.stderr
    assert load_cluster(tmp_path / "ci.yaml").cluster.name == "ci"


def test_without_a_terminal_the_defaults_that_are_taken_are_told(tmp_path):
    done = run("init", str(tmp_path / "ci.yaml"), *options()[:-6])

    taken = "--night-off '' --alarm-email '' --waiting balanced"
    assert f"stdin is no terminal: nothing is asked; taken: {taken}" in done.stderr
    assert "taken:" not in run("init", str(tmp_path / "all.yaml"), *options()).stderr
    assert "taken:" not in run("init", str(tmp_path / "yes.yaml"), "--yes").stderr


def test_a_pipe_that_says_nothing_is_not_waited_for(tmp_path):
    """Who holds its other end is a job of CI that never writes and never closes."""
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "tidegate.cli.main", "init", str(tmp_path / "ci.yaml")]

    done = subprocess.run(command, stdin=reading, capture_output=True, timeout=60, check=False)

    for end in (reading, writing):
        os.close(end)
    assert done.returncode == 0, done.stderr
    assert load_cluster(tmp_path / "ci.yaml").cluster.name == "ci"


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--name", "Not a name", "name"),
        ("--name", "a: [b", "name"),
        ("--region", "us-east-9", ""),
        ("--zones", "us-east-1a", "letters of the region's zones, like ab"),
        ("--zones", "", "letters of the region's zones, like ab"),
        ("--types", "g5.xlarg", "did you mean g5.xlarge"),
        ("--types", "g5.xlarge,,", "empty"),
        ("--types", "}", ""),
        ("--nodes", "0", "at least 1"),
        ("--nodes", "many", "valid int"),
        ("--usd-per-hour", "-1", ""),
        ("--usd-per-hour", "nan", ""),
        ("--night-off", "Europe/Berlinn", "not an IANA time zone"),
        ("--night-off", "a\nb", ""),
        ("--alarm-email", "nobody", ""),
        ("--waiting", "20", "one of thrifty, balanced, quick"),
    ],
)
def test_a_bad_value_names_its_option_and_nothing_is_written(tmp_path, option, value, said):
    file = tmp_path / "ci.yaml"

    done = run("init", str(file), "--yes", option, value)

    assert done.exit_code == 2, done.output
    assert option in done.stderr
    assert said in " ".join(done.stderr.split())
    assert not file.exists()


def test_every_bad_value_is_told_at_once(tmp_path):
    done = run("init", str(tmp_path / "ci.yaml"), "--yes", "--types", "x9.z", "--alarm-email", "x")

    assert done.exit_code == 2
    assert "--types" in done.stderr
    assert "--alarm-email" in done.stderr


def test_every_question_has_an_option_and_its_default_in_the_help():
    asked = run("init", "--help").output

    for option in ("--name", *options()[2::2], "--spot", "--yes"):
        assert option in asked or not option.startswith("--")
    for default in ("us-east-1", "ab", "g5.xlarge", "8", "20", "balanced", "the file's name"):
        assert default in asked


def test_a_bad_answer_is_asked_for_again(tmp_path):
    answers = ["lab", "", "us-east-1a", "a", "", "", "0", "2", "", "", "", "slow", ""]

    done = on_terminal("init", str(tmp_path / "ci.yaml"), answers=answers)

    assert done.returncode == 0, done.stderr
    read = load_cluster(tmp_path / "ci.yaml")
    assert (read.zones, read.cluster.limits.nodes) == (("us-east-1a",), 2)
    assert read.cluster.waiting.usd_per_job_hour == 50


def test_answers_that_make_no_good_file_are_kept_to_be_corrected(tmp_path):
    file = tmp_path / "ci.yaml"
    answers = ["ci", "", "a", "p5.48xlarge", "n", "2", "5", "", "", ""]
    bad = on_terminal("init", str(file), answers=answers)

    assert bad.returncode == 1
    assert "limits.usd_per_hour  5, but p5.48xlarge on-demand" in bad.stderr
    assert f"correct it there, then: tidegate validate {file}" in bad.stderr
    assert "instance_types: [p5.48xlarge]" in file.read_text()
    file.write_text(file.read_text().replace("usd_per_hour: 5}", "usd_per_hour: 80}"))
    assert run("validate", str(file)).exit_code == 0


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("new.yaml", "new"),
        ("GPU lab_2.yaml", "gpu-lab-2"),
        ("7.yaml", "dev"),
        ("dev-data.yaml", "dev"),
        (f"{'x' * 40}.yaml", "x" * 31),
    ],
)
def test_a_cluster_is_named_after_its_file(tmp_path, file, name):
    done = run("init", str(tmp_path / file))

    assert done.exit_code == 0, done.output
    assert load_cluster(tmp_path / file).cluster.name == name


@pytest.mark.parametrize(("name", "code"), [("ci.yaml", 1), ("none/ci.yaml", 2)])
def test_nothing_is_asked_where_nothing_can_be_written(tmp_path, name, code):
    (tmp_path / "ci.yaml").write_text("mine")

    done = on_terminal("init", str(tmp_path / name), answers=["dev"])

    assert done.returncode == code
    assert "Name of the cluster" not in done.stdout
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("ci.yaml", "mine")]


def test_a_file_that_cannot_be_written_is_told_in_a_sentence(tmp_path):
    file = tmp_path / "loop.yaml"
    file.symlink_to(file)

    done = run("init", str(file), "--yes")

    assert done.exit_code == 1
    assert done.stderr == f"{file}: {os.strerror(errno.ELOOP)}\n"


@pytest.mark.parametrize(("nodes", "most"), [("8", 16), ("64", 64), ("4000", 250)])
def test_a_job_may_have_all_nodes_that_are_allowed(tmp_path: Any, nodes: str, most: int):
    file = tmp_path / "new.yaml"

    assert run("init", str(file), "--yes", "--nodes", nodes).exit_code == 0

    written = load_cluster(file)
    assert written.cluster.pools[0].max_job_nodes == most
    assert not [each for each in written.notes if "max_job_nodes" in each]
