"""What of a cluster file counts in the sandbox."""

import time
from pathlib import Path

import pytest
import yaml

from local.cloud import LocalCloud
from local.sandbox import hooks, network, prepaid
from local.sandbox.cluster import write_sandbox_file
from tidegate.adapters.reservations import AwsReservations
from tidegate.core.model.errors import BadConfig
from tidegate.wire.config import load_cluster

IMPORTED = Path(__file__).parents[1] / "cli" / "pcluster" / "files"
BLOCK = "capacity-block"

POLICY = "arn:aws:iam::123456789012:policy/site"
OWN = """
name: lab
region: us-east-1
budget: {usd_per_day: 9}
budget_by_account: {interns: {usd_per_day: 3}}
budget_by_user: {grace: {usd_per_day: 1}}
shared_dir: /data
tags: {team: ml}
partitions: {gpu: {pools: [t4]}}
pools:
  t4:
    instance_types: [g4dn.xlarge]
    zones: [us-east-1c]
    capacity_types: [spot]
    efa: false
"""


def test_what_is_bought_for_whom_counts_and_the_rest_is_named(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(OWN)

    written = write_sandbox_file(tmp_path, file)

    made = yaml.safe_load(written.path.read_text())
    assert made["budget"] == {"usd_per_day": "9"}
    assert made["budget_by_account"] == {"interns": {"usd_per_day": "3"}}
    assert made["budget_by_user"] == {"grace": {"usd_per_day": "1"}}
    assert written.left_out == ["tags"]
    assert written.told == ("The shared folder is /shared here, instead of /data",)
    assert not {"limits", "prices_usd_per_hour"} & made.keys(), "those of the demo"


SHARED_OUT = """
name: lab
region: us-east-1
slurm:
  accounting: true
  settings: {PriorityType: priority/multifactor, PreemptType: TYPE, PreemptMode: REQUEUE}
partitions:
  lab: {pools: [t4], allow_accounts: [ml], qos: gold, priority_tier: 10, default: true}
  free: {pools: [t4], preempt_mode: requeue, grace_time_s: 60, max_time_s: 3600}
  train: {pools: [h100]}
pools:
  t4:
    instance_types: [g4dn.xlarge]
    zones: [us-east-1c]
    capacity_types: [spot]
    min_nodes: 1
  h100:
    instance_types: [p5.48xlarge]
    zones: [us-east-1c]
    capacity_types: [capacity-block]
    min_nodes: 8
reservations:
  - {id: cr-0123456789abcdef0, kind: capacity-block, instance_type: p5.48xlarge, zone: us-east-1c,
     count: 8, starts_at: 2027-01-01T11:30:00Z, ends_at: 2027-01-15T11:30:00Z}
"""


def test_accounts_are_named_as_left_out_and_tiers_still_give_way(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(SHARED_OUT.replace("TYPE", "preempt/partition_prio"))

    written = write_sandbox_file(tmp_path, file)

    made = load_cluster(written.path)
    assert made.slurm.settings["PreemptType"] == "preempt/partition_prio"
    assert "PriorityType" not in made.slurm.settings
    assert dict(made.partition_settings)["free"] == (
        ("GraceTime", "60"),
        ("MaxTime", "60"),
        ("PreemptMode", "REQUEUE"),
    )
    assert dict(made.partition_settings)["lab"] == (("PriorityTier", "10"),)
    assert written.left_out == [
        *("slurm.accounting", "slurm.settings.PriorityType"),
        *("partitions.lab.allow_accounts", "partitions.lab.qos"),
    ]


def test_without_accounting_no_qos_preempts(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(SHARED_OUT.replace("TYPE", "preempt/qos"))

    written = write_sandbox_file(tmp_path, file)

    assert not any(key.startswith("Preempt") for key in load_cluster(written.path).slurm.settings)
    lost = {"partitions.free.preempt_mode", "partitions.free.grace_time_s"}
    assert lost | {"slurm.settings.PreemptType"} <= {*written.left_out}


def test_a_configuration_of_parallelcluster_is_played_as_it_is_imported(tmp_path: Path) -> None:
    """With its gaps, which have nothing to do with what is played, and whatever it loses."""
    theirs = IMPORTED / "training.yaml"
    other = tmp_path / "nowhere.yaml"
    other.write_text(theirs.read_text().replace("Region: us-east-1\n", ""))

    for source in (theirs, other):
        written = write_sandbox_file(tmp_path, source)

        file = load_cluster(written.path)
        (pool,) = file.cluster.pools
        assert (pool.name, pool.limits.nodes, pool.markets) == ("train-h100", 64, (BLOCK,))
        assert pool.min_nodes == 4, "each is a machine that boots here"
        assert file.efa == {"train-h100"}
        assert "Kept without jobs: 4 nodes of train-h100, instead of 64" in written.told
        assert [each.name for each in file.cluster.partitions] == ["train"]
        assert "images" in written.left_out


def test_what_could_not_be_imported_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "old.yaml"
    source.write_text((IMPORTED / "whole.yaml").read_text().replace("Name: cpu", "Name: default"))

    with pytest.raises(BadConfig, match="default has a meaning of its own"):
        write_sandbox_file(tmp_path, source)


@pytest.mark.parametrize("source", sorted(IMPORTED.glob("*.yaml")), ids=lambda each: each.stem)
@pytest.mark.parametrize("boots", [True, False], ids=["real", "simulated"])
def test_whatever_can_be_imported_is_a_file_to_play(
    tmp_path: Path, source: Path, boots: bool
) -> None:
    written = write_sandbox_file(tmp_path, source, boots=boots)

    theirs = yaml.safe_load((tmp_path / "imported.yaml").read_text())
    played = load_cluster(written.path)
    assert [each.name for each in played.cluster.pools] == [*theirs["pools"]]


HELD = """
reservations:
  - {id: cr-1, kind: capacity-block, instance_type: p5.48xlarge, zone: eu-north-1c, count: 2,
     starts_at: 2020-01-01T11:30:00Z, ends_at: 2020-01-15T11:30:00Z}
  - {id: cr-2, kind: reserved, instance_type: g4dn.xlarge, zone: eu-north-1a, count: 3,
     starts_at: 2020-01-01T00:00:00Z}
  - {id: cr-3, kind: capacity-block, instance_type: p5.48xlarge, zone: eu-north-1c, count: 1,
     starts_at: 2098-01-01T00:00:00Z, ends_at: 2098-01-01T12:00:00Z}
"""
HOLDING = """
name: lab
region: eu-north-1
partitions: {lab: {pools: [t4, h100, groups], default: true}}
pools:
  t4: {instance_types: [g4dn.xlarge], zones: [eu-north-1a], capacity_types: [reserved, spot]}
  h100: {instance_types: [p5.48xlarge], zones: [eu-north-1c], capacity_types: [capacity-block]}
  groups: {instance_types: [g5.xlarge], zones: [eu-north-1a], capacity_types: [reserved],
           min_nodes: 1}
reservation_groups: ["arn:aws:resource-groups:eu-north-1:123456789012:group/odcr"]
"""


def test_what_is_paid_for_is_there_as_if_it_had_begun(tmp_path: Path) -> None:
    """In the zone that stands for its own; of a group nobody knows here what is in it."""
    file = tmp_path / "lab.yaml"
    file.write_text(HOLDING + HELD.replace("cr-", "cr-0000000"))

    written = write_sandbox_file(tmp_path, file)

    cluster, now_s = load_cluster(written.path).cluster, time.time()
    over, open_one, coming = cluster.reservations
    assert [each.count for each in cluster.reservations] == [2, 3, 1]
    assert (over.zone, open_one.zone) == ("us-east-1b", "us-east-1a")
    assert over.starts_at_s <= now_s < now_s + 13 * 86400 < (over.ends_at_s or 0)
    assert coming.starts_at_s <= now_s < now_s + 86000 < (coming.ends_at_s or 0)
    assert open_one.ends_at_s is None
    markets = {each.name: each.markets for each in cluster.pools}
    assert markets == {"t4": ("reserved", "spot"), "h100": (BLOCK,), "groups": ("on-demand",)}
    assert {"reservation_groups", "pools.groups.min_nodes"} == {*written.left_out}
    at = "2 x p5.48xlarge in us-east-1b, as if it had begun today"
    assert f"Paid for: cr-00000001 (capacity-block), {at}" in written.told


def test_ec2_has_what_the_file_says_is_paid_for(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(HOLDING + HELD.replace("cr-", "cr-0000000"))
    named = load_cluster(write_sandbox_file(tmp_path, file).path).cluster.reservations

    with LocalCloud() as cloud:
        prepaid.own(cloud.blocks, named)
        ec2, groups = cloud.client("ec2"), cloud.client("resource-groups")
        held = AwsReservations(ec2, groups, "lab").held()

    assert [each.reservation for each in held] == [*named]
    assert {(each.free, each.unusable) for each in held} == {(2, ""), (3, ""), (1, "")}


HOOKED = """
timings: {boot_bound_s: 1200}
hooks:
  on_head_configured: [{source: s3://our-tools/head/setup.sh, sha256: SHA}]
  on_node_start: [{inline: "#!/bin/sh"}, {source: "https://example.com/a%20b.sh?x", sha256: SHA}]
""".replace("SHA", "0" * 64)


def test_scripts_of_hooks_are_the_users_or_stand_ins(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(OWN + HOOKED)
    own = tmp_path / "our-tools" / "head"
    own.mkdir(parents=True)
    (own / "setup.sh").write_text("#!/bin/sh\necho mine\n")

    written = write_sandbox_file(tmp_path, file)

    made = load_cluster(written.path)
    (head,), (inline, fetched) = made.head_hooks, made.hooks["t4"].on_node_start
    assert (head.source, head.sha256) == ("s3://our-tools/head/setup.sh", "0" * 64)
    assert inline.inline == "#!/bin/sh"
    assert (fetched.source, fetched.sha256) == ("s3://sandbox-hooks/example.com/a_20b.sh_x", "")
    assert any("a%20b.sh?x. To run yours, put" in each for each in written.told)
    with LocalCloud() as cloud:
        hooks.store(cloud.client("s3"), written.scripts)
        bodies = [
            cloud.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read().decode()
            for bucket, key in (
                ("our-tools", "head/setup.sh"),
                ("sandbox-hooks", "example.com/a_20b.sh_x"),
            )
        ]
    assert bodies[0].endswith("echo mine\n")
    assert "stands in for https://example.com/a%20b.sh?x" in bodies[1]


def test_scripts_may_lie_in_a_folder_of_their_own_by_their_names(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(OWN + HOOKED)
    own = tmp_path / "own"
    own.mkdir()
    (own / "setup.sh").write_text("#!/bin/sh\n")

    written = write_sandbox_file(tmp_path, file, own_hooks=own)

    assert written.scripts["s3://our-tools/head/setup.sh"].file == own / "setup.sh"
    assert f"Hooks that run your scripts: s3://our-tools/head/setup.sh ({own}/setup.sh)" in (
        written.told
    )


def test_each_kind_of_login_nodes_is_played_with_its_scripts(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    hook = "{on_login_configured: [{inline: '#!/bin/sh'}]}"
    kinds = f"cpu: {{count: 2, zone: us-east-1b}}, arm: {{instance_type: m7g.large, hooks: {hook}}}"
    file.write_text(f"{OWN}login: {{kinds: {{{kinds}, gpu: {{policies: [{POLICY}]}}}}}}\n")

    written = write_sandbox_file(tmp_path, file)

    cpu, arm, gpu = load_cluster(written.path).login_kinds
    assert (cpu.model.count, arm.model.arch, gpu.name) == (2, "arm64", "gpu")
    assert [each.inline for each in arm.hooks] == ["#!/bin/sh"]
    assert written.left_out == ["tags", "login.kinds.gpu.policies"]


def test_simulated_machines_run_no_hooks_and_nobody_logs_in_there(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(f"{OWN}{HOOKED}login: {{count: 2}}\n")

    written = write_sandbox_file(tmp_path, file, boots=False)

    assert written.left_out == ["tags", "hooks", "login", "pools.t4.efa"]
    assert not {"hooks", "login"} & yaml.safe_load(written.path.read_text()).keys()


def test_the_files_own_network_is_there_by_its_ids(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    site = "network: {vpc: vpc-0a1b2c3d, subnets: {us-east-1c: subnet-0a1b2c3e}}\n"
    file.write_text(OWN + site)

    played = load_cluster(write_sandbox_file(tmp_path, file).path).network

    assert (played.vpc, played.subnets) == ("vpc-0a1b2c3d", {"us-east-1c": "subnet-0a1b2c3e"})
    with LocalCloud() as cloud:
        network.make(cloud.client("ec2"), "vpc-0a1b2c3d", played.subnets)
        found = cloud.client("ec2").describe_subnets(SubnetIds=["subnet-0a1b2c3e"])["Subnets"]
        others = cloud.client("ec2").create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    assert [(each["VpcId"], each["AvailabilityZone"]) for each in found] == [
        ("vpc-0a1b2c3d", "us-east-1c")
    ]
    assert others != "vpc-0a1b2c3d"
