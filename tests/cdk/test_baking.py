"""The stack that bakes images: what Image Builder is asked for, and what the cluster takes of it.

moto knows nothing of Image Builder. The properties are held against CloudFormation's schema by
test_lint.py and the rights against AWS's tables by test_rights_listed.py.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdk.app import SOURCE_ONLY
from cdk.baking import image_values
from cdk.cluster import Source
from cdk.image_rights import IMAGES_TAG
from cdk.stack import ImagesStack
from local.iam import reference
from tests.cdk.made import Stack, dev_file, joined, new_app, written
from tests.cdk.policies import statements_of
from tests.cdk.test_machines import template_data
from tests.cdk.variants import cluster_stack, stacks_of
from tests.userdata.awstoe import faults_of
from tidegate.cli.probe.rights import CREATES, CREATES_IMAGES, roles_do
from tidegate.core.model.ec2 import CLUSTER_TAG
from tidegate.wire.config import parse_cluster
from userdata.image import BUNDLE, MAX_INLINE_BYTES

BUILDER = "AWS::ImageBuilder"
DLAMI = "ssm:/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04"


def images_of(folder: Path, **changes: Any) -> Stack:
    """The stack of images alone."""
    folder.mkdir(exist_ok=True)
    text = yaml.safe_dump(dev_file(**{"images": {}, **changes}))
    app = new_app(folder, package=SOURCE_ONLY)
    ImagesStack(app, source=Source(parse_cluster(text, "dev"), text), account=None)
    app.synth()
    return written(folder)["tidegate-dev-images"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    return images_of(tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Stack]:
    """Of two architectures, in a network of one's own."""
    return stacks_of(tmp_path_factory, "images")


def document(stack: Stack) -> dict[str, Any]:
    """The component's document."""
    found: dict[str, Any] = yaml.safe_load(stack.one(f"{BUILDER}::Component")["Data"])
    return found


def test_nodes_are_made_from_what_was_baked_last_and_from_aws_s_image_until_then(rich):
    cluster, images = cluster_stack(rich), rich["tidegate-dev-images"]

    (condition, last, newest) = template_data(cluster, "t4")["ImageId"]["Fn::If"]

    assert cluster.template["Conditions"][condition] == {
        "Fn::Not": [{"Fn::Equals": [last, "none"]}]
    }
    parameters = cluster.template["Parameters"]
    where = parameters[last["Ref"]]["Default"]
    assert where in {each["Name"] for each in images.all("AWS::SSM::Parameter")}
    assert parameters[newest["Ref"]]["Default"].startswith("/aws/service/canonical/")
    arm = template_data(cluster, "arm")["ImageId"]["Fn::If"]
    assert parameters[arm[1]["Ref"]]["Default"] == "/imagebuilder/tidegate/dev/arm64"


def test_the_cluster_is_deployed_after_the_parameters_that_it_looks_up(rich):
    folder = cluster_stack(rich).folder
    artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"]

    assert "tidegate-dev-images" in artifacts["tidegate-dev"]["dependencies"]


def test_no_deployment_writes_over_what_image_builder_has_put_into_the_parameter(tmp_path, plain):
    """CloudFormation writes a parameter's value again when anything of it changes."""
    other = images_of(
        tmp_path / "other",
        tags={"team": "vision"},
        images={"rebuild_days": "30", "keep": "9"},
        head={"instance_type": "m6i.xlarge"},
    )
    told = json.loads((other.folder / "manifest.json").read_text())["artifacts"]

    assert other.one("AWS::SSM::Parameter") == plain.one("AWS::SSM::Parameter")
    assert plain.one("AWS::SSM::Parameter")["Value"] == "none"
    assert "tags" not in told["tidegate-dev-images"]["properties"]


def test_the_image_s_id_goes_to_the_parameter_below_the_only_prefix_that_may_be_written(plain):
    (made,) = plain.one(f"{BUILDER}::DistributionConfiguration")["Distributions"]

    (told,) = made["SsmParameterConfigurations"]
    assert told == {"ParameterName": "/imagebuilder/tidegate/dev/x86_64", "DataType": "text"}
    assert made["Region"] == "us-east-1"
    assert "{{ imagebuilder:buildDate }}" in made["AmiDistributionConfiguration"]["Name"]


