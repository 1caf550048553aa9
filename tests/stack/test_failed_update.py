"""A deployment that CloudFormation refuses half way: it rolls back, and the cluster lives on."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.deploy import deploy
from local.stack_world import StackWorld
from tests.stack.test_recovery import assert_taken_over, buy_and_run
from tests.stack.world import STACK

OTHER_IMAGE = "ami-0000000000000000f"


def changed(assembly: Path, folder: Path) -> Path:
    """The assembly with nodes of a larger disk, and a head of another image."""
    copied = Path(shutil.copytree(assembly, folder / "cdk.out"))
    path = copied / f"{STACK}.template.json"
    template = json.loads(path.read_text())
    for resource in template["Resources"].values():
        properties = resource.get("Properties", {})
        match resource["Type"]:
            case "AWS::EC2::LaunchTemplate":
                for disk in properties["LaunchTemplateData"].get("BlockDeviceMappings", []):
                    disk["Ebs"]["VolumeSize"] = 321
            case "AWS::Lambda::Function":
                properties["MemorySize"] = 3008
            case "AWS::EC2::Instance":
                properties["ImageId"] = OTHER_IMAGE
    path.write_text(json.dumps(template))
    return copied


def functions(world: StackWorld) -> Mapping[str, Any]:
    """What a function is, by its name, without when it was changed."""
    found = world.cloud.observer("lambda").list_functions()["Functions"]
    return {
        each["FunctionName"]: (each["MemorySize"], each["Environment"], each["CodeSha256"])
        for each in found
    }


def test_a_deployment_that_fails_leaves_the_cluster_and_its_job_as_they_were(
    world: StackWorld, assembly: Path, tmp_path: Path
) -> None:
    """The head's volume is held by the head that would be replaced, so the new one fails."""
    node, before, head = buy_and_run(world), functions(world), world.head_id

    with pytest.raises(ClientError, match="VolumeInUse"):
        deploy(world.cloud, changed(assembly, tmp_path), STACK)

    after = functions(world)
    assert {name: memory for name, (memory, _, _) in after.items()} == {
        name: memory for name, (memory, _, _) in before.items()
    }
    assert (world.head_id, world.head_state()) == (head, "running")
    assert_taken_over(world, node)
