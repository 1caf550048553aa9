"""Settings of GPUs, from the cluster file to nodes and to Slurm."""

from dataclasses import replace

import pytest
import yaml

from cdk.bootstrap import SharedNames, node_values, slurm_values
from tests.cdk.made import ROOT, dev_file, joined, synthesized
from tests.cdk.variants import JOB_ROLE
from tidegate.wire.config import load_cluster, parse_cluster
from userdata.render import BundleAt, node_user_data, slurm_conf

AT = BundleAt("bucket", "boot.tgz", "0" * 64)
FLAT = {"url": "https://packages.example.com/slurm", "key": "https://packages.example.com/key"}


def test_nodes_slurm_and_placeholders_agree_on_mig_and_mps():
    cluster = dev_file(limits={})
    mig = {"instance_types": ["p4d.24xlarge"], "gpu": {"mig": "1g.5gb"}, "limits": {}}
    cluster["pools"]["t4"] |= mig
    cluster["pools"]["a10g"] |= {"gpu": {"mps": "true"}}
    file = parse_cluster(yaml.safe_dump(cluster), "test.yaml")
    names = SharedNames(munge_secret="arn:x", file_system_id="fs-1", bus="bus")

    pools = {pool.name: pool for pool in file.cluster.pools}
    cut, served = (node_values(file, names, pools[name]) for name in ("t4", "a10g"))
    conf = slurm_conf(slurm_values(file))

    assert [(shape.gpus, shape.gres) for shape in cut.shapes] == [(8, "gpu:a100_1g.5gb:56")]
    assert (cut.gpu.mig, served.gpu.mig) == ("1g.5gb", "")
    assert (served.gpu.has_mps, served.gpu.compute_mode) == (True, "EXCLUSIVE_PROCESS")
    assert "Gres=gpu:a100_1g.5gb:56 " in conf
    accounted = slurm_conf(replace(slurm_values(file), accounting=True))
    assert "AccountingStorageTRES=gres/gpu,gres/gpu:a100_1g.5gb\n" in accounted
    assert "TaskProlog=/etc/tidegate/task-prolog" in conf
    assert "TaskProlog" not in slurm_conf(slurm_values(load_cluster(ROOT / "clusters/dev.yaml")))


def test_an_instance_that_fills_its_gpu_is_accounted_by_its_type_as_smaller_ones_are():
    cluster = dev_file(limits={})
    mig = {"instance_types": ["p4d.24xlarge"], "gpu": {"mig": "7g.40gb"}, "limits": {}}
    cluster["pools"]["t4"] |= mig
    cluster["slurm"] = {"accounting": True}

    conf = slurm_conf(slurm_values(parse_cluster(yaml.safe_dump(cluster), "test.yaml")))

    assert "Gres=gpu:a100_7g.40gb:8 " in conf
    assert "\nAccountingStorageTRES=gres/gpu,gres/gpu:a100_7g.40gb\n" in conf


def test_nodes_slurm_and_placeholders_agree_on_cores_where_these_have_one_thread():
    cluster = dev_file(limits={})
    cluster["pools"]["t4"] |= {"instance_types": ["g4dn.xlarge"], "threads_per_core": "1"}
    cluster["pools"]["a10g"] |= {"instance_types": ["g5.2xlarge"]}
    file = parse_cluster(yaml.safe_dump(cluster), "test.yaml")
    names = SharedNames(munge_secret="arn:x", file_system_id="fs-1", bus="bus")

    pools = {pool.name: pool for pool in file.cluster.pools}
    one, two = (node_values(file, names, pools[name]) for name in ("t4", "a10g"))

    assert ([each.cpus for each in one.shapes], [each.cpus for each in two.shapes]) == ([2], [8])
    assert pools["t4"].instance_types[0].vcpus == 4
    assert "THREADS_PER_CORE=1\n" in node_user_data(one, AT)
    assert "THREADS_PER_CORE" not in node_user_data(two, AT)
    assert "CPUs=2 " in slurm_conf(slurm_values(file))


def test_nodes_are_told_what_a_site_has_follow_from_a_finding():
    actions = {"throttle": "tell", "xid 48": "replace"}
    cluster = dev_file(slurm={"health_actions": actions})
    names = SharedNames(munge_secret="arn:x", file_system_id="fs-1", bus="bus")

    told, untold = (
        node_user_data(node_values(file, names, file.cluster.pools[0]), AT)
        for file in (
            parse_cluster(yaml.safe_dump(each), "test.yaml") for each in (cluster, dev_file())
        )
    )

    assert "HEALTH_ACTIONS='throttle tell\nxid 48 replace'\n" in told
    assert "HEALTH_ACTIONS" not in untold