def test_the_instance_of_a_build_is_never_taken_for_a_node(plain):
    """The planner ends instances with the cluster's tag that it did not ask for."""
    assert CLUSTER_TAG not in json.dumps(plain.template)
    builder = plain.one(f"{BUILDER}::InfrastructureConfiguration")
    assert builder["ResourceTags"] == {IMAGES_TAG: "dev"}
    assert builder["InstanceMetadataOptions"]["HttpTokens"] == "required"
    assert builder["TerminateInstanceOnFailure"] is True


def test_an_image_is_made_from_the_newest_parent_when_that_has_changed(plain, tmp_path):
    recipe = plain.one(f"{BUILDER}::ImageRecipe")
    schedule = plain.one(f"{BUILDER}::ImagePipeline")["Schedule"]

    assert recipe["ParentImage"].startswith(DLAMI)
    assert schedule == {
        "ScheduleExpression": "rate(7 days)",
        "PipelineExecutionStartCondition": "EXPRESSION_MATCH_AND_DEPENDENCY_UPDATES_AVAILABLE",
    }
    never = images_of(tmp_path / "never", images={"rebuild_days": "0"})
    assert "Schedule" not in never.one(f"{BUILDER}::ImagePipeline")
    daily = images_of(tmp_path / "daily", images={"rebuild_days": "1"})
    assert daily.one(f"{BUILDER}::ImagePipeline")["Schedule"]["ScheduleExpression"] == "rate(1 day)"


def versions(stack: Stack) -> list[str]:
    return [stack.one(f"{BUILDER}::{kind}")["Version"] for kind in ("Component", "ImageRecipe")]


def test_other_content_is_another_version_and_the_same_content_the_same(plain, tmp_path):
    """Image Builder changes no component and no recipe of a name and version that it has."""
    again = images_of(tmp_path / "again", images={"keep": "9"})
    exporter = images_of(tmp_path / "exporter", monitoring={"prometheus": "true"})
    extra = "arn:aws:imagebuilder:us-east-1:aws:component/update-linux/x.x.x"
    more = images_of(tmp_path / "more", images={"components": [extra]})

    assert versions(again) == versions(plain)
    assert not set(versions(exporter)) & set(versions(plain))
    assert versions(more)[0] == versions(plain)[0]
    assert versions(more)[1] != versions(plain)[1]
    for each in versions(plain):
        assert int(each.removeprefix("1.0.")) < 2**30


def test_old_images_go_with_their_snapshots_whatever_their_recipe_s_version(rich):
    for policy in rich["tidegate-dev-images"].all(f"{BUILDER}::LifecyclePolicy"):
        (told,) = policy["PolicyDetails"]
        assert told["Filter"] == {"Type": "COUNT", "Value": 5}
        assert told["Action"]["IncludeResources"] == {"Amis": True, "Snapshots": True}
        (recipe,) = policy["ResourceSelection"]["Recipes"]
        assert recipe["SemanticVersion"] == "x.x.x"


@pytest.mark.parametrize(
    ("image", "brought_by"),
    [("install", "lustre-client-utils lustre-client-modules"), ("install-al2023", "lustre-client")],
)
def test_lustre_s_client_is_baked_where_the_file_has_lustre(image, brought_by):
    slurm = {
        "version": "24.11",
        "repositories": {
            name: {"url": "https://example.com/slurm", "key": "https://example.com/key"}
            for name in {"ubuntu24.04", image.removeprefix("install-")} - {"install"}
        },
    }
    asked = dev_file(image=image, lustre={"storage_gib": "1200"}, images={}, slurm=slurm)

    values = image_values(parse_cluster(yaml.safe_dump(asked), "dev"), "x86_64", "x")

    assert ("mount.lustre", brought_by) in values.more
    assert "mount.lustre" not in values.programs


@pytest.mark.parametrize(
    ("monitoring", "images", "arch", "dcgm"),
    [
        ({"prometheus": "true"}, {}, "x86_64", "exporter"),
        ({"prometheus": "true"}, {"dcgm_tests": "true"}, "arm64", ""),
        ({}, {}, "x86_64", ""),
        ({}, {"dcgm_tests": "true"}, "x86_64", "tests"),
        ({"prometheus": "true"}, {"dcgm_tests": "true"}, "x86_64", "exporter tests"),
    ],
)
def test_what_is_asked_for_of_dcgm_is_baked_for_nodes_with_gpus(monitoring, images, arch, dcgm):
    asked = dev_file(images=images, monitoring=monitoring)

    values = image_values(parse_cluster(yaml.safe_dump(asked), "dev"), arch, "x")

    assert values.dcgm == dcgm


