"""Who asks: the AWS identity behind the credentials of this process."""

from typing import TYPE_CHECKING

from tidegate.adapters.aws_errors import aws_call

if TYPE_CHECKING:
    from mypy_boto3_sts import STSClient


def who(client: "STSClient") -> str:
    """`user/ada`, or `ops/ada` for a session of the role ops. Errors: Throttled, NotAuthorized."""
    with aws_call():
        arn = client.get_caller_identity()["Arn"]
    return arn.rpartition(":")[2].removeprefix("assumed-role/")


def account_arn(client: "STSClient") -> str:
    """The AWS account of who asks, as its root's ARN: `arn:aws:iam::123456789012:root`.

    Source: IAM user guide, "IAM identifiers". Errors: Throttled, NotAuthorized.
    """
    with aws_call():
        asks = client.get_caller_identity()
    partition = asks["Arn"].split(":")[1]
    return f"arn:{partition}:iam::{asks['Account']}:root"
