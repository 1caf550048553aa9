"""`tidegate findings`: the table, what a site has follow, and the page of the docs."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from tests.cdk.made import dev_file
from tidegate.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder of cluster files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIDEGATE_CLUSTER", raising=False)


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["findings", *words])


def shown(*words: str) -> list[dict[str, Any]]:
    done = run(*words, "-o", "json")
    assert done.exit_code == 0, done.output
    found: list[dict[str, Any]] = json.loads(done.output)
    return found


def test_the_page_is_what_the_command_prints() -> None:
    assert PAGE.read_text() == run("--markdown").output, "make screens"


def test_one_is_found_by_its_name_without_a_cluster_file() -> None:
    (found,) = shown("xid", "48")

    assert (found["action"], found["severity"], found["retest"]) == ("reset", "fatal", "diag")
    assert found["says"] == "Tidegate"


@pytest.mark.parametrize(
    ("words", "among"),
    [("sxid", "sxid 22003"), ("nvlink", "xid 74"), ("ecc", "ecc"), ("xid 154", "xid 154")],
)
def test_several_are_found_by_their_source_or_a_word(words: str, among: str) -> None:
    assert among in [each["finding"] for each in shown(*words.split())]


def test_what_is_not_there_is_said_and_a_number_is_no_part_of_another() -> None:
    done = run("xid", "4")

    assert done.exit_code == 2
    assert "nothing that a node finds is called xid 4" in " ".join(done.output.split())


def test_what_the_cluster_file_has_follow_is_told_with_who_says_so(tmp_path: Path) -> None:
    actions = {"throttle": "tell", "xid 63": "reboot", "xid 48": "replace", "xid 777": "tell"}
    file = tmp_path / "dev.yaml"
    file.write_text(yaml.safe_dump(dev_file(slurm={"health_actions": actions})))

    found = {each["finding"]: each for each in shown("-c", str(file))}

    own = {key: (each["action"], each["severity"]) for key, each in found.items() if key in actions}
    assert own == {
        "throttle": ("tell", "degraded"),
        "xid 63": ("reboot", "degraded"),
        "xid 48": ("replace", "fatal"),
        "xid 777": ("tell", "warning"),
    }
    assert {key for key, each in found.items() if each["says"] == "the cluster file"} == set(
        actions
    )
