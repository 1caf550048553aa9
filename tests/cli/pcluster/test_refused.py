"""`tidegate import pcluster`: what it refuses, and why."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.cli.pcluster.imported import FILES, changed, run, written
from tidegate.cli.main import app
from tidegate.cli.pcluster.command import as_yaml
from tidegate.cli.pcluster.network import Places
from tidegate.cli.pcluster.shape import shaped
from tidegate.cli.pcluster.translate import translate
from tidegate.core.model.errors import BadConfig
from tidegate.wire.config import parse_cluster


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Region: us-east-1\n", "", "Region  missing: say in which it is, by --region"),
        ("Region: us-east-1", "Region: us-moon-1", "region  us-moon-1 is no region of AWS"),
        ("MaxCount: 8", "MaxCount: 8, MaxCount: 9", "MaxCount  given twice, in line 14 and line"),
        ("MinCount: 1", "MinCount: 9", "MinCount is 9, more than MaxCount (8)"),
        ("MinCount: 1", "MinCount: -1", "MinCount  must be at least 0, is -1"),
        ("MaxCount: 8", "MaxCount: many", "MaxCount  must be a whole number, is many"),
        ("Scheduler: slurm", "Scheduler: awsbatch", "Scheduling.Scheduler  must be slurm"),
        ("CapacityType: SPOT", "CapacityType: SPOTTY", "CapacityType  must be ONDEMAND or SPOT"),
        ("InstanceType: c5.2xlarge, ", "", "has neither InstanceType nor Instances"),
        ("SubnetIds: [subnet-0a1b2c3d]", "SubnetIds: subnet-1", "SubnetIds  must be a list"),
        ("Name: small, ", "", "ComputeResources[0].Name  missing"),
        (
            "    - Name: cpu\n",
            "    - Name: cpu\n      CustomActions: {OnNodeStart: {Sequence: [s3://b/a.sh]}}\n",
            "CustomActions.OnNodeStart.Sequence[0]  must be a mapping with Script, Args",
        ),
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


@pytest.mark.parametrize("name", ["full.yaml", "linked.yaml", "network.yaml", "people.yaml"])
def test_a_file_with_a_gap_that_nobody_filled_is_refused(name: str):
    text = yaml.safe_load((FILES / name).read_text())
    old = shaped(text)
    assert not isinstance(old, list)
    done = translate(text, old, name="old", region="us-east-1", places=Places())
    gaps = [each for each in done.gaps if each.is_open]
    assert gaps

    for gap in gaps:
        filled = replace(done, gaps=[each for each in done.gaps if each is not gap]).complete()
        with pytest.raises(BadConfig, match=str(gap.path[0])):
            parse_cluster(as_yaml(filled), name)


def test_faults_and_losses_are_told_at_once(tmp_path: Path):
    """Nobody accepts losses one by one to hear then that the file cannot be all the same."""
    file = changed(tmp_path, "Name: cpu", "Name: default")
    file.write_text(file.read_text().replace("ubuntu2404", "rhel8"))

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    assert (done.exit_code, done.stdout) == (1, "")
    assert "partitions.default  default has a meaning of its own" in done.stderr
    assert "--accept system" in done.stderr


def test_what_is_lost_with_a_queue_is_told_once_for_all_its_pools(tmp_path: Path):
    file = changed(tmp_path, "CapacityType: SPOT", "CustomActions: {OnNodeStart: {Script: x}}")
    two = ("        - {Name: other, InstanceType: c5.large}\n", "      ComputeResources:\n")
    file.write_text(file.read_text().replace(two[1], f"{two[1]}{two[0]}"))

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    assert done.stderr.count("CustomActions.OnNodeStart: x does not run") == 1


def test_a_code_that_accepts_nothing_is_a_usage_error():
    done = run("whole.yaml", "--accept", "hoks")

    assert (done.exit_code, done.stdout) == (2, "")
    assert "hoks is the code of no loss; did you mean hooks?" in done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[global]\ncluster_template = default\n", "pcluster3-config-converter"),
        ("Region: ${AWS_REGION}\nScheduling: {SlurmQueues: 3}\n", "fill in ${AWS_REGION} and"),
        ("Image:\n  Os: {{ os }}\n", "fill in {{ os }} and the like first"),
        ("{% if a %}\n", "fill in {% if a %} and the like first"),
        ("Region: <REGION>\nScheduling: {SlurmQueues: 3}\n", "fill in <REGION> and the like first"),
        (
            "Resources:\n  Cluster: {Properties: {A: !Ref Region}}\n",
            "template of CloudFormation: import what stands under ClusterConfiguration",
        ),
        (
            "Scheduling: ${ALL}\n",
            "pcluster describe-cluster -n NAME --query clusterConfiguration.url",
        ),
    ],
)
def test_a_file_that_is_none_yet_says_what_makes_one_of_it(tmp_path: Path, content: str, said: str):
    file = tmp_path / "old.yaml"
    file.write_text(content)

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    assert done.exit_code == 1
    assert said in done.stderr.splitlines()[-1]


def test_what_only_looks_like_a_template_is_called_none(tmp_path: Path):
    """A file that is lost in part is one all the same."""
    file = changed(tmp_path, "Image: {Os: ubuntu2404}", "Image: {Os: rhel8}  # ${OS}")

    done = CliRunner().invoke(app, ["import", "pcluster", str(file)])

    assert "template" not in done.stderr
    assert done.stderr.endswith("--accept system\n")
