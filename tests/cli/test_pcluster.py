"""`tidegate import pcluster`: what it writes is what `validate` takes."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tidegate.cli.main import app
from tidegate.cli.pcluster import translate
from tidegate.wire.config import load_cluster

PCLUSTER = """\
Region: us-east-1
Image: {Os: ubuntu2204}
HeadNode:
  InstanceType: m6i.xlarge
  Networking: {SubnetId: subnet-0a1b2c3d}
  Ssh: {KeyName: mine}
Scheduling:
  Scheduler: slurm
  SlurmSettings: {ScaledownIdletime: 5, QueueUpdateStrategy: DRAIN}
  SlurmQueues:
    - Name: gpu
      CapacityType: SPOT
      Networking: {SubnetIds: [subnet-0a1b2c3e], PlacementGroup: {Enabled: true}}
      ComputeResources:
        - Name: a10
          Instances: [{InstanceType: g5.xlarge}, {InstanceType: g5.12xlarge}]
          MinCount: 1
          MaxCount: 12
        - Name: odd
          InstanceType: zz9.large
    - Name: train
      ComputeResources:
        - {Name: h100, InstanceType: p5.48xlarge, MaxCount: 4, Efa: {Enabled: true}}
SharedStorage:
  - {Name: data, StorageType: FsxLustre, MountDir: /fsx}
"""


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def test_parallelcluster_s_queues_become_partitions_and_pools():
    done = translate(yaml.safe_load(PCLUSTER), "old")

    assert done.file["head"] == {"instance_type": "m6i.xlarge"}
    assert done.file["partitions"] == {
        "gpu": {"pools": ["gpu-a10"], "default": True},
        "train": {"pools": ["train-h100"]},
    }
    assert done.file["pools"]["gpu-a10"] == {
        "instance_types": ["g5.xlarge", "g5.12xlarge"],
        "zones": [],
        "capacity_types": ["spot"],
        "limits": {"nodes": 12},
        "idle_s": 300,
        "min_nodes": 1,
    }
    assert done.file["pools"]["train-h100"]["capacity_types"] == ["on-demand"]


@pytest.mark.parametrize(
    "path",
    [
        *("HeadNode.Ssh", "SharedStorage", "Scheduling.SlurmSettings.QueueUpdateStrategy"),
        *("Image.Os", "Scheduling.SlurmQueues.gpu.odd"),
    ],
)
def test_what_has_no_equivalent_is_told(path):
    left_out = translate(yaml.safe_load(PCLUSTER), "old").left_out

    assert [line for line in left_out if line.startswith(f"{path}:")]


def test_translation_is_a_good_file_once_the_gaps_are_filled(tmp_path):
    source = tmp_path / "pcluster.yaml"
    source.write_text(PCLUSTER)
    done = run("import", "pcluster", str(source), "--name", "old")
    assert done.exit_code == 0

    written = yaml.safe_load(done.stdout)
    for pool in written["pools"].values():
        pool["zones"] = ["us-east-1a"]
    target = tmp_path / "old.yaml"
    target.write_text(yaml.safe_dump(written))

    assert load_cluster(target).cluster.name == "old"
    assert "to fill in: pools.*.zones" in done.stderr
    assert "subnet-0a1b2c3d, subnet-0a1b2c3e" in done.stderr
    assert "Scheduling.SlurmQueues.gpu: had a placement group; see" in done.stderr
    assert "Scheduling.SlurmQueues.train: had" not in done.stderr
    assert "to fill in: image" not in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"- a", "not a ParallelCluster 3 configuration: no Scheduling"),
        (b"Name: x", "not a ParallelCluster 3 configuration: no Scheduling"),
        (b"{", "not valid YAML at line 1, column 2"),
        (b"a: 2026-13-41", "not valid YAML: month must be in 1..12"),
        (b"a: \xff", "not UTF-8 text (line 1)"),
        (None, "there is no such file"),
    ],
)
def test_other_files_are_refused_in_a_sentence(tmp_path, content, said):
    source: Path = tmp_path / "other.yaml"
    if content is not None:
        source.write_bytes(content)

    done = run("import", "pcluster", str(source))

    assert done.exit_code == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{source}: {said}")


def test_an_image_is_taken_over_and_has_to_be_built_anew():
    text = yaml.safe_load(PCLUSTER)
    text["Image"]["CustomAmi"] = "ami-0123456789abcdef0"

    done = translate(text, "old")

    assert done.file["image"] == "ami-0123456789abcdef0"
    assert "image: ParallelCluster's own images have another Slurm; build one" in done.to_do


def test_no_time_and_no_node_are_not_the_defaults():
    text = yaml.safe_load(PCLUSTER)
    text["Scheduling"]["SlurmSettings"]["ScaledownIdletime"] = 0
    text["Scheduling"]["SlurmQueues"][1]["ComputeResources"][0]["MaxCount"] = 0

    pool = translate(text, "old").file["pools"]["train-h100"]

    assert (pool["idle_s"], pool["limits"]) == (0, {"nodes": 0})


def test_a_capacity_block_becomes_on_demand_and_that_is_told():
    text = yaml.safe_load(PCLUSTER)
    text["Scheduling"]["SlurmQueues"][1]["CapacityType"] = "CAPACITY_BLOCK"

    done = translate(text, "old")

    assert done.file["pools"]["train-h100"]["capacity_types"] == ["on-demand"]
    place = "Scheduling.SlurmQueues.train.CapacityType"
    assert f"{place}: CAPACITY_BLOCK, see reservations" in done.left_out


BROKEN = """\
Scheduling:
  SlurmSettings: {ScaledownIdletime: soon}
  SlurmQueues:
    - Name: a
      Networking: {SubnetIds: subnet-1}
      ComputeResources:
        - Name: x
        - {Name: y, InstanceType: g5.xlarge, MaxCount: many}
    - gpu
    - ComputeResources: [{Name: z, Instances: [{}]}]