def test_gpus_of_volta_are_tested_by_another_cuda():
    sold = {"zones": ["us-east-1a"], "capacity_types": ["on-demand"]}
    pools = {"v": {"instance_types": ["p3.2xlarge"], **sold}}
    asked = dev_file(
        images={"dcgm_tests": "true"},
        monitoring={},
        pools=pools,
        partitions={"gpu": {"pools": ["v"], "default": "true"}},
    )

    values = image_values(parse_cluster(yaml.safe_dump(asked), "dev"), "x86_64", "x")

    assert values.dcgm == "tests volta"


def test_each_architecture_is_baked_on_its_own_and_more_components_come_first(rich):
    images = rich["tidegate-dev-images"]

    kinds = {
        each["Name"]: each["InstanceTypes"]
        for each in images.all(f"{BUILDER}::InfrastructureConfiguration")
    }
    assert kinds == {
        "tidegate-dev-arm64": ["g5g.xlarge"],
        "tidegate-dev-x86-64": ["m6i.large"],
    }
    for recipe in images.all(f"{BUILDER}::ImageRecipe"):
        first, ours = [each["ComponentArn"] for each in recipe["Components"]]
        assert first.endswith("component/lustre/1.x.x")
        assert "Component" in joined(ours)


def test_builds_are_in_the_network_of_the_file_or_in_one_of_their_own(rich, plain):
    images = rich["tidegate-dev-images"]
    subnet = "subnet-0a1b2c3d"  # of the head's zone

    for each in images.all(f"{BUILDER}::InfrastructureConfiguration"):
        assert each["SubnetId"] == subnet
    assert not images.all("AWS::EC2::VPC")
    assert plain.all("AWS::EC2::VPC")
    for each in (images, plain):
        assert "SecurityGroupIngress" not in each.one("AWS::EC2::SecurityGroup")


def test_the_document_is_what_image_builder_takes(plain):
    found = document(plain)

    assert list(faults_of(found)) == []
    assert len(plain.one(f"{BUILDER}::Component")["Data"]) < MAX_INLINE_BYTES
    (ours,) = plain.one(f"{BUILDER}::ImageRecipe")["Components"]
    (bundle,) = ours["Parameters"]
    assert (bundle["Name"], list(found["parameters"][0])) == (BUNDLE, [BUNDLE])
    (place,) = bundle["Value"]
    assert re.fullmatch(r"s3://cdk-.*/[0-9a-f]{64}\.tgz", joined(place))


def test_a_build_that_fails_is_told_by_mail(tmp_path, plain):
    told = images_of(tmp_path / "told", alarm_email="ops@example.org")

    pattern = told.one("AWS::Events::Rule")["EventPattern"]
    assert pattern["source"] == ["aws.imagebuilder"]
    assert pattern["detail"] == {"state": {"status": ["FAILED"]}}
    (image,) = pattern["resources"]
    assert joined(image["prefix"]).endswith(":image/tidegate-dev-x86-64/")
    assert told.one("AWS::SNS::Subscription")["Endpoint"] == "ops@example.org"
    (target,) = told.one("AWS::Events::Rule")["Targets"]
    transformer = target["InputTransformer"]
    assert list(transformer["InputPathsMap"].values()) == ["$.detail.state.reason"]
    assert "tidegate image list" in transformer["InputTemplate"]
    assert not plain.all("AWS::SNS::Topic")


def test_probe_asks_for_the_rights_that_it_takes(plain):
    """Those of CloudFormation, and of the roles where a boundary bounds them."""
    kinds = {each["Type"] for each in plain.template["Resources"].values()}
    without = parse_cluster(yaml.safe_dump(dev_file()), "dev")
    file = parse_cluster(yaml.safe_dump(dev_file(images={})), "dev")
    done = {action for each in statements_of({"images": plain}) for action in each.actions}

    assert kinds - CREATES.keys() == CREATES_IMAGES.keys()
    assert done <= set(roles_do(file))
    assert set(roles_do(file)) - set(roles_do(without)) <= done
    assert all(map(reference.action, [*CREATES_IMAGES.values(), *roles_do(file)]))


def test_without_images_there_is_no_stack_of_them_and_nothing_is_looked_up(both):
    assert both.keys() == {"tidegate-dev", "tidegate-dev-data"}
    assert "BakedImage" not in both["tidegate-dev"].template["Parameters"]
