"""`tidegate import pcluster`: from where people reach login nodes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.cli.pcluster.imported import PLACES, changed, codes, written
from tidegate.cli.main import app

POOL = "{Name: login, InstanceType: m5.large, Networking: {SubnetIds: [subnet-0a1b2c3d]}%s}"


def of(tmp_path: Path, head: str, pool: str) -> Result:
    pools = f"LoginNodes: {{Pools: [{POOL % pool}]}}\nHeadNode:\n{head}"
    file = changed(tmp_path, "HeadNode:\n", pools)
    return CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])


@pytest.mark.parametrize(
    ("head", "pool", "source"),
    [
        ("  Ssh: {AllowedIps: 192.0.2.0/24}\n", "", "192.0.2.0/24"),
        ("  Ssh: {AllowedIps: 192.0.2.0/24}\n", ", Ssh: {KeyName: team}", "192.0.2.0/24"),
        ("  Ssh: {AllowedIps: 0.0.0.0/0}\n", ", Ssh: {AllowedIps: 10.1.0.0/16}", "10.1.0.0/16"),
    ],
)
def test_a_pool_that_does_not_say_who_may_log_in_has_the_head_s_word(
    tmp_path: Path, head: str, pool: str, source: str
):
    """Source: ParallelCluster's cluster_config.py, SlurmClusterConfig."""
    done = of(tmp_path, head, pool)

    assert written(done)["login"]["ssh_from"] == [source]


@pytest.mark.parametrize("head", ["", "  Ssh: {KeyName: team}\n"])
def test_that_nobody_may_log_in_where_everybody_might_is_refused_until_accepted(
    tmp_path: Path, head: str
):
    done = of(tmp_path, head, "")

    assert codes(done) == {"login-nodes"}
    assert "LoginNodes.Pools[login].Ssh.AllowedIps: open to everybody when left out" in done.stderr


def test_a_pool_without_machines_does_not_count(tmp_path: Path):
    """Neither as the one that there is, nor with its subnet."""
    empty = "{Name: empty, Count: 0, Networking: {SubnetIds: [subnet-0a1b2c3e]}}"
    used = "{Name: used, Networking: {SubnetIds: [subnet-0a1b2c3f]}, Ssh: {AllowedIps: 10.0.0.0/8}}"
    file = changed(
        tmp_path, "HeadNode:\n", f"LoginNodes: {{Pools: [{empty}, {used}]}}\nHeadNode:\n"
    )

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])
    open_ended = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    assert written(done)["login"]["zone"] == "us-east-1c"
    assert "subnet-0a1b2c3e" not in written(done)["network"]["subnets"].values()
    assert "to fill in: login.zone: the zone of subnet-0a1b2c3f" in open_ended.stderr


def test_networks_that_only_a_list_of_aws_names_are_asked_for(tmp_path: Path):
    done = of(tmp_path, "  Ssh: {AllowedIps: pl-0a1b2c3d}\n", "")

    assert codes(done) == {"login-nodes"}
    assert "pl-0a1b2c3d is a list of networks: name them in login.ssh_from" in done.stderr


@pytest.mark.parametrize("count", [1, 2])
def test_several_have_no_load_balancer_before_them(tmp_path: Path, count: int):
    done = of(tmp_path, "  Ssh: {AllowedIps: 192.0.2.0/24}\n", f", Count: {count}")

    assert ("Pools[login]: no load balancer is before them" in done.stderr) == (count > 1)
