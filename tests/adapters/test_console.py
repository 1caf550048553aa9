"""What an instance wrote to its console, by whichever way EC2 has it."""

import base64
from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.stub import Stubber

from tidegate.adapters.console import console_text
from tidegate.core.model.errors import BadConfig, NotAuthorized

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

NAME = "i-0123456789abcdef0"
NEWEST, AS_BOOTED = {"InstanceId": NAME, "Latest": True}, {"InstanceId": NAME}


def said(text: str) -> dict[str, str]:
    """Base64 with the line ends of MIME, as EC2 sends it."""
    return {"InstanceId": NAME, "Output": base64.encodebytes(text.encode()).decode()}


@pytest.fixture
def client() -> "EC2Client":
    return boto3.Session("none", "none", region_name="us-east-1").client("ec2")


@pytest.fixture
def stub(client: "EC2Client") -> Iterator[Stubber]:
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def test_an_instance_on_nitro_is_asked_for_what_it_writes_now(
    client: "EC2Client", stub: Stubber
) -> None:
    stub.add_response("get_console_output", said("newest"), NEWEST)

    assert console_text(client, NAME) == "newest"


def test_one_on_xen_has_the_text_of_its_boot(client: "EC2Client", stub: Stubber) -> None:
    """Source: EC2 API reference, GetConsoleOutput: the latest output is Nitro's alone; p3 and older
    types have none.
    """
    stub.add_client_error(
        "get_console_output",
        "UnsupportedOperation",
        "This instance type does not support retrieving the latest console logs.",
        expected_params=NEWEST,
    )
    stub.add_response("get_console_output", said("of its boot"), AS_BOOTED)

    assert console_text(client, NAME) == "of its boot"


@pytest.mark.parametrize(
    ("code", "raised"),
    [("InvalidInstanceID.NotFound", BadConfig), ("UnauthorizedOperation", NotAuthorized)],
)
def test_what_ec2_does_not_say_is_an_error(
    client: "EC2Client", stub: Stubber, code: str, raised: type[Exception]
) -> None:
    stub.add_client_error("get_console_output", code, "words", expected_params=NEWEST)

    with pytest.raises(raised):
        console_text(client, NAME)
