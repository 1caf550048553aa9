"""Images of each system and architecture, which nodes may have others of than the head."""

import pytest

from cdk.bootstrap import head_values, node_values
from tests.cdk.made import dev_file, joined, synthesized
from tests.cdk.test_bootstrap import AGENT, AT, FLAT, SHARED, cluster_file
from tests.cdk.test_machines import template_data
from tidegate.cli.diff import changes
from tidegate.wire.image_names import parent_image
from userdata.repository import Repository


@pytest.mark.parametrize(
    ("os", "arch", "parameter"),
    [
        (
            "ubuntu24.04",
            "x86_64",
            "canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3",
        ),
        (
            "ubuntu22.04",
            "x86_64",
            "canonical/ubuntu/server/22.04/stable/current/amd64/hvm/ebs-gp2",
        ),
        ("ubuntu22.04", "arm64", "canonical/ubuntu/server/22.04/stable/current/arm64/hvm/ebs-gp2/"),
        ("al2023", "x86_64", "ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"),
        ("al2023", "arm64", "ami-amazon-linux-latest/al2023-ami-kernel-default-arm64"),
    ],
)
def test_each_system_s_image_is_where_its_maker_says(os, arch, parameter):
    assert parent_image(arch, os).startswith(f"/aws/service/{parameter}")


def test_nodes_of_amazon_linux_have_its_image_root_disk_and_packages(tmp_path):
    file = dev_file(image="install-al2023", slurm={"repositories": {"al2023": FLAT}})

    made = synthesized(tmp_path, file)["tidegate-dev"]

    data = template_data(made, "t4")
    assert joined(data["ImageId"]) == "<NodeImage>"
    found = made.template["Parameters"]["NodeImage"]["Default"]
    assert found == parent_image("x86_64", "al2023")
    assert data["BlockDeviceMappings"][0]["DeviceName"] == "/dev/xvda"
    assert made.one("AWS::EC2::Instance")["BlockDeviceMappings"][0]["DeviceName"] == "/dev/sda1"
    user_data = joined(data["UserData"]["Fn::Base64"])
    assert f"\nREPOSITORY_URL={FLAT['url']}\n" in user_data
    assert "slurm-slurmd" in user_data


def test_a_pool_may_have_an_image_of_its_own(tmp_path):
    file = dev_file(image="install", software={"os": "al2023"})
    file["pools"]["t4"]["image"] = "ami-0123456789abcdef0"

    made = synthesized(tmp_path, file)["tidegate-dev"]

    own, common = template_data(made, "t4"), template_data(made, "a10g")
    assert own["ImageId"] == "ami-0123456789abcdef0"
    assert own["BlockDeviceMappings"][0]["DeviceName"] == "/dev/xvda"
    assert "DRIVER_BRANCH=''" in joined(own["UserData"]["Fn::Base64"])
    assert "PACKAGES=''" in joined(own["UserData"]["Fn::Base64"])
    assert joined(common["ImageId"]) == "<NodeImage>"
    assert common["BlockDeviceMappings"][0]["DeviceName"] == "/dev/sda1"
    assert "DRIVER_BRANCH=580" in joined(common["UserData"]["Fn::Base64"])


@pytest.mark.parametrize("os", ["ubuntu22.04", "al2023"])
def test_each_machine_is_told_the_repository_of_its_own_system(os):
    head_s = FLAT | {"suite": "noble", "components": ["main"]}
    repositories = {os: FLAT, "ubuntu24.04": head_s}
    slurm = {"version": "24.11", "repositories": repositories}
    file = cluster_file(image=f"install-{os}", slurm=slurm)

    node = node_values(file, SHARED, file.cluster.pools[0])
    head = head_values(file, SHARED, AGENT, "vol-1", agent_at=AT)

    url, key = FLAT["url"], FLAT["key"]
    assert (node.os, node.installs, node.driver_branch) == (os, True, "580")
    assert node.repository == Repository(url, key, "24.11")
    assert head.repository == Repository(url, key, "24.11", "noble", ("main",))


@pytest.mark.parametrize(
    ("image", "parameter"),
    [
        ("dlami", "/deeplearning/ami/arm64/base-oss-nvidia-driver-gpu-ubuntu-24.04/"),
        ("install", "/canonical/ubuntu/server/24.04/stable/current/arm64/"),
    ],
)
def test_nodes_of_another_architecture_have_an_image_of_it(tmp_path, image, parameter):
    file = dev_file(image=image)
    file["pools"]["arm"] = file["pools"]["t4"] | {"instance_types": ["g5g.xlarge"]}
    file["partitions"]["arm"] = {"pools": ["arm"]}

    made = synthesized(tmp_path, file)["tidegate-dev"]

    assert joined(template_data(made, "t4")["ImageId"]) == "<NodeImage>"
    assert joined(template_data(made, "arm")["ImageId"]) == "<NodeImageArm64>"
    assert parameter in made.template["Parameters"]["NodeImageArm64"]["Default"]


def test_an_arm_head_and_login_nodes_have_images_of_their_own_architecture(tmp_path):
    file = dev_file(head={"instance_type": "m7g.large"}, login={"instance_type": "m6i.large"})

    made = synthesized(tmp_path, file)["tidegate-dev"]

    by_type = {
        each["InstanceType"]: joined(each["LaunchTemplate"]["LaunchTemplateId"]).strip("<>")
        for each in made.all("AWS::EC2::Instance")
    }
    templates = dict(made.resources("AWS::EC2::LaunchTemplate"))
    found = {
        name: templates[id]["Properties"]["LaunchTemplateData"]["ImageId"]
        for name, id in by_type.items()
    }
    assert "/24.04/stable/current/arm64/" in found["m7g.large"]
    assert "/24.04/stable/current/amd64/" in found["m6i.large"]
    assert joined(template_data(made, "t4")["ImageId"]) == "<NodeImage>"


def test_another_architecture_is_a_new_head_and_another_size_is_not(tmp_path):
    """No disk boots on both, and a template that only changed would leave the head its own."""
    x86, larger, arm = (
        synthesized(tmp_path / name, dev_file(head={"instance_type": name}))["tidegate-dev"]
        for name in ("m6i.large", "m6i.xlarge", "m7g.large")
    )

    def effects(other):
        found = changes(x86.template, other.template)
        return {each.effect.name for each in found if each.kind == "AWS::EC2::Instance"}

    assert effects(larger) == {"RESTARTED"}
    assert effects(arm) == {"REPLACED"}
    (gone,) = (
        each for each in changes(x86.template, arm.template) if each.effect.name == "REMOVED"
    )
    assert gone.sentence.endswith("(AWS::EC2::LaunchTemplate) is removed")
