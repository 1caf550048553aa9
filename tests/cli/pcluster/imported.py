"""Runs `tidegate import pcluster` on the files beside it, and reads what comes out."""

from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner, Result

from tidegate.cli.main import app
from tidegate.wire.config import ClusterFile, parse_cluster

FILES = Path(__file__).parent / "files"
SUBNETS = {
    "subnet-0a1b2c3d": "us-east-1a",
    "subnet-0a1b2c3e": "us-east-1b",
    "subnet-0a1b2c3f": "us-east-1c",
    "subnet-0a1b2c40": "us-east-1b",
}
PLACES = (
    *("--vpc", "vpc-0a1b2c3d"),
    *(word for pair in SUBNETS.items() for word in ("--zone", "=".join(pair))),
)


def run(name: str, *options: str) -> Result:
    return CliRunner().invoke(app, ["import", "pcluster", str(FILES / name), *options])


def codes(done: Result) -> set[str]:
    """What must be accepted, by the refusal's last line."""
    assert done.exit_code == 1
    assert done.stdout == ""
    return set(done.stderr.splitlines()[-1].split(" --accept ")[1:])


def accepted(name: str, *options: str) -> Result:
    refused = codes(run(name, *options))
    return run(name, *options, *(word for code in refused for word in ("--accept", code)))


def written(done: Result) -> dict[str, Any]:
    assert done.exit_code in (0, 3), done.stderr
    data: dict[str, Any] = yaml.safe_load(done.stdout)
    return data


def good(done: Result, **more: object) -> ClusterFile:
    return parse_cluster(yaml.safe_dump(written(done) | more), "imported")


def changed(tmp_path: Path, old: str, new: str) -> Path:
    file = tmp_path / "old.yaml"
    text = (FILES / "whole.yaml").read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    return file
