"""`tidegate validate --live`: keys of disks that no launch of ours could use."""

import json

import pytest

from tests.cli.region import LARGE_IMAGE, Region, names, region
from tests.contracts.conftest import cloud
from tidegate.core.model.ec2 import SPOT_ROLE

__all__ = ["cloud", "names", "region"]

SPOT_ROLE_ARN = f"arn:aws:iam::123456789012:role/aws-service-role/spot.amazonaws.com/{SPOT_ROLE}"


def new_key(region: Region, **more: str) -> str:
    kms = region.cloud.client("kms")
    made = str(kms.create_key(**more)["KeyMetadata"]["Arn"])
    kms.create_grant(KeyId=made, GranteePrincipal=SPOT_ROLE_ARN, Operations=["Decrypt"])
    return made


def test_a_key_of_ones_own_needs_a_grant_for_spot(region: Region):
    kms = region.cloud.client("kms")
    key = kms.create_key()["KeyMetadata"]["Arn"]
    (before,) = region.told({"kms_key": key})
    kms.create_grant(KeyId=key, GranteePrincipal=SPOT_ROLE_ARN, Operations=["Decrypt"])

    assert before.startswith("kms_key the KMS key arn:aws:kms:")
    assert f"has no grant for {SPOT_ROLE}" in before
    assert region.told({"kms_key": key}) == []


def test_a_key_that_the_account_gives_to_all_volumes_has_to_be_in_the_file(region: Region):
    """Without it the functions get no right to the key, and all launches end as they start."""
    region.ebs_key = new_key(region)

    (told,) = region.told()

    assert told.startswith("region the functions may not use the KMS key arn:aws:kms:")
    assert f"`kms_key: {region.ebs_key}` gives them the rights" in told
    assert region.told({"kms_key": region.ebs_key}) == []


def test_a_key_that_lets_in_its_whole_account_need_not_be_in_the_file(region: Region):
    anybody = {
        "Effect": "Allow",
        "Principal": {"AWS": "*"},
        "Action": ["kms:CreateGrant", "kms:Decrypt"],
        "Resource": "*",
        "Condition": {"StringEquals": {"kms:CallerAccount": "123456789012"}},
    }
    policy = {"Version": "2012-10-17", "Statement": [anybody]}
    region.ebs_key = new_key(region, Policy=json.dumps(policy))

    assert region.told() == []


@pytest.mark.parametrize("has_own", [False, True])
def test_an_image_of_ones_own_may_have_another_key_than_its_nodes(region: Region, has_own: bool):
    region.image_key = new_key(region)
    own = {"kms_key": new_key(region)} if has_own else {}

    (told,) = region.told({"pools.t4.image": LARGE_IMAGE, "pools.t4.root_gib": 120, **own})

    assert told.startswith("pools.t4.image the functions may not use the KMS key arn:aws:kms:")
    assert (f"--kms-key-id {own['kms_key']}" if has_own else "`kms_key: ") in told
