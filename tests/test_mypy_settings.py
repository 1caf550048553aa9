"""mypy reads those of the CDK's 300 services that are used here, and says nothing of the others."""

import tomllib
from pathlib import Path

from tests.architecture import imported_modules

ROOT = Path(__file__).parents[1]


def test_mypy_reads_every_service_of_the_cdk_that_is_imported():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (read,) = [
        {*each["module"]}
        for each in settings["tool"]["mypy"]["overrides"]
        if each.get("follow_imports") == "normal"
    ]

    imported = {
        ".".join(name.split(".")[:2])
        for name in imported_modules(ROOT, "cdk", "tests", "local", "bench", "docs")
        if name.startswith("aws_cdk.aws_")
    }
    assert "aws_cdk.aws_iam" in imported
    assert imported <= read
