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


def arm_file(tmp_path: Path, image: str = "") -> Path:
    """All of it arm64, as ParallelCluster demands; `image`: of the head alone."""
    file = changed(tmp_path, "{Os: ubuntu2404}", "{Os: ubuntu2404, CustomAmi: ami-0a1b2c3d}")
    text = file.read_text().replace("c5.2xlarge", "c7g.2xlarge").replace("m5.xlarge", "m7g.large")
    head = f"HeadNode:\n  Image: {{CustomAmi: {image}}}\n" if image else "HeadNode:\n"
    file.write_text(text.replace("HeadNode:\n", head))
    return file


def test_a_cluster_of_arm_machines_is_translated_whole(tmp_path: Path):
    done = CliRunner().invoke(app, ["import", "pcluster", str(arm_file(tmp_path)), *PLACES])

    made = good(done)
    assert "InstanceType" not in done.stderr
    assert (made.head.instance_type, made.head.arch) == ("m7g.large", "arm64")
    assert (made.image_id, made.pool_images) == ("ami-0a1b2c3d", {})


def test_an_arm_head_keeps_its_own_image(tmp_path: Path):
    file = arm_file(tmp_path, "ami-0a1b2c3e")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    made = good(done)
    assert "is left out" not in done.stderr
    assert (made.image_id, made.head.image) == ("ami-0a1b2c3d", "ami-0a1b2c3e")


def test_where_an_arm_head_s_type_is_none_for_a_head_another_of_its_architecture_is(tmp_path: Path):
    file = arm_file(tmp_path)
    file.write_text(file.read_text().replace("m7g.large", "m7g.huge"))
    ask = ["import", "pcluster", str(file), *PLACES]

    refused = CliRunner().invoke(app, ask)
    made = good(CliRunner().invoke(app, [*ask, "--accept", "head-type"]))

    assert codes(refused) == {"head-type"}
    assert "the head is an m7g.large instead: m7g.huge is not a known" in refused.stderr
    assert made.head.arch == "arm64"


def test_a_head_s_type_is_refused_with_the_reason(tmp_path: Path):
    file = changed(tmp_path, "m5.xlarge", "t2.medium")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert "the head is an m6i.large instead: t2.medium is not built on Nitro" in done.stderr


@pytest.mark.parametrize(
    ("timeouts", "bound_s", "told"),
    [
        ("", 1800, ""),
        (
            "DevSettings: {Timeouts: {ComputeNodeBootstrapTimeout: 1200}}\n",
            1500,
            "is paid for 1500",
        ),
    ],
)
def test_bare_metal_is_translated_with_the_time_that_it_boots_for(
    tmp_path: Path, timeouts: str, bound_s: int, told: str
):
    file = changed(tmp_path, "c5.2xlarge", "c5n.metal")
    file.write_text(file.read_text() + timeouts)

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert "instance-type" not in done.stderr
    (pool,) = good(done).cluster.pools
    assert ([each.name for each in pool.instance_types], pool.boot_s) == (["c5n.metal"], 1200)
    assert good(done).cluster.timings.boot_bound_s == bound_s
    assert told in done.stderr
    assert ("bare metal may need it before its system starts" in done.stderr) == bool(told)
