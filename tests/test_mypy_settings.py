"""mypy reads what is used here of the services of the CDK and moto, and is silent about others."""

import tomllib
from pathlib import Path

import pytest

from tests.architecture import imported_modules

ROOT = Path(__file__).parents[1]


def read_by_mypy():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (read,) = [
        {each.removesuffix(".*") for each in override["module"]}
        for override in settings["tool"]["mypy"]["overrides"]
        if override.get("follow_imports") == "normal"
    ]
    return read


@pytest.mark.parametrize(("services", "known"), [("aws_cdk.aws_", "iam"), ("moto.", "ec2")])
def test_mypy_reads_every_service_that_is_imported(services, known):
    imported = {
        ".".join(name.split(".")[:2])
        for name in imported_modules(ROOT, "cdk", "tests", "local", "bench", "docs")
        if name.startswith(services)
    }
    assert services + known in imported
    assert imported - {"moto.mock_aws"} <= read_by_mypy()
