"""What EC2 refuses of a launch by its own rules is refused here, with its code and words."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.cloud import IMAGE_ID, LocalCloud
from local.cloud_resources import CloudNames
from tests.contracts.conftest import cloud, names
from tests.local.test_reserved import held

__all__ = ["cloud", "names"]

TAG = "tidegate:cluster"


def template(cloud: LocalCloud, **data: Any) -> str:
    made = cloud.client("ec2").create_launch_template(
        LaunchTemplateName=f"rules-{base64.b32encode(repr(data).encode()).decode()[:60].strip('=')}"
        f"-{len(cloud.client('ec2').describe_launch_templates()['LaunchTemplates'])}",
        LaunchTemplateData={"ImageId": IMAGE_ID, **data},
    )
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def fleet(
    cloud: LocalCloud,
    template_id: str,
    overrides: Sequence[Mapping[str, Any]],
    tags: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    of = [{"Key": key, "Value": value} for key, value in (tags or {TAG: "dev"}).items()]
    answer: dict[str, Any] = cloud.client("ec2").create_fleet(
        Type="instant",
        LaunchTemplateConfigs=[
            {
                "LaunchTemplateSpecification": {"LaunchTemplateId": template_id, "Version": "1"},
                "Overrides": list(overrides),
            }
        ],
        TargetCapacitySpecification={
            "TotalTargetCapacity": 1,
            "DefaultTargetCapacityType": "on-demand",
        },
        TagSpecifications=[{"ResourceType": "instance", "Tags": of}],
    )
    return answer


def override(names: CloudNames, zone: str = "us-east-1a", name: str = "g4dn.xlarge") -> Any:
    return {"InstanceType": name, "SubnetId": names.subnets[zone]}


def errors(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    assert not answer.get("Instances")
    return [(each["ErrorCode"], each["ErrorMessage"]) for each in answer["Errors"]]


def refused(call: Any, **asked: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        call(**asked)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


ROOT = [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 30}}]
SMALL = f"Volume of size 30GB is smaller than snapshot '{IMAGE_ID.replace('ami', 'snap')}', expect"
GROUP = "sg-0a1b2c3d"
INTERFACES = [
    {"DeviceIndex": 0, "NetworkCardIndex": 0, "Groups": [GROUP]},
    {"DeviceIndex": 1, "NetworkCardIndex": 1, "Groups": [GROUP]},
]
PUBLIC = [{**each, "AssociatePublicIpAddress": True} for each in INTERFACES]
METADATA = {"InstanceMetadataTags": "enabled", "HttpTokens": "required"}


@pytest.mark.parametrize(
    ("data", "tags", "code", "words"),
    [
        ({"BlockDeviceMappings": ROOT}, {}, "InvalidBlockDeviceMapping", SMALL),
        ({"NetworkInterfaces": PUBLIC}, {}, "InvalidParameterCombination", "associatePublicIP"),
        (
            {"NetworkInterfaces": INTERFACES, "SecurityGroupIds": [GROUP]},
            {},
            "InvalidParameterCombination",
            "Network interfaces and an instance-level security groups may not be specified",
        ),
        (
            {"MetadataOptions": METADATA},
            {"tidegate/cluster": "dev"},
            "InvalidParameterValue",
            "'tidegate/cluster' is not a valid tag key. Tag keys must match pattern",
        ),
        (
            {"MetadataOptions": METADATA},
            {"Cost centre": "7"},
            "InvalidParameterValue",
            "'Cost centre' is not a valid tag key",
        ),
    ],
    ids=["small root", "public", "groups beside", "slash in a tag", "space in a tag"],
)
def test_a_fleet_of_a_faulty_template_gets_nothing(
    cloud: LocalCloud,
    names: CloudNames,
    data: dict[str, Any],
    tags: dict[str, str],
    code: str,
    words: str,
) -> None:
    cloud.capacity.snapshot_gib[IMAGE_ID] = 75 if "BlockDeviceMappings" in data else 0

    ((found, said),) = errors(fleet(cloud, template(cloud, **data), [override(names)], tags))

    cloud.capacity.snapshot_gib.clear()
    assert found == code
    assert words in said


def test_the_same_template_without_the_fault_is_launched(
    cloud: LocalCloud, names: CloudNames
) -> None:
    plain = template(cloud, MetadataOptions=METADATA, BlockDeviceMappings=ROOT)

    assert len(fleet(cloud, plain, [override(names)])["Instances"]) == 1


def test_a_type_that_its_zone_never_had(cloud: LocalCloud, names: CloudNames) -> None:
    """The local zones have all types but these."""
    asked = {"InstanceType": "g5g.xlarge", "AvailabilityZone": "us-east-1f"}
    subnet = cloud.client("ec2").create_subnet(
        VpcId=names.vpc_id, CidrBlock="172.31.240.0/24", AvailabilityZone="us-east-1f"
    )["Subnet"]["SubnetId"]
    asked = {"InstanceType": "g5g.xlarge", "SubnetId": subnet}

    ((code, said),) = errors(fleet(cloud, template(cloud), [asked]))
    assert code == "InvalidFleetConfiguration"
    assert said.endswith(
        "(g5g.xlarge) is not supported in your requested Availability Zone (us-east-1f)."
    )
    code, said = refused(
        cloud.client("ec2").run_instances, ImageId=IMAGE_ID, MinCount=1, MaxCount=1, **asked
    )
    assert code == "Unsupported"
    assert said.endswith("choosing us-east-1a, us-east-1b, us-east-1c, us-east-1d.")


def test_zones_that_stand_for_others_have_all_types(cloud: LocalCloud, names: CloudNames) -> None:
    """Those of a sandbox: a p6-b200.48xlarge of another region's is bought there too."""
    asked = [override(names, name="p6-b200.48xlarge")]
    ((code, _),) = errors(fleet(cloud, template(cloud), asked))
    assert code == "InvalidFleetConfiguration"

    cloud.capacity.has_all_types = True

    assert len(fleet(cloud, template(cloud), asked)["Instances"]) == 1


