"""`tidegate import pcluster`: the system of nodes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.pcluster.imported import changed, codes
from tidegate.cli.main import app


@pytest.mark.parametrize(
    ("system", "image"),
    [("ubuntu2204", "install-ubuntu22.04"), ("alinux2023", "install-al2023"), ("rhel9", "")],
)
def test_another_system_is_told_with_the_image_that_has_it(tmp_path: Path, system: str, image: str):
    file = changed(tmp_path, "ubuntu2404", system)

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    assert codes(done) == {"system"}
    assert f"nodes have Ubuntu 24.04, not {system}" in done.stderr
    assert (f"or say image: {image}, with packages" in done.stderr) == bool(image)
