"""What EC2 answers to a start or a stop of a node; moto never says it."""

from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from tidegate.adapters.ec2 import Ec2Compute
from tidegate.core.model.ec2 import (
    CLUSTER_TAG,
    LAUNCH_TAG,
    FleetRequest,
    FleetResult,
    Market,
    Offering,
    Override,
    RefusalKind,
)
from tidegate.core.model.errors import NotAuthorized, TidegateError

ON = Offering("g5.xlarge", "us-east-1a", Market.ON_DEMAND)
REQUEST = FleetRequest(
    client_token="demo-l-2",
    launch_template_id="lt-1",
    launch_template_version="1",
    market=Market.ON_DEMAND,
    count=1,
    min_count=0,
    overrides=(Override(ON.instance_type, ON.zone, "subnet-a", 0),),
    tags=((CLUSTER_TAG, "demo"), (LAUNCH_TAG, "l-2")),
    starts="i-1",
)


@pytest.fixture
def ec2() -> Any:
    make: Any = boto3.client
    return make("ec2", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")


def answer(ec2: Any, code: str) -> FleetResult | TidegateError:
    with Stubber(ec2) as stub:
        # The cluster's own tag is not to be touched: rights hang on it.
        told = {"Resources": ["i-1"], "Tags": [{"Key": LAUNCH_TAG, "Value": "l-2"}]}
        stub.add_response("create_tags", {}, told)
        stub.add_client_error("start_instances", code, "EC2 says so")
        ((answered,),) = Ec2Compute(ec2, "demo").create_fleets([REQUEST])
    return answered.result


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("InsufficientInstanceCapacity", RefusalKind.CAPACITY),
        ("VcpuLimitExceeded", RefusalKind.QUOTA),
    ],
)
def test_what_ec2_has_none_of_is_refused_as_to_a_launch(
    ec2: Any, code: str, kind: RefusalKind
) -> None:
    found = answer(ec2, code)

    assert isinstance(found, FleetResult)
    assert [(each.offering, each.kind) for each in found.refusals] == [(ON, kind)]


@pytest.mark.parametrize("code", ["IncorrectInstanceState", "InvalidInstanceID.NotFound"])
def test_what_cannot_be_started_as_it_is_says_nothing_of_what_is_sold(ec2: Any, code: str) -> None:
    assert answer(ec2, code) == FleetResult((), ())


def test_trouble_is_the_answer(ec2: Any) -> None:
    assert isinstance(answer(ec2, "UnauthorizedOperation"), NotAuthorized)


@pytest.mark.parametrize(
    "code", ["InvalidInstanceID.NotFound", "IncorrectInstanceState", "UnsupportedOperation"]
)
def test_one_that_is_not_to_be_stopped_keeps_no_other_running(ec2: Any, code: str) -> None:
    with Stubber(ec2) as stub:
        stub.add_client_error(
            "stop_instances", code, expected_params={"InstanceIds": ["i-1", "i-2"]}
        )
        stub.add_client_error("stop_instances", code, expected_params={"InstanceIds": ["i-1"]})
        stub.add_response("stop_instances", {}, {"InstanceIds": ["i-2"]})

        Ec2Compute(ec2, "demo").stop(["i-1", "i-2"])

        stub.assert_no_pending_responses()
