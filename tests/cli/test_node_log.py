"""`tidegate node log`: how a boot went, from the console of EC2."""

import base64
import json
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from typer.testing import CliRunner, Result

from tests.cdk.made import CLUSTERS
from tidegate.cli.main import app
from tidegate.wire.console import BootLine, boot_lines

NODE = "i-0123456789abcdef0"
CONSOLE = """\
[    4.1] cloud-init[812]: tidegate 2026-11-21T19:38:03.100Z stage identity apply 0.041 s, try 1
[    4.2] EXT4-fs (nvme0n1p1): mounted filesystem
tidegate 2026-11-21T19:38:09.220Z stage gpu failed (exit 9): NVIDIA-SMI has failed\r
systemd[1]: Started untidegate stage of somebody else.
tidegate not ready after 900 s \x20
"""


@pytest.fixture
def ec2() -> Any:
    make: Any = boto3.client
    return make("ec2", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")


def asked(ec2: Any, *words: str) -> Result:
    line = ["node", "log", NODE, "--cluster", str(CLUSTERS / "dev.yaml"), *words]
    return CliRunner().invoke(app, line, obj=lambda service: {"ec2": ec2}[service])


def answering(ec2: Any, text: str) -> Stubber:
    stubber = Stubber(ec2)
    output = base64.b64encode(text.encode()).decode()
    answer = {"InstanceId": NODE, "Output": output}
    wanted = {"InstanceId": NODE, "Latest": True}
    stubber.add_response("get_console_output", answer, wanted)
    return stubber


def test_lines_of_the_boot_are_found_among_the_kernel_s():
    assert list(boot_lines(CONSOLE)) == [
        BootLine("2026-11-21T19:38:03.100Z", "stage identity apply 0.041 s, try 1"),
        BootLine("2026-11-21T19:38:09.220Z", "stage gpu failed (exit 9): NVIDIA-SMI has failed"),
        BootLine("", "not ready after 900 s"),
    ]


def test_a_boot_is_shown_line_by_line(ec2):
    with answering(ec2, CONSOLE):
        shown = asked(ec2)

    assert shown.exit_code == 0, shown.output
    assert shown.stdout.splitlines() == [
        "2026-11-21T19:38:03.100Z stage identity apply 0.041 s, try 1",
        "2026-11-21T19:38:09.220Z stage gpu failed (exit 9): NVIDIA-SMI has failed",
        "-                        not ready after 900 s",
    ]


def test_programs_get_json_and_the_curious_everything(ec2):
    with answering(ec2, CONSOLE):
        assert (
            json.loads(asked(ec2, "--output", "json").stdout)[2]["text"] == "not ready after 900 s"
        )
    with answering(ec2, CONSOLE):
        assert "EXT4-fs" in asked(ec2, "--all").stdout


def test_a_node_that_has_said_nothing_is_told_apart(ec2):
    with answering(ec2, ""):
        shown = asked(ec2)

    assert shown.exit_code == 3
    assert "has said nothing of its boot yet" in shown.stderr


def test_a_kernel_that_has_spoken_is_not_yet_a_boot(ec2):
    with answering(ec2, "[    4.2] EXT4-fs (nvme0n1p1): mounted filesystem\n"):
        assert asked(ec2).exit_code == 3


def test_who_may_not_read_the_console_is_not_told_that_the_node_is_unknown(ec2):
    with Stubber(ec2) as stubber:
        stubber.add_client_error("get_console_output", "UnauthorizedOperation")
        shown = asked(ec2)

    assert shown.exit_code == 1
    assert "EC2 knows no instance" not in shown.stderr
    assert "UnauthorizedOperation" in shown.stderr


def test_a_node_that_ec2_does_not_know_is_one_sentence(ec2):
    with Stubber(ec2) as stubber:
        stubber.add_client_error("get_console_output", "InvalidInstanceID.NotFound")
        shown = asked(ec2)

    assert shown.exit_code == 1
    assert shown.stderr == f"EC2 knows no instance {NODE}; it forgets those that have ended\n"
