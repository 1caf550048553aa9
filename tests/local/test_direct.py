"""An observer is told what everybody is told, without a connection."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from local.clients import client_at
from local.cloud import LocalCloud
from local.front import OBSERVER_KEY

KEY = "a b/ü?x=1"
CALLS = [("ec2", "describe_vpcs"), ("dynamodb", "list_tables"), ("events", "list_event_buses")]


@pytest.mark.parametrize(("service", "operation"), CALLS)
def test_the_answer_is_that_of_a_connection(cloud: LocalCloud, service: str, operation: str):
    by_connection = client_at(cloud.endpoint_url, service, OBSERVER_KEY)

    told, expected = (
        getattr(each, operation)() for each in (cloud.observer(service), by_connection)
    )

    assert without_head(told) == without_head(expected)


def without_head(answer: Any) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if key != "ResponseMetadata"}


def test_what_an_observer_puts_is_there_once_for_everybody(cloud: LocalCloud):
    cloud.observer("s3").create_bucket(Bucket="watched")
    cloud.observer("s3").put_object(Bucket="watched", Key=KEY, Body=b"seen")
    queue = cloud.observer("sqs").create_queue(QueueName="watched")["QueueUrl"]
    cloud.observer("sqs").send_message(QueueUrl=queue, MessageBody="one")

    found = cloud.client("s3").get_object(Bucket="watched", Key=KEY)
    held = cloud.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])

    assert found["Body"].read() == b"seen"
    assert held["Attributes"]["ApproximateNumberOfMessages"] == "1"


def test_a_refusal_is_one_here_too(cloud: LocalCloud):
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        cloud.observer("dynamodb").describe_table(TableName="none")


def test_an_observer_opens_no_connection():
    with LocalCloud() as cloud:
        cloud.observer("sts").get_caller_identity()
        assert cloud._server
        assert not cloud._server.open_connections
