"""Trouble reaches clients as AWS's own would, and what was carried out stays carried out."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from local.clients import REGION
from local.cloud import LocalCloud
from local.trouble import Fault, Trouble

type Call = Callable[[Any], Any]

# IAM name -> the call, its code when throttled, and its code when the server fails.
CALLS: dict[str, tuple[Call, str, str]] = {
    "dynamodb:ListTables": (
        lambda client: client.list_tables(),
        "ProvisionedThroughputExceededException",
        "InternalServerError",
    ),
    "ec2:DescribeInstances": (
        lambda client: client.describe_instances(),
        "RequestLimitExceeded",
        "InternalError",
    ),
    "events:ListRules": (
        lambda client: client.list_rules(),
        "ThrottlingException",
        "InternalFailure",
    ),
    "iam:ListRoles": (lambda client: client.list_roles(), "ThrottlingException", "InternalFailure"),
    "s3:GetObject": (
        lambda client: client.get_object(Bucket="b", Key="k"),
        "SlowDown",
        "InternalError",
    ),
    "sqs:ListQueues": (
        lambda client: client.list_queues(),
        "ThrottlingException",
        "InternalFailure",
    ),
}


@pytest.fixture
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud() as running:
        yield running


def client(cloud: LocalCloud, service: str, patience_s: float = 60) -> Any:
    """One that asks once."""
    make: Any = boto3.Session("local", "local", region_name=REGION).client
    config = Config(retries={"total_max_attempts": 1}, read_timeout=patience_s)
    return make(service, endpoint_url=cloud.endpoint_url, config=config)


def code_of(call: Callable[[], Any]) -> str:
    with pytest.raises(ClientError) as caught:
        call()
    return str(caught.value.response["Error"]["Code"])


@pytest.mark.parametrize("name", CALLS)
def test_an_ordered_error_comes_with_the_service_s_own_code(cloud: LocalCloud, name: str):
    call, throttled, server_error = CALLS[name]
    asking = client(cloud, name.split(":")[0])
    cloud.trouble(Trouble(name, Fault.THROTTLED))
    cloud.trouble(Trouble(name, Fault.SERVER_ERROR))

    assert code_of(lambda: call(asking)) == throttled
    assert code_of(lambda: call(asking)) == server_error


@pytest.mark.parametrize(
    ("service", "call"),
    [
        ("ec2", lambda asking: asking.get_ebs_default_kms_key_id()),
        ("dynamodb", lambda asking: asking.list_contributor_insights()),
    ],
)
def test_what_the_local_cloud_cannot_do_is_said_in_an_answer(cloud: LocalCloud, service, call):
    assert code_of(lambda: call(client(cloud, service))) == "UnsupportedOperation"


def test_only_the_calls_that_were_meant_meet_it_and_only_so_often(cloud: LocalCloud):
    sqs = client(cloud, "sqs")
    trouble = cloud.trouble(Trouble("sqs:CreateQueue", Fault.THROTTLED, times=2, about="bad"))

    sqs.create_queue(QueueName="good")
    for _ in range(2):
        assert code_of(lambda: sqs.create_queue(QueueName="bad")) == "ThrottlingException"
    sqs.create_queue(QueueName="bad")

    assert trouble.left == 0


@pytest.mark.parametrize(
    ("fault", "is_done"), [(Fault.LOST_REQUEST, False), (Fault.LOST_ANSWER, True)]
)
def test_without_an_answer_nobody_knows_whether_it_was_done(
    cloud: LocalCloud, fault: Fault, *, is_done: bool
):
    sqs, name = client(cloud, "sqs"), f"queue-{fault.name}"
    cloud.trouble(Trouble("sqs:CreateQueue", fault))

    with pytest.raises(ConnectionClosedError):
        sqs.create_queue(QueueName=name)

    urls = sqs.list_queues(QueueNamePrefix=name).get("QueueUrls", [])
    assert bool(urls) is is_done


def test_a_hanging_call_keeps_its_caller_waiting_and_nobody_else(cloud: LocalCloud):
    cloud.trouble(Trouble("ec2:DescribeVpcs", Fault.LOST_ANSWER, wait_s=60))

    with pytest.raises(ReadTimeoutError):
        client(cloud, "ec2", patience_s=0.5).describe_vpcs()

    ec2 = client(cloud, "ec2", patience_s=30)  # half of what the other one is kept waiting
    assert ec2.describe_subnets()["Subnets"]


def test_a_slow_call_is_answered_in_the_end(cloud: LocalCloud):
    ec2 = client(cloud, "ec2")
    cloud.trouble(Trouble("ec2:DescribeVpcs", Fault.SLOW, wait_s=0.2))
    began_s = time.monotonic()

    assert ec2.describe_vpcs()["Vpcs"]
    assert time.monotonic() - began_s > 0.2
