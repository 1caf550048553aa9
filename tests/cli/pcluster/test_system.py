"""`tidegate import pcluster`: the system of nodes, and what Slurm writes on that of the head."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.pcluster.imported import PLACES, changed, codes, good
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


@pytest.mark.parametrize("where", ["", ", {JobCompLoc: /home/slurm/completions.txt}"])
def test_jobs_that_ended_are_written_down_where_slurmctld_may(tmp_path: Path, where: str):
    """AWS's own template for GPU clusters has them in /home; slurmctld would not start."""
    lines = f"[{{JobCompType: jobcomp/filetxt}}{where}]"
    file = changed(tmp_path, "Scheduling: true", f"Scheduling: true, CustomSlurmSettings: {lines}")
    asked = ["import", "pcluster", str(file), *PLACES]

    done = CliRunner().invoke(app, [*asked, "--accept", "slurm-settings"])

    assert codes(CliRunner().invoke(app, asked)) == {"slurm-settings"}
    assert dict(good(done).slurm.settings) == {
        "JobCompType": "jobcomp/filetxt",
        "JobCompLoc": "/var/log/slurm/jobs.txt",
    }
    assert "JobCompLoc: jobs that ended are in /var/log/slurm/jobs.txt" in done.stderr