def test_nodes_slurm_and_placeholders_agree_on_layouts_and_shards():
    cluster = dev_file(limits={})
    of_cut = {"instance_types": ["p4d.24xlarge"], "gpu": {"mig_profiles": ["3g.20gb", "1g.5gb"]}}
    cluster["pools"]["t4"] |= of_cut | {"limits": {}}
    cluster["pools"]["a10g"] |= {"gpu": {"shards_per_gpu": "4"}, "instance_types": ["g5.12xlarge"]}
    cluster["slurm"] = {"version": "26.05", "repositories": {"ubuntu24.04": FLAT}}
    file = parse_cluster(yaml.safe_dump(cluster), "test.yaml")
    names = SharedNames(munge_secret="arn:x", file_system_id="fs-1", bus="bus")

    pools = {pool.name: pool for pool in file.cluster.pools}
    cut, shared = (node_values(file, names, pools[name]) for name in ("t4", "a10g"))
    conf = slurm_conf(slurm_values(file))

    assert [shape.gpus for shape in cut.shapes] == [8]
    assert "MIG_PROFILES='3g.20gb 1g.5gb'" in node_user_data(cut, AT)
    assert "SHARED='shard 4'" in node_user_data(shared, AT)
    assert "Gres=gpu:a100_3g.20gb:16,gpu:a100_1g.5gb:56 " in conf
    assert "Gres=gpu:a10g:4,shard:a10g:16 " in conf
    assert "GresTypes=gpu,shard" in conf
    assert "TaskProlog=/etc/tidegate/task-prolog" in conf
    accounted = slurm_conf(replace(slurm_values(file), accounting=True))
    mig = "gres/gpu:a100_1g.5gb,gres/gpu:a100_3g.20gb"
    assert f"\nAccountingStorageTRES=gres/gpu,gres/shard,{mig}\n" in accounted


def test_nodes_slurm_and_placeholders_agree_on_mps_that_slurm_counts():
    cluster = dev_file(limits={})
    cluster["pools"]["a10g"] |= {"gpu": {"mps_per_gpu": "100"}, "instance_types": ["g5.12xlarge"]}
    file = parse_cluster(yaml.safe_dump(cluster), "test.yaml")
    names = SharedNames(munge_secret="arn:x", file_system_id="fs-1", bus="bus")

    (pool,) = (pool for pool in file.cluster.pools if pool.name == "a10g")
    shared = node_values(file, names, pool)
    conf = slurm_conf(slurm_values(file))

    assert "SHARED='mps 100'" in node_user_data(shared, AT)
    assert (shared.gpu.has_mps, shared.gpu.compute_mode) == (True, "")
    assert "Gres=gpu:a10g:4,mps:a10g:400 " in conf
    assert "GresTypes=gpu,mps" in conf
    assert "TaskProlog=/etc/tidegate/task-prolog" in conf
    accounted = slurm_conf(replace(slurm_values(file), accounting=True))
    assert "\nAccountingStorageTRES=gres/gpu,gres/mps\n" in accounted


@pytest.mark.parametrize(
    ("said", "of_pool", "has_prolog"),
    [
        ({"job_role": JOB_ROLE}, {}, True),
        ({}, {"efa": "true"}, True),
        ({"containers": "pyxis"}, {"efa": "true"}, False),
    ],
)
def test_tasks_hear_of_roles_and_of_efa_but_not_in_containers(said, of_pool, has_prolog):
    cluster = dev_file(**said)
    cluster["pools"]["t4"] |= {"instance_types": ["p4d.24xlarge"], "limits": {}, **of_pool}
    conf = slurm_conf(slurm_values(parse_cluster(yaml.safe_dump(cluster), "test.yaml")))

    assert ("TaskProlog=/etc/tidegate/task-prolog" in conf) is has_prolog


def test_nodes_that_ship_logs_may_write_to_their_own_group_alone(tmp_path):
    stack = synthesized(tmp_path, dev_file(logs={"nodes": "true", "retention_days": "7"}))[
        "tidegate-dev"
    ]

    groups = [each for each in stack.all("AWS::Logs::LogGroup") if "/nodes" in str(each)]
    assert [(each["LogGroupName"], each["RetentionInDays"]) for each in groups] == [
        ("/tidegate/dev/nodes", 7)
    ]
    (own,) = [
        each["Resource"]
        for policy in stack.named("NodesRole", "AWS::IAM::Role")["Policies"]
        for each in policy["PolicyDocument"]["Statement"]
        if each["Sid"] == "NodeLogs"
    ]
    assert joined(own).endswith(":log-group:/tidegate/dev/nodes:*")
