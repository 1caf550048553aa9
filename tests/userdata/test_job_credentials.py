"""Credentials of a job's role: who gets them, and that nobody else does."""

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import parse_qs
from urllib.request import Request, urlopen

import pytest
from botocore.credentials import ContainerProvider

from userdata.node.job_credentials import Jobs, Server, owner_of

ROLE = "arn:aws:iam::123456789012:role/research-jobs"
SECRET = "12.5ec0e7"
# In the command's place: notes what it is asked, and says what a file holds.
STS = '#!/bin/sh\necho "$1" >>{0}/asked\n[ ! -e {0}/hangs ] || sleep 9\ncat {0}/says\n'
SQUEUE = '#!/bin/sh\necho "$@" >>{0}/asked_slurm\ncat {0}/queue\n'
GOOD = """<AssumeRoleResponse><AssumeRoleResult><Credentials>
<AccessKeyId>ASIA{number}</AccessKeyId><SecretAccessKey>k/+</SecretAccessKey>
<SessionToken>t==</SessionToken><Expiration>{ends}</Expiration>
</Credentials></AssumeRoleResult></AssumeRoleResponse>"""
DENIED = """<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code>
<Message>arn:aws:sts::1:assumed-role/nodes/i-1 may not perform sts:AssumeRole</Message>
</Error></ErrorResponse>"""


