"""Launching instances as a role."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from local.clients import REGION
from local.cloud import IMAGE_ID, LocalCloud
from local.cloud_resources import CloudNames
from local.iam import reference, spot_role
from local.iam.authorizer import Authorizer
from tests.local_iam.conftest import ACCOUNT, As, Statement, allow, refused

EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
CLUSTER = "tidegate:cluster"
MINE = {"StringEquals": {f"aws:RequestTag/{CLUSTER}": "dev"}}
TAGS = [{"Key": CLUSTER, "Value": "dev"}]
NEW = [f"{EC2}:{kind}/*" for kind in ("fleet", "instance")]
OLD = [
    f"arn:aws:ec2:{REGION}::image/*",
    *(f"{EC2}:{kind}/*" for kind in ("launch-template", "network-interface", "security-group")),
    *(f"{EC2}:{kind}/*" for kind in ("spot-instances-request", "subnet", "volume")),
]
LAUNCHING: Mapping[str, Statement] = {
    "new": allow(["ec2:CreateFleet", "ec2:RunInstances"], NEW, Condition=MINE),
    "old": allow(["ec2:CreateFleet", "ec2:RunInstances"], OLD),
    "tags": allow(
        "ec2:CreateTags",
        NEW,
        Condition={
            **MINE,
            "StringLike": {"ec2:CreateAction": ["CreateFleet", "RunInstances"]},
            "ForAllValues:StringLike": {"aws:TagKeys": "tidegate:*"},
        },
    ),
    "pass": allow(
        "iam:PassRole",
        f"arn:aws:iam::{ACCOUNT}:role/node-*",
        Condition={"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
    ),
    "spot": allow(
        "iam:CreateServiceLinkedRole",
        f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/{spot_role.SERVICE}/{spot_role.NAME}",
        Condition={"StringEquals": {"iam:AWSServiceName": spot_role.SERVICE}},
    ),
}


@pytest.fixture
def template(cloud: LocalCloud, names: CloudNames) -> str:
    """A launch template whose instances get the role of a node."""
    iam, name = cloud.client("iam"), f"node-{names.cluster}"
    iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")
    profile = iam.create_instance_profile(InstanceProfileName=name)["InstanceProfile"]
    iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    ec2 = cloud.client("ec2")
    group = ec2.create_security_group(GroupName=name, Description="x", VpcId=names.vpc_id)
    made = ec2.create_launch_template(
        LaunchTemplateName=name,
        LaunchTemplateData={
            "ImageId": IMAGE_ID,
            "IamInstanceProfile": {"Arn": profile["Arn"]},
            "SecurityGroupIds": [group["GroupId"]],
        },
    )
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def fleet(names: CloudNames, template: str, **more: Any) -> dict[str, Any]:
    subnet = next(iter(names.subnets.values()))
    return {
        "Type": "instant",
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": {"LaunchTemplateId": template, "Version": "1"},
                "Overrides": [{"InstanceType": "g4dn.xlarge", "SubnetId": subnet}],
            }
        ],
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": 1,
            "DefaultTargetCapacityType": "spot",
        },
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": TAGS} for kind in ("fleet", "instance")
        ],
        **more,
    }


def without(part: str) -> Sequence[Statement]:
    return [statement for name, statement in LAUNCHING.items() if name != part]


def launch_error(answer: Mapping[str, Any]) -> str:
    """The one error of a fleet that got no instance, in EC2's words."""
    assert answer.get("Instances", []) == []
    (error,) = answer["Errors"]
    assert error["ErrorCode"] == "UnauthorizedOperation"
    return str(error["ErrorMessage"])


def test_a_fleet_launches_with_all_that_it_needs(
    role: As, names: CloudNames, template: str
) -> None:
    role.may(*LAUNCHING.values())

    answer = role.client("ec2").create_fleet(**fleet(names, template))

    assert len(answer["Instances"]) == 1


