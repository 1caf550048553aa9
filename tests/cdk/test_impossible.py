"""`tidegate diff` refuses what CloudFormation would fail at, on a cluster that lives."""

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.cdk.made import Stack, dev_file, synthesized
from tidegate.cli.impossible import Code, Refusal, refusals

KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-1111-2222-3333-444455556666"
FILES = {"file_system": "fs-0a1b2c3d", "file_security_group": "sg-0a1b2c3d"}
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:munge-a1b2c3"


def refused(
    folder: Path, both: dict[str, Stack], *, has_head: bool = True, **file: Any
) -> list[Refusal]:
    """What of deploying the changed file is refused."""
    after = synthesized(folder, dev_file(**file))
    before = {name: stack.template for name, stack in both.items()}
    wanted = {name: after[name].template for name in both}
    return refusals(before, wanted, "dev", lambda: has_head)


def codes(those: list[Refusal]) -> set[Code]:
    return {each.code for each in those}


@pytest.mark.parametrize(
    "change",
    [
        {"image": "ami-0123456789abcdef0"},
        {"head": {"image": "ami-0123456789abcdef0"}},
        {"head": {"root_gib": "60"}},
        {"head": {"generation": "2"}},
    ],
    ids=str,
)
def test_a_new_head_needs_the_old_one_s_volume(tmp_path, both, change):
    (head,) = refused(tmp_path, both, **change)

    assert (head.code, head.kind) == (Code.VOLUME_IN_USE, "AWS::EC2::Instance")
    assert "aws ec2 terminate-instances" in head.way
    # The way: nobody holds the volume then.
    assert refused(tmp_path / "ended", both, has_head=False, **change) == []


def test_an_attachment_beside_a_head_that_runs_cannot_go(both):
    """As clusters of earlier versions have it: the head has the volume mounted."""
    before = {name: copy.deepcopy(stack.template) for name, stack in both.items()}
    resources = before["tidegate-dev"]["Resources"]
    for each in resources.values():
        each.get("Properties", {}).pop("Volumes", None)
    resources["Attached"] = {"Type": "AWS::EC2::VolumeAttachment", "Properties": {}}
    wanted = {name: stack.template for name, stack in both.items()}

    (attached,) = refusals(before, wanted, "dev", lambda: True)

    assert (attached.code, attached.logical_id) == (Code.VOLUME_IN_USE, "Attached")
    assert refusals(before, wanted, "dev", lambda: False) == []


@pytest.mark.parametrize(
    ("change", "exports"),
    [
        ({"head": {"zone": "us-east-1b"}}, ["HeadData"]),
        ({"kms_key": KEY}, ["HeadData", "Files"]),
        ({"existing": {"munge_secret": SECRET}}, ["MungeKey"]),
    ],
    ids=["head.zone", "kms_key", "existing"],
)
def test_an_export_in_use_can_neither_change_nor_go(tmp_path, both, change, exports):
    those = refused(tmp_path, both, has_head=False, **change)

    assert codes(those) == {Code.EXPORT_IN_USE}
    for name in exports:
        assert any(f"Storage{name}" in each.logical_id for each in those), name
    assert {each.stack for each in those} == {"tidegate-dev-data"}
    assert "npx cdk destroy tidegate-dev, npx cdk deploy tidegate-dev" in those[0].way
    # The way: nobody imports it then.
    after = synthesized(tmp_path / "again", dev_file(**change))
    before = {"tidegate-dev-data": both["tidegate-dev-data"].template, "tidegate-dev": {}}
    wanted = {name: after[name].template for name in before}
    assert refusals(before, wanted, "dev", lambda: False) == []


def test_a_volume_only_grows(tmp_path, both):
    (volume,) = refused(tmp_path, both, head={"volume_gib": "40"})

    assert (volume.code, volume.kind) == (Code.VOLUME_TOO_SMALL, "AWS::EC2::Volume")
    assert "head.volume_gib" in volume.way
    assert refused(tmp_path / "more", both, head={"volume_gib": "60"}) == []


def test_another_network_needs_the_places_of_its_mount_targets(tmp_path, both):
    those = refused(tmp_path, both, has_head=False, network={"cidr": "10.9.0.0/16"})

    assert codes(those) == {Code.MOUNT_TARGET_CONFLICT}
    assert len(those) == 2  # zones
    subnets = {zone: f"subnet-0a1b2c3{zone[-1]}" for zone in ("us-east-1a", "us-east-1b")}
    own = {"vpc": "vpc-0a1b2c3d", "subnets": subnets}
    others = refused(tmp_path / "vpc", both, has_head=False, network=own)
    assert codes(others) == {Code.MOUNT_TARGET_CONFLICT}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"limits": {"nodes": "9"}},
        {"head": {"instance_type": "m6i.2xlarge"}},
        {"backup_days": "0"},
        {"alarm_email": "ops@example.org"},
    ],
    ids=str,
)
def test_everyday_changes_are_not_refused(tmp_path, both, change):
    assert refused(tmp_path, both, **change) == []


def test_a_first_deployment_is_not_refused(tmp_path, both):
    nothing: dict[str, Any] = {name: {} for name in both}
    wanted = {name: copy.deepcopy(stack.template) for name, stack in both.items()}

    assert refusals(nothing, wanted, "dev", lambda: True) == []
