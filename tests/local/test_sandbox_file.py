"""What of a cluster file counts in the sandbox."""

from pathlib import Path

import yaml

from local.sandbox.cluster import write_sandbox_file

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
