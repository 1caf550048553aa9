"""What calls of other services take of a KMS key that is not AWS's.

Sources: EBS user guide, "How Amazon EBS encryption works" and "Requirements for Amazon EBS
encryption"; Secrets Manager user guide, "Secret encryption and decryption". AWS lets an
instance begin without these rights and ends it at once; here the call itself is refused.
"""

from collections.abc import Iterator
from typing import Any

from moto.ec2.models import ec2_backends

from local.iam.requests import Call, Check

OF_NEW_VOLUMES = (
    *("DescribeKey", "GenerateDataKeyWithoutPlaintext", "Decrypt"),
    *("ReEncryptFrom", "ReEncryptTo"),
)


def of_new_volume(call: Call, key_arn: str) -> Iterator[Check]:
    """For a volume that a launch makes, and for the instance to read it."""
    for action in OF_NEW_VOLUMES:
        yield Check(f"kms:{action}", key_arn, _via(call, "ec2"), is_launch=True)
    yield _grant(call, key_arn, is_launch=True)


def of_start(call: Call, instance_id: str) -> Iterator[Check]:
    """For the instance to read the volumes that it has; their keys' data is there already."""
    backend: Any = ec2_backends[call.account][call.region]
    keys = {
        each.kms_key_id
        for each in backend.volumes.values()
        if each.attachment and each.attachment.instance.id == instance_id and each.kms_key_id
    }
    # AWS's own key asks nobody.
    for key_arn in sorted(keys - {backend.default_kms_key_id}):
        yield _grant(call, key_arn)


def of_secret(call: Call, key_arn: str) -> Check:
    return Check("kms:Decrypt", key_arn, _via(call, "secretsmanager"))


def _grant(call: Call, key_arn: str, *, is_launch: bool = False) -> Check:
    context = {**_via(call, "ec2"), "kms:GrantIsForAWSResource": "true"}
    return Check("kms:CreateGrant", key_arn, context, is_launch)


def _via(call: Call, service: str) -> dict[str, str]:
    return {"kms:ViaService": f"{service}.{call.region}.amazonaws.com"}
