"""`tidegate validate --live`: shells that would end as they begin."""

import json
from collections.abc import Callable, Iterator

import pytest

from tests.cli.region import Region, names, region
from tests.contracts.conftest import cloud
from tidegate.adapters.account import SESSIONS

__all__ = ["cloud", "names", "region"]

POLICY = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"


@pytest.fixture
def wants(region: Region) -> Iterator[Callable[..., None]]:
    """Writes down what the account wants of its sessions."""
    ssm = region.cloud.client("ssm")

    def write(**inputs: str) -> None:
        content = {"schemaVersion": "1.0", "sessionType": "Standard_Stream", "inputs": inputs}
        ssm.create_document(Name=SESSIONS, DocumentType="Session", Content=json.dumps(content))

    yield write
    ssm.delete_document(Name=SESSIONS)


def told(region: Region, **changes: object) -> list[str]:
    return [line for line in region.told(changes) if "sessions of this account" in line]


def test_a_key_of_sessions_is_told_with_what_it_takes(region: Region, wants: Callable[..., None]):
    wants(kmsKeyId="arn:aws:kms:us-east-1:123456789012:key/a", s3BucketName="", runAsEnabled="no")

    (line,) = told(region)

    assert line.startswith("head.policies: sessions of this account are encrypted by the KMS key")
    assert line.endswith("(kms:Decrypt): a policy here has to allow it")


def test_logs_of_sessions_are_told_for_each_kind_of_machine(
    region: Region, wants: Callable[..., None]
):
    wants(s3BucketName="logs-1", cloudWatchLogGroupName="/ssm")

    head, login = told(region, login={})

    assert head.startswith("head.policies: ")
    assert login.startswith("login.policies: ")
    assert "kept in the bucket logs-1 and logged in the group /ssm" in head
    assert "logs:PutLogEvents" in head


def test_a_site_s_own_policy_may_allow_it(region: Region, wants: Callable[..., None]):
    wants(kmsKeyId="arn:aws:kms:us-east-1:123456789012:key/a")

    assert told(region, **{"head.policies": [POLICY]}) == []


def test_an_account_that_wants_nothing_of_its_sessions(region: Region, wants: Callable[..., None]):
    wants(kmsKeyId="", s3BucketName="", cloudWatchLogGroupName="")

    assert told(region) == []
