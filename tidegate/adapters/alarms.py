"""Alarms as CloudWatch sees them now: those of a cluster's stack, and those of roll-outs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.adapters.aws_errors import aws_call
from tidegate.core.explain.overview import AlarmNow
from tidegate.core.model.alarms import AlarmState, SeenAlarm

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient


@dataclass(frozen=True, slots=True)
class CloudWatchAlarms:
    """Those that roll-outs heed.

    Source: CloudWatch API, DescribeAlarms: without `AlarmTypes` there are metric alarms alone;
    composite ones are left out without a word where the right is not on `*`; one call takes 100
    names.
    """

    client: "CloudWatchClient"

    def states(self, names: Sequence[str]) -> tuple[SeenAlarm, ...]:
        if not names:
            return ()  # asked for none, CloudWatch shows all
        with aws_call():
            found = self.client.describe_alarms(
                AlarmNames=list(names),
                AlarmTypes=["MetricAlarm", "CompositeAlarm"],
            )
        both = (*found.get("MetricAlarms", ()), *found.get("CompositeAlarms", ()))
        seen = {each["AlarmName"]: AlarmState(each["StateValue"]) for each in both}
        return tuple(SeenAlarm(name, seen.get(name)) for name in names)


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