def test_a_fleet_names_each_pool_once(cloud: LocalCloud, names: CloudNames) -> None:
    plain = template(cloud)
    twice = [override(names), {**override(names), "Priority": 1.0}]

    code, said = refused(lambda: fleet(cloud, plain, twice))

    assert (code, said) == (
        "InvalidFleetConfig",
        "The fleet configuration contains duplicate instance pools.",
    )


def test_a_head_s_root_volume_must_hold_its_snapshot(cloud: LocalCloud, names: CloudNames) -> None:
    cloud.capacity.snapshot_gib[IMAGE_ID] = 75
    asked = {"ImageId": IMAGE_ID, "MinCount": 1, "MaxCount": 1, "InstanceType": "m6i.large"}

    code, said = refused(cloud.client("ec2").run_instances, **asked, BlockDeviceMappings=ROOT)

    cloud.capacity.snapshot_gib.clear()
    assert code == "InvalidBlockDeviceMapping"
    assert said.startswith(SMALL)


def test_user_data_has_16_kib(cloud: LocalCloud) -> None:
    long = "#" * (16 * 1024 + 1)
    ec2, encoded = cloud.client("ec2"), base64.b64encode(long.encode()).decode()

    assert refused(lambda: template(cloud, UserData=encoded)) == (
        "InvalidUserData.Malformed",
        "User data is limited to 16384 bytes.",
    )
    asked = {"ImageId": IMAGE_ID, "MinCount": 1, "MaxCount": 1, "UserData": long}
    assert refused(ec2.run_instances, **asked)[0] == "InvalidParameterValue"
    fits = base64.b64encode(long[:-1].encode()).decode()
    assert template(cloud, UserData=fits)


