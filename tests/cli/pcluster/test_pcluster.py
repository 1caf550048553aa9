"""`tidegate import pcluster`: what it writes, what it loses, what it refuses."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from tidegate.cli.main import app
from tidegate.wire.config import ClusterFile, parse_cluster

FILES = Path(__file__).parent / "files"
SUBNETS = {
    "subnet-0a1b2c3d": "us-east-1a",
    "subnet-0a1b2c3e": "us-east-1b",
    "subnet-0a1b2c3f": "us-east-1c",
    "subnet-0a1b2c40": "us-east-1b",
}
PLACES = (
    *("--vpc", "vpc-0a1b2c3d"),
    *(word for pair in SUBNETS.items() for word in ("--zone", "=".join(pair))),
)


def run(name: str, *options: str) -> Result:
    return CliRunner().invoke(app, ["import", "pcluster", str(FILES / name), *options])


def codes(done: Result) -> set[str]:
    """What must be accepted, by the refusal's last line."""
    assert done.exit_code == 1
    assert done.stdout == ""
    return set(done.stderr.splitlines()[-1].split(" --accept ")[1:])


def accepted(name: str, *options: str) -> Result:
    refused = codes(run(name, *options))
    return run(name, *options, *(word for code in refused for word in ("--accept", code)))


def written(done: Result) -> dict[str, Any]:
    assert done.exit_code in (0, 3), done.stderr
    data: dict[str, Any] = yaml.safe_load(done.stdout)
    return data


def good(done: Result, **more: object) -> ClusterFile:
    return parse_cluster(yaml.safe_dump(written(done) | more), "imported")


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
        "to fill in: network.vpc: the VPC of subnet-0a1b2c3d, or say --vpc",
        "to fill in: network.subnets: the zone of each of subnet-0a1b2c3d, or say --zone"
        " SUBNET=ZONE",
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
    assert "lost" not in done.stderr


def test_what_would_be_bought_on_demand_instead_is_refused_until_accepted():
    refused = run("reservations.yaml", *PLACES)

    assert codes(refused) == {"on-demand-instead", "targeted-reservation"}
    place = "Scheduling.SlurmQueues[nameless].ComputeResources[block].CapacityType"
    assert f"{place}: no capacity block is named: nodes are bought on demand, and 8 are" in (
        refused.stderr
    )
    file = written(accepted("reservations.yaml", *PLACES))
    assert file["pools"]["reserved-one"]["capacity_types"] == ["reserved"]
    assert file["pools"]["reserved-group"]["capacity_types"] == ["on-demand"]
    assert [each["id"] for each in file["reservations"]] == ["cr-0123456789abcdef1"]


def test_one_code_does_not_accept_another():
    done = run("reservations.yaml", "--accept", "targeted-reservation")

    assert codes(done) == {"on-demand-instead"}


def test_nodes_have_one_image_and_the_queue_with_another_is_told():
    refused = run("images.yaml", *PLACES)

    assert codes(refused) == {"queue-images"}
    assert "SlurmQueues[special].Image.CustomAmi: all nodes have one image" in refused.stderr
    done = accepted("images.yaml", *PLACES)
    assert written(done)["image"] == "ami-0123456789abcdef0"
    assert "to fill in: image: ParallelCluster's own images have another Slurm" in done.stderr


def test_networks_are_told_where_they_differ():
    refused = run("network.yaml", *PLACES)

    assert codes(refused) == {
        *("placement-group", "proxy", "public-address", "security-groups", "subnets"),
    }
    for said in (
        "HeadNode.Networking.AdditionalSecurityGroups: its machines are in",
        "[spread].Networking.SecurityGroups: its machines are in",
        "[direct].Networking.Proxy: goes through http://proxy.example:3128",
        "[direct].Networking.SubnetIds: machines in us-east-1b are in subnet-0a1b2c3e",
        "[direct].ComputeResources[b].Networking.PlacementGroup: gangs are in a group of",
    ):
        assert said in refused.stderr
    file = good(accepted("network.yaml", *PLACES))
    pools = {each.name: each for each in file.cluster.pools}
    assert pools["spread-a"].zones == ("us-east-1b", "us-east-1c")
    assert file.network.proxy
    assert file.network.proxy.url == "http://proxy.example:3128"
    assert (pools["direct-b"].placement_group, pools["direct-c"].placement_group) == (True, False)
    assert file.efa == {"direct-b"}


def test_storage_that_is_not_mounted_is_told_share_by_share():
    refused = run("storage.yaml", *PLACES)

    assert codes(refused) == {
        *("lustre-performance", "lustre-repository", "lustre-size", "shared-volume", "storage"),
    }
    for name in ("more", "volume", "bare", "zfs", "ontap"):
        assert f"SharedStorage[{name}]" in refused.stderr
    file = written(accepted("storage.yaml", *PLACES))
    assert file["shared_dir"] == "/data"
    assert file["kms_key"] == "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d"
    assert file["existing"] == {
        "file_system": "fs-0123456789abcdef0",
        "file_security_group": None,
    }
    assert file["lustre"] == {"directory": "/fsx", "kind": "persistent", "storage_gib": 4800}


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
    file = good(accepted("settings.yaml", *PLACES))
    assert dict(file.slurm.settings)["MaxArraySize"] == "5000"
    assert dict(file.slurm.settings)["EnforcePartLimits"] == "ALL"
    assert file.slurm.accounting
    assert file.existing.munge_secret is not None
    assert file.cluster.pools[0].idle_s == 365 * 24 * 3600


