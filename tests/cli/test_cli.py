"""The `tidegate` command, as a user meets it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner, Result

from tidegate.cli.main import app

CLUSTERS = Path(__file__).parents[2] / "clusters"
DEV = str(CLUSTERS / "dev.yaml")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_a_good_file_gets_one_line_and_what_is_known_of_its_image_and_slurm():
    result = run("validate", DEV)

    assert result.exit_code == 0
    ok, waiting, image, slurm = result.output.splitlines()
    assert waiting.startswith(
        "  waiting.usd_per_job_hour: 50 when left out: spare nodes are kept idle"
    )
    assert image.startswith("  image: each boot installs what it lacks, and takes an estimated")
    assert " 76-202 s longer" in image
    assert ok == f"{DEV}: ok, 2 pools, 3 instance types, up to 16 nodes"
    assert slurm.startswith("  slurm.version: 23.11.4: warning R21: a job with --gpus may pend")


def test_names_with_colons_are_shown_as_they_are_written(tmp_path):
    """`:x:` is a cross to what prints emoji."""
    bad = tmp_path / "bad.yaml"
    bad.write_text(Path(DEV).read_text() + "tags: {'aws:x:y': z}\n")

    assert "tags.aws:x:y  aws:x:y: AWS keeps keys that begin with aws:" in (
        run("validate", str(bad)).output
    )


def test_a_reservation_that_is_over_is_told(tmp_path):
    file, was = tmp_path / "dev.yaml", "capacity_types: [spot, on-demand] # spot is tried first"
    text = Path(DEV).read_text().replace(was, "capacity_types: [reserved, spot]")
    one = "id: cr-0a1b2c3d4e5f60001, kind: reserved, instance_type: g4dn.xlarge, zone: us-east-1a"
    begun = f"reservations: [{{{one}, count: 1, starts_at: '2020-01-01T00:00:00Z'"
    ended = "reservations[0]: cr-0a1b2c3d4e5f60001 ended on 2020-02-01 00:00 UTC; take it out"

    file.write_text(f"{text}\n{begun}, ends_at: '2020-02-01T00:00:00Z'}}]\n")
    assert ended in run("validate", str(file)).output
    file.write_text(f"{text}\n{begun}}}]\n")
    assert "ended on" not in run("validate", str(file)).output


def test_every_file_is_checked_and_every_problem_shown(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text(Path(DEV).read_text().replace("weight: 50", "weight: 500\n    wieght: 3"))

    result = run("validate", str(bad), DEV, str(tmp_path / "none.yaml"))

    assert result.exit_code == 1
    of_every = (" R21: ", "  image: each boot ", "  waiting.usd_per_job_hour: 50 when left out")
    told = [line for line in result.output.splitlines() if not any(x in line for x in of_every)]
    assert told == [
        f"{bad}: 2 problems",
        "  pools.t4.weight  must be 1-100, is 500",
        "  pools.t4.wieght  unknown name; did you mean weight?",
        f"{DEV}: ok, 2 pools, 3 instance types, up to 16 nodes",
        f"{tmp_path}/none.yaml: there is no such file",
    ]


def test_programs_get_every_file_and_every_problem_as_json(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text(Path(DEV).read_text().replace("weight: 50", "weight: 500\n    wieght: 3"))
    old = tmp_path / "old.yaml"
    old.write_text(Path(DEV).read_text().replace("g5.xlarge", "p3dn.24xlarge"))
    spaced = tmp_path / "spaced.yaml"
    spaced.write_text(Path(DEV).read_text().replace("weight: 50", "weight: 50\n    a  b: 3"))

    files = (str(bad), DEV, str(tmp_path / "none.yaml"), str(old), str(spaced))
    result = run("validate", "--output", "json", *files)

    assert result.exit_code == 1
    found = {each["file"]: each for each in json.loads(result.output)}
    assert found[str(bad)]["problems"] == [
        "pools.t4.weight: must be 1-100, is 500",
        "pools.t4.wieght: unknown name; did you mean weight?",
    ]
    (two_words,) = found[str(spaced)]["problems"]
    assert two_words.startswith("pools.t4.a  b: unknown name")
    none = f"{tmp_path}/none.yaml"
    assert found[none]["problems"] == [f"{none}: there is no such file"]
    assert found[DEV]["summary"] == "2 pools, 3 instance types, up to 16 nodes"
    assert {file for file, each in found.items() if each["is_good"]} == {DEV}
    assert "pools.a10g" in found[str(old)]["problems"][0]


def test_a_file_whose_nodes_could_not_boot_is_refused_with_the_source(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text(Path(DEV).read_text().replace("g5.xlarge", "p3dn.24xlarge"))

    result = run("validate", str(bad))

    assert result.exit_code == 1
    assert result.output.startswith(f"{bad}: cannot boot, ")
    assert "pools.a10g: p3dn.24xlarge: error R06: V100 is dropped after driver branch 580" in (
        result.output
    )
    assert "(source: NVIDIA Data Center Drivers, " in result.output


def test_words_of_the_file_are_not_taken_for_markup(tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text(Path(DEV).read_text().replace("name: dev", "name: '[red]dev[/blue]'"))

    assert "is [red]dev[/blue]" in run("validate", str(bad)).output


@pytest.mark.parametrize(
    "arguments", [["validate"], ["schema"], ["schema", "nothing"], ["--nothing"], ["nothing"]]
)
def test_wrong_usage_is_exit_code_2(arguments):
    result = run(*arguments)

    assert result.exit_code == 2
    assert "Usage:" in result.output
    assert "Traceback" not in result.output


def test_the_schema_is_json_with_descriptions():
    schema = json.loads(run("schema", "cluster").output)

    assert schema["properties"]["region"]["description"] == "AWS region, like us-east-1"
    assert schema["$defs"]["PoolModel"]["properties"]["weight"]["maximum"] == 100


def test_the_version_is_shown():
    assert run("--version").output.startswith("tidegate 0.")


def test_a_shell_completes_commands_and_options():
    def completed(line: str) -> set[str]:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
        asked = {"_TIDEGATE_COMPLETE": "complete_bash", **words}
        return set(CliRunner().invoke(app, [], env=asked, prog_name="tidegate").output.split())

    assert completed("tidegate sta") == {"status"}
    assert {"--cluster", "--output", "--watch"} <= completed("tidegate status --")


def commands(of: Any, *names: str) -> Iterator[tuple[str, ...]]:
    """Every command, by the words that it takes."""
    if not hasattr(of, "commands"):
        yield names
        return
    for name, each in of.commands.items():
        yield from commands(each, *names, name)


@pytest.mark.parametrize("words", list(commands(typer.main.get_command(app))), ids=" ".join)
def test_help_has_examples_that_name_the_command(words):
    told = " ".join(run(*words, "--help").output.split())

    assert f"tidegate {' '.join(words)}" in told.partition("Examples:")[2]


def test_help_tells_the_exit_codes():
    assert "Exit codes: 0 fine, 1 trouble, 2 a wrong option or value" in run("--help").output
    assert "Exit codes: 0 it runs or starts soon, 3 it waits, 4" in run("why", "--help").output
    assert "Exit codes: 0" in run("status", "--help").output


def test_the_command_starts_without_loading_what_it_may_not_need():
    heavy = ("pydantic", "boto3", "botocore", "yaml", "rich", "jinja2")
    code = f"import sys, tidegate.cli.main; print([m for m in {heavy} if m in sys.modules])"

    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert loaded.stdout.strip() == "[]"
