"""The constructs in an app that is not ours: the example under docs/, as it stands."""

import importlib.util
import json
import re
from typing import Any

import pytest
import yaml
from aws_cdk import Stack as CdkStack

from cdk.cluster import Source, TidegateAutoscaler, TidegateCluster, TidegateData
from cdk.packages import Packages
from tests.cdk.made import ROOT, Stack, joined, new_app, written
from tidegate.core.model.errors import BadConfig
from tidegate.wire.config import parse_deployed
from tidegate.wire.models import ClusterModel

EXAMPLE = ROOT / "docs" / "example-app" / "platform_app.py"
GROUP = "AWS::EC2::SecurityGroup"
BOUNDARY = "arn:aws:iam::123456789012:policy/platform-bound"


PACKAGES = Packages.own_code(ROOT)


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> dict[str, Stack]:
    found = importlib.util.spec_from_file_location("platform_app", EXAMPLE)
    assert found
    assert found.loader
    module: Any = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("example")
    app = new_app(folder)
    module.build(app, PACKAGES)
    app.synth()
    return written(folder)


def test_example_has_two_stacks_for_each_cluster(example):
    assert example.keys() == {"TrainingData", "Training", "OldData", "Old"}


def test_whole_cluster_has_all_that_the_app_s_own_has(example, dev):
    kinds = {resource["Type"] for resource in example["Training"].template["Resources"].values()}
    ours = {resource["Type"] for resource in dev.template["Resources"].values()}

    network = {kind for kind in ours if kind.startswith("AWS::EC2")} - kinds
    assert ours - kinds <= network
    assert "AWS::EC2::Instance" in kinds


def test_stacks_keep_their_own_tags_and_carry_the_cluster_s(example):
    table = example["TrainingData"].one("AWS::DynamoDB::Table")

    tags = {tag["Key"]: tag["Value"] for tag in table["Tags"]}
    assert tags == {"team": "platform", "tidegate:cluster": "training"}


def test_functions_read_what_the_program_described(example):
    asset = json.loads((example["Training"].folder / "Training.assets.json").read_text())
    (path,) = [
        file["source"]["path"]
        for file in asset["files"].values()
        if re.fullmatch(r"asset\.[0-9a-f]+\.tidegate-training", file["source"]["path"])
    ]

    cluster = parse_deployed((example["Training"].folder / path).read_text(), path).cluster
    assert cluster.name == "training"
    assert (cluster.limits.gpus, cluster.limits.usd_per_hour) == (32, 150.0)


def test_every_role_is_below_the_boundary(example):
    roles = [
        role
        for name in ("Training", "TrainingData")
        for role in example[name].all("AWS::IAM::Role")
    ]

    assert len(roles) == 8
    assert {joined(role["PermissionsBoundary"]) for role in roles} == {BOUNDARY}
    assert all("PermissionsBoundary" not in each for each in example["Old"].all("AWS::IAM::Role"))


def test_autoscaler_alone_makes_neither_head_nor_files_nor_key(example):
    kinds = {
        resource["Type"]
        for name in ("Old", "OldData")
        for resource in example[name].template["Resources"].values()
    }

    assert kinds.isdisjoint(
        {
            *("AWS::EC2::Instance", "AWS::EC2::Volume", "AWS::EFS::FileSystem"),
            *("AWS::EFS::MountTarget", "AWS::SecretsManager::Secret", "AWS::Route53::HostedZone"),
            *("AWS::EC2::VPC", "AWS::EC2::Subnet"),
        }
    )
    assert {"AWS::DynamoDB::Table", "AWS::Lambda::Function", "AWS::EC2::LaunchTemplate"} <= kinds


def test_autoscaler_alone_joins_the_groups_that_are_there(example):
    nodes = f"<{example['Old'].logical_id('AutoscalerNetworkNodeGroup', GROUP)}.GroupId>"
    rules = {
        (joined(rule["GroupId"]), joined(rule["SourceSecurityGroupId"]))
        for rule in example["Old"].all("AWS::EC2::SecurityGroupIngress")
    }

    head, files = "sg-0a1b2c3d4e5f60004", "sg-0a1b2c3d4e5f60006"
    assert rules == {(head, nodes), (nodes, head), (files, nodes), (nodes, nodes)}
    assert len(example["Old"].all(GROUP)) == 1


