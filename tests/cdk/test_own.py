"""What a site brings of its own to a stack: tags and security groups."""

import re
from pathlib import Path

import pytest
import yaml

from tests.cdk.made import Stack, dev_file, joined, synthesized
from tidegate.cli.probe.rights import roles_do
from tidegate.wire.config import parse_cluster

OURS, THEIRS = "sg-0a1b2c3d4e5f60001", "sg-0a1b2c3d4e5f60002"
SUBNETS = {
    "us-east-1a": "subnet-0a1b2c3d4e5f60001",
    "us-east-1b": "subnet-0a1b2c3d4e5f60002",
}
NETWORK = {"vpc": "vpc-0a1b2c3d4e5f60000", "subnets": SUBNETS}
FILES = "sg-0a1b2c3d4e5f60003"
FILE_SYSTEMS = [
    {"directory": "/data", "efs": "fs-0a1b2c3d", "security_group": FILES},
    {"directory": "/more", "efs": "fs-0a1b2c3e", "security_group": FILES},
    {"directory": "/nas", "nfs": "nas.example.com:/export"},
    {"directory": "/read", "efs": "fs-0a1b2c3f", "read_only": True},
    {"directory": "/lake", "s3_files": "fs-0a1b2c3d4e5f60001", "security_group": FILES},
    {"directory": "/raw", "s3_files": "fs-0a1b2c3d4e5f60002", "bucket": "lake/raw"},
    {"directory": "/sets", "s3": "data-sets/imagenet"},
    {"directory": "/all", "s3": "all-of-it"},
]
TAGS = {"cost-center": "ml 42", "owner": "vision"}


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stack]:
    file = dev_file(
        tags=TAGS,
        network=NETWORK,
        file_systems=FILE_SYSTEMS,
        head={"security_groups": [OURS]},
        prefetch={"buckets": ["train/imagenet/", "open-data"]},
    )
    file["pools"]["t4"] |= {"security_groups": [OURS, THEIRS]}
    return synthesized(tmp_path_factory.mktemp("own"), file)


def tags_of(resource: object) -> set[str]:
    """The keys of the site's own among the tags of a resource's properties, however deep."""
    found: set[str] = set()
    if isinstance(resource, dict):
        if resource.get("Key") in TAGS and resource.get("Value") == TAGS[resource["Key"]]:
            found.add(resource["Key"])
        found |= {key for key, value in TAGS.items() if resource.get(key) == value}
        found.update(*map(tags_of, resource.values()))
    elif isinstance(resource, list):
        found.update(*map(tags_of, resource))
    return found


# They have no tags (CloudFormation resource reference), or CloudFormation has no property for them.
BARE = {
    *("AWS::Backup::BackupSelection", "AWS::CDK::Metadata", "AWS::EC2::VolumeAttachment"),
    *("AWS::EC2::SecurityGroupEgress", "AWS::EC2::SecurityGroupIngress", "AWS::EFS::MountTarget"),
    *("AWS::Events::Rule", "AWS::IAM::InstanceProfile", "AWS::Lambda::EventInvokeConfig"),
    *("AWS::Lambda::Permission", "AWS::Route53::RecordSet", "AWS::S3::BucketPolicy"),
    *("AWS::SNS::Subscription", "AWS::SNS::TopicPolicy", "AWS::SQS::QueuePolicy"),
    *("AWS::Scheduler::Schedule", "AWS::Lambda::LayerVersion", "AWS::CloudWatch::Dashboard"),
    *("AWS::EC2::PlacementGroup", "AWS::Logs::QueryDefinition", "AWS::Backup::BackupVault"),
}


def test_everything_that_can_bear_tags_bears_the_sites_own(stacks: dict[str, Stack]) -> None:
    bare = [
        (name, each["Type"])
        for stack in stacks.values()
        for name, each in stack.template["Resources"].items()
        if tags_of(each.get("Properties", {})) != set(TAGS)
        and each["Type"] not in BARE
        # Another template, and another one it would be, would replace the head.
        and not name.startswith("ImagesHead")
    ]

    assert bare == []


def test_instances_and_volumes_bear_them_from_their_launch_on(stacks: dict[str, Stack]) -> None:
    for name, each in stacks["tidegate-dev"].template["Resources"].items():
        if each["Type"] == "AWS::EC2::LaunchTemplate" and "Pool" in name:
            data = each["Properties"]["LaunchTemplateData"]
            for of in data["TagSpecifications"]:
                assert tags_of(of) == set(TAGS), (name, of["ResourceType"])


def test_groups_are_on_the_machines_they_are_for_and_the_planner_may_use_them(
    stacks: dict[str, Stack],
) -> None:
    made = stacks["tidegate-dev"]
    resources = made.template["Resources"]
    head = made.one("AWS::EC2::Instance")["SecurityGroupIds"]
    groups = {
        name: each["Properties"]["LaunchTemplateData"]["SecurityGroupIds"][1:]
        for name, each in resources.items()
        if each["Type"] == "AWS::EC2::LaunchTemplate" and "SecurityGroupIds" in str(each)
    }

    assert head[1:] == [OURS]
    assert sorted(map(tuple, groups.values())) == [(), (OURS, THEIRS)]
    text = str(made.named("FunctionsPlannerRole", "AWS::IAM::Role"))
    assert f":security-group/{OURS}" in text
    assert f":security-group/{THEIRS}" in text


