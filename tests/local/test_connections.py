"""A connection to the local cloud serves one request after the other, each whole."""

import socket
import struct
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, RemoteDisconnected
from threading import Event, Thread
from typing import Any

import pytest

from local.cloud import LocalCloud
from local.connections import Server
from local.trouble import App, Environ

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
REGIONS = "Action=DescribeRegions&Version=2016-11-15"
EC2 = "AWS4-HMAC-SHA256 Credential={}/20350101/us-east-1/ec2/aws4_request, Signature=x"


@pytest.fixture
def cloud() -> Iterator[LocalCloud]:
    with LocalCloud() as running:
        yield running


@pytest.fixture
def connection(cloud: LocalCloud) -> Iterator[HTTPConnection]:
    made = HTTPConnection(cloud.endpoint_url.removeprefix("http://"), timeout=60)
    yield made
    made.close()


def asked(connection: HTTPConnection, key: str, body: str) -> tuple[int, bytes]:
    headers = {**FORM, "Authorization": EC2.format(key)}
    connection.request("POST", "/", body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_one_connection_carries_many_calls(connection: HTTPConnection) -> None:
    first = asked(connection, "local", REGIONS)
    used = connection.sock
    second = asked(connection, "local", REGIONS)

    assert first[0] == second[0] == 200
    assert b"us-east-1" in first[1]
    assert connection.sock is used is not None


def test_what_nobody_reads_of_a_request_is_no_request_of_its_own(
    connection: HTTPConnection,
) -> None:
    """Moto's own pages look at no body."""
    connection.request("GET", "/moto-api/lib.js", f"POST / HTTP/1.1\r\n\r\n{REGIONS}")
    page = connection.getresponse()
    assert page.status == 200
    page.read()

    assert asked(connection, "local", REGIONS)[0] == 200


def test_who_wants_no_second_answer_is_answered_once(connection: HTTPConnection) -> None:
    headers = {**FORM, "Authorization": EC2.format("local"), "Connection": "close"}
    connection.request("POST", "/", REGIONS, headers)
    answer = connection.getresponse()

    assert (answer.status, b"us-east-1" in answer.read()) == (200, True)
    assert connection.sock is None


def test_chunks_are_read_and_end_their_connection(connection: HTTPConnection) -> None:
    halves = [REGIONS[:10].encode(), REGIONS[10:].encode()]
    headers = {**FORM, "Authorization": EC2.format("local")}
    connection.request("POST", "/", iter(halves), headers, encode_chunked=True)
    answer = connection.getresponse()

    assert (answer.status, b"us-east-1" in answer.read()) == (200, True)
    assert connection.sock is None


def test_a_cloud_that_stops_answers_nobody_any_more(
    cloud: LocalCloud, connection: HTTPConnection
) -> None:
    assert asked(connection, "local", REGIONS)[0] == 200
    with LocalCloud() as other:
        kept = HTTPConnection(other.endpoint_url.removeprefix("http://"), timeout=60)
        assert asked(kept, "local", REGIONS)[0] == 200

    with pytest.raises((RemoteDisconnected, ConnectionError)):
        asked(kept, "local", REGIONS)
    kept.close()
    assert asked(connection, "local", REGIONS)[0] == 200


class Watched(Server):
    """Tells what the thread of a connection ended with."""

    def __init__(self, app: App) -> None:
        super().__init__("127.0.0.1", 0, app)
        self.troubles: list[BaseException | None] = []
        self.ended = Event()

    def handle_error(self, request: object, client_address: object) -> None:
        self.troubles.append(sys.exception())

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.ended.set()


def test_who_leaves_before_the_answer_is_no_trouble() -> None:
    """As somebody's command does that ends with the sandbox: its screen shows no traceback."""
    has_left = Event()

    def app(_: Environ, start: Callable[..., None]) -> list[bytes]:
        has_left.wait(60)
        start("200 OK", [("Content-Type", "text/plain")])
        return [b"x" * 10_000]

    server = Watched(app)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    with socket.create_connection(("127.0.0.1", server.server_port)) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        # Its end is a reset, not a farewell.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    has_left.set()

    assert server.ended.wait(60)
    assert server.troubles == []
    server.shutdown()
    thread.join()
    server.server_close()
