"""The way between head and planner: S3 for the digest, EventBridge and SQS for the rest."""

import hashlib
import json
import logging
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from tidegate.adapters.aws_errors import aws_call, is_object_not_found, tolerating, typed
from tidegate.adapters.clock import SystemClock, answered_at_s
from tidegate.core.model.digest import Digest, Stamp
from tidegate.core.model.errors import BadEvent
from tidegate.core.model.frozen import frozen
from tidegate.core.model.orders import Order
from tidegate.ports import Clock, ReceivedDigest, ReceivedOrder
from tidegate.wire.digest import decode_digest, encode_digest
from tidegate.wire.events import DIGEST_DETAIL_TYPE, DIGEST_SOURCE, encode_look
from tidegate.wire.orders import decode_order, encode_order

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import (
        BatchResultErrorEntryTypeDef,
        MessageTypeDef,
    )
    from mypy_boto3_sqs.type_defs import (
        SendMessageBatchRequestEntryTypeDef as Entry,
    )

logger = logging.getLogger(__name__)

# What SQS takes in one batch call, entries and bytes over all of them.
BATCH = 10
BATCH_BYTES = 256 * 1024

# The rest of a batch that SQS took in part is offered again this often.
SEND_ATTEMPTS = 3

# SQS's own limits for a long poll and for a message's delay.
MAX_WAIT_S = 20
MAX_DELAY_S = 900

URGENT, ROUTINE = "urgent", "routine"


@frozen
class AwsBus:
    """One cluster's bus. `look_queue_url` None: this part may not ask for looks."""

    s3: "S3Client"
    events: "EventBridgeClient"
    sqs: "SQSClient"
    _: KW_ONLY
    cluster: str
    bucket: str
    event_bus: str
    urgent_queue_url: str
    routine_queue_url: str
    look_queue_url: str | None = None
    clock: Clock = field(default_factory=SystemClock)

    @property
    def digest_key(self) -> str:
        return f"digest/{self.cluster}.json.gz"

    def put_digest(self, digest: Digest) -> None:
        self._put_digest(encode_digest(digest), digest.stamp)

    def _put_digest(self, data: bytes, stamp: Stamp) -> None:
        detail = {
            "key": self.digest_key,
            "head": stamp.head_instance_id,
            "start": stamp.agent_started_at_s,
            "sequence": stamp.sequence,
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        with aws_call():
            self.s3.put_object(Bucket=self.bucket, Key=self.digest_key, Body=data)
            answer = self.events.put_events(
                Entries=[
                    {
                        "EventBusName": self.event_bus,
                        "Source": DIGEST_SOURCE,
                        "DetailType": DIGEST_DETAIL_TYPE,
                        "Detail": json.dumps(detail),
                    }
                ]
            )
        if answer["FailedEntryCount"]:
            failed = answer["Entries"][0]
            raise typed(failed.get("ErrorCode", ""), failed.get("ErrorMessage", ""))

    def newest_digest(self) -> ReceivedDigest | None:
        # S3 says NoSuchKey only to roles that may list the bucket; others get AccessDenied.
        with aws_call():
            answer = tolerating(
                lambda: self.s3.get_object(Bucket=self.bucket, Key=self.digest_key),
                is_object_not_found,
            )
            if isinstance(answer, ClientError):
                return None
            data = answer["Body"].read()
        digest = decode_digest(data)
        if digest.cluster != self.cluster:
            raise BadEvent(f"the digest of {self.cluster} is that of {digest.cluster!r}")
        age_s = answered_at_s(answer, self.clock) - answer["LastModified"].timestamp()
        return ReceivedDigest(digest, max(0.0, age_s))

    def look(self, why: str) -> None:
        assert self.look_queue_url, "this part may not ask for looks"
        at = datetime.fromtimestamp(self.clock.now_s(), UTC).isoformat()
        with aws_call():
            self.sqs.send_message(
                QueueUrl=self.look_queue_url,
                MessageBody=encode_look(why, look_id=uuid.uuid4().hex, at=at),
                MessageGroupId=self.cluster,
            )

    def send_orders(self, orders: Sequence[Order]) -> None:
        for urgent in (True, False):
            entries = [_entry(order) for order in orders if order.kind.is_urgent is urgent]
            for batch in _batches(entries):
                with aws_call():
                    self._send_batch(self._queue_url(urgent=urgent), batch)

    def receive_orders(self, *, urgent: bool, wait_s: int) -> tuple[ReceivedOrder, ...]:
        with aws_call():
            answer = self.sqs.receive_message(
                QueueUrl=self._queue_url(urgent=urgent),
                MaxNumberOfMessages=BATCH,
                WaitTimeSeconds=min(wait_s, MAX_WAIT_S),
            )
            read = [self._read(message, urgent=urgent) for message in answer.get("Messages", ())]
        return tuple(received for received in read if received)

    def acknowledge(self, received: ReceivedOrder) -> None:
        queue, receipt = received.handle.split(":", 1)
        self._delete(receipt, urgent=queue == URGENT)

    def _read(self, message: "MessageTypeDef", *, urgent: bool) -> ReceivedOrder | None:
        try:
            order = decode_order(message["Body"])
        except BadEvent as error:
            logger.warning("dropped a message: %s", error)
            self._delete(message["ReceiptHandle"], urgent=urgent)
            return None
        queue = URGENT if urgent else ROUTINE
        return ReceivedOrder(order, f"{queue}:{message['ReceiptHandle']}")

    def _delete(self, receipt: str, *, urgent: bool) -> None:
        with aws_call():
            self.sqs.delete_message(QueueUrl=self._queue_url(urgent=urgent), ReceiptHandle=receipt)

    def _queue_url(self, *, urgent: bool) -> str:
        return self.urgent_queue_url if urgent else self.routine_queue_url

    def _send_batch(self, url: str, batch: "Sequence[Entry]") -> None:
        """Send all of a batch; what SQS leaves out is offered again, then it is an error."""
        left = {entry["Id"]: entry for entry in batch}
        failed: Sequence[BatchResultErrorEntryTypeDef] = ()
        for _ in range(SEND_ATTEMPTS):
            answer = self.sqs.send_message_batch(QueueUrl=url, Entries=list(left.values()))
            failed = answer.get("Failed", ())
            left = {entry["Id"]: left[entry["Id"]] for entry in failed}
            if not left:
                return
        raise typed(failed[0]["Code"], f"{len(left)} orders: {failed[0].get('Message', '')}")


def _entry(order: Order) -> "Entry":
    return {
        "Id": "",
        "MessageBody": encode_order(order),
        "DelaySeconds": min(order.delay_s, MAX_DELAY_S),
    }


def _batches(entries: "Iterable[Entry]") -> "Iterator[list[Entry]]":
    """Cut into batches that SQS takes: by number and by bytes over all bodies."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        entry_size = len(entry["MessageBody"].encode())
        if batch and (len(batch) == BATCH or size + entry_size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        entry["Id"] = str(len(batch))
        batch.append(entry)
        size += entry_size
    if batch:
        yield batch
