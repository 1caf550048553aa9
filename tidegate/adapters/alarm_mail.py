"""An alarm that is rung by hand, and who hears of it."""

from typing import TYPE_CHECKING, Any

from tidegate.adapters.aws_errors import aws_call
from tidegate.core.model.frozen import frozen

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient

# SNS's word instead of an ARN (API reference, ListSubscriptionsByTopic).
PENDING = "PendingConfirmation"


@frozen
class Hearers:
    """Subscriptions of an alarm's topic: those that are confirmed, and those that are not."""

    confirmed: int
    pending: int


def ring(client: "CloudWatchClient", alarm: str, reason: str) -> None:
    """CloudWatch does what the alarm says, and puts it back itself at its next evaluation.

    Source: CloudWatch API reference, SetAlarmState. Errors: Throttled, NotAuthorized.
    """
    with aws_call():
        client.set_alarm_state(AlarmName=alarm, StateValue="ALARM", StateReason=reason)


def still(client: "CloudWatchClient", alarm: str, reason: str) -> None:
    """Errors: as `ring`."""
    with aws_call():
        client.set_alarm_state(AlarmName=alarm, StateValue="OK", StateReason=reason)


def topic_of(client: "CloudWatchClient", alarm: str) -> str:
    """The ARN of what the alarm tells; "": there is no such alarm, or it tells nobody."""
    with aws_call():
        found = client.describe_alarms(AlarmNames=[alarm])["MetricAlarms"]
    return str(next(iter(found[0].get("AlarmActions", ())), "")) if found else ""


def hearers(client: Any, topic: str) -> Hearers:
    pages = client.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    with aws_call():
        arns = [each["SubscriptionArn"] for page in pages for each in page["Subscriptions"]]
    pending = arns.count(PENDING)
    return Hearers(len(arns) - pending, pending)
