"""What a deployment replaces is made before the old one goes, as on AWS, with what this breaks."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.deploy import destroy
from tests.local.conftest import Stack
from tests.local.stack import ref
from tests.local.test_deploy import head, with_network

OTHER_IMAGE = "ami-0000000000000000f"


@pytest.fixture
def living(stack: Stack) -> Stack:
    """A stack with a head that holds a volume, and a mount target; deployed."""
    with_network(stack)
    volume = {"AvailabilityZone": "us-east-1b", "Size": 8}
    stack.add("Volume", {"Type": "AWS::EC2::Volume", "Properties": volume})
    stack.properties("Head")["Volumes"] = [{"VolumeId": ref("Volume"), "Device": "/dev/sdf"}]
    stack.add("Files", {"Type": "AWS::EFS::FileSystem", "Properties": {"Encrypted": True}})
    group = {"Fn::GetAtt": ["HeadGroup", "GroupId"]}
    target = {"FileSystemId": ref("Files"), "SubnetId": ref("Subnet"), "SecurityGroups": [group]}
    stack.add("Target", {"Type": "AWS::EFS::MountTarget", "Properties": target})
    stack.deploy()
    return stack


def end_head(stack: Stack, instance_id: str) -> None:
    stack.cloud.client("ec2").terminate_instances(InstanceIds=[instance_id])


def next_generation(stack: Stack) -> None:
    """The head under another logical id, as `head.generation` makes it."""
    stack.template["Resources"]["Head2"] = stack.template["Resources"].pop("Head")
    del stack.template["Outputs"]["HeadIp"]


def holder(stack: Stack, volume_id: str) -> list[str]:
    (found,) = stack.cloud.client("ec2").describe_volumes(VolumeIds=[volume_id])["Volumes"]
    return [each["InstanceId"] for each in found["Attachments"]]


def test_a_new_head_cannot_have_the_volume_that_the_old_one_holds(living: Stack):
    living.properties("Head")["ImageId"] = OTHER_IMAGE

    with pytest.raises(ClientError, match="VolumeInUse"):
        living.deploy()


def test_nor_can_the_head_of_the_next_generation(living: Stack):
    next_generation(living)

    with pytest.raises(ClientError, match="VolumeInUse"):
        living.deploy()


@pytest.mark.parametrize("generation", [1, 2])
def test_a_head_that_was_ended_first_leaves_its_volume_to_the_new_one(living: Stack, generation):
    first = living.deploy()
    old = first.resources["Head"][1]
    end_head(living, old)
    living.properties("Head")["ImageId"] = OTHER_IMAGE
    if generation == 2:
        next_generation(living)

    second = living.deploy()

    new = second.resources["Head" if generation == 1 else "Head2"][1]
    assert new != old
    assert holder(living, second.resources["Volume"][1]) == [new]


def test_the_old_one_goes_when_the_new_one_is_there(living: Stack):
    del living.properties("Head")["Volumes"]
    old = living.deploy().resources["Head"][1]
    living.properties("Head")["ImageId"] = OTHER_IMAGE

    new = living.deploy().resources["Head"][1]

    assert (head(living, old)["State"]["Name"], head(living, new)["State"]["Name"]) == (
        "terminated",
        "running",
    )


def test_a_head_that_is_refused_the_volume_does_not_stay(living: Stack):
    living.properties("Head")["ImageId"] = OTHER_IMAGE

    with pytest.raises(ClientError, match="VolumeInUse"):
        living.deploy()

    found = living.cloud.client("ec2").describe_instances(
        Filters=[
            {"Name": "image-id", "Values": [OTHER_IMAGE]},
            {"Name": "instance-state-name", "Values": ["running"]},
        ]
    )
    assert found["Reservations"] == []


def test_a_stack_that_goes_frees_the_volume_with_its_head(living: Stack):
    living.template["Resources"]["Volume"]["DeletionPolicy"] = "Retain"
    deployed = living.deploy()

    destroy(living.cloud, living.name)

    assert head(living, deployed.resources["Head"][1])["State"]["Name"] == "terminated"
    assert holder(living, deployed.resources["Volume"][1]) == []


def test_a_protected_head_is_ended_by_no_call_not_even_as_its_stack_goes(living: Stack):
    living.properties("Head")["DisableApiTermination"] = True
    running = living.deploy().resources["Head"][1]

    with pytest.raises(ClientError, match="may not be terminated"):
        end_head(living, running)
    with pytest.raises(ClientError, match="may not be terminated"):
        destroy(living.cloud, living.name)
    assert head(living, running)["State"]["Name"] == "running"


def test_a_deployment_takes_the_protection_of_a_head_back_in_place(living: Stack):
    living.properties("Head")["DisableApiTermination"] = True
    running = living.deploy().resources["Head"][1]
    # A template that says nothing of it takes nothing back.
    del living.properties("Head")["DisableApiTermination"]
    living.properties("Head")["Tags"] = [{"Key": "team", "Value": "vision"}]
    living.deploy()
    with pytest.raises(ClientError, match="may not be terminated"):
        end_head(living, running)
    living.properties("Head")["DisableApiTermination"] = False

    assert living.deploy().resources["Head"][1] == running

    end_head(living, running)
    assert head(living, running)["State"]["Name"] == "terminated"


def test_an_attachment_of_its_own_would_take_a_volume_from_under_the_head(living: Stack):
    volume = {"Type": "AWS::EC2::Volume", "Properties": living.properties("Volume")}
    living.add("Second", volume)
    attached = {"InstanceId": ref("Head"), "VolumeId": ref("Second"), "Device": "/dev/sdg"}
    living.add("Attached", {"Type": "AWS::EC2::VolumeAttachment", "Properties": attached})
    running = living.deploy().resources["Head"][1]

    with pytest.raises(ClientError, match="is busy"):
        destroy(living.cloud, living.name)

    assert head(living, running)["State"]["Name"] == "running"


def test_a_zone_has_one_mount_target(living: Stack):
    subnet: dict[str, Any] = dict(living.properties("Subnet"))
    again = {"Type": "AWS::EC2::Subnet", "Properties": {**subnet, "CidrBlock": "10.9.2.0/24"}}
    living.add("Again", again)
    living.properties("Target")["SubnetId"] = ref("Again")

    with pytest.raises(ClientError, match="MountTargetConflict"):
        living.deploy()


def test_a_mount_target_takes_other_groups_as_it_is(living: Stack):
    first = living.deploy()
    group = {"VpcId": ref("Vpc"), "GroupDescription": "other"}
    living.add("Other", {"Type": "AWS::EC2::SecurityGroup", "Properties": group})
    living.properties("Target")["SecurityGroups"] = [{"Fn::GetAtt": ["Other", "GroupId"]}]

    second = living.deploy()

    target = second.resources["Target"][1]
    assert target == first.resources["Target"][1]
    asked = living.cloud.client("efs").describe_mount_target_security_groups
    assert asked(MountTargetId=target)["SecurityGroups"] == [second.resources["Other"][1]]


def test_an_update_that_fails_is_rolled_back(living: Stack):
    """Changed, added and removed: all is as it was, and the next update works."""
    living.add("Kept", {"Type": "AWS::SQS::Queue", "Properties": {"VisibilityTimeout": 30}})
    living.add("Goes", {"Type": "AWS::SQS::Queue"})
    first = living.deploy()
    living.properties("Kept")["VisibilityTimeout"] = 99
    living.add("Added", {"Type": "AWS::SQS::Queue"})
    gone = living.template["Resources"].pop("Goes")
    living.properties("Head")["ImageId"] = OTHER_IMAGE

    with pytest.raises(ClientError, match="VolumeInUse"):
        living.deploy()

    sqs = living.cloud.client("sqs")
    assert timeout_s(living, first.resources["Kept"][1]) == 30
    urls = [url for url in sqs.list_queues()["QueueUrls"] if f"/{living.name}-" in url]
    named = {url.split("-")[-2] for url in urls}
    assert {"Goes", "Kept", "Added"} & named == {"Goes", "Kept"}
    assert head(living, first.resources["Head"][1])["State"]["Name"] == "running"

    living.properties("Head")["ImageId"] = first_image(living, first.resources["Head"][1])
    living.add("Goes", gone)
    second = living.deploy()
    assert timeout_s(living, second.resources["Kept"][1]) == 99
    assert second.resources["Head"] == first.resources["Head"]


def timeout_s(stack: Stack, url: str) -> int:
    names: Any = ["VisibilityTimeout"]
    found = stack.cloud.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=names)
    return int(found["Attributes"]["VisibilityTimeout"])


def first_image(stack: Stack, instance_id: str) -> str:
    return str(head(stack, instance_id)["ImageId"])
