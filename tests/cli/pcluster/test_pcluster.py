"""`tidegate import pcluster`: what it writes, and what it loses."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.cli.pcluster.imported import FILES, PLACES, accepted, changed, codes, good, run, written
from tidegate.cli.main import app


def test_what_loses_nothing_is_whole_and_valid():
    done = run("whole.yaml", "--name", "old", *PLACES)

    assert (done.exit_code, done.stderr) == (0, "")
    file = good(done)
    (pool,) = file.cluster.pools
    assert (pool.name, pool.markets, pool.zones) == ("cpu-small", ("spot",), ("us-east-1a",))
    assert (pool.min_nodes, pool.limits.nodes, pool.idle_s) == (1, 8, 600)
    assert (file.cluster.name, file.head.instance_type) == ("old", "m5.xlarge")
    assert dict(file.network.subnets) == {"us-east-1a": "subnet-0a1b2c3d"}
    assert (file.head.zone, file.ships_logs, file.log_days) == ("us-east-1a", True, 180)


def test_what_parallelcluster_does_not_say_is_to_be_filled_in():
    done = run("whole.yaml")

    assert done.exit_code == 3
    assert done.stderr.splitlines() == [
        "to fill in: network.vpc: say --vpc, as `aws ec2 describe-subnets --subnet-ids"
        " subnet-0a1b2c3d --query 'Subnets[].[SubnetId,VpcId]' --output text` tells it",
        "to fill in: network.subnets: say --zone SUBNET=ZONE for each, as `aws ec2"
        " describe-subnets --subnet-ids subnet-0a1b2c3d --query"
        " 'Subnets[].[SubnetId,AvailabilityZone]' --output text` tells them",
        "to fill in: pools.cpu-small.zones: those of subnet-0a1b2c3d",
    ]


def test_a_capacity_block_with_efa_stays_one():
    done = run("training.yaml", *PLACES)

    pool = written(done)["pools"]["train-h100"]
    assert pool["capacity_types"] == ["capacity-block"]
    assert (pool["efa"], pool["placement_group"]) == (True, True)
    assert (pool["min_nodes"], pool["limits"], pool["max_job_nodes"]) == (64, {"nodes": 64}, 64)
    assert written(done)["reservations"] == [
        {
            "id": "cr-0123456789abcdef0",
            "kind": "capacity-block",
            "instance_type": "p5.48xlarge",
            "zone": "us-east-1b",
            "count": 64,
            "starts_at": None,
            "ends_at": None,
        }
    ]
    assert "to fill in: reservations[0].ends_at: see `aws ec2 describe-cap" in done.stderr
    (lost,) = [line for line in done.stderr.splitlines() if line.startswith("lost")]
    assert "EnableMemoryBasedScheduling: memory is given out too" in lost


def test_what_would_be_bought_on_demand_instead_is_refused_until_accepted():
    refused = run("reservations.yaml", *PLACES)

    assert codes(refused) == {"on-demand-instead"}
    place = "Scheduling.SlurmQueues[nameless].ComputeResources[block].CapacityType"
    assert f"{place}: no capacity block is named: nodes are bought on demand, and 8 are" in (
        refused.stderr
    )
    file = written(accepted("reservations.yaml", *PLACES))
    assert file["pools"]["reserved-one"]["capacity_types"] == ["reserved"]
    assert file["pools"]["reserved-group"]["capacity_types"] == ["reserved", "on-demand"]
    assert file["reservation_groups"] == [
        "arn:aws:resource-groups:us-east-1:123456789012:group/odcr"
    ]
    (reserved,) = file["reservations"]
    assert (reserved["id"], reserved["targeted"]) == ("cr-0123456789abcdef1", True)


def test_one_code_does_not_accept_another():
    done = run("reservations.yaml", "--accept", "placement-group")

    assert codes(done) == {"on-demand-instead"}


def test_a_queue_s_image_is_that_of_its_pools():
    done = run("images.yaml", *PLACES)

    file = good(done)
    assert file.image_id == "ami-0123456789abcdef0"
    assert file.pool_images == {"special-b": "ami-0123456789abcdef1"}
    for where in ("image", "pools.special-b.image"):
        assert f"to check: {where}: ParallelCluster's own images have another" in done.stderr


def test_networks_are_told_where_they_differ():
    refused = run("network.yaml", *PLACES)

    assert codes(refused) == {
        *("placement-group", "proxy", "public-address", "security-groups"),
    }
    for said in (
        "[spread].Networking.SecurityGroups: its machines are in",
        "[direct].Networking.Proxy: goes through http://proxy.example:3128",
        "SlurmQueues[direct].Networking.PlacementGroup: gangs are in a group of",
    ):
        assert said in refused.stderr
    file = good(accepted("network.yaml", *PLACES))
    assert file.head.security_groups == ("sg-0a1b2c3d",)
    pools = {each.name: each for each in file.cluster.pools}
    assert pools["spread-a"].zones == ("us-east-1b", "us-east-1c")
    own = {"us-east-1b": ("subnet-0a1b2c40",)}
    assert file.pool_subnets == {"direct-b": own, "direct-c": own}
    assert file.network.proxy
    assert file.network.proxy.url == "http://proxy.example:3128"
    assert (pools["direct-b"].placement_group, pools["direct-c"].placement_group) == (True, False)
    assert file.efa == {"direct-b"}


def test_storage_that_is_not_mounted_is_told_share_by_share():
    refused = run("storage.yaml", *PLACES)

    assert codes(refused) == {
        *("efs-throughput", "lustre-performance", "lustre-size", "shared-volume"),
    }
    for name in ("volume", "bare"):
        assert f"SharedStorage[{name}]" in refused.stderr
    file = written(accepted("storage.yaml", *PLACES))
    assert file["shared_dir"] == "/more"
    gaps = {"mount_name": None, "security_group": None}
    assert file["file_systems"] == [
        {"directory": "/data", "efs": "fs-0123456789abcdef0"},
        {"directory": "/second", "efs": "fs-0123456789abcdef2"},
        {"directory": "/cache", "lustre": "fc-0123456789abcdef0", **gaps},
        {"directory": "/zfs", "nfs": None},
        {"directory": "/ontap", "nfs": None},
    ]
    assert file["kms_key"] == "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d"
    assert "existing" not in file
    assert file["lustre"] == {
        "directory": "/fsx",
        "kind": "persistent",
        "storage_gib": 4800,
        "data_repositories": [{"path": "/data", "s3": "bucket/data", "import_on_create": False}],
    }


def test_lines_of_slurm_conf_are_taken_over_where_they_may_be():
    refused = run("settings.yaml", *PLACES)

    assert codes(refused) == {
        *("accounting", "memory", "node-settings", "partition-settings"),
        *("slurm-settings", "spot-price", "threads"),
    }
    assert "CustomSlurmSettings[1].SuspendTime: SuspendTime is written by Tidegate" in (
        refused.stderr
    )
    assert "CustomSlurmSettings[3].SelectTypeParameters: SelectTypeParameters=CR_CPU" in (
        refused.stderr
    )
    assert "CustomSlurmSettings[2].NodeName: NodeName is written by Tidegate itself; lines for" in (
        refused.stderr
    )
    assert "[5].JobCompLoc: jobs that ended are in /var/log/slurm/jobs.txt" in refused.stderr
    file = good(accepted("settings.yaml", *PLACES))
    assert dict(file.slurm.settings)["MaxArraySize"] == "5000"
    assert dict(file.slurm.settings)["EnforcePartLimits"] == "ALL"
    assert file.slurm.accounting
    assert file.existing.munge_secret is not None
    assert file.cluster.pools[0].idle_s == 365 * 24 * 3600


def test_a_queue_s_settings_become_options_of_its_partition():
    refused = run("settings.yaml", *PLACES)

    place = "SlurmQueues[limited].CustomSlurmSettings"
    assert (
        f"{place}.OverSubscribe: OverSubscribe=FORCE:4 is refused: must be no or exclusive"
        in refused.stderr
    )
    assert f"{place}.LLN: LLN=YES is no option of a partition here" in refused.stderr
    assert f"{place}.PreemptMode: jobs give way to none" in refused.stderr
    assert f"{place}.AllowGroups" not in refused.stderr
    assert written(accepted("settings.yaml", *PLACES))["partitions"]["limited"] == {
        "pools": ["limited-a", "limited-b", "limited-c"],
        "over_subscribe": "exclusive",
        "max_time_s": 172800,
        "allow_accounts": ["physics", "chemistry"],
    }


@pytest.mark.parametrize(
    ("word", "seconds"),
    [
        *(("60", 3600), ("90:30", 91 * 60), ("2:00:00", 7200), ("1-12", 36 * 3600)),
        *(("1-0:30", 88200), ("0-0:0:30", 60)),
    ],
)
def test_slurm_s_times_are_read_as_slurm_reads_them(tmp_path: Path, word: str, seconds: int):
    file = changed(tmp_path, "CapacityType: SPOT", f"CustomSlurmSettings: {{MaxTime: '{word}'}}")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    assert written(done)["partitions"]["cpu"]["max_time_s"] == seconds


@pytest.mark.parametrize(
    ("resource", "pool"),
    [("small", "cpu-small"), ("g5.xlarge", "cpu-g5-xlarge"), ("A_1", "cpu-a-1")],
)
def test_a_pool_gets_a_name_that_a_pool_may_have(tmp_path: Path, resource: str, pool: str):
    file = changed(tmp_path, "Name: small", f"Name: {resource}")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    assert list(written(done)["pools"]) == [pool]


def test_accounts_of_a_partition_bring_accounting(tmp_path: Path):
    file = changed(tmp_path, "CapacityType: SPOT", "CustomSlurmSettings: {AllowAccounts: physics}")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    assert written(done)["slurm"] == {"accounting": True}
    assert "not needed: slurm.accounting: allow_accounts of partition cpu need it" in done.stderr


def test_people_s_ways_in_and_rights_are_told():
    refused = run("people.yaml", *PLACES)

    assert codes(refused) == {"desktop", "login-nodes", "resource-prefix", "rights"}
    assert (
        "LoginNodes.Pools[login].Ssh.AllowedIps: is left out: 0.0.0.0/0 is nearly everybody"
        in refused.stderr
    )
    done = accepted("people.yaml", *PLACES)
    assert written(done)["directory"] == {
        "uris": ["ldaps://example.com"],
        "search_base": "dc=example,dc=com",
    }
    assert written(done)["login"] == {
        "count": 2,
        "instance_type": "t3.medium",
        "zone": "us-east-1a",
    }
    assert (
        "to fill in: pools.cpu-a.hooks.on_node_start[1].sha256: of https://example.com/b.sh: curl"
        in (done.stderr)
    )
    hooks = written(done)["pools"]["cpu-a"].pop("hooks")["on_node_start"]
    assert [each["source"] for each in hooks] == ["s3://bucket/a.sh", "https://example.com/b.sh"]
    assert (hooks[1]["args"], hooks[1]["sha256"]) == (["x"], None)
    (_, of_head) = written(done)["hooks"]["on_head_configured"]
    assert of_head == {"source": "s3://bucket/head.sh", "args": ["a"], "timeout_s": 1800}
    assert written(done)["tags"] == {"project": "fusion"}
    assert written(done)["timings"] == {"boot_bound_s": 4200}
    assert "lost: HeadNode.Ssh: no SSH port and no key pair: people use Session Manager, or" in (
        done.stderr
    )
    assert written(done)["permissions_boundary"] == "arn:aws:iam::123456789012:policy/boundary"
    assert written(done)["head"]["zone"] == "us-east-1a"
    assert written(done)["head"]["instance_type"] == "c6g.xlarge"


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        (
            "  InstanceType: m5.xlarge\n",
            "  CustomActions: {OnNodeConfigured: {Script: 'ftp://x/y'}}\n",
            "hooks",
            "ftp://x/y does not run",
        ),
        (
            "  InstanceType: m5.xlarge\n",
            "  CustomActions: {OnNodeUpdated: {Script: 's3://bucket/key'}}\n",
            "hooks",
            "OnNodeUpdated: scripts do not run then",
        ),
        (
            "{SubnetId: subnet-0a1b2c3d}",
            "{SubnetId: subnet-0a1b2c3d, AdditionalSecurityGroups: [sg-1, sg-2]}",
            "security-groups",
            "are left out: must be a security group's id like sg-0a1b2c3d",
        ),
        (
            "CapacityType: SPOT",
            "ComputeSettings: {LocalStorage: {RootVolume: {Size: 50, Iops: 90000}}}",
            "volume-performance",
            "RootVolume: is as large, but not as fast",
        ),
    ],
)
def test_what_of_a_site_s_own_cannot_be_carried_over_is_told(
    tmp_path: Path, old: str, new: str, code: str, said: str
):
    file = changed(tmp_path, old, new)

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    assert codes(done) == {code}
    assert said in done.stderr


def test_tags_that_nodes_could_not_bear_are_told(tmp_path: Path):
    file = changed(
        tmp_path,
        "Image:",
        "Tags: [{Key: 'a b', Value: x}, {Key: team, Value: y}]\nImage:",
    )

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])
    meant = CliRunner().invoke(app, ["import", "pcluster", str(file), "--accept", "tags"])

    assert codes(done) == {"tags"}
    assert "Tags[a b]: is not borne: the name must be letters, digits" in done.stderr
    assert written(meant)["tags"] == {"team": "y"}


def test_large_resources_fit_slurm_conf_and_other_regions_need_prices():
    refused = run("large.yaml")

    assert codes(refused) == {"instance-type", "job-size"}
    assert "zz9.large is not in the catalogue" in refused.stderr
    done = accepted("large.yaml")
    file = written(done)
    assert file["pools"]["wide-a"]["max_job_nodes"] == 62
    assert file["pools"]["wide-odd"]["instance_types"] == ["c5.4xlarge"]
    assert set(file["pools"]) == {"wide-a", "wide-b", "wide-odd"}
    assert file["prices_usd_per_hour"]["m5a.large"] == {"on-demand": None}
    assert "not needed: Scheduling.SlurmQueues[wide].ComputeResources[gone]: MaxCount is 0" in (
        done.stderr
    )


def test_keys_that_nobody_knows_are_refused():
    refused = run("typing-errors.yaml", *PLACES)

    assert codes(refused) == {"unknown-key"}
    assert "HeadNode.Sssh: ParallelCluster 3.16 has no such key; did you mean Ssh?" in (
        refused.stderr
    )
    assert "MaxCout: ParallelCluster 3.16 has no such key; did you mean MaxCount?" in (
        refused.stderr
    )


@pytest.mark.parametrize("name", sorted(each.name for each in FILES.glob("*.yaml")))
def test_once_everything_is_accepted_every_file_comes_out(name: str):
    first = run(name)
    done = first if first.exit_code != 1 else accepted(name)

    assert done.exit_code == 3
    assert written(done)["pools"]
