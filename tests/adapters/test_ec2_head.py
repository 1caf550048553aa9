"""What EC2 answers to a start or a stop at the wrong time; moto never says it."""

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tidegate.adapters.ec2_head import Ec2Head
from tidegate.core.model.errors import NotAuthorized, Throttled


@pytest.fixture
def ec2() -> Any:
    make: Any = boto3.client
    return make("ec2", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")


def answer_to_start(ec2: Any, code: str) -> str:
    with Stubber(ec2) as stub:
        found = {"InstanceId": "i-1", "LaunchTime": 0, "State": {"Name": "stopping"}}
        stub.add_response("describe_instances", {"Reservations": [{"Instances": [found]}]})
        stub.add_client_error("start_instances", code, f"EC2 says {code}")
        return Ec2Head(ec2, "demo").start()


@pytest.mark.parametrize("code", ["IncorrectInstanceState", "InsufficientInstanceCapacity"])
def test_not_now_is_an_answer(ec2: Any, code: str) -> None:
    assert answer_to_start(ec2, code) == f"EC2 says {code}"


@pytest.mark.parametrize(
    ("code", "error"),
    [("UnauthorizedOperation", NotAuthorized), ("RequestLimitExceeded", Throttled)],
)
def test_trouble_is_raised(ec2: Any, code: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        answer_to_start(ec2, code)
