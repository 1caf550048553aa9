"""`tidegate validate --live`: keys of disks that no launch of ours could use."""

import json
from typing import Any

import pytest

from tests.cli.region import LARGE_IMAGE, Region, names, region
from tests.contracts.conftest import cloud
from tidegate.cli.key_policy import Caller, Fit, lets
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


ACCOUNT = "123456789012"
ACTIONS = [
    *("kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey"),
    *("kms:GenerateDataKey*", "kms:ReEncrypt*"),
]
BY_EC2 = {"kms:CallerAccount": ACCOUNT, "kms:ViaService": "ec2.us-east-1.amazonaws.com"}
ANYBODY = {
    "Effect": "Allow",
    "Principal": {"AWS": "*"},
    "Action": ACTIONS,
    "Resource": "*",
    "Condition": {"StringEquals": BY_EC2},
}
ROLE = f"arn:aws:iam::{ACCOUNT}:role/tidegate-dev-Planner"
ROOT = {**ANYBODY, "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "kms:*"}
PLAIN_ROOT = {key: value for key, value in ROOT.items() if key != "Condition"}


def on(condition: dict[str, Any]) -> dict[str, Any]:
    return {**ANYBODY, "Condition": condition}


@pytest.mark.parametrize(
    ("statements", "fit"),
    [
        ([ANYBODY], Fit.YES),
        ([on({})], Fit.YES),
        ([{**ANYBODY, "Action": "kms:*", "Principal": "*"}], Fit.YES),
        ([{**ANYBODY, "Action": ACTIONS[:3]}], Fit.NO),
        ([{**ANYBODY, "Action": ACTIONS[:3]}, {**ANYBODY, "Action": ACTIONS[3:]}], Fit.YES),
        ([on({"StringEquals": {"kms:CallerAccount": "210987654321"}})], Fit.NO),
        ([on({"StringEquals": {"kms:ViaService": "rds.us-east-1.amazonaws.com"}})], Fit.NO),
        ([on({"StringLike": {"kms:ViaService": "ec2.*.amazonaws.com"}})], Fit.YES),
        ([on({"StringEquals": {"aws:PrincipalOrgID": "o-a1b2c3d4e5"}})], Fit.MAYBE),
        # A grant for EC2 is asked for by EC2; nothing else has this condition's key.
        ([on({"Bool": {"kms:GrantIsForAWSResource": "true"}})], Fit.NO),
        (
            [
                {**ANYBODY, "Action": ACTIONS[1:]},
                {
                    **on({"Bool": {"kms:GrantIsForAWSResource": True}}),
                    "Action": "kms:CreateGrant",
                },
            ],
            Fit.YES,
        ),
        # The account as a whole: its own policies say who, and the functions' say nothing.
        ([PLAIN_ROOT], Fit.NO),
        ([{**ANYBODY, "Principal": {"AWS": ROLE}}], Fit.MAYBE),
        ([{**ANYBODY, "Principal": {"AWS": [SPOT_ROLE_ARN]}}], Fit.NO),
        ([{**ANYBODY, "Effect": "Deny"}], Fit.NO),
        ([{**ANYBODY, "Effect": "Deny"}, on({})], Fit.NO),
        ([ANYBODY, {**PLAIN_ROOT, "Effect": "Deny", "Action": "kms:Decrypt"}], Fit.NO),
        ([ANYBODY, {**ANYBODY, "Effect": "Deny", "Principal": {"AWS": ROLE}}], Fit.MAYBE),
        ([ANYBODY, {**ANYBODY, "Effect": "Deny", "Action": "kms:ScheduleKeyDeletion"}], Fit.YES),
        (
            [ANYBODY, {"Effect": "Deny", "NotPrincipal": {"AWS": ROLE}, "Action": "kms:*"}],
            Fit.MAYBE,
        ),
        ([{"Effect": "Allow", "Principal": "*", "NotAction": "kms:PutKeyPolicy"}], Fit.YES),
        ([{"Effect": "Allow", "Principal": "*", "NotAction": "kms:Decrypt"}], Fit.NO),
    ],
)
def test_whether_a_policy_lets_somebody_use_its_key(statements: list[dict[str, Any]], fit: Fit):
    caller = Caller(ACCOUNT, "us-east-1", lambda arn: Fit.MAYBE if arn == ROLE else Fit.NO)

    assert lets({"Version": "2012-10-17", "Statement": statements}, caller) is fit


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (ANYBODY, []),
        ({**ANYBODY, "Principal": {"AWS": ROLE}}, ["region: the KMS key {} of its volumes is gi"]),
        ({**ANYBODY, "Principal": {"AWS": SPOT_ROLE_ARN}}, ["region the functions may not use"]),
        ({**ANYBODY, "Action": "kms:DescribeKey"}, ["region the functions may not use the KMS"]),
    ],
)
def test_what_the_policy_of_all_volumes_key_lets_is_told(
    region: Region, statement: dict[str, Any], words: list[str]
):
    policy = {"Version": "2012-10-17", "Statement": [PLAIN_ROOT, statement]}
    region.ebs_key = new_key(region, Policy=json.dumps(policy))

    told = region.told()

    assert len(told) == len(words)
    for line, begin in zip(told, words, strict=True):
        assert line.startswith(begin.format(region.ebs_key))


@pytest.mark.parametrize(
    ("principal", "is_told"), [(SPOT_ROLE_ARN, False), ("*", False), (ROLE, True)]
)
def test_spot_needs_no_grant_where_the_policy_lets_its_role_in(
    region: Region, principal: str, is_told: bool
):
    policy = {
        "Version": "2012-10-17",
        "Statement": [PLAIN_ROOT, {**on({}), "Principal": {"AWS": principal}}],
    }
    made = region.cloud.client("kms").create_key(Policy=json.dumps(policy))["KeyMetadata"]["Arn"]

    told = region.told({"kms_key": made})

    assert any(f"has no grant for {SPOT_ROLE}" in line for line in told) == is_told


@pytest.mark.parametrize(
    ("grantee", "says"),
    [
        (ROLE, "region: the KMS key {} of its volumes is given to"),
        # EBS's own, of a volume that is attached: KMS developer guide, "Examining grants".
        (
            f"arn:aws:sts::{ACCOUNT}:assumed-role/aws:ec2-infrastructure/i-5d476fab",
            "region the functions may not use the KMS key {} of its volumes",
        ),
    ],
)
def test_a_role_that_a_grant_names_may_be_the_functions(region: Region, grantee: str, says: str):
    region.ebs_key = new_key(region)
    kms = region.cloud.client("kms")
    kms.create_grant(KeyId=region.ebs_key, GranteePrincipal=grantee, Operations=["Decrypt"])

    (told,) = region.told()

    assert told.startswith(says.format(region.ebs_key))


@pytest.mark.parametrize("has_own", [False, True])
def test_an_image_of_ones_own_may_have_another_key_than_its_nodes(region: Region, has_own: bool):
    region.image_key = new_key(region)
    own = {"kms_key": new_key(region)} if has_own else {}

    (told,) = region.told({"pools.t4.image": LARGE_IMAGE, "pools.t4.root_gib": 120, **own})

    assert told.startswith("pools.t4.image the functions may not use the KMS key arn:aws:kms:")
    assert (f"--kms-key-id {own['kms_key']}" if has_own else "`kms_key: ") in told
