"""A connection to the local cloud serves one request after the other, each whole."""

from collections.abc import Iterator
from http.client import HTTPConnection, RemoteDisconnected

import pytest

from local.cloud import LocalCloud

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
