"""What tests put into a stack, and what its functions then say that they saw."""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from botocore.exceptions import ClientError

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


def come_again(stack: Stack, deployed: Deployment, invocation: Invocation) -> None:
    """What the invocation left in the look queue is visible at once, not when its time is over."""
    for record in invocation.event["Records"]:
        with suppress(ClientError):  # deleted
            stack.cloud.client("sqs").change_message_visibility(
                QueueUrl=deployed.outputs["LooksUrl"],
                ReceiptHandle=record["receiptHandle"],
                VisibilityTimeout=0,
            )


def eventually(what: str, ask: Callable[[], object], patience_s: float = 60) -> None:
    until_s = time.monotonic() + patience_s
    while not ask():
        assert time.monotonic() < until_s, f"not within {patience_s} s: {what}"
        time.sleep(0.05)


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
