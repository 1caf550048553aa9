"""The bus adapter where moto never fails: batches that SQS takes in part, lost announcements."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from tests import make
from tidegate.adapters.bus import BATCH_BYTES, AwsBus
from tidegate.core.model.errors import NotAuthorized, Permanent, Throttled
from tidegate.core.model.orders import Order, OrderKind


@dataclass
class Stubbed:
    bus: AwsBus
    s3: Stubber
    events: Stubber
    sqs: Stubber


@pytest.fixture
def aws() -> Iterator[Stubbed]:
    session = boto3.Session("none", "none", region_name="us-east-1")
    s3, events, sqs = session.client("s3"), session.client("events"), session.client("sqs")
    bus = AwsBus(
        s3,
        events,
        sqs,
        cluster="test",
        bucket="bucket",
        event_bus="tidegate-test",
        urgent_queue_url="https://urgent",
        routine_queue_url="https://routine",
    )
    with Stubber(s3) as one, Stubber(events) as two, Stubber(sqs) as three:
        yield Stubbed(bus, one, two, three)
        for stub in (one, two, three):
            stub.assert_no_pending_responses()


def drain(number: int, text: str = "why") -> Order:
    return Order(f"o-{number}", OrderKind.DRAIN, ("i-1",), make.NOW_S, text=text)


def sent(*entry_ids: str) -> dict[str, Any]:
    """What SQS must be asked: these entries of the urgent queue."""
    entries = [{"Id": one, "MessageBody": ANY, "DelaySeconds": 0} for one in entry_ids]
    return {"QueueUrl": "https://urgent", "Entries": entries}


def failed(*entry_ids: str) -> dict[str, Any]:
    entries = [{"Id": one, "Code": "InternalError", "SenderFault": False} for one in entry_ids]
    return {"Successful": [], "Failed": entries}


def test_what_a_batch_left_out_is_offered_again(aws: Stubbed) -> None:
    aws.sqs.add_response("send_message_batch", failed("1"), sent("0", "1", "2"))
    aws.sqs.add_response("send_message_batch", failed(), sent("1"))

    aws.bus.send_orders([drain(number) for number in range(3)])


def test_orders_that_sqs_will_not_take_are_an_error(aws: Stubbed) -> None:
    for _ in range(3):
        aws.sqs.add_response("send_message_batch", failed("0"), sent("0"))

    with pytest.raises(Throttled, match="1 orders"):
        aws.bus.send_orders([drain(1)])


def test_a_batch_stays_within_the_bytes_that_sqs_takes(aws: Stubbed) -> None:
    aws.sqs.add_response("send_message_batch", failed(), sent("0"))
    aws.sqs.add_response("send_message_batch", failed(), sent("0"))

    aws.bus.send_orders([drain(number, "x" * (BATCH_BYTES // 2)) for number in range(2)])


def test_a_lost_announcement_is_told_after_the_digest_was_stored(aws: Stubbed) -> None:
    aws.s3.add_response(
        "put_object", {}, {"Bucket": "bucket", "Key": "digest/test.json.gz", "Body": ANY}
    )
    entry = {"ErrorCode": "ThrottlingException", "ErrorMessage": "words"}
    aws.events.add_response("put_events", {"FailedEntryCount": 1, "Entries": [entry]})

    with pytest.raises(Throttled):
        aws.bus.put_digest(make.digest())


def test_a_bucket_that_may_not_be_read_is_not_an_absent_digest(aws: Stubbed) -> None:
    aws.s3.add_client_error("get_object", "AccessDenied", http_status_code=403)

    with pytest.raises(NotAuthorized):
        aws.bus.newest_digest()


def test_a_bucket_that_does_not_exist_is_not_an_absent_digest(aws: Stubbed) -> None:
    aws.s3.add_client_error("get_object", "NoSuchBucket", http_status_code=404)

    with pytest.raises(Permanent):
        aws.bus.newest_digest()


def test_a_part_without_a_look_queue_may_not_ask_for_looks(aws: Stubbed) -> None:
    with pytest.raises(AssertionError):
        aws.bus.look("why")
