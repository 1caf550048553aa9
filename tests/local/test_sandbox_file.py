"""What of a cluster file counts in the sandbox."""

from pathlib import Path

import pytest
import yaml

from local.sandbox.cluster import write_sandbox_file
from tidegate.core.model.errors import BadConfig
from tidegate.wire.config import load_cluster

IMPORTED = Path(__file__).parents[1] / "cli" / "pcluster" / "files"

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

    written, left_out = write_sandbox_file(tmp_path, file)

    made = yaml.safe_load(written.read_text())
    assert made["budget"] == {"usd_per_day": "9"}
    assert made["budget_by_account"] == {"interns": {"usd_per_day": "3"}}
    assert made["budget_by_user"] == {"grace": {"usd_per_day": "1"}}
    assert left_out == ["tags", "pools.t4.efa"]
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

    written, left_out = write_sandbox_file(tmp_path, file)

    made = load_cluster(written)
    assert made.slurm.settings["PreemptType"] == "preempt/partition_prio"
    assert "PriorityType" not in made.slurm.settings
    assert dict(made.partition_settings)["free"] == (
        ("GraceTime", "60"),
        ("MaxTime", "60"),
        ("PreemptMode", "REQUEUE"),
    )
    assert dict(made.partition_settings)["lab"] == (("PriorityTier", "10"),)
    assert left_out == [
        *("reservations", "partitions.lab.allow_accounts", "partitions.lab.qos"),
        "pools.h100.min_nodes",
    ]
    assert [each.min_nodes for each in made.cluster.pools] == [1, 0]


def test_without_accounting_no_qos_preempts(tmp_path: Path) -> None:
    file = tmp_path / "lab.yaml"
    file.write_text(SHARED_OUT.replace("TYPE", "preempt/qos"))

    written, left_out = write_sandbox_file(tmp_path, file)

    assert not any(key.startswith("Preempt") for key in load_cluster(written).slurm.settings)
    assert {"partitions.free.preempt_mode", "partitions.free.grace_time_s"} <= {*left_out}


def test_a_configuration_of_parallelcluster_is_played_as_it_is_imported(tmp_path: Path) -> None:
    """With its gaps, which have nothing to do with what is played, and whatever it loses."""
    theirs = IMPORTED / "training.yaml"
    other = tmp_path / "nowhere.yaml"
    other.write_text(theirs.read_text().replace("Region: us-east-1\n", ""))

    for source in (theirs, other):
        written, left_out = write_sandbox_file(tmp_path, source)

        cluster = load_cluster(written).cluster
        (pool,) = cluster.pools
        assert (pool.name, pool.limits.nodes, pool.markets) == ("train-h100", 64, ("on-demand",))
        assert [each.name for each in cluster.partitions] == ["train"]
        assert "reservations" in left_out


def test_what_could_not_be_imported_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "old.yaml"
    source.write_text((IMPORTED / "whole.yaml").read_text().replace("Name: cpu", "Name: default"))

    with pytest.raises(BadConfig, match="default has a meaning of its own"):
        write_sandbox_file(tmp_path, source)
