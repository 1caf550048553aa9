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