def test_nodes_of_the_autoscaler_alone_use_what_is_there(example):
    role = example["Old"].named("AutoscalerNodesRole", "AWS::IAM::Role")
    granted = json.dumps(role["Policies"])

    assert "secret:munge-AbCdEf" in granted
    assert "file-system/fs-0a1b2c3d4e5f60005" in granted


def test_existing_head_s_role_gets_the_agent_s_rights_and_no_others(example):
    policy = example["Old"].one("AWS::IAM::Policy")

    assert policy["Roles"] == ["slurm-head"]
    actions = {
        action
        for each in policy["PolicyDocument"]["Statement"]
        for action in (each["Action"] if isinstance(each["Action"], list) else [each["Action"]])
    }
    assert actions == {
        *("s3:PutObject", "events:PutEvents", "sqs:ReceiveMessage", "sqs:DeleteMessage"),
        *("ssm:GetParameter", "s3:GetObject", "s3:ListBucket"),
    }


def test_administrator_of_an_existing_head_is_told_what_to_do(example):
    outputs = example["Old"].template["Outputs"]
    (tags,) = [each for name, each in outputs.items() if name.startswith("AutoscalerTagHead")]

    assert joined(tags["Value"]).endswith(
        "--resources i-0a1b2c3d4e5f60003 "
        "--tags Key=tidegate:cluster,Value=old Key=tidegate:role,Value=head"
    )
    environment = joined(
        example["Old"].named("AutoscalerHeadAgent", "AWS::SSM::Parameter")["Value"]
    )
    assert "TIDEGATE_CLUSTER=old\n" in environment
    assert "TIDEGATE_URGENT_QUEUE_URL=<AutoscalerQueuesUrgent" in environment
    (conf,) = [
        path
        for path in example["Old"].folder.glob("asset.*.conf")
        if "ClusterName=old" in path.read_text()
    ]
    assert "SlurmctldHost=slurm(slurm.example.internal)" in conf.read_text()
    (code,) = [each for name, each in outputs.items() if name.startswith("AutoscalerAgentCode")]
    archives = {path.read_bytes() for path in example["Old"].folder.glob("asset.*.tgz")}
    assert PACKAGES.agent.read_bytes() in archives
    assert joined(code["Value"]).endswith(".tgz - | tar -xz -C FOLDER")


def test_each_construct_refuses_the_other_s_file(tmp_path):
    app = new_app(tmp_path)
    old = Source.read(EXAMPLE.with_name("old-cluster.yaml"))
    dev = Source.read(ROOT / "clusters" / "dev.yaml")
    stack = CdkStack(app, "s")

    with pytest.raises(ValueError, match="use TidegateAutoscaler"):
        TidegateCluster(
            stack, "a", source=old, data=TidegateData(stack, "d", source=old), packages=PACKAGES
        )
    with pytest.raises(ValueError, match="or use TidegateCluster"):
        TidegateAutoscaler(
            stack, "b", source=dev, data=TidegateData(stack, "e", source=dev), packages=PACKAGES
        )


def test_described_cluster_is_checked_as_a_file_is():
    described = yaml.safe_load((ROOT / "clusters" / "dev.yaml").read_text())
    described["partitions"]["gpu"]["pools"] = ["t4", "none"]
    described["slurm"]["version"] = "23.11"
    model = ClusterModel.model_validate(described)

    with pytest.raises(BadConfig, match=r"cluster dev: 2 problems"):
        Source.of(model)


def test_app_deploys_the_autoscaler_alone_from_a_file_too(tmp_path):
    from cdk.app import synthesize

    path = EXAMPLE.with_name("old-cluster.yaml")
    synthesize(ROOT, account=None, app=new_app(tmp_path, cluster=str(path)))

    assert written(tmp_path).keys() == {"tidegate-old", "tidegate-old-data"}
    assert "TagHead" in written(tmp_path)["tidegate-old"].template["Outputs"]
