"""`tidegate import pcluster`: how long scripts may take."""

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
    assert [each["timeout_s"] for each in found["hooks"]["on_head_configured"]] == [head_s]
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
