"""What tests put into a stack, and what its functions then say that they saw."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from local.deploy import Deployment
from local.router.functions import Invocation
from local.router.router import Router
from tests.local.conftest import Stack

type Route = Callable[..., Router]


def event(stack: Stack, source: str, **detail: Any) -> None:
    """Put an event on the stack's own bus."""
    entry = {
        "EventBusName": stack.name,
        "Source": source,
        "DetailType": "Test",
        "Detail": json.dumps(detail),
    }
    stack.cloud.client("events").put_events(Entries=[entry])


def look(stack: Stack, deployed: Deployment, group: str = "dev", **body: Any) -> None:
    """Send a message to the look queue, as an event would."""
    stack.cloud.client("sqs").send_message(
        QueueUrl=deployed.outputs["LooksUrl"], MessageBody=json.dumps(body), MessageGroupId=group
    )


def dead_bodies(stack: Stack, deployed: Deployment, name: str) -> list[Any]:
    got = stack.cloud.client("sqs").receive_message(
        QueueUrl=deployed.resources[name][1], MaxNumberOfMessages=10
    )
    return [json.loads(each["Body"]) for each in got.get("Messages", ())]


def said(invocation: Invocation) -> dict[str, Any]:
    """What the test's handler prints about itself, first thing."""
    found: dict[str, Any] = json.loads(invocation.lines[0])
    return found


def bodies(invocation: Invocation) -> list[Any]:
    return [json.loads(each["body"]) for each in invocation.event["Records"]]


def of(invocations: Sequence[Invocation], note: str) -> list[Invocation]:
    """Those of the function "planner" or "async"."""
    return [each for each in invocations if f"-{note.capitalize()}-" in each.function_name]
