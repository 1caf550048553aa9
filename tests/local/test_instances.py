"""The listing of instances that is asked for only when something has changed."""

from collections.abc import Iterator
from typing import Any

import pytest

from local.cloud import IMAGE_ID, LocalCloud
from local.instances import Listing


@pytest.fixture
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud() as running:
        yield running


def launch(cloud: LocalCloud) -> str:
    made = cloud.client("ec2").run_instances(
        ImageId=IMAGE_ID, MinCount=1, MaxCount=1, InstanceType="m7i.large"
    )
    return str(made["Instances"][0]["InstanceId"])


def asked(cloud: LocalCloud) -> int:
    return cloud.aws_calls()["ec2:DescribeInstances"]


def test_ec2_is_asked_again_only_when_an_instance_came_or_changed(cloud: LocalCloud) -> None:
    ec2 = cloud.client("ec2")
    listing = Listing(ec2, [{"Name": "instance-state-name", "Values": ["running", "stopped"]}])
    first = launch(cloud)

    assert [listing.now().keys() for _ in range(3)] == [{first}] * 3
    assert asked(cloud) == 1

    second = launch(cloud)
    assert listing.now().keys() == {first, second}

    ec2.stop_instances(InstanceIds=[first])
    assert listing.now()[first]["State"]["Name"] == "stopped"

    ec2.terminate_instances(InstanceIds=[second])
    assert listing.now().keys() == {first}
    assert asked(cloud) == 4


def test_a_volume_and_a_tag_are_seen(cloud: LocalCloud) -> None:
    ec2 = cloud.client("ec2")
    listing = Listing(ec2, [])
    instance = launch(cloud)
    before = len(listing.now()[instance]["BlockDeviceMappings"])
    made: Any = ec2.create_volume(AvailabilityZone="us-east-1a", Size=1)

    ec2.attach_volume(InstanceId=instance, VolumeId=made["VolumeId"], Device="/dev/sdf")
    assert len(listing.now()[instance]["BlockDeviceMappings"]) == before + 1

    ec2.create_tags(Resources=[instance], Tags=[{"Key": "of", "Value": "ours"}])
    assert {"Key": "of", "Value": "ours"} in listing.now()[instance]["Tags"]
