"""The alarms of a cluster's stack, as CloudWatch sees them now."""

from typing import TYPE_CHECKING

from tidegate.adapters.aws_errors import aws_call
from tidegate.core.explain.overview import AlarmNow

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient


def firing(client: "CloudWatchClient", cluster: str) -> tuple[AlarmNow, ...]:
    """Those in state ALARM, by name. Errors: Throttled, NotAuthorized."""
    prefix = f"tidegate-{cluster}-"
    found: list[AlarmNow] = []
    with aws_call():
        pages = client.get_paginator("describe_alarms").paginate(AlarmNamePrefix=prefix)
        for page in pages:
            for each in page.get("MetricAlarms", ()):
                if each.get("StateValue") != "ALARM":
                    continue
                since = each.get("StateUpdatedTimestamp")
                found.append(
                    AlarmNow(
                        each["AlarmName"].removeprefix(prefix),
                        each.get("AlarmDescription", ""),
                        since.timestamp() if since else 0.0,
                    )
                )
    return tuple(sorted(found, key=lambda each: each.name))
