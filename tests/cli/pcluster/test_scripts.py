"""`tidegate import pcluster`: scripts, how long they may take, and what they read."""

import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.pcluster.imported import PLACES, changed, good, written
from tidegate.cli.main import app

NODES = "{OnNodeStart: {Script: s3://bkt/a.sh}, OnNodeConfigured: {Sequence: [{Script: s3://bkt/b.sh}]}}"


@pytest.mark.parametrize(
    ("timeouts", "head_s", "nodes_s", "bound_s"),
    [
        ("{}", 1800, 1800, 600 + 2 * 1800),
        ("{HeadNodeBootstrapTimeout: 3000}", 3000, 1800, 600 + 2 * 1800),
        ("{ComputeNodeBootstrapTimeout: 2400}", 1800, 2400, 600 + 2 * 2400),
        ("{ComputeNodeBootstrapTimeout: 9000}", 1800, 3600, 9000),
    ],
)
def test_a_script_may_take_as_long_as_there(
    tmp_path: Path, timeouts: str, head_s: int, nodes_s: int, bound_s: int
):
    """There all scripts of a boot have its half hour together, and none has 300 s of its own."""
    file = changed(tmp_path, "CapacityType:", f"CustomActions: {NODES}\n      CapacityType:")
    head = "HeadNode:\n  CustomActions: {OnNodeConfigured: {Script: s3://bkt/h.sh}}\n"
    text = file.read_text().replace("HeadNode:\n", head)
    file.write_text(f"{text}DevSettings: {{Timeouts: {timeouts}}}\n")

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert good(ran)
    found = written(ran)
    assert found["hooks"]["on_head_configured"][-1]["timeout_s"] == head_s
    hooks = found["pools"]["cpu-small"]["hooks"]
    assert [each["timeout_s"] for at in hooks.values() for each in at] == [nodes_s, nodes_s]
    assert found["timings"] == {"boot_bound_s": bound_s}
    is_longer = "timings.boot_bound_s: a node that hangs is paid for" in ran.stderr
    assert is_longer == (bound_s != 9000)
    assert ("one script may take 3600 s at most" in ran.stderr) == (bound_s == 9000)


def test_the_checksum_that_is_asked_for_is_that_of_a_script_that_runs(tmp_path: Path):
    """One that cannot run stands before it."""
    scripts = "{Sequence: [{Script: ftp://a/b}, {Script: 'https://example.com/b.sh'}]}"
    file = changed(
        tmp_path, "CapacityType:", f"CustomActions: {{OnNodeStart: {scripts}}}\n      CapacityType:"
    )

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES, "--accept", "hooks"])

    (hook,) = written(ran)["pools"]["cpu-small"]["hooks"]["on_node_start"]
    assert hook["sha256"] is None
    assert "to fill in: pools.cpu-small.hooks.on_node_start[0].sha256: of https" in ran.stderr


@pytest.mark.parametrize(
    ("role", "kind"), [("node", "ComputeFleet"), ("head", "HeadNode"), ("login", "LoginNode")]
)
def test_scripts_find_what_they_read_of_parallelcluster(tmp_path: Path, role: str, kind: str):
    """`source /etc/parallelcluster/cfnconfig` would end them, and each node with them."""
    file = changed(tmp_path, "CapacityType:", f"CustomActions: {NODES}\n      CapacityType:")
    head = "HeadNode:\n  CustomActions: {OnNodeConfigured: {Script: s3://bkt/h.sh}}\n"
    file.write_text(file.read_text().replace("HeadNode:\n", head))

    found = good(CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES]))

    before, _ = found.head_hooks
    assert before == found.hooks["cpu-small"].on_node_start[0]
    script = before.inline.replace("/etc/parallelcluster", str(tmp_path / "etc"))
    read = f"set -eu; {script}\n. {tmp_path}/etc/cfnconfig; echo $cfn_node_type $cfn_region"
    ran = subprocess.run(
        ["bash", "-c", read.replace("id -un 1000", "echo ubuntu")],
        env={
            "PATH": "/usr/bin:/bin",
            "TIDEGATE_ROLE": role,
            "TIDEGATE_SHARED_DIR": "/shared",
            "AWS_REGION": "us-east-1",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == f"{kind} us-east-1\n"


def test_who_has_no_scripts_gets_none(tmp_path: Path):
    script = "{OnNodeConfigured: {Script: ftp://a/b}}"
    file = changed(tmp_path, "HeadNode:\n", f"HeadNode:\n  CustomActions: {script}\n")

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES, "--accept", "hooks"])

    assert "hooks" not in written(ran)


def test_the_script_that_configures_pyxis_becomes_what_brings_it(tmp_path: Path):
    """It needs folders of ParallelCluster's images; AWS's own template for GPU clusters has it."""
    of = "https://raw.githubusercontent.com/aws-samples/aws-parallelcluster-post-install-scripts"
    script = f"{{Script: '{of}/main/pyxis/postinstall.sh', Args: [/fsx]}}"
    actions = f"CustomActions: {{OnNodeStart: {{Sequence: [{script}]}}}}\n      CapacityType:"
    file = changed(tmp_path, "CapacityType:", actions)

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert good(ran).containers
    assert written(ran)["images"] == {}
    assert "hooks" not in written(ran)
    assert "pyxis/postinstall.sh: containers: pyxis brings what it does" in ran.stderr


def test_a_script_in_the_file_is_read_line_by_line(tmp_path: Path):
    file = changed(tmp_path, "CapacityType:", f"CustomActions: {NODES}\n      CapacityType:")

    ran = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert "\n  - inline: |\n      #!/bin/bash\n" in ran.stdout
