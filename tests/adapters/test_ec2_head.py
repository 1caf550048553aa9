"""What EC2 answers to a start or a stop at the wrong time; moto never says it."""

from collections.abc import Sequence
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tidegate.adapters.ec2_head import Ec2Head
from tidegate.core.model.ec2 import InstanceState
from tidegate.core.model.errors import NotAuthorized, Throttled

HEAD, LOGIN = "i-1", "i-2"


@pytest.fixture
def ec2() -> Any:
    make: Any = boto3.client
    return make("ec2", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")


def shown(instance_id: str, role: str, state: str, kind: str = "") -> dict[str, Any]:
    tags = [{"Key": "tidegate:role", "Value": role}]
    tags += [{"Key": "tidegate:login", "Value": kind}] if kind else []
    return {"InstanceId": instance_id, "LaunchTime": 0, "State": {"Name": state}, "Tags": tags}


def stubbed(ec2: Any, head: str, login: Sequence[str] = ()) -> Stubber:
    """EC2 with a head and login nodes in these states."""
    found = [shown(HEAD, "head", head), *(shown(LOGIN, "login", each) for each in login)]
    stub = Stubber(ec2)
    stub.add_response("describe_instances", {"Reservations": [{"Instances": found}]})
    return stub


def answer_to_start(ec2: Any, code: str) -> str:
    with stubbed(ec2, "stopping") as stub:
        stub.add_client_error("start_instances", code, f"EC2 says {code}")
        return Ec2Head(ec2, "demo").start()


@pytest.mark.parametrize("code", ["IncorrectInstanceState", "InsufficientInstanceCapacity"])
def test_not_now_is_an_answer(ec2: Any, code: str) -> None:
    assert answer_to_start(ec2, code) == f"the head: EC2 says {code}"


@pytest.mark.parametrize(
    ("code", "error"),
    [("UnauthorizedOperation", NotAuthorized), ("RequestLimitExceeded", Throttled)],
)
def test_trouble_is_raised(ec2: Any, code: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        answer_to_start(ec2, code)


@pytest.mark.parametrize("verb", ["start", "stop"])
def test_login_nodes_follow_the_head(ec2: Any, verb: str) -> None:
    with stubbed(ec2, "running", ["running"]) as stub:
        for each in (HEAD, LOGIN):
            stub.add_response(f"{verb}_instances", {}, {"InstanceIds": [each]})

        assert getattr(Ec2Head(ec2, "demo"), verb)() == ""
        stub.assert_no_pending_responses()


def test_a_login_node_that_ec2_refuses_keeps_no_head_and_is_told(ec2: Any) -> None:
    with stubbed(ec2, "stopped", ["stopped"]) as stub:
        stub.add_response("start_instances", {}, {"InstanceIds": [HEAD]})
        stub.add_client_error("start_instances", "InsufficientInstanceCapacity", "no room")

        assert Ec2Head(ec2, "demo").start() == "login nodes: no room"


def test_a_kind_of_login_nodes_that_ec2_refuses_keeps_no_other(ec2: Any) -> None:
    """EC2 starts none of a request where it cannot start one."""
    found = [
        shown(HEAD, "head", "stopped"),
        shown("i-4", "login", "stopped", "gpu"),
        shown("i-3", "login", "stopped", "login"),
        shown("i-2", "login", "stopped", "login"),
    ]
    with Stubber(ec2) as stub:
        stub.add_response("describe_instances", {"Reservations": [{"Instances": found}]})
        stub.add_response("start_instances", {}, {"InstanceIds": [HEAD]})
        stub.add_client_error("start_instances", "InsufficientInstanceCapacity", "no room")
        stub.add_response("start_instances", {}, {"InstanceIds": ["i-2", "i-3"]})

        assert Ec2Head(ec2, "demo").start() == "login nodes gpu: no room"
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("head", "login", "seen"),
    [
        ("running", ["running"], "running"),
        ("running", ["stopped"], "stopped"),  # it is to be started yet
        ("stopped", ["running"], "running"),  # and here stopped
        ("stopped", ["stopped"], "stopped"),
        ("pending", ["stopped"], "pending"),
        ("stopping", ["running"], "stopping"),
        ("stopped", [], "stopped"),
    ],
)
def test_a_login_node_that_has_not_followed_the_head_is_seen(
    ec2: Any, head: str, login: Sequence[str], seen: str
) -> None:
    with stubbed(ec2, head, login):
        assert Ec2Head(ec2, "demo").state() is InstanceState(seen)
