"""Ending, stopping, tagging and describing instances as a role."""

import pytest

from local.clients import REGION
from local.cloud import IMAGE_ID, LocalCloud
from tests.local_iam.conftest import ACCOUNT, As, allow, refused

EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
CLUSTER = "tidegate:cluster"
TAGS = [{"Key": CLUSTER, "Value": "dev"}]


@pytest.fixture
def instances(cloud: LocalCloud) -> tuple[str, str]:
    """An instance with the cluster's tag and one without."""
    ec2, specs = cloud.client("ec2"), [{"ResourceType": "instance", "Tags": TAGS}]
    asked = {"ImageId": IMAGE_ID, "MinCount": 1, "MaxCount": 1}
    tagged = ec2.run_instances(**asked, TagSpecifications=specs)["Instances"][0]
    bare = ec2.run_instances(**asked)["Instances"][0]
    return tagged["InstanceId"], bare["InstanceId"]


@pytest.mark.parametrize("key", ["ec2:ResourceTag", "aws:ResourceTag"])
def test_only_instances_with_the_tag_may_be_ended(
    role: As, instances: tuple[str, str], key: str
) -> None:
    tagged, bare = instances
    condition = {"StringEquals": {f"{key}/{CLUSTER}": "dev"}}
    role.may(allow("ec2:TerminateInstances", f"{EC2}:instance/*", Condition=condition))
    ec2 = role.client("ec2")

    code, _, message = refused(ec2.terminate_instances, InstanceIds=[tagged, bare])
    assert (code, f"instance/{bare}" in message) == ("UnauthorizedOperation", True)

    ended = ec2.terminate_instances(InstanceIds=[tagged])["TerminatingInstances"]
    assert [one["InstanceId"] for one in ended] == [tagged]


def test_an_id_that_does_not_exist_has_no_tags(role: As) -> None:
    """Whether AWS looks for the instance before it looks at the condition is not verified."""
    terminate, ended = role.client("ec2").terminate_instances, ["i-0123456789abcdef0"]
    right = allow("ec2:TerminateInstances", f"{EC2}:instance/*")

    role.may(right)
    assert refused(terminate, InstanceIds=ended)[0] == "InvalidInstanceID.NotFound"

    role.may({**right, "Condition": {"StringEquals": {f"ec2:ResourceTag/{CLUSTER}": "dev"}}})
    assert refused(terminate, InstanceIds=ended)[0] == "UnauthorizedOperation"


def test_stopping_one_instance_is_no_right_to_stop_another(
    role: As, instances: tuple[str, str]
) -> None:
    one, other = instances
    role.may(allow(["ec2:StopInstances", "ec2:StartInstances"], f"{EC2}:instance/{one}"))
    ec2 = role.client("ec2")

    ec2.stop_instances(InstanceIds=[one])
    ec2.start_instances(InstanceIds=[one])

    refused(ec2.stop_instances, InstanceIds=[other])
    refused(ec2.terminate_instances, InstanceIds=[one])


def test_tags_are_set_only_where_the_policy_says(role: As, instances: tuple[str, str]) -> None:
    tagged, bare = instances
    condition = {
        "StringEquals": {f"aws:ResourceTag/{CLUSTER}": "dev"},
        "ForAllValues:StringEquals": {"aws:TagKeys": ["tidegate:warned"]},
    }
    role.may(allow("ec2:CreateTags", f"{EC2}:instance/*", Condition=condition))
    ec2 = role.client("ec2")
    warned = [{"Key": "tidegate:warned", "Value": "1"}]

    ec2.create_tags(Resources=[tagged], Tags=warned)

    refused(ec2.create_tags, Resources=[bare], Tags=warned)
    refused(ec2.create_tags, Resources=[tagged], Tags=[{"Key": CLUSTER, "Value": "prod"}])


def test_describing_needs_the_right_on_everything(role: As) -> None:
    ec2 = role.client("ec2")
    role.may(allow("ec2:DescribeInstances", f"{EC2}:instance/*"))
    code, status, message = refused(ec2.describe_instances)
    assert (code, status) == ("UnauthorizedOperation", 403)
    assert "ec2:DescribeInstances because no identity-based policy" in message

    role.may(allow("ec2:DescribeInstances", "*"))
    ec2.describe_instances()
