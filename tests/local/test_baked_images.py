"""Launch templates of a cluster whose images are baked, before the first one and after it.

All processes of a run collect this file: only the one that runs it reads the CDK.
"""

from pathlib import Path
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.deploy import AMI_PARAMETERS, deploy, destroy
from tests.local.conftest import Stack

LOOKED_UP = "/imagebuilder/tidegate/dev/x86_64"
FIRST, SECOND = "ami-0123456789abcdef0", "ami-0123456789abcdef1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The template of a cluster with images."""
    from tests.cdk.variants import cluster_stack, stacks_of

    return dict(cluster_stack(stacks_of(tmp_path_factory, "images")).template)


def only_template(stack: Stack, cluster: dict[str, Any]) -> None:
    """Of the cluster no more than how it finds its image, and one launch template."""
    (data,) = [
        each["Properties"]["LaunchTemplateData"]
        for name, each in cluster["Resources"].items()
        if name.startswith("NodesPoolt4") and each["Type"] == "AWS::EC2::LaunchTemplate"
    ]
    (condition, *_) = data["ImageId"]["Fn::If"]
    stack.template = {
        "Parameters": {each: cluster["Parameters"][each] for each in ("BakedImage", "NodeImage")},
        "Conditions": {condition: cluster["Conditions"][condition]},
        "Resources": {
            "Template": {
                "Type": "AWS::EC2::LaunchTemplate",
                "Properties": {"LaunchTemplateData": {"ImageId": data["ImageId"]}},
            }
        },
        "Outputs": {},
    }


def images(folder: Path, **changes: Any) -> Path:
    """The assembly of a stack of images."""
    from tests.cdk.test_baking import images_of

    return images_of(folder, **changes).folder


def versions(stack: Stack, template_id: str) -> list[str]:
    """The images of a launch template's versions, the first one first."""
    found = stack.cloud.client("ec2").describe_launch_template_versions(
        LaunchTemplateId=template_id
    )["LaunchTemplateVersions"]
    return [
        each["LaunchTemplateData"]["ImageId"]
        for each in sorted(found, key=lambda each: each["VersionNumber"])
    ]


def test_nodes_come_from_aws_s_image_until_one_was_baked_and_then_from_that(stack, cluster):
    only_template(stack, cluster)
    ssm = stack.cloud.client("ssm")
    ssm.put_parameter(Name=LOOKED_UP, Value="none", Type="String")

    template_id = stack.deploy().resources["Template"][1]

    (aws_s,) = versions(stack, template_id)
    assert aws_s in AMI_PARAMETERS.values()
    # Image Builder writes it; each deployment is an update of the same template then.
    for baked in (FIRST, SECOND):
        ssm.put_parameter(Name=LOOKED_UP, Value=baked, Type="String", Overwrite=True)
        stack.deploy()
    assert versions(stack, template_id) == [aws_s, FIRST, SECOND]
    ssm.delete_parameter(Name=LOOKED_UP)


def test_the_stack_of_images_is_deployed_again_and_leaves_what_image_builder_wrote(
    cloud: LocalCloud, tmp_path: Path
):
    name = "tidegate-dev-images"
    ssm = cloud.client("ssm")

    deploy(cloud, images(tmp_path / "first"), name)
    first = ssm.get_parameter(Name=LOOKED_UP)["Parameter"]["Value"]
    ssm.put_parameter(Name=LOOKED_UP, Value=FIRST, Type="String", Overwrite=True)
    # Other tags alone, which are in the recipe too; and another component.
    deploy(cloud, images(tmp_path / "second", tags={"team": "vision"}), name)
    deploy(cloud, images(tmp_path / "third", monitoring={"prometheus": "true"}), name)
    second = ssm.get_parameter(Name=LOOKED_UP)["Parameter"]["Value"]
    destroy(cloud, name)

    assert (first, second) == ("none", FIRST)
