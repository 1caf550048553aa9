"""`app.py`: which files it takes, and what it says about wrong ones."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import yaml

from cdk.app import synthesize
from tests.cdk.made import CLUSTERS, ROOT, File, Stack, dev_file, new_app, synthesized
from tidegate.core.model.errors import BadConfig


def run_app(folder, *, network: bool = True, **context) -> subprocess.CompletedProcess[str]:
    """app.py as the CDK's command line runs it, without anybody's credentials."""
    flags = json.loads((ROOT / "cdk.json").read_text())["context"]
    given = {**flags, "package": "source", **context}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment = {
        **kept,
        "CDK_OUTDIR": str(folder / "cdk.out"),
        "CDK_CONTEXT_JSON": json.dumps(given),
        # With a known account the CDK would rather ask AWS than leave a thing open.
        "CDK_DEFAULT_ACCOUNT": "123456789012",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    command = [sys.executable, str(ROOT / "app.py")]
    if not network:
        command = ["unshare", "--map-root-user", "--net", *command]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT
    )


def refusal(folder, **context) -> str:
    """What the app refuses its files with, after which it has written nothing.

    Without a process of its own: that prints it, and nothing else, whatever it says (below).
    """
    with pytest.raises(BadConfig) as refused:
        synthesize(ROOT, account="123456789012", app=new_app(folder, **context))
    assert list((folder / "cdk.out").glob("*.template.json")) == []
    return str(refused.value)


def write(folder, name: str, file: File) -> None:
    (folder / name).write_text(yaml.safe_dump(file))


def can_unshare() -> bool:
    if not shutil.which("unshare"):
        return False
    tried = subprocess.run(
        ["unshare", "--map-root-user", "--net", "true"], capture_output=True, check=False
    )
    return tried.returncode == 0


def test_all_faults_of_all_files_are_shown_and_nothing_is_synthesized(tmp_path):
    write(tmp_path, "a.yaml", dev_file(region="nowhere", shared_dir="shared"))
    write(tmp_path, "b.yaml", dev_file())
    write(tmp_path, "c.yaml", dev_file(name="other", limit={}))

    done = run_app(tmp_path, clusters=str(tmp_path / "*.yaml"))

    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "a.yaml: 2 problems" in done.stderr
    assert "an AWS region like us-east-1" in done.stderr
    assert "an absolute path like /shared" in done.stderr
    assert "c.yaml: 1 problem" in done.stderr
    assert "b.yaml" not in done.stderr
    assert list((tmp_path / "cdk.out").glob("*.template.json")) == []


def test_nodes_that_could_not_boot_are_a_fault_and_nothing_is_synthesized(tmp_path):
    pools = dev_file()["pools"]
    pools["a10g"]["instance_types"] = ["p3dn.24xlarge"]
    prices = {
        **dev_file()["prices_usd_per_hour"],
        "p3dn.24xlarge": {"on-demand": "31", "spot": "9"},
    }
    write(tmp_path, "a.yaml", dev_file(pools=pools, prices_usd_per_hour=prices))

    said = refusal(tmp_path, clusters=str(tmp_path / "*.yaml"))

    assert "p3dn.24xlarge: error R06: V100 is dropped" in said


def test_file_that_is_not_there_is_a_fault_like_others(tmp_path):
    assert "none.yaml" in refusal(tmp_path, cluster=str(tmp_path / "none.yaml"))


def test_pattern_that_matches_nothing_is_a_fault(tmp_path):
    said = refusal(tmp_path, clusters=str(tmp_path / "*.yml"))

    assert "no cluster file matches" in said


def test_synthesis_needs_neither_credentials_nor_a_network(tmp_path):
    if not can_unshare():
        pytest.skip("real path: no network namespaces here")

    done = run_app(tmp_path, network=False, cluster="clusters/dev.yaml")

    assert (done.returncode, done.stderr) == (0, "")
    manifest = json.loads((tmp_path / "cdk.out" / "manifest.json").read_text())
    assert "missing" not in manifest
    stack = manifest["artifacts"]["tidegate-dev"]
    assert stack["environment"] == "aws://123456789012/us-east-1"


def test_two_files_of_one_name_are_refused(tmp_path):
    with pytest.raises(BadConfig, match=r"0\.yaml and .*1\.yaml: both are named dev"):
        synthesized(tmp_path, dev_file(), dev_file())


def test_two_files_that_want_the_one_instance_connect_endpoint_of_a_vpc_are_refused(tmp_path):
    """EC2 makes one for each VPC: the second deployment would fail half-way."""
    subnets = {zone: f"subnet-0a1b2c3{zone[-1]}" for zone in ("us-east-1a", "us-east-1b")}
    network = {"vpc": "vpc-0a1b2c3d", "subnets": subnets, "instance_connect": "true"}
    files = [dev_file(name=name, network=network) for name in ("one", "two")]

    with pytest.raises(BadConfig, match=r"0\.yaml and .*1\.yaml: both .* of vpc-0a1b2c3d.* one"):
        synthesized(tmp_path, *files)


def test_two_files_that_want_an_endpoint_to_one_service_in_one_vpc_are_refused(tmp_path):
    """Its name leads to one endpoint of a VPC: the second deployment would be rolled back."""
    subnets = {zone: f"subnet-0a1b2c3{zone[-1]}" for zone in ("us-east-1a", "us-east-1b")}
    network = {"vpc": "vpc-0a1b2c3d", "subnets": subnets}
    files = [
        dev_file(name=name, network={**network, "endpoints": ["ssm", name]})
        for name in ("sqs", "events")
    ]

    with pytest.raises(BadConfig) as found:
        synthesized(tmp_path, *files)

    (said,) = str(found.value).splitlines()
    assert "both want an endpoint to ssm of vpc-0a1b2c3d" in said
    assert "take ssm of network.endpoints out of the others" in said


def test_more_pools_than_the_functions_can_be_told_of_are_refused(tmp_path):
    """With the file's name and a way out, as any other fault."""
    few = dev_file()
    pools = {f"{'p' * 28}{number:02d}": few["pools"]["t4"] for number in range(45)}
    file = dev_file(pools=pools, partitions={"gpu": {"pools": list(pools)}})

    with pytest.raises(BadConfig, match=r"0\.yaml: 45 launch templates .* use fewer pools"):
        synthesized(tmp_path, file)