def test_the_first_spot_instance_of_an_account_needs_a_role_or_the_right_to_make_it(
    cloud: LocalCloud, role: As, names: CloudNames, template: str
) -> None:
    iam, ec2 = cloud.client("iam"), role.client("ec2")
    with suppress(iam.exceptions.NoSuchEntityException):
        iam.delete_role(RoleName=spot_role.NAME)
    role.may(*without("spot"))

    (error,) = ec2.create_fleet(**fleet(names, template))["Errors"]
    assert error["ErrorCode"] == "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
    assert error["ErrorMessage"] == spot_role.WORDS
    plain = {"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"}
    on_demand = fleet(names, template, TargetCapacitySpecification=plain)
    assert len(ec2.create_fleet(**on_demand)["Instances"]) == 1

    role.may(*LAUNCHING.values())
    assert len(ec2.create_fleet(**fleet(names, template))["Instances"]) == 1
    # From then on nobody needs the right.
    role.may(*without("spot"))
    assert len(ec2.create_fleet(**fleet(names, template))["Instances"]) == 1


def test_a_fleet_without_pass_role_gets_nothing_and_says_so(
    role: As, names: CloudNames, template: str
) -> None:
    role.may(*without("pass"))

    answer = role.client("ec2").create_fleet(**fleet(names, template))

    assert f"iam:PassRole on resource: arn:aws:iam::{ACCOUNT}:role/node-" in launch_error(answer)
    (error,) = answer["Errors"]
    override = error["LaunchTemplateAndOverrides"]["Overrides"]
    assert override["InstanceType"] == "g4dn.xlarge"
    assert override["SubnetId"] == next(iter(names.subnets.values()))
    assert error["Lifecycle"] == "spot"