def test_a_cluster_without_tags_of_its_own_is_what_it_was(tmp_path: Path) -> None:
    plain = synthesized(tmp_path / "plain", dev_file())["tidegate-dev"]

    assert "cost-center" not in str(plain.template)


def test_file_systems_are_opened_once_for_head_and_nodes_who_may_mount_them(
    stacks: dict[str, Stack],
) -> None:
    made = stacks["tidegate-dev"]
    rules = [
        each["Properties"]
        for each in made.template["Resources"].values()
        if each["Type"] == "AWS::EC2::SecurityGroupIngress"
        and each["Properties"]["GroupId"] == FILES
    ]

    assert [(each["FromPort"], each["ToPort"]) for each in rules] == [(2049, 2049)] * 2
    for role in ("HeadRole", "NodesRole"):
        text = str(made.named(role, "AWS::IAM::Role"))
        assert ":file-system/fs-0a1b2c3d" in text
        assert ":file-system/fs-0a1b2c3e" in text
    told = str(made.one("AWS::SSM::Parameter")["Value"])
    assert "nas.example.com:/export" in told


def test_roles_may_read_and_write_of_file_systems_and_buckets_what_the_file_says(
    stacks: dict[str, Stack],
) -> None:
    made = stacks["tidegate-dev"]
    for name in ("HeadRole", "NodesRole"):
        policies = made.named(name, "AWS::IAM::Role")["Policies"]
        given = {
            each["Sid"]: each
            for policy in policies
            for each in policy["PolicyDocument"]["Statement"]
        }

        assert given["MoreFilesRead"]["Action"] == "elasticfilesystem:ClientMount"
        assert "fs-0a1b2c3f" in str(given["MoreFilesRead"]["Resource"])
        assert "fs-0a1b2c3f" not in str(given["MoreFiles"]["Resource"])
        assert given["S3Files"]["Action"] == ["s3files:ClientMount", "s3files:ClientWrite"]
        assert ":s3files:" in str(given["S3Files"]["Resource"][0])
        assert ":s3:::lake/raw/*" in str(given["BehindS3Files"]["Resource"])
        # Without it S3 says 403 of what is not there, and efs-proxy reads nothing of S3 itself.
        assert given["ListBehindS3Files0"]["Action"] == "s3:ListBucket"
        assert given["ListBehindS3Files0"]["Condition"] == {"StringLike": {"s3:prefix": ["raw/*"]}}
        assert "Condition" not in given["ListBucket0"]
        assert ":s3:::all-of-it" in str(given["ListBucket0"]["Resource"])
        assert given["ListBucket1"]["Condition"] == {"StringLike": {"s3:prefix": ["imagenet/*"]}}
        assert ":s3:::data-sets/imagenet/*" in str(given["Buckets"]["Resource"])


def test_nodes_alone_read_what_jobs_may_name_and_nothing_beside(stacks: dict[str, Stack]) -> None:
    made = stacks["tidegate-dev"]

    given = {
        name: {
            each["Sid"]: each
            for policy in made.named(name, "AWS::IAM::Role")["Policies"]
            for each in policy["PolicyDocument"]["Statement"]
            if "DataSet" in each.get("Sid", "")
        }
        for name in ("HeadRole", "NodesRole")
    }

    assert given["HeadRole"] == {}
    found = given["NodesRole"]
    assert set(found) == {"ListDataSet0", "ListDataSet1", "DataSets"}
    assert {each["Effect"] for each in found.values()} == {"Allow"}
    assert found["DataSets"]["Action"] == "s3:GetObject"
    listed = [found[f"ListDataSet{number}"] for number in (0, 1)]
    assert [each["Action"] for each in listed] == ["s3:ListBucket"] * 2
    assert [_ends(each["Resource"]) for each in listed] == [["open-data"], ["train"]]
    within = {"StringLike": {"s3:prefix": ["imagenet/*"]}}
    assert [each.get("Condition") for each in listed] == [None, within]
    assert _ends(found["DataSets"]["Resource"]) == ["open-data/*", "train/imagenet/*"]


def _ends(resources: object) -> list[str]:
    """What stands behind the partition in one ARN or several."""
    every = resources if isinstance(resources, list) else [resources]
    return [re.findall(r":s3:::([^'\"]*)", str(each))[0] for each in every]


def test_what_another_account_shares_may_be_launched_into(stacks: dict[str, Stack]):
    """IAM is asked for it by its owner's account; what the stack makes is of its own."""
    statements = stacks["tidegate-dev"].named("FunctionsPlannerRole", "AWS::IAM::Role")["Policies"]
    asked = next(
        each["Resource"]
        for each in statements[0]["PolicyDocument"]["Statement"]
        if each["Sid"] == "LaunchWith"
    )

    accounts = {arn.split(":", 5)[5]: arn.split(":")[4] for arn in map(joined, asked)}

    subnets = [f"subnet/{each}" for each in SUBNETS.values()]
    lent = [each for each, account in accounts.items() if account == "*"]
    assert sorted(lent) == sorted([*subnets, f"security-group/{OURS}", f"security-group/{THEIRS}"])


def test_a_boundary_is_held_against_what_machines_do_with_these() -> None:
    """Beside `tests/cdk/test_rights_listed.py`, whose reference has no S3 Files."""
    file = dev_file(network=NETWORK, file_systems=FILE_SYSTEMS)

    done = set(roles_do(parse_cluster(yaml.safe_dump(file), "own")))
    assert {"s3files:ClientMount", "s3files:ClientWrite", "s3:GetObjectVersion"} <= done