def test_every_example_makes_stacks_of_its_own(tmp_path):
    made = synthesized(tmp_path, clusters=str(CLUSTERS / "*.yaml"))

    assert made.keys() == {
        *("tidegate-dev", "tidegate-dev-data"),
        *("tidegate-research", "tidegate-research-data"),
    }
    assert names(made["tidegate-dev"]).isdisjoint(names(made["tidegate-research"]))


def test_clusters_of_one_account_have_no_name_in_common(tmp_path):
    made = synthesized(tmp_path, dev_file(), dev_file(name="other"))

    assert names(made["tidegate-dev"])
    assert names(made["tidegate-dev"]).isdisjoint(names(made["tidegate-other"]))


def names(stack: Stack) -> set[str]:
    """The names that the template itself gives to what must be unique in an account."""
    keys = {
        "AWS::Events::EventBus": "Name",
        "AWS::Lambda::Function": "FunctionName",
        "AWS::Logs::LogGroup": "LogGroupName",
        "AWS::Scheduler::ScheduleGroup": "Name",
        "AWS::CloudWatch::Alarm": "AlarmName",
        "AWS::Route53::HostedZone": "Name",
    }
    return {each[key] for kind, key in keys.items() for each in stack.all(kind)}


def test_no_other_resource_has_a_name_of_its_own(dev: Stack, data: Stack):
    """A named resource cannot be replaced; these would also be taken in the account."""
    named = {
        (resource["Type"], key)
        for stack in (dev, data)
        for resource in stack.template["Resources"].values()
        for key in resource.get("Properties", {})
        if key in ("BucketName", "TableName", "QueueName", "RoleName", "TopicName")
        and isinstance(resource["Properties"][key], str)
    }

    assert named == set()


def test_everything_that_can_be_tagged_carries_the_cluster_s_name(dev: Stack, data: Stack):
    wanted = {"Key": "tidegate:cluster", "Value": "dev"}
    tagged = {
        resource["Type"]
        for stack in (dev, data)
        for resource in stack.template["Resources"].values()
        if isinstance(tags := resource.get("Properties", {}).get("Tags", ()), list)
        and wanted in tags
    }
    # These spell it in another way.
    assert dev.one("AWS::SSM::Parameter")["Tags"] == {"tidegate:cluster": "dev"}
    assert wanted in data.one("AWS::EFS::FileSystem")["FileSystemTags"]
    assert wanted in dev.one("AWS::Route53::HostedZone")["HostedZoneTags"]

    assert {
        "AWS::CloudWatch::Alarm",
        "AWS::DynamoDB::Table",
        "AWS::EC2::Instance",
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::Volume",
        "AWS::EC2::VPC",
        "AWS::IAM::Role",
        "AWS::Lambda::Function",
        "AWS::Logs::LogGroup",
        "AWS::S3::Bucket",
        "AWS::SecretsManager::Secret",
        "AWS::SNS::Topic",
        "AWS::SQS::Queue",
    } <= tagged


def test_outputs_say_where_everything_is_and_how_to_reach_the_head(dev: Stack):
    assert dev.template["Outputs"].keys() == {
        "BusName",
        "LookQueueUrl",
        "HeadInstanceId",
        "HeadShell",
        "HeadHost",
        "AlarmTopic",
    }
