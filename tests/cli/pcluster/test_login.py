"""`tidegate import pcluster`: from where people reach login nodes."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.cli.pcluster.imported import PLACES, changed, codes, good, written
from tests.cli.pcluster.test_system import arm_file
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


def test_more_than_a_kind_may_have_are_refused_until_accepted(tmp_path: Path):
    """ParallelCluster's schema has no upper bound."""
    done = of(tmp_path, "  Ssh: {AllowedIps: 192.0.2.0/24}\n", ", Count: 12")

    assert codes(done) == {"login-nodes"}
    assert "Pools[login].Count: 10 login nodes of 12: a kind has no more" in done.stderr


SEVERAL = """
LoginNodes:
  Pools:
    - Name: login
      Count: 1
      InstanceType: m5.large
      Ssh: {AllowedIps: 192.0.2.0/24}
      Networking: {SubnetIds: [subnet-0a1b2c3d]}
      GracetimePeriod: 60
    - Name: gpu-
      Count: 2
      InstanceType: g5.xlarge
      Image: {CustomAmi: ami-0123456789abcdef1}
      Ssh: {AllowedIps: 198.51.100.0/24}
      Networking: {SubnetIds: [subnet-0a1b2c40], AdditionalSecurityGroups: [sg-0a1b2c3f]}
      Iam: {AdditionalIamPolicies: [{Policy: "arn:aws:iam::123456789012:policy/gpu"}]}
      CustomActions: {OnNodeConfigured: {Script: "s3://bucket/gpu.sh", Args: [a]}}
HeadNode:
"""


def several(tmp_path: Path, *options: str) -> Result:
    file = changed(tmp_path, "HeadNode:\n", SEVERAL.lstrip())
    return CliRunner().invoke(app, ["import", "pcluster", str(file), *options])


def test_several_pools_are_kinds_each_with_all_that_it_has(tmp_path: Path):
    done = several(tmp_path, *PLACES)

    login, gpu = written(done)["login"]["kinds"].items()
    assert login == (
        "login",
        {
            "count": 1,
            "instance_type": "m5.large",
            "zone": "us-east-1a",
            "ssh_from": ["192.0.2.0/24"],
        },
    )
    assert gpu == (
        "gpu",
        {
            "count": 2,
            "instance_type": "g5.xlarge",
            "image": "ami-0123456789abcdef1",
            "zone": "us-east-1b",
            "security_groups": ["sg-0a1b2c3f"],
            "ssh_from": ["198.51.100.0/24"],
            "policies": ["arn:aws:iam::123456789012:policy/gpu"],
            "hooks": {
                "on_login_configured": [
                    {"source": "s3://bucket/gpu.sh", "args": ["a"], "timeout_s": 1800}
                ]
            },
        },
    )
    (of_gpu,) = [each for each in good(done).login_kinds if each.name == "gpu"]
    assert ["cfn_node_type" in each.inline for each in of_gpu.hooks] == [True, False]
    assert "LoginNodes.Pools[login].GracetimePeriod: a login node that goes" in done.stderr


@pytest.mark.parametrize("pools", [1, 2])
def test_a_script_has_the_time_that_nodes_have_for_their_boot(tmp_path: Path, pools: int):
    """Source: ParallelCluster's login_nodes_stack.py, Timeout of its user data."""
    rest = "InstanceType: m5.large, Ssh: {AllowedIps: 192.0.2.0/24}, CustomActions:"
    script = "{OnNodeConfigured: {Script: s3://bucket/a.sh}}"
    made = ", ".join(f"{{Name: l{number}, {rest} {script}}}" for number in range(pools))
    timeouts = "{HeadNodeBootstrapTimeout: 2000, ComputeNodeBootstrapTimeout: 900}"
    more = f"DevSettings: {{Timeouts: {timeouts}}}\nLoginNodes: {{Pools: [{made}]}}\nHeadNode:\n"
    file = changed(tmp_path, "HeadNode:\n", more)

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    for kind in good(done).login_kinds:
        assert [each.timeout_s for each in kind.hooks if each.source] == [900]


def test_what_is_to_be_filled_in_of_a_kind_is_said_by_its_place(tmp_path: Path):
    done = several(tmp_path)

    assert "to fill in: login.kinds.gpu.zone: the zone of subnet-0a1b2c40" in done.stderr
    assert done.exit_code == 3


def test_a_pool_that_opens_ssh_to_everybody_is_told_by_its_kind(tmp_path: Path):
    text = SEVERAL.replace("198.51.100.0/24", "pl-0a1b2c3d").lstrip()
    file = changed(tmp_path, "HeadNode:\n", text)

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert codes(done) == {"login-nodes"}
    assert "name them in login.kinds.gpu.ssh_from" in done.stderr


@pytest.mark.parametrize(
    ("pools", "kinds"),
    [
        (["a-b", "ab"], ["a-b", "ab-2"]),
        (["1st", "-"], ["login-1st", "login"]),
        (["a" * 40, "a" * 41], ["a" * 31, "a" * 28 + "-2"]),
    ],
)
def test_a_kind_gets_a_name_that_a_host_may_have(
    tmp_path: Path, pools: list[str], kinds: list[str]
):
    made = ", ".join(f"{{Name: '{each}', Ssh: {{AllowedIps: 192.0.2.0/24}}}}" for each in pools)
    file = changed(tmp_path, "HeadNode:\n", f"LoginNodes: {{Pools: [{made}]}}\nHeadNode:\n")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    assert list(written(done)["login"]["kinds"]) == kinds


@pytest.mark.parametrize(
    ("cluster", "image", "told"),
    [
        ("ami-0a1b2c3d", "ami-0a1b2c3d", False),
        ("", None, True),
        ("ami-0a1b2c3e", None, False),  # the head's is the cluster's
    ],
)
def test_login_nodes_do_not_boot_from_the_head_s_own_image(
    tmp_path: Path, cluster: str, image: str | None, told: bool
):
    """Source: ParallelCluster's cluster_config.py, login_nodes_ami."""
    head = "  Ssh: {AllowedIps: 192.0.2.0/24}\n  Image: {CustomAmi: ami-0a1b2c3e}\n"
    pools = f"LoginNodes: {{Pools: [{POOL % ''}]}}\nHeadNode:\n{head}"
    file = changed(tmp_path, "HeadNode:\n", pools)
    if cluster:
        text = file.read_text()
        file.write_text(
            text.replace("{Os: ubuntu2404}", f"{{Os: ubuntu2404, CustomAmi: {cluster}}}")
        )

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), *PLACES])

    (kind,) = good(done).login_kinds
    assert kind.model.image == image
    assert ("Pools[login]: they boot from the head's image (ami-0a1b2c3e)" in done.stderr) is told


def test_a_type_that_cannot_be_leaves_login_nodes_of_an_arm_cluster_arm(tmp_path: Path):
    """An image for both architectures would be refused as a whole."""
    file = arm_file(tmp_path)
    pool = "{Name: a, InstanceType: m7g.huge, Ssh: {AllowedIps: 192.0.2.0/24}}"
    text = file.read_text().replace("HeadNode:\n", f"LoginNodes: {{Pools: [{pool}]}}\nHeadNode:\n")
    file.write_text(text)
    ask = ["import", "pcluster", str(file), *PLACES]

    refused = CliRunner().invoke(app, ask)
    (kind,) = good(CliRunner().invoke(app, [*ask, "--accept", "login-nodes"])).login_kinds

    assert codes(refused) == {"login-nodes"}
    assert kind.model.arch == "arm64"