def test_the_role_may_be_passed_to_ec2_only(role: As, names: CloudNames, template: str) -> None:
    condition = {"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}
    role.may(*without("pass"), allow("iam:PassRole", "*", Condition=condition))

    answer = role.client("ec2").create_fleet(**fleet(names, template))

    assert "iam:PassRole" in launch_error(answer)


def test_a_fleet_without_create_fleet_is_refused_whole(
    role: As, names: CloudNames, template: str
) -> None:
    role.may(allow(["ec2:RunInstances", "ec2:CreateTags", "iam:PassRole"], "*"))

    code, status, message = refused(role.client("ec2").create_fleet, **fleet(names, template))

    assert (code, status) == ("UnauthorizedOperation", 403)
    assert message.startswith("You are not authorized to perform this operation. User: ")
    assert f"ec2:CreateFleet on resource: {EC2}:fleet/*" in message


def test_a_fleet_without_run_instances_gets_nothing(
    role: As, names: CloudNames, template: str
) -> None:
    role.may(allow(["ec2:CreateFleet", "ec2:CreateTags", "iam:PassRole"], "*"))

    answer = role.client("ec2").create_fleet(**fleet(names, template))

    assert "ec2:RunInstances" in launch_error(answer)


def test_a_fleet_must_carry_the_tag_of_the_condition(
    role: As, names: CloudNames, template: str
) -> None:
    role.may(*LAUNCHING.values())
    others = [
        {"ResourceType": kind, "Tags": [{"Key": CLUSTER, "Value": "prod"}]}
        for kind in ("fleet", "instance")
    ]

    code, _, message = refused(
        role.client("ec2").create_fleet, **fleet(names, template, TagSpecifications=others)
    )

    assert code == "UnauthorizedOperation"
    assert "ec2:CreateFleet" in message


def test_instances_must_carry_the_tag_by_themselves(
    role: As, names: CloudNames, template: str
) -> None:
    role.may(*LAUNCHING.values())
    only_fleet = [{"ResourceType": "fleet", "Tags": TAGS}]

    _, _, message = refused(
        role.client("ec2").create_fleet, **fleet(names, template, TagSpecifications=only_fleet)
    )

    assert f"{EC2}:instance/*" in message


def test_a_fleet_without_create_tags_is_refused(role: As, names: CloudNames, template: str) -> None:
    role.may(*without("tags"))

    _, _, message = refused(role.client("ec2").create_fleet, **fleet(names, template))

    assert "ec2:CreateTags" in message


def test_tag_keys_beyond_the_condition_are_refused(
    role: As, names: CloudNames, template: str
) -> None:
    role.may(*LAUNCHING.values())
    tags = [{"ResourceType": "instance", "Tags": [*TAGS, {"Key": "owner", "Value": "x"}]}]
    tags.append({"ResourceType": "fleet", "Tags": TAGS})

    _, _, message = refused(
        role.client("ec2").create_fleet, **fleet(names, template, TagSpecifications=tags)
    )

    assert "ec2:CreateTags" in message


@pytest.mark.parametrize("missing", OLD)
def test_a_fleet_needs_the_right_to_everything_it_uses(
    role: As, names: CloudNames, template: str, missing: str
) -> None:
    """Of each type, another one's ARN in the policy is no right to this one."""
    others = [f"{arn[:-1]}other" if arn == missing else arn for arn in OLD]
    rights = [allow(action, others) for action in ("ec2:CreateFleet", "ec2:RunInstances")]

    if reference.is_asked("ec2:CreateFleet", missing):
        role.may(*without("old"), *rights)
        _, _, message = refused(role.client("ec2").create_fleet, **fleet(names, template))
        assert f"ec2:CreateFleet on resource: {missing[:-1]}" in message

    role.may(*without("old"), allow("ec2:CreateFleet", OLD), rights[1])
    answer = role.client("ec2").create_fleet(**fleet(names, template))
    assert f"ec2:RunInstances on resource: {missing[:-1]}" in launch_error(answer)


def test_create_fleet_is_not_asked_for_what_its_launch_template_brings(
    role: As, names: CloudNames, template: str, authorizer: Authorizer
) -> None:
    role.may(*LAUNCHING.values())
    role.client("ec2").create_fleet(**fleet(names, template))

    asked = {
        one.resource.split(":")[-1].split("/")[0]
        for one in authorizer.log.used
        if one.action == "ec2:CreateFleet"
    }

    assert asked == {"fleet", "image", "instance", "launch-template", "subnet", "volume"}


def test_a_fleet_knows_nothing_of_its_launch_template_in_a_condition(
    role: As, names: CloudNames, template: str
) -> None:
    """That key is there for RunInstances alone: a condition on it denies every fleet."""
    by_template = {"ArnEquals": {"ec2:LaunchTemplate": f"{EC2}:launch-template/{template}"}}
    on_instances = {**MINE, **by_template}
    fleets = allow("ec2:CreateFleet", NEW, Condition=MINE)
    launches = allow("ec2:RunInstances", NEW, Condition=on_instances)
    ec2, asked = role.client("ec2"), fleet(names, template)

    role.may(*without("new"), fleets, launches)
    assert len(ec2.create_fleet(**asked)["Instances"]) == 1

    denied = allow("ec2:CreateFleet", f"{EC2}:instance/*", Condition=on_instances)
    on_fleet = allow("ec2:CreateFleet", f"{EC2}:fleet/*", Condition=MINE)
    role.may(*without("new"), on_fleet, denied, launches)
    _, _, message = refused(ec2.create_fleet, **asked)
    assert f"ec2:CreateFleet on resource: {EC2}:instance/*" in message


def test_a_fleet_takes_templates_that_carry_the_tag_of_the_condition(
    role: As, cloud: LocalCloud, names: CloudNames, template: str
) -> None:
    """As Karpenter's controller is told which templates it may use."""
    tagged = {"StringEquals": {f"aws:ResourceTag/{CLUSTER}": "dev"}}
    actions, templates = ["ec2:CreateFleet", "ec2:RunInstances"], f"{EC2}:launch-template/*"
    others = allow(actions, [arn for arn in OLD if arn != templates])
    role.may(*without("old"), others, allow(actions, templates, Condition=tagged))
    ec2, asked = role.client("ec2"), fleet(names, template)

    _, _, message = refused(ec2.create_fleet, **asked)
    assert f"ec2:CreateFleet on resource: {EC2}:launch-template/{template}" in message

    cloud.client("ec2").create_tags(Resources=[template], Tags=TAGS)
    assert len(ec2.create_fleet(**asked)["Instances"]) == 1


def test_each_group_and_template_of_a_fleet_is_named_by_its_id(
    role: As, names: CloudNames, template: str, authorizer: Authorizer
) -> None:
    role.may(*LAUNCHING.values())
    role.client("ec2").create_fleet(**fleet(names, template))

    asked = {one.resource for one in authorizer.log.used if one.action == "ec2:RunInstances"}

    described = role.cloud.client("ec2").describe_launch_template_versions(
        LaunchTemplateId=template
    )
    data = described["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    (group,), subnet = data["SecurityGroupIds"], next(iter(names.subnets.values()))
    assert f"{EC2}:launch-template/{template}" in asked
    assert f"{EC2}:subnet/{subnet}" in asked
    assert f"arn:aws:ec2:{REGION}::image/{IMAGE_ID}" in asked
    assert f"{EC2}:security-group/{group}" in asked
    assert f"{EC2}:fleet/*" not in asked


def test_the_tags_of_a_fleet_are_set_by_the_fleet_alone(
    role: As, names: CloudNames, template: str
) -> None:
    """And those of its instances by the fleet and by the launch."""
    both = {"StringEquals": {"ec2:CreateAction": ["CreateFleet", "RunInstances"]}}
    one = {"StringEquals": {"ec2:CreateAction": "CreateFleet"}}
    on_fleet = allow("ec2:CreateTags", f"{EC2}:fleet/*", Condition=one)
    ec2, asked = role.client("ec2"), fleet(names, template)

    role.may(
        *without("tags"), on_fleet, allow("ec2:CreateTags", f"{EC2}:instance/*", Condition=both)
    )
    assert len(ec2.create_fleet(**asked)["Instances"]) == 1

    role.may(
        *without("tags"), on_fleet, allow("ec2:CreateTags", f"{EC2}:instance/*", Condition=one)
    )
    assert "ec2:CreateTags" in launch_error(ec2.create_fleet(**asked))


def test_an_image_from_a_parameter_needs_the_parameter(
    role: As, cloud: LocalCloud, names: CloudNames
) -> None:
    cloud.client("ssm").put_parameter(
        Name=f"/tidegate/{names.cluster}/ami", Value=IMAGE_ID, Type="String"
    )
    made = cloud.client("ec2").create_launch_template(
        LaunchTemplateName=f"{names.cluster}-ssm",
        LaunchTemplateData={"ImageId": f"resolve:ssm:/tidegate/{names.cluster}/ami"},
    )
    template = made["LaunchTemplate"]["LaunchTemplateId"]
    role.may(*LAUNCHING.values())

    answer = role.client("ec2").create_fleet(**fleet(names, template))

    assert (
        f"ssm:GetParameters on resource: arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/tidegate/"
        in launch_error(answer)
    )


def test_run_instances_is_held_to_the_same(role: As, names: CloudNames, template: str) -> None:
    ec2 = role.client("ec2")
    asked: dict[str, Any] = {
        "MinCount": 1,
        "MaxCount": 1,
        "LaunchTemplate": {"LaunchTemplateId": template},
        "SubnetId": next(iter(names.subnets.values())),
        "TagSpecifications": [{"ResourceType": "instance", "Tags": TAGS}],
    }
    role.may(*without("pass"))
    code, _, message = refused(ec2.run_instances, **asked)
    assert (code, "iam:PassRole" in message) == ("UnauthorizedOperation", True)

    role.may(*LAUNCHING.values())
    assert len(ec2.run_instances(**asked)["Instances"]) == 1


def test_an_unknown_launch_template_is_ec2s_own_error(role: As, names: CloudNames) -> None:
    role.may(allow("*", "*"))

    code, _, _ = refused(role.client("ec2").create_fleet, **fleet(names, "lt-0123456789abcdef0"))

    assert code == "InvalidLaunchTemplateId.NotFound"