"""


def test_a_configuration_that_parallelcluster_would_refuse_is_refused_with_places(tmp_path):
    source = tmp_path / "pcluster.yaml"
    source.write_text(BROKEN)

    done = run("import", "pcluster", str(source))

    assert done.exit_code == 1
    head, *lines = done.stderr.splitlines()
    assert head == f"{source}: 7 problems"
    queues = "Scheduling.SlurmQueues"
    assert {line.split()[0] for line in lines} == {
        "Scheduling.SlurmSettings.ScaledownIdletime",
        f"{queues}[0].Networking.SubnetIds",
        f"{queues}[0].ComputeResources[0]",
        f"{queues}[0].ComputeResources[1].MaxCount",
        f"{queues}[1]",
        f"{queues}[2].Name",
        f"{queues}[2].ComputeResources[0].Instances[0].InstanceType",
    }
    assert "has neither InstanceType nor Instances" in done.stderr
    assert done.stdout == ""


def test_names_that_are_cut_stay_apart_and_empty_values_are_defaults():
    resources: list[dict[str, Any]] = [
        {"Name": f"resource-with-a-long-name-{letter}", "InstanceType": "g5.xlarge"}
        for letter in "abc"
    ]
    queue = {"Name": "long-queue", "CapacityType": None, "ComputeResources": resources}
    resources[0]["MaxCount"] = None

    done = translate(
        {
            "Region": None,
            "Scheduling": {
                "SlurmQueues": [queue],
                "SlurmSettings": {"ScaledownIdletime": None},
            },
        },
        "old",
    )

    names = done.file["partitions"]["long-queue"]["pools"]
    assert len(set(names)) == len(done.file["pools"]) == 3
    assert max(map(len, names)) == 31
    for pool in done.file["pools"].values():
        assert (pool["limits"], pool["idle_s"]) == ({"nodes": 10}, 600)
        assert pool["capacity_types"] == ["on-demand"]
    assert done.file["region"] == "us-east-1"
