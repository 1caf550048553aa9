"""EC2's serial console: what an instance wrote to it, also for some time after its end."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import (
    aws_call,
    is_instance_not_found,
    is_unsupported,
    tolerating,
)
from tidegate.core.model.errors import BadConfig

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client


def console_text(client: "EC2Client", instance_id: str) -> str:
    """The newest 64 KiB; "" when nothing was written yet.

    Instances on Nitro are asked for what they write now, others have the text of their boot.
    Source: EC2 API reference, GetConsoleOutput.
    Errors: BadConfig, when EC2 does not know the instance (any more); Throttled, NotAuthorized.
    """
    with aws_call():
        answer = tolerating(
            lambda: client.get_console_output(InstanceId=instance_id, Latest=True),
            lambda error: is_instance_not_found(error) or is_unsupported(error),
        )
        if isinstance(answer, ClientError) and is_unsupported(answer):
            answer = tolerating(
                lambda: client.get_console_output(InstanceId=instance_id), is_instance_not_found
            )
    if isinstance(answer, ClientError):
        raise BadConfig(f"EC2 knows no instance {instance_id}; it forgets those that have ended")
    return answer.get("Output", "")  # botocore has decoded it
