"""From the cluster file to the values of user data."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cdk.bootstrap import AgentNames, SharedNames, head_values, node_values, slurm_values
from tests.cdk.made import ROOT, dev_file
from tidegate.wire.config import ClusterFile, parse_cluster
from userdata.render import BundleAt, GpuSettings, NodeShape

SHARED = SharedNames(munge_secret="munge", file_system_id="fs-1", bus="bus")
AT = BundleAt("assets", "agent.tgz", "a" * 64)
AGENT = AgentNames(bucket="b", bus="bus", urgent_queue_url="http://u", routine_queue_url="http://r")


def cluster_file(**changes: object) -> ClusterFile:
    return parse_cluster(yaml.safe_dump(dev_file(**changes)), "test.yaml")


def test_nodes_know_the_shapes_of_their_pool_with_slurm_s_memory():
    file = cluster_file()
    pool = next(each for each in file.cluster.pools if each.name == "t4")

    values = node_values(file, SHARED, pool)

    assert values.shapes == (
        NodeShape("g4dn.xlarge", 4, 15564, gpus=1, gpu_type="t4", weight=2),
        NodeShape("g4dn.12xlarge", 48, 186777, gpus=4, gpu_type="t4", weight=5),
    )
    assert [pool.name for pool in values.pools] == ["t4"]


def test_nodes_know_what_their_gpus_need():
    pools = dev_file()["pools"]
    pools["t4"]["instance_types"] = ["p5.48xlarge"]
    prices = {**dev_file()["prices_usd_per_hour"], "p5.48xlarge": {"on-demand": "55", "spot": "2"}}
    file = cluster_file(pools=pools, prices_usd_per_hour=prices)
    pool = next(each for each in file.cluster.pools if each.name == "t4")

    (shape,) = node_values(file, SHARED, pool).shapes

    assert (shape.has_nvswitch, shape.min_driver) == (True, "525.60.13")


FLAT = {"url": "https://packages.example.com/slurm", "key": "https://example.com/slurm.asc"}


@pytest.mark.parametrize(
    ("image", "installs", "branch"),
    [("dlami", True, ""), ("install", True, "580"), ("ami-0123456789abcdef0", False, "")],
)
def test_an_image_of_one_s_own_brings_everything(image, installs, branch):
    file = cluster_file(image=image)

    node = node_values(file, SHARED, file.cluster.pools[0])
    head = head_values(file, SHARED, AGENT, "vol-1", agent_at=AT)

    assert (node.installs, node.driver_branch) == (installs, branch)
    assert head.installs == installs


def test_gpus_are_set_as_the_pool_says():
    pools = dev_file()["pools"]
    wanted = {"power_limit_w": "60", "clock_mhz": "1200", "compute_mode": "exclusive-process"}
    pools["t4"]["gpu"] = wanted
    file = cluster_file(pools=pools)

    settings = {pool.name: node_values(file, SHARED, pool).gpu for pool in file.cluster.pools}

    assert settings["t4"] == GpuSettings(60, 1200, "EXCLUSIVE_PROCESS")
    assert settings["a10g"] == GpuSettings()


def test_head_and_nodes_agree_on_the_head_s_name():
    file = cluster_file(name="blue")

    node = node_values(file, SHARED, file.cluster.pools[0])

    assert node.head_host == slurm_values(file).head_host == "head.tidegate-blue.internal"


def test_settings_of_the_file_reach_slurm_conf_and_cgroup_conf():
    slurm = {
        "version": "23.11",
        "settings": {"TaskPlugin": "task/none"},
        "cgroup": {"ConstrainSwapSpace": "yes"},
    }

    values = slurm_values(cluster_file(slurm=slurm))

    assert ("TaskPlugin", "task/none") in values.settings
    assert values.cgroup == (("ConstrainSwapSpace", "yes"),)


@pytest.mark.parametrize(
    ("slurm", "is_hurried"),
    [
        ({"version": "23.11"}, True),
        ({"version": "24.11", "repositories": {"ubuntu24.04": FLAT}}, False),
        ({"version": "23.11", "accounting": "true"}, False),
        (
            {
                "version": "23.11",
                "settings": {"AccountingStorageType": "accounting_storage/slurmdbd"},
            },
            False,
        ),
        ({"version": "23.11", "settings": {"SchedulerParameters": "bf_interval=60"}}, False),
    ],
)
def test_backfill_looks_often_where_it_alone_starts_jobs(slurm, is_hurried):
    values = slurm_values(cluster_file(slurm=slurm))

    assert (("SchedulerParameters", "bf_interval=5") in values.settings) == is_hurried


@pytest.mark.parametrize(("bound_s", "timeout_s"), [("900", 1080), ("86400", 65533)])
def test_a_node_that_reboots_has_as_long_as_one_that_boots_within_what_slurm_counts(
    bound_s: str, timeout_s: int
) -> None:
    """slurmctld does not start with a ResumeTimeout of more than 16 bits."""
    file = cluster_file(timings={"boot_bound_s": bound_s})

    assert slurm_values(file).resume_timeout_s == timeout_s


@pytest.mark.parametrize(("limits", "nodes"), [({"nodes": "7"}, 7), ({"gpus": "8"}, 1000)])
def test_slurm_conf_has_room_for_the_nodes_that_the_limits_allow(limits, nodes):
    assert slurm_values(cluster_file(limits=limits)).max_nodes == nodes


def test_agent_is_told_everything_that_its_settings_ask_for():
    from tidegate.agent.settings import Settings

    told = dict(head_values(cluster_file(), SHARED, AGENT, "vol-1", agent_at=AT).agent_env)

    settings = Settings.from_environment(told)
    assert (settings.cluster, settings.bucket, settings.bus) == ("dev", "b", "bus")
    assert settings.slurmctld_log == Path("/var/log/slurm/slurmctld.log")
    assert told["AWS_DEFAULT_REGION"] == "us-east-1"


def test_none_of_this_needs_the_cdk():
    code = "import sys, cdk.bootstrap; sys.exit('aws_cdk' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
