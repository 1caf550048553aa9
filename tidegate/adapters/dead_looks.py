"""The dead-letter queue of the looks, as far as the planner writes to it itself.

A look that failed would lock its FIFO group for the visibility time, so what nothing can read
is put aside here and acknowledged.
"""

from typing import TYPE_CHECKING

from tidegate.adapters.aws_errors import aws_call
from tidegate.core.model.frozen import frozen

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

REASON_MAX_CHARS = 500


@frozen
class SqsDeadLooks:
    """A FIFO queue. `cluster` is the message group."""

    sqs: "SQSClient"
    queue_url: str
    cluster: str

    def keep(self, body: str, *, message_id: str, reason: str) -> None:
        # The message's own id, because equal bodies must not swallow each other.
        with aws_call():
            self.sqs.send_message(
                QueueUrl=self.queue_url,
                MessageBody=body,
                MessageGroupId=self.cluster,
                MessageDeduplicationId=message_id,
                MessageAttributes={
                    "reason": {"DataType": "String", "StringValue": _printable(reason)}
                },
            )


def _printable(reason: str) -> str:
    """What SQS takes as an attribute: not empty, and without control characters."""
    words = "".join(each if each.isprintable() else " " for each in reason)
    return words[:REASON_MAX_CHARS].strip() or "no reason given"