def test_a_queue_s_settings_become_options_of_its_partition():
    refused = run("settings.yaml", *PLACES)

    place = "SlurmQueues[limited].CustomSlurmSettings"
    assert f"{place}.OverSubscribe: OverSubscribe=FORCE:4 is refused" in refused.stderr
    assert f"{place}.LLN: LLN=YES is no option of a partition here" in refused.stderr
    assert f"{place}.PreemptMode: jobs give way to none" in refused.stderr
    assert f"{place}.AllowGroups" not in refused.stderr
    assert written(accepted("settings.yaml", *PLACES))["partitions"]["limited"] == {
        "pools": ["limited-a"],
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


def test_accounts_of_a_partition_bring_accounting(tmp_path: Path):
    file = changed(tmp_path, "CapacityType: SPOT", "CustomSlurmSettings: {AllowAccounts: physics}")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    assert written(done)["slurm"] == {"accounting": True}
    assert "not needed: slurm.accounting: allow_accounts of partition cpu need it" in done.stderr


def test_people_s_ways_in_and_rights_are_told():
    refused = run("people.yaml", *PLACES)

    assert codes(refused) == {
        *("desktop", "directory", "head-type", "hooks", "login-nodes", "resource-prefix"),
        *("rights", "tags"),
    }
    done = accepted("people.yaml", *PLACES)
    assert "lost: HeadNode.Ssh: no SSH port: people use Session Manager" in done.stderr
    assert good(done).permissions_boundary == "arn:aws:iam::123456789012:policy/boundary"
    assert good(done).head.instance_type == "m6i.large"


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


def changed(tmp_path: Path, old: str, new: str) -> Path:
    file = tmp_path / "old.yaml"
    text = (FILES / "whole.yaml").read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    return file


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Region: us-east-1\n", "", "Region  missing: say in which it is, by --region"),
        ("Region: us-east-1", "Region: us-moon-1", "region  us-moon-1 is no region of AWS"),
        ("MaxCount: 8", "MaxCount: 8, MaxCount: 9", "MaxCount  given twice, in line 13 and line"),
        ("MinCount: 1", "MinCount: 9", "MinCount is 9, more than MaxCount (8)"),
        ("MinCount: 1", "MinCount: -1", "MinCount  must be at least 0, is -1"),
        ("MaxCount: 8", "MaxCount: many", "MaxCount  must be a whole number, is many"),
        ("Scheduler: slurm", "Scheduler: awsbatch", "Scheduling.Scheduler  must be slurm"),
        ("CapacityType: SPOT", "CapacityType: SPOTTY", "CapacityType  must be ONDEMAND or SPOT"),
        ("InstanceType: c5.2xlarge, ", "", "has neither InstanceType nor Instances"),
        ("SubnetIds: [subnet-0a1b2c3d]", "SubnetIds: subnet-1", "SubnetIds  must be a list"),
        ("Name: small, ", "", "ComputeResources[0].Name  missing"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(
    tmp_path: Path, old: str, new: str, said: str
):
    file = changed(tmp_path, old, new)

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr


def test_the_region_may_be_said_but_not_against_the_file(tmp_path: Path):
    file = changed(tmp_path, "Region: us-east-1\n", "")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file), "--region", "eu-west-1"])
    other = run("whole.yaml", "--region", "eu-west-1")

    assert written(done)["region"] == "eu-west-1"
    assert other.exit_code == 1
    assert "us-east-1, but --region says eu-west-1" in other.stderr


def test_a_zone_without_its_subnet_is_a_usage_error():
    done = run("whole.yaml", "--zone", "us-east-1a")

    assert done.exit_code == 2
    assert "must be SUBNET=ZONE" in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"- a", "must be a mapping of names to values, like `name: dev`"),
        (b"Name: x", "not a ParallelCluster 3 configuration: no Scheduling"),
        (b"{", "not valid YAML at line 1, column 2"),
        (b"a: 2026-13-41", "not valid YAML: month must be in 1..12"),
        (b"a: \xff", "not UTF-8 text (line 1)"),
        (None, "there is no such file"),
    ],
)
def test_other_files_are_refused_in_a_sentence(tmp_path: Path, content: bytes | None, said: str):
    source = tmp_path / "other.yaml"
    if content is not None:
        source.write_bytes(content)

    done = CliRunner().invoke(app, ["import", "pcluster", str(source)])

    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{source}: {said}")


def test_names_that_are_cut_stay_apart(tmp_path: Path):
    old = "        - {Name: small, InstanceType: c5.2xlarge, MinCount: 1, MaxCount: 8}\n"
    new = "".join(
        f"        - {{Name: resource-with-a-long-name-{letter}, InstanceType: c5.large}}\n"
        for letter in "abc"
    )
    file = changed(tmp_path, old, new)

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    names = written(done)["partitions"]["cpu"]["pools"]
    assert len(set(names)) == len(written(done)["pools"]) == 3
    assert max(map(len, names)) <= 31
