"""Polls a queue for a function, as Lambda does for an SQS event source mapping.

Source: Lambda developer guide, "Using Lambda with Amazon SQS". It acts with the rights of the
function's role. What failed stays invisible until its time is over; it is not put back early.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import batched
from typing import Any

from botocore.exceptions import ClientError

from local.clients import REGION
from local.router.deployed import Deployed, Mapped
from local.router.functions import Functions, Invocation
from local.router.roles import Roles

# What SQS hands out or deletes in one call.
SQS_BATCH = 10

GATHER_S = 0.05
# An invocation takes 6 MB: gathering stops where ten more messages could be too many.
PAYLOAD_BYTES = 6 * 1024 * 1024 - SQS_BATCH * 256 * 1024

type Message = dict[str, Any]


@dataclass(slots=True)
class Poller:
    """`troubles`: why it could not poll, once per reason."""

    deployed: Deployed
    roles: Roles
    functions: Functions
    repeat: int = 1
    troubles: list[str] = field(default_factory=list)
    _looked_at: set[tuple[str, str]] = field(default_factory=set)

    def poll(self, mapped: Mapped, *, wait_s: int) -> bool:
        """Take one batch and run the function on it; False: there was none.

        `wait_s` 0: what is there by now makes the batch; else it is gathered as Lambda does.
        """
        role = self.deployed.function(mapped.function_arn).role_arn
        sqs = self.roles.client(role, mapped.function_arn, "sqs")
        if sqs is None:
            self._note(f"{role} does not trust lambda.amazonaws.com")
            return False
        url = self._url(mapped)
        try:
            self._look_at(sqs, url, role)
            messages = _gather(
                mapped, wait_s, lambda count, wait_s: _receive(sqs, url, count, wait_s)
            )
        except ClientError as refused:
            self._note(f"{mapped.queue_name}: {refused}")
            return False
        if messages:
            self._handle(sqs, url, mapped, messages)
        return bool(messages)

    def _look_at(self, sqs: Any, url: str, role: str) -> None:
        """Lambda reads a queue's settings before it polls it; here once per queue and role."""
        if (url, role) not in self._looked_at:
            sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
            self._looked_at.add((url, role))

    def _handle(self, sqs: Any, url: str, mapped: Mapped, messages: Sequence[Message]) -> None:
        event = {"Records": [_record(each, mapped.queue_arn) for each in messages]}
        for _ in range(self.repeat):
            done = self.functions.invoke(mapped.function_arn, event)
        failed = _failed_items(done, messages, mapped)
        entries = [
            {"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]}
            for number, each in enumerate(messages)
            if each["MessageId"] not in failed
        ]
        try:
            for chunk in batched(entries, SQS_BATCH, strict=False):
                sqs.delete_message_batch(QueueUrl=url, Entries=list(chunk))
        except ClientError as refused:
            self._note(f"{mapped.queue_name}: {refused}")

    def _url(self, mapped: Mapped) -> str:
        return (
            f"{self.functions.cloud.endpoint_url}/{self.deployed.place.account}/{mapped.queue_name}"
        )

    def _note(self, trouble: str) -> None:
        if trouble not in self.troubles:
            self.troubles.append(trouble)


def _receive(sqs: Any, url: str, count: int, wait_s: int) -> list[Message]:
    answer = sqs.receive_message(
        QueueUrl=url,
        MaxNumberOfMessages=min(SQS_BATCH, count),
        WaitTimeSeconds=wait_s,
        AttributeNames=["All"],
        MessageAttributeNames=["All"],
    )
    found: list[Message] = answer.get("Messages", [])
    return found


def _gather(
    mapped: Mapped, wait_s: int, receive: Callable[[int, int], list[Message]]
) -> list[Message]:
    """A batch: until it is full, or the window that began with its first message is over.

    Source: Lambda developer guide, "Batching behavior". Without a window one call makes it.
    """
    messages = receive(mapped.batch_size, wait_s)
    ends_at_s = time.monotonic() + mapped.window_s
    while messages and mapped.window_s:
        room = mapped.batch_size - len(messages)
        if not room or sum(len(each["Body"]) for each in messages) > PAYLOAD_BYTES:
            break
        more = receive(room, 0)
        messages += more
        is_over = time.monotonic() >= ends_at_s if wait_s else not more
        if is_over:
            break
        if not more:
            time.sleep(GATHER_S)
    return messages


def _failed_items(done: Invocation, messages: Sequence[Message], mapped: Mapped) -> set[str]:
    """The messages to keep. An answer that names a message that is not there fails them all."""
    everything = {each["MessageId"] for each in messages}
    if not done.is_ok:
        return everything
    if not mapped.reports_item_failures or not done.answer:
        return set()
    failures = done.answer.get("batchItemFailures") or []
    named = {each.get("itemIdentifier") for each in failures}
    return named if named <= everything else everything


def _record(message: Message, queue_arn: str) -> dict[str, Any]:
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": message["Attributes"],
        "messageAttributes": {
            name: {key[0].lower() + key[1:]: value for key, value in attribute.items()}
            for name, attribute in message.get("MessageAttributes", {}).items()
        },
        "md5OfBody": message["MD5OfBody"],
        "eventSource": "aws:sqs",
        "eventSourceARN": queue_arn,
        "awsRegion": REGION,
    }