def test_a_launch_has_50_tags_of_256_letters(cloud: LocalCloud, names: CloudNames) -> None:
    plain = template(cloud)
    many = {f"key{number}": "x" for number in range(51)}

    assert refused(lambda: fleet(cloud, plain, [override(names)], many))[0] == "TagLimitExceeded"
    code, said = refused(lambda: fleet(cloud, plain, [override(names)], {TAG: "x" * 257}))
    assert (code, "256" in said) == ("InvalidParameterValue", True)


def test_the_tags_of_a_launch_count_with_those_of_its_template(
    cloud: LocalCloud, names: CloudNames
) -> None:
    of_template = [{"Key": f"key{number}", "Value": "x"} for number in range(49)]
    tagged = template(cloud, TagSpecifications=[{"ResourceType": "instance", "Tags": of_template}])

    ((code, _),) = errors(fleet(cloud, tagged, [override(names)], {"one": "x", "two": "x"}))
    same = fleet(cloud, tagged, [override(names)], {"one": "x", "key7": "y"})

    assert code == "TagLimitExceeded"
    assert len(same["Instances"]) == 1


def test_a_fleet_s_minimum_and_token_are_within_ec2_s_bounds(
    cloud: LocalCloud, names: CloudNames
) -> None:
    ec2 = cloud.client("ec2")
    configs = [
        {
            "LaunchTemplateSpecification": {"LaunchTemplateId": template(cloud), "Version": "1"},
            "Overrides": [override(names)],
        }
    ]
    target = {"TotalTargetCapacity": 2, "DefaultTargetCapacityType": "on-demand"}
    asked: dict[str, Any] = {
        "Type": "instant",
        "LaunchTemplateConfigs": configs,
        "TargetCapacitySpecification": target,
    }

    def said(**more: Any) -> str:
        return refused(ec2.create_fleet, **asked, **more)[0]

    assert said(OnDemandOptions={"MinTargetCapacity": 2}) == "InvalidParameterCombination"
    zone = {"SingleAvailabilityZone": True}
    assert said(OnDemandOptions={"MinTargetCapacity": 1001, **zone}) == "InvalidParameterValue"
    assert said(ClientToken="x" * 65) == "InvalidClientToken"
    assert ec2.create_fleet(**asked, ClientToken="x" * 64)["Instances"]


def test_an_instance_may_be_listed_later_than_it_was_launched(
    cloud: LocalCloud, names: CloudNames
) -> None:
    cloud.capacity.listed_after_s = 3600
    (made,) = fleet(cloud, template(cloud), [override(names)], {TAG: "late"})["Instances"]
    cloud.capacity.listed_after_s = 0.0
    by_tag = [{"Name": f"tag:{TAG}", "Values": ["late"]}]
    ec2 = cloud.client("ec2")

    hidden = ec2.describe_instances(Filters=by_tag)["Reservations"]
    cloud.capacity.listed_at_s.clear()
    shown = ec2.describe_instances(Filters=by_tag)["Reservations"]

    assert hidden == []
    assert [each["InstanceId"] for one in shown for each in one["Instances"]] == made["InstanceIds"]


def test_instances_of_ultraservers_are_launched_into_their_block_alone(
    cloud: LocalCloud, names: CloudNames
) -> None:
    name = "trn2u.48xlarge"
    into = {
        "InstanceMarketOptions": {"MarketType": "capacity-block"},
        "CapacityReservationSpecification": {
            "CapacityReservationTarget": {"CapacityReservationId": "cr-0a1b2c3d"}
        },
    }

    its = {"CapacityReservationId": "cr-0a1b2c3d", "InstanceType": name}
    cloud.blocks.others.append(held(**its, ReservationType="capacity-block"))

    by_the_hour = fleet(cloud, template(cloud), [override(names, name=name)])
    in_block = fleet(cloud, template(cloud, **into), [override(names, name=name)])

    assert [code for code, _ in errors(by_the_hour)] == ["ReservationCapacityExceeded"]
    assert in_block["Instances"]
