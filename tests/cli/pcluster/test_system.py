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


def test_an_image_of_arm_nodes_is_theirs_alone(tmp_path: Path):
    """Head and login nodes are x86_64 here: an image for all would be refused as a whole."""
    file = changed(tmp_path, "{Os: ubuntu2404}", "{Os: ubuntu2404, CustomAmi: ami-0a1b2c3d}")
    text = file.read_text().replace("c5.2xlarge", "hpc7g.16xlarge").replace("SPOT", "ONDEMAND")
    file.write_text(text.replace("m5.xlarge", "c7g.large"))
    ask = ["import", "pcluster", str(file), *PLACES]

    refused = CliRunner().invoke(app, ask)
    made = good(CliRunner().invoke(app, [*ask, "--accept", "head-type"]))

    assert codes(refused) == {"head-type"}
    assert "must be an x86 instance type like m6i.large, is c7g.large; compile in jobs, on" in (
        refused.stderr
    )
    assert (made.image_id, made.pool_images) == (None, {"cpu-small": "ami-0a1b2c3d"})
    assert made.images is None


def test_an_arm_head_s_image_is_told(tmp_path: Path):
    head = "HeadNode:\n  Image: {CustomAmi: ami-0a1b2c3d}\n"
    file = changed(tmp_path, "HeadNode:\n", head)
    file.write_text(file.read_text().replace("c5.2xlarge", "c7g.2xlarge"))

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert codes(done) == {"image"}
    assert "HeadNode.Image.CustomAmi: is left out: heads are x86_64" in done.stderr


def test_a_head_s_type_is_refused_with_the_reason(tmp_path: Path):
    file = changed(tmp_path, "m5.xlarge", "t2.medium")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert "the head is an m6i.large instead: t2.medium is not built on Nitro" in done.stderr
