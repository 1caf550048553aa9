"""A KMS key of one's own: what is encrypted with it, and who may use it for what."""

from typing import Any

import pytest

from tests.cdk.made import Stack, dev_file, joined, synthesized
from tidegate.core.model.errors import BadConfig

KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-1111-2222-3333-444455556666"


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stack]:
    return synthesized(tmp_path_factory.mktemp("key"), dev_file(kms_key=KEY))


def rights(stack: Stack, role: str) -> dict[str, dict[str, Any]]:
    """The statements about the key of the role whose logical id holds `role`."""
    (properties,) = [
        resource["Properties"]
        for logical_id, resource in stack.resources("AWS::IAM::Role")
        if role in logical_id
    ]
    return {
        each["Sid"]: each
        for policy in properties.get("Policies", ())
        for each in policy["PolicyDocument"]["Statement"]
        if each["Resource"] == KEY
    }


def test_volumes_files_and_the_munge_key_are_encrypted_with_it(stacks: dict[str, Stack]):
    data, parts = stacks["tidegate-dev-data"], stacks["tidegate-dev"]

    for kind in ("AWS::EC2::Volume", "AWS::EFS::FileSystem", "AWS::SecretsManager::Secret"):
        assert data.one(kind)["KmsKeyId"] == KEY, kind
    (disk,) = parts.one("AWS::EC2::Instance")["BlockDeviceMappings"]
    assert disk["Ebs"]["KmsKeyId"] == KEY
    templates = [
        each["LaunchTemplateData"]
        for each in parts.all("AWS::EC2::LaunchTemplate")
        if "BlockDeviceMappings" in each["LaunchTemplateData"]
    ]
    assert len(templates) == 2
    for template in templates:
        assert template["BlockDeviceMappings"][0]["Ebs"]["KmsKeyId"] == KEY


@pytest.mark.parametrize("role", ["HeadRole", "NodesRole"])
def test_head_and_nodes_may_only_read_secrets_with_it(stacks: dict[str, Stack], role: str):
    (only,) = rights(stacks["tidegate-dev"], role).values()

    assert only["Action"] == "kms:Decrypt"
    via = only["Condition"]["StringEquals"]["kms:ViaService"]
    assert joined(via).startswith("secretsmanager.")


def test_the_planner_may_use_it_through_ec2_alone(stacks: dict[str, Stack]):
    found = rights(stacks["tidegate-dev"], "PlannerRole")

    assert set(found) == {"VolumesKey", "VolumesKeyForEc2"}
    assert "kms:GenerateDataKeyWithoutPlaintext" in found["VolumesKey"]["Action"]
    via = found["VolumesKey"]["Condition"]["StringEquals"]["kms:ViaService"]
    assert joined(via).startswith("ec2.")
    assert_lent_to_ec2(found["VolumesKeyForEc2"])


@pytest.mark.parametrize("role", ["ScheduleRole", "ReconcileRole"])
def test_who_starts_the_head_may_lend_it_to_ec2_and_no_more(stacks: dict[str, Stack], role: str):
    (only,) = rights(stacks["tidegate-dev"], role).values()

    assert_lent_to_ec2(only)


def assert_lent_to_ec2(found: dict[str, Any]) -> None:
    assert found["Action"] == "kms:CreateGrant"
    assert found["Condition"]["Bool"] == {"kms:GrantIsForAWSResource": "true"}
    assert joined(found["Condition"]["StringEquals"]["kms:ViaService"]).startswith("ec2.")


def test_the_interruption_function_has_no_use_for_it(stacks: dict[str, Stack]):
    assert rights(stacks["tidegate-dev"], "InterruptionRole") == {}


def test_a_key_of_another_region_is_refused(tmp_path):
    with pytest.raises(
        BadConfig, match=r"kms_key +is a key of eu-west-1, the cluster is in us-eas"
    ):
        synthesized(tmp_path, dev_file(kms_key=KEY.replace("us-east-1", "eu-west-1")))


def test_without_one_the_keys_are_those_of_aws(dev: Stack):
    for template in dev.all("AWS::EC2::LaunchTemplate"):
        for disk in template["LaunchTemplateData"].get("BlockDeviceMappings", ()):
            assert disk["Ebs"]["Encrypted"]
            assert "KmsKeyId" not in disk["Ebs"]