class Node:
    """A node with job 12 of whoever runs this test."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.job = folder, folder / "jobs" / "12"
        self.job.mkdir(parents=True)
        for name, text in (("uid", os.getuid()), ("session", "dev-12-ada"), ("token", SECRET)):
            (self.job / name).write_text(f"{text}\n")
        (folder / "sts").write_text(STS.format(folder))
        (folder / "sts").chmod(0o755)
        self.says(GOOD.format(number=1, ends=in_s(3600)))
        (folder / "squeue").write_text(SQUEUE.format(folder))
        (folder / "squeue").chmod(0o755)
        self.jobs = Jobs(folder / "jobs", {"": ROLE}, [str(folder / "sts")], f"{folder}/squeue")
        self.server = Server(0, self.jobs)

    def says(self, text: str) -> None:
        (self.folder / "says").write_text(text)

    def asked(self) -> list[str]:
        return (self.folder / "asked").read_text().splitlines()

    def get(self, token: str = SECRET) -> dict[str, str]:
        request = Request(f"http://127.0.0.1:{self.server.server_port}/")
        request.add_header("Authorization", token)
        with urlopen(request) as answer:
            found: dict[str, str] = json.load(answer)
            return found

    def refusal(self, token: str = SECRET) -> tuple[int, str]:
        with pytest.raises(HTTPError) as refused:
            self.get(token)
        with refused.value as answer:
            return answer.code, json.load(answer)["message"]


def in_s(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    serving = threading.Thread(target=made.server.serve_forever, args=(0.02,), daemon=True)
    serving.start()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_job_gets_the_role_s_credentials_in_the_form_that_sdks_read(node: Node) -> None:
    found = node.get()

    assert found.pop("Expiration") > in_s(3000)
    assert found == {
        "AccessKeyId": "ASIA1",
        "SecretAccessKey": "k/+",
        "Token": "t==",
        "RoleArn": ROLE,
    }
    (body,) = node.asked()
    assert {name: value for name, (value,) in parse_qs(body).items()} == {
        "Action": "AssumeRole",
        "Version": "2011-06-15",
        "RoleArn": ROLE,
        "RoleSessionName": "dev-12-ada",
        "DurationSeconds": "3600",
    }


def test_boto_finds_them_by_the_two_variables(node: Node) -> None:
    (node.job / "token").write_text(SECRET)
    found = ContainerProvider(
        {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{node.server.server_port}/",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(node.job / "token"),
        }
    ).load()

    assert found
    assert found.get_frozen_credentials()[:3] == ("ASIA1", "k/+", "t==")


def test_sts_is_asked_once_until_the_end_is_near(node: Node) -> None:
    node.get()
    node.says(GOOD.format(number=2, ends=in_s(1100)))
    assert node.get()["AccessKeyId"] == "ASIA1"

    (node.job / "token").write_text("12.other")  # requeued, and here again
    assert [node.get("12.other")["AccessKeyId"] for _ in range(2)] == ["ASIA2", "ASIA2"]
    assert len(node.asked()) == 3, "one that ends within twenty minutes is got anew"


@pytest.mark.parametrize("token", ["", "12", "12.", "12.5ec0e8", "13.5ec0e7", "../12.5ec0e7"])
def test_without_the_token_of_a_job_that_is_here_nobody_gets_any(node: Node, token: str) -> None:
    code, message = node.refusal(token)

    assert code == 403
    assert "token" in message or "is not on this node" in message
    assert not (node.folder / "asked").exists()


def test_another_user_gets_none_even_with_the_token(node: Node) -> None:
    (node.job / "uid").write_text(f"{os.getuid() + 1}\n")

    assert node.refusal() == (403, "job 12 is not yours")


def test_when_the_job_has_ended_so_has_its_token(node: Node) -> None:
    node.get()
    for file in node.job.iterdir():
        file.unlink()

    assert node.refusal() == (403, "job 12 is not on this node")


def test_what_sts_refuses_is_told_in_its_own_words_and_not_asked_for_each_task(node: Node) -> None:
    node.says(DENIED)

    told = [node.refusal() for _ in range(3)]

    assert told[0] == (403, "arn:aws:sts::1:assumed-role/nodes/i-1 may not perform sts:AssumeRole")
    assert set(told) == {told[0]}
    assert len(node.asked()) == 1


def test_what_sts_could_not_answer_is_asked_again_at_once(node: Node) -> None:
    """SDKs give up after two seconds."""
    node.says(DENIED.replace("AccessDenied", "Throttling"))
    good = f"cat >{node.folder}/says <<'END'\n{GOOD.format(number=3, ends=in_s(3600))}\nEND\n"
    (node.folder / "sts").write_text(f"{STS.format(node.folder)}{good}")

    assert node.get()["AccessKeyId"] == "ASIA3"
    assert len(node.asked()) == 2


def test_credentials_that_are_still_good_outlive_a_refusal(node: Node) -> None:
    node.says(GOOD.format(number=1, ends=in_s(600)))
    node.get()
    node.says(DENIED)

    assert node.get()["AccessKeyId"] == "ASIA1"
    assert len(node.asked()) == 2


def test_a_job_acts_as_the_role_of_its_account_which_slurm_tells(node: Node) -> None:
    node.jobs.roles = {"": ROLE, "vision": f"{ROLE}-vision"}
    # Tasks of an array, by the number of the last: each has its own account.
    (node.folder / "queue").write_text("14 speech\n12 Vision\n")

    assert [node.get()["RoleArn"] for _ in range(2)] == [f"{ROLE}-vision"] * 2
    (asked,) = node.asked()
    assert parse_qs(asked)["RoleArn"] == [f"{ROLE}-vision"]
    assert len((node.folder / "asked_slurm").read_text().splitlines()) == 1


def test_jobs_of_other_accounts_act_as_the_role_of_all_or_as_none(node: Node) -> None:
    node.jobs.roles = {"vision": f"{ROLE}-vision"}
    (node.folder / "queue").write_text("12 speech\n")

    told = [node.refusal() for _ in range(3)]

    assert set(told) == {(403, "jobs of the account speech have no role on AWS")}
    assert len((node.folder / "asked_slurm").read_text().splitlines()) == 1
    node.jobs.roles[""] = ROLE
    (node.job / "token").write_text("12.other")
    assert node.get("12.other")["RoleArn"] == ROLE


def test_while_slurm_does_not_say_whose_a_job_is_it_acts_as_nobody(node: Node) -> None:
    node.jobs.roles = {"": ROLE, "vision": f"{ROLE}-vision"}

    code, message = node.refusal()

    assert (code, message.partition("12: ")[0]) == (503, "Slurm does not say the account of job ")
    assert not (node.folder / "asked").exists()
    (node.folder / "queue").write_text("12 vision\n")
    time.sleep(0.4)
    assert node.get()["RoleArn"] == f"{ROLE}-vision"


def test_a_client_by_ipv6_is_known_too(node: Node) -> None:
    """As Java's: its sockets are IPv6, and reach 127.0.0.1 by a mapped address."""
    with socket.socket(socket.AF_INET6) as client:
        client.connect(("::ffff:127.0.0.1", node.server.server_port))
        client.sendall(f"GET / HTTP/1.0\r\nAuthorization: {SECRET}\r\n\r\n".encode())
        answer = b"".join(iter(lambda: client.recv(65536), b""))

    assert b"ASIA1" in answer


def test_a_connection_from_another_of_this_machine_s_addresses_is_nobody_s(node: Node) -> None:
    """Whose ports are the same could be taken for another's."""
    with socket.socket() as client:
        client.bind(("127.0.0.2", 0))
        client.connect(("127.0.0.1", node.server.server_port))

        assert owner_of(client.getsockname()[1], node.server.server_port) is None


def test_no_answer_is_a_refusal_too(node: Node) -> None:
    node.says("")

    assert node.refusal() == (403, "no answer")


def test_a_connection_that_is_not_there_has_no_owner() -> None:
    assert owner_of(1, 1) is None
